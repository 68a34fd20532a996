"""Many small records in few bytes: byte by byte over all records, then compressed."""

from typing import Any

import numpy as np
import pyarrow as pa

from eventlake.lake.ids import Array

_CODEC = pa.Codec("zstd", 1)
_SIZE = 8  # bytes that tell the size, before what is packed
# That is unpacked: counts of eleven million raw files, 19 million segments of one task. Whoever writes to the staging
# folder of a cluster can make a driver hold so much, and no more.
LARGEST = 512 << 20


def packed(content: bytes) -> bytes:
    return len(content).to_bytes(_SIZE, "little") + bytes(_CODEC.compress(content))


def unpacked(content: bytes) -> Any:
    """What was packed, as a buffer. Raises ValueError for whatever was not, or is larger than anything that is."""
    size = int.from_bytes(content[:_SIZE], "little")
    if len(content) < _SIZE or size > LARGEST:
        raise ValueError(f"{size:,} bytes are not what one task can tell")
    try:
        return _CODEC.decompress(content[_SIZE:], size)
    except OSError as error:
        raise ValueError(f"cannot be unpacked: {error}") from error


def planes_of(records: Array) -> bytes:
    """The first byte of each record, then the second byte of each, and so on: they differ little."""
    return np.ascontiguousarray(records).view(np.uint8).reshape(len(records), records.itemsize).T.tobytes()


def from_planes(planes: Any, record: np.dtype[Any]) -> Array:
    """Records that can be written to. Raises ValueError if they are not whole."""
    columns = np.frombuffer(planes, np.uint8).reshape(record.itemsize, len(planes) // record.itemsize)
    return columns.T.copy().view(record).ravel()


def packed_records(records: Array) -> bytes:
    return packed(planes_of(records))


def unpacked_records(content: bytes, record: np.dtype[Any]) -> Array:
    """Raises ValueError for whatever are no such records."""
    return from_planes(unpacked(content), record)
