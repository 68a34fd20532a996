"""Message ids as numbers: hashing, sorting, and files that can be read by shares of the hash range.

A message id is kept as a 128-bit hash in two 64-bit halves, sorted. A file of ids is

    magic │ number of ids │ 257 fences: where each value of the first byte begins │ checksums │ one array per field

so a share of the range can be read from any file without the rest, and a look-up mostly needs only the first half
of each hash: eight bytes per message. There is a checksum for each field of each bucket, and one of the head, so
whatever is read is known to be what was written: a damaged file must not let copies in.
"""

import functools
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from isal.isal_zlib import crc32

from eventlake.errors import DamagedIdsError
from eventlake.storage.base import Storage

MAGIC = b"EVLIDS02"
MAGIC_WITHOUT_CHECKSUMS = b"EVLIDS01"  # written by earlier versions; such files stay in lakes
BUCKETS = 256
_HALF = 1 << 64
_FENCES_AT = len(MAGIC) + 8
_CHECKSUMS_AT = _FENCES_AT + 8 * (BUCKETS + 1)

Array = npt.NDArray[Any]

# What is kept of each message, in the order of the file. The index in the lake keeps the first four.
FIELDS: dict[str, str] = {
    "high": "<u8",
    "low": "<u8",
    "received": "<i8",  # microseconds since 1970
    "route": "<u8",  # see route_hash
    "digest": "<u4",  # of the raw line: decides between copies received at the same instant
    "file": "<u4",  # which raw file of the run
    "number": "<u4",  # which message of the staged file
}
INDEX_FIELDS = ("high", "low", "received", "route")


def message_hash(message_id: str) -> bytes:
    return content_hash(message_id.encode())


def content_hash(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


def route_hash(route: tuple[str, ...]) -> int:
    """The tables of a message as a number that is the same in every run."""
    return int.from_bytes(hashlib.blake2b("\n".join(route).encode(), digest_size=8).digest(), "big")


class Share(NamedTuple):
    """The hashes whose first byte is in [start, stop)."""

    start: int
    stop: int


ALL = Share(0, BUCKETS)


def shares(parts: int) -> list[Share]:
    edges = [BUCKETS * part // parts for part in range(parts + 1)]
    return [Share(start, stop) for start, stop in pairwise(edges) if start < stop]


class Ids:
    """Messages as arrays of one length, one array per field."""

    def __init__(self, arrays: dict[str, Array]) -> None:
        self.arrays = arrays

    def __len__(self) -> int:
        return len(self.arrays["high"])

    def __getitem__(self, field: str) -> Array:
        return self.arrays[field]

    def take(self, which: Any) -> "Ids":
        return Ids({name: values[which] for name, values in self.arrays.items()})

    def ordered(self, *then: str) -> "Ids":
        """Sorted by hash, then by the fields named."""
        return self.take(np.lexsort([self[name] for name in (*reversed(then), "low", "high")]))


def empty(fields: Iterable[str] = FIELDS) -> Ids:
    return Ids({name: np.empty(0, FIELDS[name]) for name in fields})


def joined(parts: Sequence[Ids]) -> Ids:
    if not parts:
        return empty()
    return Ids({name: np.concatenate([part[name] for part in parts]) for name in parts[0].arrays})


def from_digests(digests: Sequence[bytes]) -> dict[str, Array]:
    halves = np.frombuffer(b"".join(digests), dtype=">u8").reshape(-1, 2).astype("<u8")
    return {"high": halves[:, 0].copy(), "low": halves[:, 1].copy()}


def checksum_of(high: int, low: int) -> int:
    """The checksum of some messages: the sums of their first and of their second halves, modulo 2^64 each.

    It is the same in any order, and another one as soon as one message differs.
    """
    return high % _HALF * _HALF + low % _HALF


def checksum(messages: Ids) -> int:
    high, low = (int(messages[half].sum(dtype=np.uint64)) for half in ("high", "low"))
    return checksum_of(high, low)


def add_checksums(one: int, other: int) -> int:
    return checksum_of(one // _HALF + other // _HALF, one % _HALF + other % _HALF)


def sum_checksums(checksums: Iterable[int]) -> int:
    return functools.reduce(add_checksums, checksums, 0)


def write(sink: pa.NativeFile, messages: Ids) -> None:
    """Write messages, sorted by hash, at the sink's position."""
    first_bytes = np.arange(BUCKETS, dtype=np.uint64) << np.uint64(56)
    fences = np.append(np.searchsorted(messages["high"], first_bytes), len(messages)).astype("<u8")
    arrays = [np.ascontiguousarray(messages[name], FIELDS[name]) for name in FIELDS if name in messages.arrays]
    head = MAGIC + len(messages).to_bytes(8, "little") + fences.tobytes()
    head += np.array([_checksums(array, fences) for array in arrays], "<u4").tobytes()
    sink.write(head + crc32(head).to_bytes(8, "little"))
    for array in arrays:
        sink.write(array.tobytes())


def _checksums(array: Array, fences: Array) -> list[int]:
    """A checksum for each bucket of one field."""
    content, width = array.view(np.uint8).data, array.itemsize
    return [crc32(content[int(start) * width : int(stop) * width]) for start, stop in pairwise(fences)]


def index_sizes(messages: int) -> tuple[int, int]:
    """The sizes that a file of the index with so many messages may have: with checksums, and without."""
    arrays = messages * sum(np.dtype(FIELDS[name]).itemsize for name in INDEX_FIELDS)
    return _head_size(len(INDEX_FIELDS)) + arrays, _CHECKSUMS_AT + arrays


def _head_size(fields: int) -> int:
    return _CHECKSUMS_AT + 4 * BUCKETS * fields + 8


@contextmanager
def opened(storage: Storage, path: str, offset: int = 0, fields: Sequence[str] = INDEX_FIELDS) -> "Iterator[IdFile]":
    """A file of ids, or a part of one. Whatever is damaged in it is told with its path."""
    with storage.open_input(path) as source:
        try:
            yield IdFile(source, offset, fields)
        except DamageError as damage:
            raise DamagedIdsError(
                f"{path}: this file of message ids is damaged: {damage}",
                fix="run it again; if it happens twice, `eventlake verify --repair` makes the index anew",
            ) from damage


class DamageError(ValueError):
    """What is wrong with a file of ids."""


class IdFile:
    """Messages in a file, or in a part of one that begins at `offset`."""

    def __init__(self, source: pa.NativeFile, offset: int = 0, fields: Sequence[str] = INDEX_FIELDS) -> None:
        self._source = source
        size = _head_size(len(fields))
        head = source.read_at(size, offset)
        magic = head[: len(MAGIC)]
        if magic not in (MAGIC, MAGIC_WITHOUT_CHECKSUMS):
            raise DamageError("it does not begin as one")
        self._checksums: dict[str, Array] = {}
        if magic == MAGIC:
            if len(head) < size or crc32(head[:-8]) != int.from_bytes(head[-8:], "little"):
                raise DamageError("its head is not what was written")
            sums = np.frombuffer(head, "<u4", BUCKETS * len(fields), _CHECKSUMS_AT).reshape(len(fields), BUCKETS)
            self._checksums = dict(zip(fields, sums, strict=True))
        elif len(head) < _CHECKSUMS_AT:
            raise DamageError("its head is cut off")
        self._count = int.from_bytes(head[len(MAGIC) : _FENCES_AT], "little")
        self._fences = np.frombuffer(head, "<u8", BUCKETS + 1, _FENCES_AT).astype(np.int64)
        self._start = {}
        position = offset + (size if self._checksums else _CHECKSUMS_AT)
        for name in fields:
            self._start[name] = position
            position += self._count * np.dtype(FIELDS[name]).itemsize

    def __len__(self) -> int:
        return self._count

    def read(self, share: Share, fields: Iterable[str]) -> Ids:
        return Ids({name: self._array(name, share) for name in fields})

    def _array(self, name: str, share: Share) -> Array:
        dtype = np.dtype(FIELDS[name])
        begin, end = int(self._fences[share.start]), int(self._fences[share.stop])
        if begin >= end:
            return np.empty(0, dtype)
        self._source.seek(self._start[name] + begin * dtype.itemsize)
        content = self._source.read_buffer((end - begin) * dtype.itemsize)
        if content.size < (end - begin) * dtype.itemsize:
            raise DamageError("its end is cut off")
        array = np.frombuffer(content, dtype)
        if self._checksums:
            fences = self._fences[share.start : share.stop + 1] - begin
            if _checksums(array, fences) != self._checksums[name][share.start : share.stop].tolist():
                raise DamageError(f"its field {name!r} is not what was written")
        return array

    def positions(self, share: Share, wanted: Ids) -> Array:
        """For each wanted message (sorted by hash): where it is in this share of the file, or -1."""
        held = self.read(share, ["high"])["high"]
        found = np.full(len(wanted), -1, np.int64)
        if not len(held) or not len(wanted):
            return found
        at = np.minimum(np.searchsorted(held, wanted["high"]), len(held) - 1)
        candidates = np.flatnonzero(held[at] == wanted["high"])
        if len(candidates):
            low = self.read(share, ["low"])["low"]
            same = low[at[candidates]] == wanted["low"][candidates]
            found[candidates[same]] = at[candidates[same]]
            for which in candidates[~same]:  # two hashes that share their first half: as good as never
                end = np.searchsorted(held, wanted["high"][which], side="right")
                match = np.flatnonzero(low[at[which] : end] == wanted["low"][which])
                found[which] = at[which] + match[0] if len(match) else -1
        return found
