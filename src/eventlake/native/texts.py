"""Columns of texts as instants and as decimals, all at once: what `texts.c` does, with Arrow's arrays."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from eventlake.native.library import Array, address, library


class Found(NamedTuple):
    """What the texts of a column stand for."""

    values: Array
    found: Array  # for each text a number that tells whether it stands for anything


def can_read() -> bool:
    return library() is not None


def instants(texts: pa.Array) -> Found:
    """Microseconds since 1970; 1 for each text that is an instant, 2 for one that is finer than that."""
    return _read("instants", texts, np.zeros(len(texts), np.int64))


def decimals(texts: pa.Array) -> Found:
    """Millionths, as two halves each; 1 for each text that is a number with few enough digits."""
    return _read("decimals", texts, np.zeros((len(texts), 2), np.uint64))


def _read(function: str, texts: pa.Array, values: Array) -> Found:
    _, offsets, data = texts.buffers()
    found = np.zeros(len(texts), np.uint8)
    if len(texts) and data is not None:
        start = np.frombuffer(offsets, np.int32)[texts.offset :]
        content = np.frombuffer(data, np.uint8)
        getattr(library(), function)(address(start), address(content), len(texts), address(values), address(found))
    return Found(values, found)
