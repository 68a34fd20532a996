"""Where the rows of tables lie in staged files.

A run of a billion events has tens of millions of such places: as objects they would not fit into a driver's memory. So
they are kept as records of 28 bytes, and what a task tells of its file travels packed, in some ten bytes each.
"""

from collections.abc import Iterable, Mapping
from itertools import accumulate, starmap
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta

from eventlake.lake import packing
from eventlake.lake.ids import Array


class Segment(NamedTuple):
    """Rows of one table in a staged file, one for each of some messages that follow each other there."""

    file: int  # the number of the staged file in its run
    rows: int
    first_message: int  # its number in the staged file
    size: int
    unpacked_size: int
    offset: int


_MOST_TABLES = 500_000  # more than a source may have
RECORD = np.dtype([(name, "<u8" if name == "offset" else "<u4") for name in Segment._fields])

NONE = packing.packed_records(np.empty(0, RECORD))
"""A share of no rows."""


def records_of(segments: Iterable[Segment]) -> bytes:
    return np.array([tuple(segment) for segment in segments], RECORD).tobytes()


def rows_of(records: bytes | bytearray) -> int:
    return int(np.frombuffer(records, RECORD)["rows"].sum(dtype=np.int64))


class Share(NamedTuple):
    """Some segments of a table, packed, and how many rows they have."""

    packed: bytes
    rows: int


def split(records: bytes | bytearray, rows: int) -> list[Share]:
    """Segments in groups of about so many rows, in the order of files and places in them; one if there are none."""
    segments = np.frombuffer(records, RECORD)
    segments = segments[np.lexsort([segments["offset"], segments["file"]])]
    until = np.cumsum(segments["rows"], dtype=np.int64)
    groups: list[Share] = []
    start = before = 0
    while start < len(segments):
        stop = min(int(np.searchsorted(until, before + rows)) + 1, len(segments))
        groups.append(Share(packing.packed_records(segments[start:stop]), int(until[stop - 1]) - before))
        start, before = stop, int(until[stop - 1])
    return groups or [Share(NONE, 0)]


def segments_of(share: bytes) -> list[Segment]:
    """The segments of a share, given what was packed."""
    return list(starmap(Segment, packing.unpacked_records(share, RECORD).tolist()))


class _Packed(msgspec.Struct, array_like=True):
    tables: Annotated[list[str], Meta(max_length=_MOST_TABLES)]
    counts: Annotated[list[int], Meta(max_length=_MOST_TABLES)]  # how many segments each table has
    records: bytes  # their planes


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Packed).decode


def packed(tables: Mapping[str, Iterable[Segment]]) -> bytes:
    """Where the rows of tables lie in one staged file."""
    records = {key: records_of(segments) for key, segments in tables.items()}
    planes = packing.planes_of(np.frombuffer(b"".join(records.values()), RECORD))
    counts = [len(own) // RECORD.itemsize for own in records.values()]
    return packing.packed(_encode(_Packed(list(records), counts, planes)))


class Unpacked(NamedTuple):
    """The same as records, one table after the other."""

    tables: list[str]
    rows: list[int]  # of each table
    ends: list[int]  # where the bytes of each table begin and end: one more than tables
    records: Array

    def in_file(self, number: int) -> memoryview:
        """The bytes of all records, of a file that has this number now."""
        self.records["file"] = number
        return memoryview(self.records.tobytes())


def unpacked(content: bytes) -> Unpacked:
    """Raises ValueError if the content is none that was packed."""
    try:
        found = _decode(packing.unpacked(content))
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from error
    width = RECORD.itemsize
    ends = list(accumulate(found.counts, initial=0))
    is_whole = len(found.counts) == len(found.tables) and ends[-1] * width == len(found.records)
    if not is_whole or any(count < 1 for count in found.counts):
        raise ValueError("the segments of tables are not as many as they should be")
    records = packing.from_planes(found.records, RECORD)
    rows = np.add.reduceat(records["rows"], ends[:-1], dtype=np.int64).tolist()
    return Unpacked(found.tables, rows, [end * width for end in ends], records)
