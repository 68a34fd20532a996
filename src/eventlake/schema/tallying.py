"""Counting the values of a column by what they are."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventlake.schema import instant_columns
from eventlake.schema.kinds import Kind, Typed
from eventlake.schema.numbers import fits_decimal, to_decimals
from eventlake.schema.tallies import SAMPLE_LENGTH, Tallies, Tally
from eventlake.schema.types import Seen


def tallied(typed: Typed) -> Tallies:
    """What the values of a column tell about the type it should have."""
    present = typed.values.drop_null()
    match typed.kind:
        case Kind.INTEGER:
            return (_tally(Seen.INTEGER, present),)
        case Kind.BOOLEAN:
            return (_tally(Seen.BOOLEAN, present),)
        case Kind.JSON:
            return (_tally(Seen.NESTED, present),)
        case Kind.NUMBER:
            fits = to_decimals(present).is_plain
            if not fits.all():
                left = np.flatnonzero(~fits)
                fits[left] = [fits_decimal(text) for text in present.take(pa.array(left)).to_pylist()]
            return _split(present, Seen.NUMBER, fits, Seen.HUGE)
        case Kind.TEXT:
            return _split(present, Seen.TIMESTAMP, instant_columns.are_instants(present), Seen.TEXT)


def _tally(seen: Seen, values: pa.Array, at: int = 0, count: int | None = None) -> Tally:
    value = values[at].as_py()
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return Tally(seen, len(values) if count is None else count, text[:SAMPLE_LENGTH])


def _split(values: pa.Array, first: Seen, which: npt.NDArray[np.bool_], second: Seen) -> Tallies:
    """The values of which something is true, and the others."""
    parts = ((first, np.flatnonzero(which)), (second, np.flatnonzero(~which)))
    return tuple(_tally(seen, values, int(rows[0]), len(rows)) for seen, rows in parts if len(rows))
