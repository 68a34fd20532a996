"""Final Parquet files: one per partition and task, complete before anybody knows their names."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eventlake.lake.layout import DatePartition, LakeRules
from eventlake.storage.files import Storage

# Version 2.6 gives INT64 microseconds in UTC, not the INT96 that Iceberg and others refuse. Hourly files are small, and
# with snappy they take half the time to write that zstd needs, for a third more bytes.
WRITER = {"compression": "snappy", "version": "2.6", "store_schema": False}


class DataFile(NamedTuple):
    """A data file of the lake; `path` is where it will lie, `written` where it is before the commit."""

    segment_type: str
    partition: tuple[str, ...]
    path: str
    written: str
    rows: int
    size: int
    first_received: int
    last_received: int


@dataclass
class _Open:
    writer: pq.ParquetWriter
    written: str
    rows: int = 0
    received: list[int] = field(default_factory=list)


class PartitionedWriter:
    """Writes rows of one table to one file per partition.

    A file cannot gain a column: rows with one more (rescued values turned up) go to a second file of the partition.
    """

    def __init__(self, storage: Storage, rules: LakeRules, segment_type: str, *, folder: str, stem: str) -> None:
        self._storage = storage
        self._rules = rules
        self._segment_type = segment_type
        self._folder = folder
        self._stem = stem
        self._open: dict[tuple[int, int], _Open] = {}  # by partition and number of columns

    def write(self, rows: pa.Table) -> None:
        """Append rows, which have a `received_at` column, to the files of their partitions."""
        received = rows.column("received_at").cast(pa.int64()).combine_chunks()
        order = pc.sort_indices(received)
        rows, micros = rows.take(order), received.take(order).to_numpy()
        numbers = micros // self._rules.date_partition.width
        starts: Any = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1])) if len(numbers) else []
        for start, stop in zip(starts, [*starts[1:], len(numbers)], strict=True):
            self._append(int(numbers[start]), rows.slice(start, stop - start), micros[start:stop])

    def _append(self, number: int, rows: pa.Table, micros: Any) -> None:
        key = number, rows.num_columns
        file = self._open.get(key)
        if file is None:
            written = f"{self._folder}/{number}-{rows.num_columns}.parquet"
            sink = self._storage.open_output(written)
            file = self._open[key] = _Open(pq.ParquetWriter(sink, rows.schema, **WRITER), written)
        file.writer.write_table(rows)
        file.rows += rows.num_rows
        file.received += [int(micros[0]), int(micros[-1])]

    def close(self) -> list[DataFile]:
        files = []
        layout: DatePartition = self._rules.date_partition
        for (number, width), file in sorted(self._open.items()):
            file.writer.close()
            values = layout.values(number)
            stored = self._storage.stat(file.written)
            files.append(
                DataFile(
                    self._segment_type,
                    values,
                    f"{self._rules.location(self._segment_type)}/{layout.folder(values)}/{self._stem}-{width}.parquet",
                    file.written,
                    file.rows,
                    stored.size if stored else 0,
                    min(file.received),
                    max(file.received),
                )
            )
        return files
