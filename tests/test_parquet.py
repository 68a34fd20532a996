"""Data files: every row once, in the file of its partition, described as the file is."""

from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlake.lake.layout import DAY, HOUR, DatePartition
from eventlake.lake.parquet import DataFile, FileSizes, PartitionedWriter
from eventlake.lake.segment import SegmentDialect
from eventlake.storage.local import LocalStorage

DIALECT = SegmentDialect("src1", "web")
MOMENTS = st.integers(-3 * HOUR, 3 * HOUR) | st.sampled_from([-HOUR - 1, -HOUR, -1, 0, HOUR - 1, HOUR])

MAX_OPEN = FileSizes().open_files


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> LocalStorage:
    return LocalStorage(str(tmp_path_factory.mktemp("lake")))


def writer(storage: LocalStorage, *, dialect: SegmentDialect = DIALECT, **options: Any) -> PartitionedWriter:
    storage.delete_folder("out")
    return PartitionedWriter(storage.put, dialect, "page", "out", (f"run-{n}.parquet" for n in count(1)), **options)


def table(received: list[int], first_number: int = 0, **more: list[Any]) -> pa.Table:
    moments = pa.array(received, pa.timestamp("us", "UTC"))
    numbers = pa.array(range(first_number, first_number + len(received)), pa.int64())
    return pa.table({"received_at": moments, "n": numbers, **more})


def rows_of(storage: LocalStorage, file: DataFile) -> list[tuple[int, int]]:
    """When each row of a file was received, and its number."""
    rows = pq.read_table(storage.full(file.written), partitioning=None)
    return list(zip(rows["received_at"].cast(pa.int64()).to_pylist(), rows["n"].to_pylist(), strict=True))


def written(storage: LocalStorage) -> list[str]:
    return [file.path for file in storage.files("out")]


@given(
    st.lists(st.tuples(st.lists(MOMENTS, min_size=1, max_size=6), st.booleans()), max_size=5),
    st.sampled_from(DatePartition),
    st.sampled_from([1, 1 << 30]),
)
def test_every_row_is_in_one_file_of_its_partition_and_the_files_are_described_as_they_are(
    storage: LocalStorage, batches: list[tuple[list[int], bool]], layout: DatePartition, max_bytes: int
) -> None:
    dialect = SegmentDialect("src1", "web", date_partition=layout)
    out = writer(storage, dialect=dialect, sizes=FileSizes(bytes_in_memory=max_bytes))
    sent: list[tuple[int, int]] = []
    for received, rescues in batches:
        more = {"_rescued_data": ["{}"] * len(received)} if rescues else {}
        out.write(table(sorted(received), len(sent), **more))
        sent += [(moment, len(sent) + place) for place, moment in enumerate(sorted(received))]
    files = out.close()
    found = []
    for file in files:
        rows = rows_of(storage, file)
        found += rows
        moments = [moment for moment, _ in rows]
        assert {moment // layout.width for moment in moments} == {moments[0] // layout.width}
        number = moments[0] // layout.width
        values = layout.values(number)
        name = file.written.rpartition("/")[2]
        assert (file.table_key, file.partition) == ("page", values)
        assert file.path == f"segment-data/data/src1/segment_type=page/{layout.folder(number)}/{name}"
        assert (file.rows, file.first_received, file.last_received) == (len(rows), min(moments), max(moments))
        assert file.size == Path(storage.full(file.written)).stat().st_size
        assert file.digest == storage.digest(file.written)
    assert sorted(found) == sorted(sent)
    assert [file.written for file in files] == [f"out/run-{number}.parquet" for number in range(1, len(files) + 1)]
    assert sorted(file.written for file in files) == written(storage)


def test_a_partition_has_one_file_however_often_rows_come_unless_they_have_more_columns(storage: LocalStorage) -> None:
    out = writer(storage)
    out.write(table([1, HOUR + 1]))
    out.write(table([2], 2))
    out.write(table([3], 3, _rescued_data=["{}"]))
    out.write(table([0], 4))
    first, second, third = out.close()
    assert rows_of(storage, first) == [(1, 0), (2, 2), (0, 4)]
    assert rows_of(storage, second) == [(HOUR + 1, 1)]
    assert rows_of(storage, third) == [(3, 3)]
    assert pq.read_schema(storage.full(third.written)).names == ["received_at", "n", "_rescued_data"]
    assert (first.first_received, first.last_received) == (0, 2)


def test_closing_again_tells_the_same_files(storage: LocalStorage) -> None:
    out = writer(storage)
    out.write(table([1]))
    assert list(out.close()) == out.close()
    assert len(out.close()) == 1


@pytest.mark.parametrize(("partitions", "finished"), [(MAX_OPEN, 0), (MAX_OPEN + 1, MAX_OPEN)])
def test_a_backfill_of_years_holds_a_hundred_files_at_once(
    storage: LocalStorage, partitions: int, finished: int
) -> None:
    out = writer(storage)
    out.write(table([number * HOUR for number in range(partitions)]))
    assert len(written(storage)) == finished
    assert sum(file.rows for file in out.close()) == partitions


def test_files_are_finished_when_they_fill_the_memory_and_not_before(storage: LocalStorage) -> None:
    out = writer(storage, sizes=FileSizes(bytes_in_memory=100_000))
    noise = [f"{number * 7919 % 1_000_003:x}" * 8 for number in range(30_000)]
    out.write(table([0], 0, noise=noise[:1]))
    assert written(storage) == []
    out.write(table(list(range(30_000)), 1, noise=noise))
    assert written(storage) == ["out/run-1.parquet"]
    out.write(table([0], 30_001, noise=noise[:1]))
    assert written(storage) == ["out/run-1.parquet"]
    assert [file.rows for file in out.close()] == [30_001, 1]


def test_files_are_small_and_can_be_read_by_everything(storage: LocalStorage) -> None:
    """Instants as INT64, snappy, no schema that only Arrow reads, no dictionary where all values differ or none is."""
    out = writer(storage)
    received = [0] * 33
    times = pa.array(received, pa.timestamp("us", "UTC"))
    more = dict.fromkeys(("sent_at", "timestamp", "original_timestamp"), times)
    nothing, one = pa.nulls(33, pa.string()), ["x", *[None] * 32]
    ids = [f"m{number}" for number in range(33)]
    out.write(table(received, message_id=ids, user_id=["u"] * 33, one=one, no=nothing, **more))
    (file,) = out.close()
    described = pq.read_metadata(storage.full(file.written))
    columns = {part.path_in_schema: part for part in map(described.row_group(0).column, range(described.num_columns))}
    assert {part.compression for part in columns.values()} == {"SNAPPY"}
    assert columns["received_at"].physical_type == "INT64"
    assert {name for name, part in columns.items() if part.has_dictionary_page} == {"n", "user_id", "one"}
    assert described.metadata is None
    assert pq.read_schema(storage.full(file.written)).field("received_at").type == pa.timestamp("us", "UTC")


def test_a_file_of_few_rows_has_no_dictionaries(storage: LocalStorage) -> None:
    out = writer(storage)
    out.write(table([*[0] * 32, *[HOUR] * 33], user_id=["u"] * 65))
    few, many = (pq.read_metadata(storage.full(file.written)).row_group(0) for file in out.close())
    user_ids = [
        part
        for group in (few, many)
        for part in map(group.column, range(group.num_columns))
        if part.path_in_schema == "user_id"
    ]
    assert [(part.num_values, part.has_dictionary_page) for part in user_ids] == [(32, False), (33, True)]


def test_a_day_is_one_partition_where_the_source_wants_no_hours(storage: LocalStorage) -> None:
    out = writer(storage, dialect=SegmentDialect("web", "web", date_partition=DatePartition.DAY))
    out.write(table([0, DAY - 1, DAY]))
    assert [(file.partition, file.rows) for file in out.close()] == [(("1970-01-01",), 2), (("1970-01-02",), 1)]


def test_rows_of_one_partition_that_come_together_are_one_group(storage: LocalStorage) -> None:
    out = writer(storage)
    out.write(table([0, 1, HOUR, HOUR + 1, HOUR + 2, 2 * HOUR]))
    files = out.close()
    assert [pq.read_metadata(storage.full(file.written)).num_row_groups for file in files] == [1, 1, 1]


def test_a_group_has_no_more_rows_than_it_may(storage: LocalStorage) -> None:
    out = writer(storage, sizes=FileSizes(rows_per_group=2))
    out.write(table([0, 1, 2, 3, 4]))
    (file,) = out.close()
    groups = pq.read_metadata(storage.full(file.written))
    assert [groups.row_group(number).num_rows for number in range(groups.num_row_groups)] == [2, 2, 1]
