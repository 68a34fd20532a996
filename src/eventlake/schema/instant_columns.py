"""Columns of ISO-8601 date-times as instants, all at once."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventlake.events import instants
from eventlake.native import texts as native

ARROW = pa.timestamp("us", tz="UTC")

Mask = npt.NDArray[np.bool_]


class Instants(NamedTuple):
    """What the texts of a column name."""

    values: pa.Array  # null where a text names no instant
    is_exact: Mask
    is_cut: Mask  # finer than a microsecond


def parse(texts: pa.Array) -> Instants:
    micros, found = _found(texts)
    if texts.null_count:
        found[texts.is_null().to_numpy(zero_copy_only=False)] = 0
    return Instants(pa.array(micros, mask=found == 0).cast(ARROW), found == 1, found == 2)


def are_instants(texts: pa.Array) -> Mask:
    """Which texts name instants; none of them is null."""
    return np.asarray(_found(texts).found > 0)


def _found(texts: pa.Array) -> native.Found:
    return native.instants(texts) if native.can_read() else one_by_one(texts)


def one_by_one(texts: pa.Array) -> native.Found:
    read = [instants.parse(text) if text is not None else None for text in texts.to_pylist()]
    micros = [instant.micros if instant else 0 for instant in read]
    found = [0 if instant is None else 1 if instant.exact else 2 for instant in read]
    return native.Found(np.array(micros, np.int64), np.array(found, np.uint8))
