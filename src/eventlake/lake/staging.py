"""Staged files: the events of one task between parsing and publishing.

One file holds all tables of the task, one Arrow stream after the other, and its message ids, so that a thousand
tables times a hundred tasks are a hundred files. Where each piece lies goes to the driver with the task's result:
a file without a result is an orphan of a lost attempt, and cleaning removes it.
"""

import functools
import json
from collections.abc import Iterable
from types import TracebackType
from typing import NamedTuple, Self

import pyarrow as pa

from eventlake.errors import InternalError
from eventlake.lake import ids
from eventlake.schema.kinds import Kind, Place
from eventlake.storage.base import Storage

RECEIVED = "_received"
RESCUED = "_rescued"
_CODEC = pa.Codec("lz4_raw")


@functools.lru_cache(maxsize=10_000)
def field_name(place: Place) -> str:
    return json.dumps([place.column, place.pointer, place.kind.value])


def place_of(field: str) -> Place:
    column, pointer, kind = json.loads(field)
    return Place(column, pointer, Kind(kind))


class Segment(NamedTuple):
    """Rows of one table in a staged file, one for each of some messages that follow each other there."""

    path: str
    offset: int
    size: int
    unpacked_size: int
    first_message: int  # its number in the staged file
    rows: int


class IdSegment(NamedTuple):
    """Sorted message ids in a staged file."""

    path: str
    offset: int
    messages: int


class StagedFile:
    """Writes one staged file."""

    def __init__(self, storage: Storage, path: str) -> None:
        self.path = path
        self._sink = storage.open_output(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._sink.close()

    def append(self, rows: pa.RecordBatch, first_message: int) -> Segment:
        # Packed as one piece: Arrow's own way, buffer by buffer, takes longer than all the rest for a small segment.
        unpacked = pa.BufferOutputStream()
        with pa.ipc.new_stream(unpacked, rows.schema) as writer:
            writer.write_batch(rows)
        content = unpacked.getvalue()
        packed = _CODEC.compress(content)
        offset = self._sink.tell()
        self._sink.write(packed)
        return Segment(self.path, offset, packed.size, content.size, first_message, rows.num_rows)

    def append_ids(self, messages: ids.Ids) -> IdSegment:
        offset = self._sink.tell()
        ids.write(self._sink, messages)
        return IdSegment(self.path, offset, len(messages))


def read_segment(source: pa.NativeFile, segment: Segment) -> pa.RecordBatch:
    source.seek(segment.offset)
    content = _CODEC.decompress(source.read_buffer(segment.size), segment.unpacked_size)
    with pa.ipc.open_stream(content) as reader:
        return reader.read_next_batch()


def rows_with(columns: Iterable[tuple[str, pa.Array]]) -> pa.RecordBatch:
    pairs = list(columns)
    if len({name for name, _ in pairs}) < len(pairs):
        raise InternalError("a place of the events was staged twice", fix="report this with the log: it is a bug")
    return pa.RecordBatch.from_arrays([values for _, values in pairs], names=[name for name, _ in pairs])
