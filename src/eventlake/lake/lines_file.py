"""Files with lines of the raw archive that something is said about, written in bounded memory."""

import uuid
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eventlake.storage.base import Storage


@dataclass(frozen=True)
class LineSizes:
    """How much is kept of lines, and how much of them at once."""

    bytes_kept: int = 1 << 20  # of a line; the whole line stays in the raw archive
    bytes_at_once: int = 16 << 20
    lines_at_once: int = 10_000


DEFAULT_SIZES = LineSizes()


Row = TypeVar("Row", bound=tuple[Any, ...])
"""A named tuple, in the order of the file's columns. The last of them is the content of the line, if it is kept."""


class LinesFile(Generic[Row]):
    """Writes what one task says about lines; makes no file if there is nothing to say."""

    def __init__(self, storage: Storage, path: str, schema: pa.Schema, sizes: LineSizes = DEFAULT_SIZES) -> None:
        self.path = path
        self._schema = schema
        self._sizes = sizes
        self.rows = 0
        self._storage = storage
        self._pending: list[tuple[Any, ...]] = []
        self._pending_bytes = 0
        self._writer: pq.ParquetWriter | None = None

    def add(self, line: Row) -> None:
        *told, content = line
        kept = content[: self._sizes.bytes_kept] if content is not None else None
        self._pending.append((*told, kept))
        self._pending_bytes += len(kept or b"")
        if self._pending_bytes > self._sizes.bytes_at_once or len(self._pending) >= self._sizes.lines_at_once:
            self._flush()

    def _flush(self) -> None:
        if self._writer is None:
            self._sink = self._storage.open_output(self.path)
            self._writer = pq.ParquetWriter(self._sink, self._schema, compression="zstd")
        columns = zip(*self._pending, strict=True)
        self._writer.write_batch(
            pa.RecordBatch.from_arrays(
                [pa.array(values, field.type) for values, field in zip(columns, self._schema, strict=True)],
                schema=self._schema,
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
            pq.ParquetWriter(sink, self._schema, compression="zstd") as writer,
        ):
            for batch in pq.ParquetFile(source).iter_batches(self._sizes.lines_at_once):
                kept = batch.filter(~pc.field("raw_file").isin(list(without)))
                self.rows += kept.num_rows
                writer.write_batch(kept)
        self._storage.delete(whole)
