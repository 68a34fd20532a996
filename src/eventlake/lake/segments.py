"""Where the rows of tables lie in staged files.

A run of a billion events has tens of millions of such places: as objects they would not fit into a driver's memory. So
they are kept as records of 28 bytes, and what a task tells of its file travels packed, in some ten bytes each.
"""

from collections.abc import Iterable, Mapping
from itertools import accumulate, pairwise, starmap
from typing import NamedTuple

import msgspec
import numpy as np

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


_RECORD = np.dtype([(name, "<u8" if name == "offset" else "<u4") for name in Segment._fields])


def records_of(segments: Iterable[Segment]) -> bytes:
    return np.array([tuple(segment) for segment in segments], _RECORD).tobytes()


def segments_in(records: bytes | bytearray) -> list[Segment]:
    return list(starmap(Segment, np.frombuffer(records, _RECORD).tolist()))


def rows_of(records: bytes | bytearray) -> int:
    return int(np.frombuffer(records, _RECORD)["rows"].sum(dtype=np.int64))


class Split(NamedTuple):
    """Some segments of a table, and how many rows they have."""

    records: bytes
    rows: int


def split(records: bytes | bytearray, rows: int) -> list[Split]:
    """Segments in groups of about so many rows, in the order of files and places in them; one if there are none."""
    segments = np.frombuffer(records, _RECORD)
    segments = segments[np.lexsort([segments["offset"], segments["file"]])]
    until = np.cumsum(segments["rows"], dtype=np.int64)
    groups: list[Split] = []
    start = before = 0
    while start < len(segments):
        stop = min(int(np.searchsorted(until, before + rows)) + 1, len(segments))
        groups.append(Split(segments[start:stop].tobytes(), int(until[stop - 1]) - before))
        start, before = stop, int(until[stop - 1])
    return groups or [Split(b"", 0)]


class _Packed(msgspec.Struct, array_like=True):
    tables: list[str]
    counts: list[int]  # how many segments each table has
    records: bytes  # their planes


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Packed).decode


def packed(tables: Mapping[str, Iterable[Segment]]) -> bytes:
    """Where the rows of tables lie in one staged file."""
    records = {key: records_of(segments) for key, segments in tables.items()}
    planes = packing.planes_of(np.frombuffer(b"".join(records.values()), _RECORD))
    counts = [len(own) // _RECORD.itemsize for own in records.values()]
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

    def segments(self) -> dict[str, list[Segment]]:
        content = self.in_file(0)
        bounds = zip(self.tables, pairwise(self.ends), strict=True)
        return {key: segments_in(content[slice(*bound)].tobytes()) for key, bound in bounds}


def unpacked(content: bytes) -> Unpacked:
    """Raises ValueError if the content is none that was packed."""
    try:
        found = _decode(packing.unpacked(content))
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from error
    width = _RECORD.itemsize
    ends = list(accumulate(found.counts, initial=0))
    is_whole = len(found.counts) == len(found.tables) and ends[-1] * width == len(found.records)
    if not is_whole or min(found.counts, default=1) < 1:
        raise ValueError("the segments of tables are not as many as they should be")
    records = packing.from_planes(found.records, _RECORD)
    rows = np.add.reduceat(records["rows"], ends[:-1], dtype=np.int64).tolist() if found.tables else []
    return Unpacked(found.tables, rows, [end * width for end in ends], records)
