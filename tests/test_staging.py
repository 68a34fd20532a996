"""Staged files: what a task wrote is read back, piece by piece."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventlake.errors import DamagedError, InternalError
from eventlake.lake import ids
from eventlake.lake.staged_rows import StagedRows, joined
from eventlake.lake.staging import RESCUED, Field, IdSegment, Packed, StagedFile, packed, read_rows, rows_in
from eventlake.schema.kinds import Kind, Place
from eventlake.storage.base import Part
from eventlake.storage.local import LocalStorage
from staged_rows import RESCUED as RESCUED_PLACE
from staged_rows import rows_of, rows_of_piece

NUMBER, TEXT = Place("n", "/n", Kind.INTEGER), Place("t", "/a/t", Kind.TEXT)


def piece(*values: int | None) -> Packed:
    texts = pa.array([None if value is None else f"text {value}" for value in values], pa.string())
    fields = [(NUMBER.pointer, NUMBER.kind, pa.array(values, pa.int64())), (TEXT.pointer, TEXT.kind, texts)]
    return packed(np.arange(len(values)), fields, {"page": [("n", 0), ("t", 1)]})


def rows(*values: int | None) -> list[dict[Place, Any]]:
    return [{} if value is None else {NUMBER: value, TEXT: f"text {value}"} for value in values]


def test_segments_and_ids_of_one_file_are_read_back_from_where_they_are(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    contents = [(1, None, 3), tuple(range(5000)), (7,)]
    messages = ids.Ids(ids.from_digests([ids.message_hash("a"), ids.message_hash("b")])).ordered()
    with StagedFile(storage, "stage/one") as staged:
        segments = [staged.append(piece(*contents[0]), 0)]
        id_segment = staged.append_ids(messages)
        segments += [staged.append(piece(*contents[1]), 3), staged.append(piece(*contents[2]), 5003)]
    assert [(segment.first_message, segment.rows) for segment in segments] == [(0, 3), (3, 5000), (5003, 1)]
    assert id_segment == IdSegment("stage/one", segments[0].size, 2)
    parts = storage.read_parts([Part("stage/one", segment.offset, segment.size) for segment in segments])
    for segment, content, values in zip(segments, parts, contents, strict=True):
        found = read_rows(content, segment, "page")
        assert rows_of(found) == rows(*values)
        assert found.received.tolist() == list(range(len(values)))
    with storage.open_input("stage/one") as source:
        read = ids.IdFile(source, id_segment.offset, ("high", "low")).read(ids.Share(0, 256), ("high", "low"))
    assert np.array_equal(read["high"], messages["high"])
    assert np.array_equal(read["low"], messages["low"])
    end = segments[-1]
    assert Path(storage.full("stage/one")).stat().st_size == end.offset + end.size


def test_what_repeats_is_packed(tmp_path: Path) -> None:
    with StagedFile(LocalStorage(str(tmp_path)), "one") as staged:
        segment = staged.append(piece(*[1] * 5000), 0)
    assert segment.size < segment.unpacked_size / 3  # and that is when each was received


def test_a_task_that_fails_leaves_a_closed_file(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    staged = StagedFile(storage, "one")
    segment = staged.append(piece(1), 0)
    with pytest.raises(ZeroDivisionError), staged:
        1 / 0  # noqa: B018 # it is the error that is wanted
    assert Path(storage.full("one")).stat().st_size == segment.size
    with pytest.raises(ValueError, match="closed"):
        staged.append(piece(2), 1)


VALUES: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.TEXT: st.text(max_size=9) | st.just(""),
    Kind.INTEGER: st.integers(-(2**63), 2**63 - 1),
    Kind.NUMBER: st.decimals(allow_nan=False, allow_infinity=False).map(str),
    Kind.BOOLEAN: st.booleans(),
    Kind.JSON: st.lists(st.integers()).map(str),
}
ARROW = {Kind.INTEGER: pa.int64(), Kind.BOOLEAN: pa.bool_()}


class Chunk(NamedTuple):
    rows: int
    fields: list[tuple[str, Kind, list[Any]]]


@st.composite
def chunks(draw: st.DrawFn) -> Chunk:
    """Columns with a value in every row, in most, or in few."""
    count = draw(st.integers(1, 30))
    found = []
    for number in range(draw(st.integers(0, 6))):
        kind = draw(st.sampled_from(list(Kind)))
        share = draw(st.sampled_from([1, 2, 8, 9, 20]))
        cells = [draw(VALUES[kind]) if (row + number) % share == 0 else None for row in range(count)]
        if any(cell is not None for cell in cells):
            found.append((f"/{number}", kind, cells))
    return Chunk(count, found)


@given(st.lists(chunks(), min_size=1, max_size=3))
@example([Chunk(9, [("/0", Kind.TEXT, [""] + [None] * 8), ("/1", Kind.TEXT, [""] * 9)])])
@example([Chunk(9, [("/0", Kind.BOOLEAN, [None] * 8 + [True])]), Chunk(2, [("/0", Kind.BOOLEAN, [False, None])])])
def test_every_cell_of_any_kind_comes_back_in_its_row(several: list[Chunk]) -> None:
    staged, expected, kept_rows = [], [], []
    for count, found in several:
        arrays = [(pointer, kind, pa.array(cells, ARROW.get(kind, pa.string()))) for pointer, kind, cells in found]
        columns = [(f"c{pointer[1:]}", number) for number, (pointer, _, _) in enumerate(arrays)]
        made = packed(np.arange(count) * 7, arrays, {"page": columns, "other": []})
        for number, (_, kind, array) in enumerate(arrays):
            assert made.typed(number).kind is kind
            assert made.typed(number).values.drop_null().to_pylist() == array.drop_null().to_pylist()
        of_part = [
            {
                Place(f"c{pointer[1:]}", pointer, kind): cells[row]
                for pointer, kind, cells in found
                if cells[row] is not None
            }
            for row in range(count)
        ]
        assert rows_of_piece(made, "page") == of_part
        assert rows_of_piece(made, "other") == [{}] * count
        keep = np.arange(count) % 3 != 1
        staged.append(rows_in(pa.py_buffer(made.content), "page"))
        assert rows_of(staged[-1].kept(keep)) == [row for row, stays in zip(of_part, keep, strict=True) if stays]
        assert staged[-1].kept(keep).received.tolist() == (np.arange(count) * 7)[keep].tolist()
        expected += of_part
        kept_rows += (np.arange(count) * 7).tolist()
    whole = joined(staged)
    assert rows_of(whole) == expected
    assert whole.received.tolist() == kept_rows


@pytest.mark.parametrize(
    ("kind", "cells", "size"),
    [
        (Kind.INTEGER, [1] * 9, 72),
        (Kind.INTEGER, [1, None] * 40, 16 + 640),  # with a bit for each row
        (Kind.BOOLEAN, [True] * 64, 8),
        (Kind.BOOLEAN, [True] * 65, 16),
        (Kind.BOOLEAN, [True, None] * 32, 8 + 8),
        (Kind.BOOLEAN, [True, None] * 33, 16 + 16),
        (Kind.TEXT, ["ab"] * 3, 16 + 8),
        (Kind.TEXT, ["ab"] * 4, 24 + 8),
        (Kind.TEXT, ["ab", None] * 2, 8 + 24 + 8),
        (Kind.INTEGER, [1, *[None] * 7], 8 + 64),
        (Kind.INTEGER, [1, *[None] * 8], 8 + 8),  # few enough to number the rows
        (Kind.TEXT, ["abcdefghi", *[None] * 99], 8 + 8 + 16),
    ],
)
def test_a_piece_has_no_more_bytes_than_it_needs(kind: Kind, cells: list[Any], size: int) -> None:
    array = pa.array(cells, ARROW.get(kind, pa.string()))
    made = packed(np.arange(len(cells)), [("/a", kind, array)], {"page": [("a", 0)]})
    assert len(made.body) == 8 * len(cells) + size
    assert [row.get(Place("a", "/a", kind)) for row in rows_of_piece(made, "page")] == cells


@pytest.mark.parametrize("kind", Kind)
def test_a_part_of_a_larger_array_is_staged_as_that_part(kind: Kind) -> None:
    of_kind: dict[Kind, list[Any]] = {Kind.INTEGER: [7, 8, 9, 10], Kind.BOOLEAN: [True, False, True, True]}
    values = of_kind.get(kind, ["a", "bc", "", "def"])
    array = pa.array(values, ARROW.get(kind, pa.string()))[1:3]
    made = packed(np.arange(2), [("/a", kind, array)], {"page": [("a", 0)]})
    assert [row.get(Place("a", "/a", kind)) for row in rows_of_piece(made, "page")] == values[1:3]


def altered(made: Packed, **changes: int) -> pa.Buffer:
    """A piece whose first field somebody changed."""
    fields = made.fields.copy()
    for name, value in changes.items():
        fields[0, Field._fields.index(name)] = value
    return pa.py_buffer(made._replace(fields=fields).content)


@pytest.mark.parametrize("cells", [["ab", "cd", None], ["ab", *[None] * 20]], ids=["dense", "sparse"])
@pytest.mark.parametrize("changes", [{"offsets_at": 1 << 20}, {"data_at": 1 << 20}, {"values": 1 << 20}])
def test_a_piece_that_somebody_altered_is_refused(cells: list[str | None], changes: dict[str, int]) -> None:
    made = packed(np.arange(len(cells)), [("/a", Kind.TEXT, pa.array(cells, pa.string()))], {"page": [("a", 0)]})
    assert rows_in(pa.py_buffer(made.content), "page").nbytes > 0
    with pytest.raises((DamagedError, ValueError)):
        rows_in(altered(made, **changes), "page")


@pytest.mark.parametrize(
    ("at", "value"),
    [("offsets_at", 1 << 30), ("offsets_at", -5), ("rows_at", 21), ("rows_at", -1), ("rows_at", 1 << 30)],
)
def test_numbers_that_lead_out_of_a_piece_are_refused(at: str, value: int) -> None:
    cells = ["ab", "cd", *[None] * 19]
    made = packed(np.arange(21), [("/a", Kind.TEXT, pa.array(cells, pa.string()))], {"page": [("a", 0)]})
    place = int(made.fields[0, Field._fields.index(at)]) + 4  # of the second
    made.body[place : place + 4] = np.array([value], np.int32).view(np.uint8)
    with pytest.raises(DamagedError, match="not what was written"):
        rows_in(pa.py_buffer(made.content), "page")


def test_what_was_rescued_goes_with_its_rows() -> None:
    def part(*texts: str | None) -> StagedRows:
        fields = [("", Kind.JSON, pa.array(texts, pa.string()))]
        return rows_in(pa.py_buffer(packed(np.arange(len(texts)), fields, {"page": [(RESCUED, 0)]}).content), "page")

    def rescued(rows: StagedRows) -> list[Any]:
        return [row.get(RESCUED_PLACE) for row in rows_of(rows)]

    first, second = part("a", None, "b"), part(*[None] * 20, "c")
    assert rescued(first.kept(np.array([False, True, True]))) == [None, "b"]
    assert rescued(second.kept(np.arange(21) > 10)) == [*[None] * 9, "c"]
    nothing = rows_in(pa.py_buffer(piece(1, 2).content), "page")
    assert rescued(joined([first, nothing, second])) == ["a", None, "b", None, None, *[None] * 20, "c"]
    assert joined([nothing, nothing]).rescued is None
    assert nothing.kept(np.array([True, False])).rescued is None


def test_rows_tell_how_large_they_are() -> None:
    small = packed(np.arange(2), [("/a", Kind.TEXT, pa.array(["x"] * 2))], {"page": [("a", 0)]})
    assert rows_in(pa.py_buffer(small.content), "page").nbytes < 50
    many = packed(np.arange(2), [("", Kind.JSON, pa.array(["z" * 1000] * 2))], {"page": [(RESCUED, 0)]})
    assert rows_in(pa.py_buffer(many.content), "page").nbytes > 2000


def test_each_table_of_a_route_has_its_own_columns_and_its_own_rescued_values() -> None:
    texts = [pa.array(values, pa.string()) for values in (["x", "y"], [None, "{}"])]
    made = packed(
        np.array([1, 2]),
        [("/a", Kind.TEXT, texts[0]), ("", Kind.JSON, texts[1])],
        {"all": [("a", 0)], "own": [("properties_a", 0), (RESCUED, 1)]},
    )
    assert rows_of_piece(made, "all") == [{Place("a", "/a", Kind.TEXT): "x"}, {Place("a", "/a", Kind.TEXT): "y"}]
    own = Place("properties_a", "/a", Kind.TEXT)
    assert rows_of_piece(made, "own") == [{own: "x"}, {own: "y", RESCUED_PLACE: "{}"}]


def test_a_place_that_is_staged_twice_is_a_fault_of_ours() -> None:
    values = pa.array([1])
    fields_of_both = [("/a", Kind.INTEGER, values), ("/b", Kind.INTEGER, values), ("/a", Kind.INTEGER, values)]
    packed(np.array([0]), fields_of_both, {"page": [("a", 0), ("a", 1)], "other": [("a", 2)]})
    with pytest.raises(InternalError) as caught:
        packed(np.array([0]), fields_of_both, {"page": [("a", 0), ("b", 1), ("a", 2)]})
    told = caught.value
    assert (told.problem, told.fix) == (
        "a place of the events was staged twice",
        "report this with the log: it is a bug",
    )
