"""Segments as people read them, from the records in which a driver keeps them, and from what a stage task tells."""

from itertools import pairwise, starmap

import numpy as np

from eventlake.lake.segments import RECORD, Segment, unpacked


def segments_in(records: bytes | bytearray) -> list[Segment]:
    return list(starmap(Segment, np.frombuffer(records, RECORD).tolist()))


def segments_by_table(content: bytes) -> dict[str, list[Segment]]:
    found = unpacked(content)
    records = found.in_file(0).tobytes()
    return {
        key: segments_in(records[start:end])
        for key, (start, end) in zip(found.tables, pairwise(found.ends), strict=True)
    }
