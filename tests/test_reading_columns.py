"""Lines read as columns: what is called whole is exactly what the exact reader reads."""

import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventlake.demo import events as demo
from eventlake.demo.events import Recipe
from eventlake.lake.dialects import SegmentDialect
from eventlake.lake.staging import RECEIVED, RESCUED, place_of, read_segment
from eventlake.reading import columns, exact_json
from eventlake.reading.columns import ColumnReader, ColumnSizes
from eventlake.reading.flatten import Flattener, TableColumns
from eventlake.reading.line_reader import ReadingSizes
from eventlake.schema.evolve import Evidence
from eventlake.schema.kinds import Kind, by_kind
from eventlake.schema.rescue import pointer
from eventlake.storage.local import LocalStorage
from eventlake.tasks.stage import stage
from eventlake.tasks.staged import RawFile, StageContext, StageSizes
from strategies import json_lines, json_values, plain_line

Values = dict[tuple[str, Kind], Any]


def read(lines: list[bytes], at_once: int = 3) -> list[Values | None]:
    """What is read of each line as columns, if it is whole; all keys of all lines are known."""
    reader = ColumnReader(ColumnSizes(lines_at_once=at_once))
    for line in lines:
        try:
            reader.learn(exact_json.parse(line).value)
        except exact_json.NotJsonError:
            continue
    whole, leaves, surplus = reader.read(lines)
    assert not surplus.any()
    found: list[Values | None] = [{} if is_whole else None for is_whole in whole]
    for leaf in leaves:
        for row, value in zip(leaf.rows.tolist(), leaf.values.to_pylist(), strict=True):
            values = found[row]
            if values is None:
                continue
            assert (pointer(leaf.path), leaf.kind) not in values
            values[pointer(leaf.path), leaf.kind] = value
    return found


def exactly(line: bytes) -> Values:
    """What the exact reader finds; raises if it sets anything aside."""
    event, set_aside = exact_json.parse(line)
    flattener = Flattener(TableColumns())
    flattener.add(event, set_aside)
    chunk = flattener.take()
    # Two values may go to one column: `_rescued_data` has the second then.
    rescued = {entry.pointer: json.loads(entry.json_text) for entry in chunk.rescued.get(0, [])}
    assert not set_aside
    found = {(where, kind): array[0].as_py() for _, where, cells in chunk.columns for kind, array in by_kind(cells)}
    return found | {(where, _kind_of(value)): value for where, value in rescued.items()}


def _kind_of(value: Any) -> Kind:
    kinds = {str: Kind.TEXT, bool: Kind.BOOLEAN, int: Kind.INTEGER, float: Kind.NUMBER, list: Kind.JSON}
    return kinds[type(value)]


def check(lines: list[bytes], at_once: int = 3) -> int:
    """Compare what is whole with the exact reader; how many lines were whole."""
    found = read(lines, at_once)
    for line, values in zip(lines, found, strict=True):
        if values is not None:
            expected = exactly(line)
            assert {place: _as_sent(place, value) for place, value in values.items()} == {
                place: _as_sent(place, value) for place, value in expected.items()
            }
    return sum(values is not None for values in found)


def _as_sent(place: tuple[str, Kind], value: Any) -> Any:
    if place[1] is Kind.NUMBER:
        return str(value)
    return value if isinstance(value, str) or place[1] is not Kind.JSON else exact_json.json_text(value)


def web_event(number: int) -> dict[str, Any]:
    return {
        "type": "track",
        "event": "Order Completed",
        "messageId": f"m{number}",
        "anonymousId": None,
        "context": {"library": {"name": "js", "version": "1"}, "locale": "nl-NL", "screen": {"density": 1.5}},
        "integrations": {"All": True} if number % 2 else {},
        "properties": {
            "n": number,
            "total": number / 4,
            "first": number == 0,
            "title": 'a "quoted"\nline \\ é 🎉',
            "products": [{"sku": f"p{number}", "price": 12.5, "tags": []}],
        },
    }


# Ordinary events are read so


def test_ordinary_events_are_whole() -> None:
    lines = [plain_line(web_event(number)) for number in range(20)]
    assert check(lines) == 20


def test_demo_events_are_whole() -> None:
    lines = list(demo.lines(Recipe(3000)))
    assert check(lines, at_once=1000) == len(lines)


def test_spaces_between_members_change_nothing() -> None:
    lines = [json.dumps(web_event(number)).encode() for number in range(20)]
    lines += [json.dumps(web_event(number), ensure_ascii=False).encode() for number in range(20)]
    assert check(lines) == 20  # escapes that need not be are for the exact reader


def test_lines_may_end_as_on_windows() -> None:
    assert check([plain_line(web_event(number)) + b"\r" for number in range(5)]) == 5


def test_lines_may_lack_keys_and_have_values_of_other_kinds() -> None:
    values: list[Any] = [1, "1", True, None, 1.25, [1, {"a": 2}], "", False, -7, "é"]
    lines = [plain_line({"type": "track", "x": value, f"only{row}": row}) for row, value in enumerate(values)]
    assert check(lines) == len(values)


@pytest.mark.parametrize("at_once", [1, 2, 7, 20, 100])
def test_lines_are_the_same_however_many_are_read_at_once(at_once: int) -> None:
    lines = [plain_line(web_event(number)) for number in range(20)]
    found = read(lines, at_once)
    assert [values and values["/messageId", Kind.TEXT] for values in found] == [f"m{number}" for number in range(20)]
    assert found == read(lines, 1000)


# What is not exactly what was sent is never taken for it


def rounded_numbers() -> st.SearchStrategy[str]:
    """Numbers about as long as a double holds, and longer."""
    whole, fraction = st.integers(1, 10**12 - 1), st.text("0123456789", min_size=1, max_size=12)
    return st.builds("{}{}.{}".format, st.sampled_from(["", "-"]), whole, fraction)


@given(st.lists(rounded_numbers(), min_size=1, max_size=20))
@example(["1901749037.9184876"])  # as a double it is …875
@example(["9.290736625851781", "-8.586570704999622"])  # sixteen digits, and as doubles they end in 2 and 1
def test_every_digit_of_a_number_is_kept_or_the_line_left_to_the_exact_reader(numbers: list[str]) -> None:
    lines = [f'{{"n":{number}}}'.encode() for number in numbers]
    for number, values in zip(numbers, read(lines), strict=True):
        assert values in (None, {("/n", Kind.NUMBER): number})
    nested = [f'{{"n":[{{"x":{number}}}]}}'.encode() for number in numbers]
    for number, values in zip(numbers, read(nested), strict=True):
        assert values in (None, {("/n", Kind.JSON): f'[{{"x":{number}}}]'})


@pytest.mark.parametrize("number", ["0.5", "12.25", "-3.75", "123456789.12345", "1234567890.1234"])
def test_numbers_that_a_double_holds_are_read_at_once(number: str) -> None:
    assert read([f'{{"n":{number}}}'.encode()]) == [{("/n", Kind.NUMBER): number}]


@given(st.lists(json_lines(), min_size=1, max_size=6))
def test_hostile_events_are_read_exactly_or_not_at_all(lines: list[bytes]) -> None:
    check(lines)


NUMBERS = ["1e2", "1e-2", "1E5", "-0", "-0.0", "0.0", "100.0", "0.01", "1.10", "-0E0", "1e400", "12345678901234567.5"]
PIECES = [":null", ":{}", ":-0E0", ":-0.0", '{"{}":0}', ":[]", ":1e5", "\\u003anull", " ", ":", ": null", '":null']


def _texts() -> st.SearchStrategy[bytes]:
    """Values that were made to make up for the length of others."""
    text = st.lists(st.sampled_from(PIECES), max_size=3).map("".join)
    numbers = st.sampled_from(NUMBERS) | st.floats(allow_nan=False, allow_infinity=False).map(repr)
    return (text.map(json.dumps) | numbers | st.sampled_from(["null", "{}", "[]", '""', "10", "[null]", "5 "])).map(
        str.encode
    )


@given(
    st.lists(
        st.dictionaries(st.sampled_from(["a", "b", "A", "{}", "a:null"]), _texts(), max_size=4), min_size=1, max_size=4
    )
)
@example([{"a": b"5 "}, {"a": b"{}"}, {"a": b'{"b":1}'}])
@example([{"a": b"1e-2", "b": b" 5"}])
@example([{"a": b'":null"', "b": b"-0.0"}, {"b": b"null"}])
@example([{"a": b'{"{}":0}'}, {"a": b"{}"}])
def test_lines_whose_lengths_add_up_by_chance_are_noticed(members: list[dict[str, bytes]]) -> None:
    lines = [
        b"{" + b",".join(json.dumps(key).encode() + b":" + text for key, text in line.items()) + b"}"
        for line in members
    ]
    nested = [b'{"x":' + line + b',"y":[' + line + b"]}" for line in lines]
    check(lines + nested)


@given(st.integers(0, 2**32))
def test_a_line_that_was_changed_in_transit_is_read_exactly_or_not_at_all(seed: int) -> None:
    dice = random.Random(seed)
    lines = [plain_line(web_event(number)) for number in range(3)]
    changed = []
    for line in lines * 3:
        copy = bytearray(line)
        for _ in range(dice.randrange(1, 4)):
            place = dice.randrange(len(copy))
            other = dice.choices(b'{}[]":,\\0-1.eE\x00\xff nul ', k=dice.randrange(3))
            copy[place : place + dice.randrange(3)] = bytes(other)
        changed.append(bytes(copy).replace(b"\n", b""))
    check(lines + changed)


@pytest.mark.parametrize(
    "line",
    [
        b'{"a":1,"a":2}',
        b'{"a":1,}',
        b'{"a":NaN}',
        b'{"a":"\\ud800"}',
        b'{"a":"\xff"}',
        b'\xef\xbb\xbf{"a":1}',
        b'{"a":1}{"a":1}',
        b'{"a":1',
        b'{"a":01}',
        b'{"a":123456789012345678901234567890}',
        b'{"a":0.1234567890123456789}',
        b'{"a":1.50}',
        b'{"a":[1.50]}',
        b'{"a":[1e2]}',
        b'{"a":[1E-7]}',
        b'{"a":[NaN]}',
        b'{"a":[1,-Infinity]}',
        b'{"a":[{"b":nan}]}',
        b'{"a":{}}',
        b"5",
        b"null",
        b"",
        b" ",
        b'{"a":' + b"[" * 700 + b"]" * 700 + b"}",
        b'{"a":{"b":' * 20 + b"1" + b"}}" * 20,
    ],
)
def test_odd_lines_are_left_to_the_exact_reader_and_stop_nobody(line: bytes) -> None:
    plain = [b'{"a":1,"c":{"b":"x"}}', b'{"a":"x"}']
    assert read([plain[0], line, plain[1]])[1] is None
    assert check([plain[0], plain[1]]) == 2
    assert [values is not None for values in read([*plain, line])][:2] == [True, True]


# Senders that make things up


def test_keys_that_differ_by_case_and_keys_that_are_no_names_stop_nobody() -> None:
    odd = [{"x": 1, "X": 2}, {"": 1}, {"a\u0000b": 1}, {"'; DROP TABLE lines; --": 1}, {'"': 1}, {"É": 1, "é": 2}]
    lines = [plain_line({"type": "track", **members}) for members in odd] + [plain_line({"type": "track", "x": 3})]
    check(lines)
    assert read(lines)[-1] is not None


def test_a_sender_that_makes_up_keys_does_not_fill_the_memory() -> None:
    reader = ColumnReader(ColumnSizes(places=20))
    for number in range(100):
        reader.learn({"type": "track", f"key{number}": {f"key{number}": number}})
    whole, leaves, _ = reader.read([b'{"type":"track"}', b'{"type":"track","key99":{"key99":99}}'])
    assert whole.tolist() == [True, False]
    assert [leaf.path for leaf in leaves] == [("type",)]


# What is learned


def whole(lines: list[bytes], sizes: ColumnSizes | None = None, *, learned: list[Any]) -> list[bool]:
    """Which lines are whole to a reader that met these events."""
    reader = ColumnReader(sizes or ColumnSizes())
    assert not reader.has_learned
    for event in learned:
        reader.learn(event)
    assert reader.has_learned == any(learned)
    found: list[bool] = reader.read(lines).whole.tolist()
    return found


def test_a_reader_that_has_learned_nothing_leaves_every_line_to_the_exact_reader() -> None:
    found, leaves, surplus = ColumnReader().read([b'{"a":1}', b"{}", b"no"])
    assert (~found).tolist() == (~surplus).tolist() == [True] * 3
    assert leaves == []
    assert whole([b"5"], learned=[[], None]) == [False]


def test_keys_with_quotes_are_read_like_others() -> None:
    assert read([b"""{"it's":1,"'":{"''":"'"}}"""]) == [{("/it's", Kind.INTEGER): 1, ("/'/''", Kind.TEXT): "'"}]


def test_as_many_places_of_such_names_are_learned_as_is_set() -> None:
    keys = [b'{"a":1}', b'{"b":1}', b'{"c":{"d":1}}', b'{"e":1}']
    event = {"a": 1, "b": 1, "c": {"d": 1}, "e": 1}
    assert whole(keys, ColumnSizes(places=4), learned=[event]) == [True, True, True, False]
    assert whole(keys, ColumnSizes(places=5), learned=[event]) == [True] * 4
    long = [b'{"abcde":1}', b'{"abcdef":1}', b'{"z":1}']
    assert whole(long, ColumnSizes(longest_key=5), learned=[{"abcdef": 1, "abcde": 1, "": 1, "z": 1}]) == [
        True,
        False,
        True,
    ]


@pytest.mark.parametrize(("levels", "is_whole"), [(11, True), (12, True), (13, False), (20, False)])
def test_objects_are_looked_into_down_to_a_depth(levels: int, is_whole: bool) -> None:
    line = b'{"a":' * levels + b"1" + b"}" * levels
    assert (read([line]) != [None]) == is_whole


@pytest.mark.parametrize(
    ("objects", "values", "is_object"), [(1, 0, True), (1, 1, False), (2, 1, True), (2, 2, False), (3, 2, True)]
)
def test_what_is_met_more_often_at_a_place_decides_whether_it_is_an_object(
    objects: int, values: int, is_object: bool
) -> None:
    met = [{"a": {"b": 1}}] * objects + [{"a": 5}] * values
    for learned in (met, met[::-1], [*met, {"a": None}, {"a": None}]):
        assert whole([b'{"a":{"b":1}}', b'{"a":5}'], learned=learned) == [is_object, not is_object]


def test_what_decides_is_counted_on_while_lines_are_read() -> None:
    reader = ColumnReader()
    found = []
    for event in ({"a": 5}, {"a": {"b": 1}}, {"a": {"b": 1}}, {"a": 5}):
        reader.learn(event)
        found.append(reader.read([b'{"a":5}', b'{"a":{"b":1}}']).whole.tolist())
    assert found == [[True, False], [True, False], [False, True], [True, False]]


def test_lines_are_read_although_duckdb_cuts_its_message_within_a_letter() -> None:
    odd = '{"a":"' + "é" * 100 + '"}}'
    assert read([b'{"a":1}', odd.encode(), b'{"a":2}'], at_once=3) == [
        {("/a", Kind.INTEGER): 1},
        None,
        {("/a", Kind.INTEGER): 2},
    ]


def test_lines_are_let_go_of_once_they_are_read() -> None:
    connection = duckdb.connect()
    reader = ColumnReader(connection=connection)
    reader.learn({"a": 1})
    assert reader.read([b'{"a":1}']).whole.all()
    with pytest.raises(duckdb.CatalogException):
        connection.sql("SELECT * FROM lines")


def test_a_reader_takes_one_core_and_no_files_or_extensions() -> None:
    connection = columns._connection.__wrapped__()
    settings = connection.sql(
        "SELECT current_setting('threads'), current_setting('enable_external_access'), "
        "current_setting('autoload_known_extensions')"
    ).fetchall()
    assert settings == [(1, False, False)]


# The stage: the same whichever way lines go


class Staged(NamedTuple):
    rows: Counter[tuple[str, str]]  # table, and a row with its message
    evidence: dict[str, Evidence]
    counts: list[tuple[int, int, int, int | None, int | None]]
    quarantine: list[dict[str, Any]]


def staged(folder: Path, files: list[list[bytes]], sizes: StageSizes) -> Staged:
    storage = LocalStorage(str(folder))
    raw = []
    for number, lines in enumerate(files):
        path = f"segment-logs/s/1700000000000/{number}"
        storage.write(path, b"\n".join(lines))
        raw.append(RawFile(number, path, 1, ""))
    result = stage(StageContext("run", storage, storage, SegmentDialect("s", "d"), {}, 2000, 100, sizes=sizes), raw)
    rows: Counter[tuple[str, str]] = Counter()
    for name, table in result.tables.items():
        for segment in table.segments:
            batch = read_segment(storage.open_input(segment.path), segment)
            for row in batch.to_pylist():
                rows[name, repr(sorted(_row(row).items()))] += 1
    return Staged(
        rows,
        {name: _without_samples(table.evidence) for name, table in result.tables.items()},
        [(c.lines, c.staged, c.quarantined, c.first_received, c.last_received) for c in result.files],
        sorted(pq.read_table(folder / result.quarantine).to_pylist(), key=str) if result.quarantine else [],
    )


def _without_samples(evidence: Evidence) -> Evidence:
    """Evidence but for the values that stand for others: which these are depends on what is read together."""
    return {
        column: sighting._replace(tallies=tuple(tally._replace(sample="") for tally in sighting.tallies))
        for column, sighting in evidence.items()
    }


def _row(cells: dict[str, Any]) -> dict[str, Any]:
    cells = {name: value for name, value in cells.items() if value is not None}
    return {name if name in (RECEIVED, RESCUED) else str(place_of(name)): value for name, value in cells.items()}


ONE_BY_ONE = StageSizes(reading=ReadingSizes(fewest_at_once=1_000_000))
AS_COLUMNS = StageSizes(reading=ReadingSizes(fewest_at_once=1))


def check_stage(folder: Path, files: list[list[bytes]]) -> None:
    assert staged(folder / "columns", files, AS_COLUMNS) == staged(folder / "exact", files, ONE_BY_ONE)


ONE_LINE_OF_TWO_IS_WHOLE = [  # so the other is read after it
    b'{"type":"page","receivedAt":"soon","a":[NaN]}',
    b'{"type":"page","receivedAt":"1969-12-31T00:01Z","messageId":"e8d79f49"}',
]


@given(st.lists(st.lists(json_lines(), max_size=5), min_size=1, max_size=3))
@example([ONE_LINE_OF_TWO_IS_WHOLE])
def test_hostile_events_are_staged_the_same(tmp_path_factory: pytest.TempPathFactory, files: list[list[bytes]]) -> None:
    check_stage(tmp_path_factory.mktemp("stage"), files)


CLASHES = ["context_app_name", "Context_App_Name", "Context", "integrations_all", "received_at", "year", "messageid"]
PARTS = st.dictionaries(st.sampled_from(["app", "App", "app_name", "x"]), json_values() | st.just({"name": "x"}))


@given(
    st.lists(
        json_lines(
            st.fixed_dictionaries(
                {"type": st.sampled_from(["track", "page"]), "event": st.sampled_from(["x", "X", "y", ""])},
                optional={
                    "messageId": st.sampled_from(["m1", "m2", ""]) | json_values(),
                    "receivedAt": st.sampled_from(["2026-01-01T00:00:00Z", "soon", 5]),
                    "context": PARTS | json_values(),
                    **{key: json_values() for key in CLASHES},
                },
            ).flatmap(lambda event: st.permutations(list(event.items())).map(dict))
        ),
        max_size=6,
    )
)
def test_events_whose_columns_clash_are_staged_the_same(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]
) -> None:
    check_stage(tmp_path_factory.mktemp("stage"), [lines, lines[::-1]])


@pytest.mark.parametrize("sizes", [AS_COLUMNS, ONE_BY_ONE], ids=["as columns", "one by one"])
def test_events_of_one_table_may_have_names_that_are_written_differently(tmp_path: Path, sizes: StageSizes) -> None:
    sizes = replace(sizes, rows_per_chunk=2)  # so that a table's buffer is empty in between
    names = ["Order Completed", "order completed", "Order Completed", "orderCompleted", "order_completed"]
    with_id = [plain_line({"type": "track", "event": name, "messageId": f"m{n}"}) for n, name in enumerate(names)]
    without = [plain_line({"type": "track", "event": name}) for name in names]
    found = staged(tmp_path, [with_id, without, with_id], sizes)
    assert [(lines, kept) for lines, kept, *_ in found.counts] == [(5, 5)] * 3
    assert sum(found.rows.values()) == 15


def test_demo_events_with_conflicts_and_broken_lines_are_staged_the_same(tmp_path: Path) -> None:
    lines = list(demo.lines(Recipe(2000, conflict_share=0.1, duplicate_share=0.1, broken_share=0.1)))
    check_stage(tmp_path, [lines[:700], lines[700:705], [b"", *lines[705:], b" "]])
