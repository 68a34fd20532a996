"""Staged files: the events of one task between parsing and publishing.

One file holds all tables of the task, piece after piece, and its message ids, so that a thousand tables times a hundred
tasks are a hundred files. Where each piece lies goes to the driver with the task's result: a file without a result is
an orphan of a lost attempt, and cleaning removes it.

A piece has the messages of one route: the values found at each place of them, and for each table of the route, which of
these are its columns. It is packed as a whole:

    size of the head │ head │ when each message was received │ for each field: rows, validity, offsets or values, texts
"""

from collections.abc import Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec
import numpy as np
import pyarrow as pa

from eventlake.errors import DamagedError, InternalError
from eventlake.lake import ids
from eventlake.lake.ids import Array
from eventlake.lake.segments import Segment
from eventlake.lake.staged_rows import StagedRows
from eventlake.schema.cells import Cells
from eventlake.schema.kinds import Kind, Place, Typed
from eventlake.storage.base import Storage

RESCUED = "_rescued"  # the column of what flattening rescued
KINDS = (Kind.TEXT, Kind.INTEGER, Kind.NUMBER, Kind.BOOLEAN, Kind.JSON)  # by the numbers that files have for them
_NUMBERS = {kind: number for number, kind in enumerate(KINDS)}
_ARROW = (pa.string(), pa.int64(), pa.string(), pa.bool_(), pa.string())
_INTEGER, _BOOLEAN = _NUMBERS[Kind.INTEGER], _NUMBERS[Kind.BOOLEAN]

_ALIGNED = 8
_SPARSE = 8  # where fewer than one row in so many has a value, rows are numbered
_CODEC = pa.Codec("zstd", 1)  # three fifths of what lz4 makes of it, for half a microsecond more per event


class IdSegment(NamedTuple):
    """Sorted message ids in a staged file."""

    path: str
    offset: int
    messages: int


class Field(NamedTuple):
    """The values of one kind found at one place of some messages: how many there are, and where its parts are."""

    kind: int  # its number
    values: int
    rows_at: int  # the row of each value, if there are few; else -1, and there is an entry for each row
    validity_at: int  # a bit for each entry; -1 if there is a value for each
    offsets_at: int  # where texts begin; of the other kinds, the values
    data_at: int
    end: int


def aligned(size: Any) -> Any:
    return size + -size % _ALIGNED


def laid_out(kinds: Array, values: Array, bytes_of_texts: Array, rows: Array | int, before: Array | int) -> Array:
    """Fields, one a line, whose parts come one after the other; `before` is what comes before each, besides fields."""
    is_sparse = values * _SPARSE < rows
    entries = np.where(is_sparse, values, rows)
    is_integer, is_boolean = kinds == _INTEGER, kinds == _BOOLEAN
    sizes = aligned(
        np.stack(
            [
                np.where(is_sparse, 4 * entries, 0),
                np.where(values < entries, (entries + 7) // 8, 0),
                np.where(is_integer, 8 * entries, np.where(is_boolean, (entries + 7) // 8, 4 * (entries + 1))),
                np.where(is_integer | is_boolean, 0, bytes_of_texts),
            ]
        )
    )
    ends = np.cumsum(sizes.sum(axis=0)) + before
    at = ends - np.cumsum(sizes[::-1], axis=0)[::-1]
    at[:2][sizes[:2] == 0] = -1
    return np.stack([kinds, values, *at, ends], axis=1).astype(np.int64)


class Packed(NamedTuple):
    """A piece that is ready to be written: its fields, which columns of which tables they make, and all bytes."""

    rows: int
    pointers: list[str]
    fields: Array  # a line for each, see Field
    tables: dict[str, list[tuple[str, int]]]  # by table, the columns and the numbers of their fields
    body: Array

    @property
    def content(self) -> bytes:
        head = _encode(_Head(self.rows, self.pointers, self.fields.tobytes(), self.tables))
        before = len(head).to_bytes(_ALIGNED, "little") + head + bytes(-len(head) % _ALIGNED)
        return b"".join([before, self.body.data])

    def typed(self, number: int) -> Typed:
        """The values of a field."""
        field = Field(*self.fields[number].tolist())
        return Typed(KINDS[field.kind], _cells(pa.py_buffer(self.body), field, self.rows).values)


class _Head(msgspec.Struct, array_like=True):
    rows: int
    pointers: list[str]
    fields: bytes
    tables: dict[str, list[tuple[str, int]]]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Head).decode


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

    def append(self, piece: Packed, first_message: int) -> Segment:
        content = piece.content
        packed = _CODEC.compress(content)
        offset = self._sink.tell()
        self._sink.write(packed)
        return Segment(0, piece.rows, first_message, packed.size, len(content), offset)

    def append_ids(self, messages: ids.Ids) -> IdSegment:
        offset = self._sink.tell()
        ids.write(self._sink, messages)
        return IdSegment(self.path, offset, len(messages))


def read_rows(packed_content: pa.Buffer, segment: Segment, table_key: str) -> StagedRows:
    """The rows of a table in a segment, given its bytes."""
    return rows_in(_CODEC.decompress(packed_content, segment.unpacked_size), table_key)


def rows_in(content: pa.Buffer, table_key: str) -> StagedRows:
    """The rows of a table in the content of a piece."""
    size = int.from_bytes(content[:_ALIGNED], "little")
    head = _decode(content[_ALIGNED : _ALIGNED + size])
    body = content[_ALIGNED + aligned(size) :]
    fields = np.frombuffer(head.fields, np.int64).reshape(-1, len(Field._fields)).tolist()
    columns: dict[Place, Cells] = {}
    rescued = None
    for column, number in head.tables[table_key]:
        field = Field(*fields[number])
        cells = _cells(body, field, head.rows)
        if column == RESCUED:
            rescued = cells
        else:
            columns[Place(column, head.pointers[number], KINDS[field.kind])] = cells
    return StagedRows(np.frombuffer(body, np.int64, head.rows), columns, rescued)


def _cells(body: pa.Buffer, field: Field, rows: int) -> Cells:
    is_sparse = field.rows_at >= 0
    entries = field.values if is_sparse else rows
    buffers = [
        body[field.validity_at : field.offsets_at] if field.validity_at >= 0 else None,
        body[field.offsets_at : field.data_at],
    ]
    if field.kind not in (_INTEGER, _BOOLEAN):
        buffers.append(body[field.data_at : field.end])
    array = pa.Array.from_buffers(_ARROW[field.kind], entries, buffers, entries - field.values)
    numbers: Array | None = np.frombuffer(body[field.rows_at :], np.int32, field.values) if is_sparse else None
    _refuse_altered(array, numbers, rows)
    return Cells(array, numbers)


def _refuse_altered(array: pa.Array, numbers: Array | None, rows: int) -> None:
    """Whoever may write to the staging folder may alter a piece; then nothing outside of it must be read or written."""
    try:
        array.validate()  # buffers are as large as they must be
    except pa.ArrowInvalid as error:
        raise _altered() from error
    offsets = _offsets(array) if pa.types.is_string(array.type) and len(array) else np.zeros(1, np.int32)
    if (offsets[1:] < offsets[:-1]).any() or (numbers is not None and ((numbers < 0) | (numbers >= rows)).any()):
        raise _altered()


def _altered() -> DamagedError:
    return DamagedError(
        "a staged file is not what was written to it", fix="see who else may write to segment-stage; run it again"
    )


def packed(
    received: Array, found: Sequence[tuple[str, Kind, pa.Array]], tables: dict[str, list[tuple[str, int]]]
) -> Packed:
    """A piece with these values at these places, null where a message has none."""
    for columns in tables.values():
        if len({(name, *found[number][:2]) for name, number in columns}) < len(columns):
            raise InternalError("a place of the events was staged twice", fix="report this with the log: it is a bug")
    rows = len(received)
    arrays = [array for _, _, array in found]
    fields = laid_out(
        np.array([_NUMBERS[kind] for _, kind, _ in found]),
        np.array([rows - array.null_count for array in arrays]),
        np.array([_text_bytes(array) for array in arrays]),
        rows,
        aligned(8 * rows),
    )
    body = np.zeros(max([aligned(8 * rows), *fields[:, -1].tolist()]), np.uint8)
    body[: 8 * rows] = received.astype(np.int64).view(np.uint8)
    for field, array in zip(fields.tolist(), arrays, strict=True):
        _write(body, Field(*field), array)
    return Packed(rows, [pointer for pointer, _, _ in found], fields, tables, body)


def _text_bytes(array: pa.Array) -> int:
    return int(_offsets(array)[-1] - _offsets(array)[0]) if pa.types.is_string(array.type) else 0


def _offsets(texts: pa.Array) -> Array:
    return np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]


def _write(body: Array, field: Field, array: pa.Array) -> None:
    def put(at: int, content: Array) -> None:
        body[at : at + content.nbytes] = content.view(np.uint8)

    is_valid = array.is_valid().to_numpy(zero_copy_only=False)
    if field.rows_at >= 0:
        put(field.rows_at, np.flatnonzero(is_valid).astype(np.int32))
        array = array.drop_null()
    elif field.validity_at >= 0:
        put(field.validity_at, np.packbits(is_valid, bitorder="little"))
    if pa.types.is_string(array.type):
        offsets = _offsets(array)
        put(field.offsets_at, offsets - offsets[0])
        put(field.data_at, np.frombuffer(array.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]])
    elif pa.types.is_boolean(array.type):
        put(field.offsets_at, np.packbits(array.fill_null(False).to_numpy(zero_copy_only=False), bitorder="little"))
    else:
        put(field.offsets_at, array.fill_null(0).to_numpy())
