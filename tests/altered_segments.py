"""Segments as nobody packs them, for tests of what is done with those."""

from typing import Any

import msgspec

from eventlake.lake import packing
from eventlake.lake.segments import Segment, packed

_GOOD = packed({"track_a": [Segment(0, 1, 0, 1, 1, 0)] * 2})


def _altered(**parts: Any) -> bytes:
    """Segments of two tables that were packed by somebody else."""
    given = {"tables": ["a", "b"], "counts": [1, 2], "records": bytes(3 * 28), **parts}
    return packing.packed(msgspec.msgpack.encode(list(given.values())))


NO_SEGMENTS = [
    b"",
    b"no",
    _GOOD[:-1],
    _GOOD[:8],
    _GOOD[:8] + b"x" * 20,
    (1 << 62).to_bytes(8, "little") + _GOOD[8:],
    (5).to_bytes(8, "little") + _GOOD[8:],
    _altered(tables=["a"]),
    _altered(tables=["a", 7]),
    _altered(tables=["a"] * 500_001, counts=[1] * 500_001),
    _altered(counts=[3]),
    _altered(counts=[0, 3]),
    _altered(counts=[-1, 4]),
    _altered(counts=[1, 1]),
    _altered(counts=[1, 1 << 63]),
    _altered(records=bytes(3 * 28 - 1)),
    _altered(records=bytes(2 * 28)),
    _altered(records="text"),
]
