"""Lines that are not events, kept with their file, their position and the reason."""

import uuid
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eventlake.storage.base import Storage


@dataclass(frozen=True)
class QuarantineSizes:
    """How much is kept of lines, and how much of them at once."""

    bytes_kept: int = 1 << 20  # of a line; the whole line stays in the raw archive
    bytes_at_once: int = 16 << 20
    lines_at_once: int = 10_000


DEFAULT_SIZES = QuarantineSizes()

SCHEMA = pa.schema(
    [
        ("raw_file", pa.string()),
        ("line", pa.int64()),
        ("reason", pa.string()),
        ("detail", pa.string()),
        ("size", pa.int64()),
        ("content", pa.binary()),  # not text: a line may be quarantined because it is not UTF-8
    ]
)


class Quarantined(NamedTuple):
    raw_file: str
    line: int
    reason: str
    detail: str | None
    size: int
    content: bytes


class QuarantineFile:
    """Writes the quarantined lines of one task, in bounded memory; makes no file if there are none."""

    def __init__(self, storage: Storage, path: str, sizes: QuarantineSizes = DEFAULT_SIZES) -> None:
        self.path = path
        self._sizes = sizes
        self.rows = 0
        self._storage = storage
        self._pending: list[Quarantined] = []
        self._pending_bytes = 0
        self._writer: pq.ParquetWriter | None = None

    def add(self, line: Quarantined) -> None:
        kept = line._replace(content=line.content[: self._sizes.bytes_kept])
        self._pending.append(kept)
        self._pending_bytes += len(kept.content)
        if self._pending_bytes > self._sizes.bytes_at_once or len(self._pending) >= self._sizes.lines_at_once:
            self._flush()

    def _flush(self) -> None:
        if self._writer is None:
            self._sink = self._storage.open_output(self.path)
            self._writer = pq.ParquetWriter(self._sink, SCHEMA, compression="zstd")
        columns = zip(*self._pending, strict=True)
        self._writer.write_batch(
            pa.RecordBatch.from_arrays(
                [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)],
                schema=SCHEMA,
            )
        )
        self.rows += len(self._pending)
        self._pending, self._pending_bytes = [], 0

    def close(self, without: Collection[str] = ()) -> None:
        """Finish the file; lines of the raw files in `without` are left out, as they will be read again."""
        if self._pending:
            self._flush()
        if self._writer is None:
            return
        self._writer.close()
        self._sink.close()
        if without:
            self._leave_out(without)

    def _leave_out(self, without: Collection[str]) -> None:
        """Write the file once more, group by group."""
        self.rows = 0
        whole, self.path = self.path, f"{self.path.rpartition('-')[0]}-{uuid.uuid4().hex}.parquet"
        with (
            self._storage.open_input(whole) as source,
            self._storage.open_output(self.path) as sink,
            pq.ParquetWriter(sink, SCHEMA, compression="zstd") as writer,
        ):
            for batch in pq.ParquetFile(source).iter_batches(self._sizes.lines_at_once):
                kept = batch.filter(~pc.field("raw_file").isin(list(without)))
                self.rows += kept.num_rows
                writer.write_batch(kept)
        self._storage.delete(whole)
