"""How many messages of each raw file, and of each route, were loaded or not.

Of a billion events, each of 256 tasks counts tens of thousands of raw files: too many for objects, so counts travel as
packed records, and are added up as arrays.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from eventlake.lake import ids, packing
from eventlake.lake.ids import Array


class Count(NamedTuple):
    """Messages of one raw file or one route."""

    loaded: int = 0
    duplicates: int = 0
    rewritten: int = 0  # of the duplicates: those that are in the lake themselves
    checksum: int = 0  # of the message ids loaded

    def plus(self, other: "Count") -> "Count":
        return Count(
            self.loaded + other.loaded,
            self.duplicates + other.duplicates,
            self.rewritten + other.rewritten,
            ids.add_checksums(self.checksum, other.checksum),
        )


# Of the number of a file, or the hash of a route. A checksum has two halves, each of which is a sum modulo 2^64.
_SUMS = ("loaded", "duplicates", "rewritten", "high", "low")
_RECORD = np.dtype([(name, "<u8") for name in ("key", *_SUMS)])

Counts = bytes
"""Packed counts."""


def packed(keys: Array, sums: Iterable[Array]) -> Counts:
    """Counts of different keys, by what is counted."""
    records = np.empty(len(keys), _RECORD)
    for name, values in zip(_RECORD.names or (), (keys, *sums), strict=True):
        records[name] = values
    return packing.packed_records(records)


def largest(part: Counts) -> int:
    """The largest number of messages in some counts. Raises ValueError for what are no counts."""
    records = packing.unpacked_records(part, _RECORD)
    return max((int(records[name].max(initial=0)) for name in ("loaded", "duplicates", "rewritten")), default=0)


def added_up(parts: Iterable[Counts]) -> dict[int, Count]:
    """The counts of each key over all parts. Raises ValueError for what are no counts."""
    whole = np.empty(0, _RECORD)
    for part in parts:
        records = packing.unpacked_records(part, _RECORD)
        keys = np.union1d(whole["key"], records["key"])
        sums = np.zeros(len(keys), _RECORD)
        sums["key"] = keys
        for some in (whole, records):
            places = np.searchsorted(keys, some["key"])
            for name in _SUMS:
                sums[name][places] += some[name]
        whole = sums
    return {
        key: Count(loaded, duplicates, rewritten, ids.checksum_of(high, low))
        for key, loaded, duplicates, rewritten, high, low in whole.tolist()
    }
