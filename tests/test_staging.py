"""Staged files: what a task wrote is read back, piece by piece."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlake.errors import InternalError
from eventlake.lake import ids
from eventlake.lake.staging import IdSegment, StagedFile, field_name, place_of, read_segment, rows_with
from eventlake.schema.kinds import Kind, Place
from eventlake.storage.local import LocalStorage
from strategies import keys


def batch(*values: int | None) -> pa.RecordBatch:
    texts = pa.array([None if value is None else f"text {value}" for value in values], pa.string())
    return rows_with([("n", pa.array(values, pa.int64())), ("text", texts)])


def test_segments_and_ids_of_one_file_are_read_back_from_where_they_are(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    batches = [batch(1, None, 3), batch(*range(5000)), batch(7)]
    messages = ids.Ids(ids.from_digests([ids.message_hash("a"), ids.message_hash("b")])).ordered()
    with StagedFile(storage, "stage/one") as staged:
        segments = [staged.append(batches[0], 0)]
        id_segment = staged.append_ids(messages)
        segments += [staged.append(batches[1], 3), staged.append(batches[2], 5003)]
    assert [(segment.path, segment.first_message, segment.rows) for segment in segments] == [
        ("stage/one", 0, 3),
        ("stage/one", 3, 5000),
        ("stage/one", 5003, 1),
    ]
    assert id_segment == IdSegment("stage/one", segments[0].size, 2)
    with storage.open_input("stage/one") as source:
        for segment, rows in reversed(list(zip(segments, batches, strict=True))):
            assert read_segment(source, segment).equals(rows)
        read = ids.IdFile(source, id_segment.offset, ("high", "low")).read(ids.Share(0, 256), ("high", "low"))
    assert np.array_equal(read["high"], messages["high"])
    assert np.array_equal(read["low"], messages["low"])
    end = segments[-1]
    assert Path(storage.full("stage/one")).stat().st_size == end.offset + end.size


def test_what_repeats_is_packed(tmp_path: Path) -> None:
    with StagedFile(LocalStorage(str(tmp_path)), "one") as staged:
        segment = staged.append(batch(*[1] * 5000), 0)
    assert segment.size < segment.unpacked_size / 4


def test_a_task_that_fails_leaves_a_closed_file(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    staged = StagedFile(storage, "one")
    segment = staged.append(batch(1), 0)
    with pytest.raises(AttributeError), staged:
        staged.append(None, 1)
    assert Path(storage.full("one")).stat().st_size == segment.size
    with pytest.raises(ValueError, match="closed"):
        staged.append(batch(2), 1)


@given(keys(), st.text(st.characters(categories=["L", "Cs", "P"])), st.sampled_from(Kind))
def test_a_field_tells_the_place_of_its_values(column: str, pointer: str, kind: Kind) -> None:
    place = Place(column, pointer, kind)
    field_name.cache_clear()
    assert place_of(field_name(place)) == place


def test_a_place_that_is_staged_twice_is_a_fault_of_ours() -> None:
    values = pa.array([1])
    assert rows_with([("a", values), ("b", values)]).schema.names == ["a", "b"]
    with pytest.raises(InternalError) as caught:
        rows_with([("a", values), ("b", values), ("a", values)])
    told = caught.value
    assert (told.problem, told.fix) == (
        "a place of the events was staged twice",
        "report this with the log: it is a bug",
    )
