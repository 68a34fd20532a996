"""Final Parquet files: complete before anybody knows their names."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eventlake.lake.dialects import Dialect
from eventlake.storage.base import new_digest

# Version 2.6 gives INT64 microseconds in UTC, not the INT96 that Iceberg and others refuse. Hourly files are small, and
# with snappy they take half the time to write that zstd needs, for a third more bytes.
WRITER = {"compression": "snappy", "version": "2.6", "store_schema": False}

# Nearly every row has a value of its own here: a dictionary would be the column once more.
_ALL_DIFFERENT = frozenset(
    {"message_id", "_message_id", "id", "received_at", "sent_at", "timestamp", "_timestamp", "original_timestamp"}
)


@dataclass(frozen=True)
class FileSizes:
    """How much of the files that are being written is held at once."""

    open_files: int = 100  # a backfill of years must not hold every hour of them
    bytes_in_memory: int = 48 << 20  # of all open files
    rows_per_group: int = 1 << 20


DEFAULT_SIZES = FileSizes()


class DataFile(NamedTuple):
    """A data file of the lake; `path` is where it will lie, `written` where it is before the commit."""

    table_key: str
    partition: tuple[str, ...]
    path: str
    written: str
    rows: int
    size: int
    digest: str
    first_received: int
    last_received: int
    owner: str = ""  # of discarded values, the table that they are from


@dataclass
class _OpenFile:
    writer: pq.ParquetWriter
    content: pa.BufferOutputStream
    name: str
    number: int  # of the partition
    rows: int
    first_received: int
    last_received: int


# In files of fewer rows, dictionaries take more than they save: with one row 9 % of the file, with 32 rows 2 to 5 %.
_FEWEST_FOR_DICTIONARIES = 33


def repeating(rows: pa.Table) -> list[str]:
    """The columns for which a dictionary is worth its bytes, as far as the first rows tell."""
    if len(rows) < _FEWEST_FOR_DICTIONARIES:
        return []
    filled = (
        name for name, cells in zip(rows.column_names, rows.columns, strict=True) if cells.null_count < len(cells)
    )
    return [name for name in filled if name not in _ALL_DIFFERENT]


class PartitionedWriter:
    """Writes rows of one table to a file per partition. Files are made in memory: most are small, and all are hashed.

    A partition gets a second file when rows come that have one more column (rescued values turned up: a file cannot
    gain a column), or when it comes again after many others or much data.
    """

    def __init__(
        self,
        put: Callable[[str, pa.Buffer], None],
        dialect: Dialect,
        table_key: str,
        folder: str,
        names: Iterator[str],
        *,
        owner: str = "",
        sizes: FileSizes = DEFAULT_SIZES,
    ) -> None:
        """Files are `put` under the next of these names, in a folder where they wait for the commit."""
        self._owner = owner
        self._put = put
        self._dialect = dialect
        self._table_key = table_key
        self._folder = folder
        self._names = names
        self._sizes = sizes
        self._open: dict[tuple[int, int], _OpenFile] = {}  # by partition and number of columns
        self._files: list[DataFile] = []

    def write(self, rows: pa.Table) -> None:
        """Append rows to the files of their partitions. They are in the order of their `received_at`."""
        micros = rows.column("received_at").cast(pa.int64()).to_numpy()
        numbers = micros // self._dialect.date_partition.width
        starts: Any = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))
        for start, stop in zip(starts, [*starts[1:], len(numbers)], strict=True):
            self._append(int(numbers[start]), rows.slice(start, stop - start), micros[start:stop])
        if sum(file.content.tell() for file in self._open.values()) > self._sizes.bytes_in_memory:
            self.close()

    def _append(self, number: int, rows: pa.Table, micros: Any) -> None:
        first, last = int(micros[0]), int(micros[-1])
        file = self._open.get((number, rows.num_columns))
        if file is None:
            if len(self._open) >= self._sizes.open_files:
                self.close()
            content = pa.BufferOutputStream()
            writer = pq.ParquetWriter(content, rows.schema, use_dictionary=repeating(rows), **WRITER)
            file = _OpenFile(writer, content, next(self._names), number, 0, first, last)
            self._open[number, rows.num_columns] = file
        file.writer.write_table(rows, row_group_size=self._sizes.rows_per_group)
        file.rows += rows.num_rows
        file.first_received, file.last_received = min(file.first_received, first), max(file.last_received, last)

    def close(self) -> list[DataFile]:
        """Finish the open files; returns all that were written so far."""
        layout = self._dialect.date_partition
        for file in self._open.values():
            file.writer.close()
            content = file.content.getvalue()
            digest = new_digest()
            digest.update(content)
            written = f"{self._folder}/{file.name}"
            self._put(written, content)
            self._files.append(
                DataFile(
                    self._table_key,
                    layout.values(file.number),
                    f"{self._dialect.location(self._table_key)}/{layout.folder(file.number)}/{file.name}",
                    written,
                    file.rows,
                    content.size,
                    digest.hexdigest(),
                    file.first_received,
                    file.last_received,
                    self._owner,
                )
            )
        self._open.clear()
        return self._files
