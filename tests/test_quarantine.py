"""The file in which a task keeps the lines that are not events."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from eventlake.lake.lines_file import DEFAULT_SIZES, LinesFile, LineSizes
from eventlake.lake.quarantine import SCHEMA, Quarantined
from eventlake.storage.local import LocalStorage

KEPT = LineSizes().bytes_kept


def quarantine_file(storage: LocalStorage, path: str, sizes: LineSizes = DEFAULT_SIZES) -> LinesFile[Quarantined]:
    return LinesFile(storage, path, SCHEMA, sizes)


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(str(tmp_path))


def line(number: int, raw_file: str = "a.gz", content: bytes = b"\xff") -> Quarantined:
    return Quarantined(raw_file, number, "not_json", None if number % 2 else f"at {number}", len(content), content)


def kept(storage: LocalStorage, path: str = "q.parquet") -> list[Quarantined]:
    read = pq.read_table(storage.full(path))
    assert read.schema.equals(SCHEMA)
    return [Quarantined(**row) for row in read.to_pylist()]


def groups(storage: LocalStorage, path: str = "q.parquet") -> list[int]:
    described = pq.read_metadata(storage.full(path))
    assert described.row_group(0).column(0).compression == "ZSTD"
    return [described.row_group(number).num_rows for number in range(described.num_row_groups)]


def test_lines_are_kept_in_order_with_all_that_is_known_of_them(storage: LocalStorage) -> None:
    file = quarantine_file(storage, "q.parquet")
    lines = [line(number, content=bytes([number])) for number in range(5)]
    for one in lines:
        file.add(one)
    file.close()
    assert kept(storage) == lines
    assert (file.rows, file.path) == (5, "q.parquet")


def test_without_lines_there_is_no_file(storage: LocalStorage) -> None:
    file = quarantine_file(storage, "q.parquet")
    file.close(["a.gz"])
    assert file.rows == 0
    assert storage.stat("q.parquet") is None


def test_of_a_long_line_the_beginning_is_kept_and_its_size_told(storage: LocalStorage) -> None:
    file = quarantine_file(storage, "q.parquet")
    for size in (KEPT, KEPT + 1):
        file.add(line(size, content=b"x" * size))
    file.close()
    assert [(len(one.content), one.size) for one in kept(storage)] == [(KEPT, KEPT), (KEPT, KEPT + 1)]


@pytest.mark.parametrize(("lines", "expected"), [(9_999, [9_999]), (10_000, [10_000]), (20_001, [10_000, 10_000, 1])])
def test_lines_are_written_ten_thousand_at_a_time(storage: LocalStorage, lines: int, expected: list[int]) -> None:
    file = quarantine_file(storage, "q.parquet")
    for number in range(lines):
        file.add(line(number))
    file.close()
    assert groups(storage) == expected
    assert [one.line for one in kept(storage)] == list(range(lines))
    assert file.rows == lines


def test_long_lines_are_written_before_they_fill_the_memory(storage: LocalStorage) -> None:
    file = quarantine_file(storage, "q.parquet")
    for number in range(35):
        file.add(line(number, content=bytes([number]) * (2 * KEPT)))
    file.close()
    assert groups(storage) == [17, 17, 1]
    assert [one.content[:1] for one in kept(storage)] == [bytes([number]) for number in range(35)]


def test_lines_of_files_that_will_be_read_again_are_left_out(storage: LocalStorage) -> None:
    """Some at a time: there may be more of them than fit into memory."""
    file = quarantine_file(storage, "the-stage/q-1.parquet", LineSizes(lines_at_once=4))
    lines = [line(number, raw_file=f"{'abc'[number % 3]}.gz") for number in range(13)]
    for one in lines:
        file.add(one)
    file.close(["a.gz", "c.gz"])
    assert kept(storage, file.path) == [one for one in lines if one.raw_file == "b.gz"]
    assert file.rows == 4
    assert sum(groups(storage, file.path)) == 4
    assert max(groups(storage, file.path)) < 4
    assert [found.path for found in storage.files("the-stage")] == [file.path]


def test_lines_of_which_nothing_more_is_known_have_no_detail(storage: LocalStorage) -> None:
    file = quarantine_file(storage, "q.parquet")
    lines = [line(number) for number in (1, 3)]
    for one in lines:
        file.add(one)
    file.close()
    assert kept(storage) == lines
    assert [one.detail for one in lines] == [None, None]
