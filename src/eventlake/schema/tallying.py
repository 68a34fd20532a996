"""Counting the values of a column by what they are."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventlake.schema import instant_columns
from eventlake.schema.kinds import Kind, Typed
from eventlake.schema.numbers import fits_decimal, to_decimals
from eventlake.schema.tallies import SAMPLE_LENGTH, Tallies, Tally
from eventlake.schema.types import Seen

_OF_KINDS = {Kind.INTEGER: Seen.INTEGER, Kind.BOOLEAN: Seen.BOOLEAN, Kind.JSON: Seen.NESTED}


def tallied(typed: Typed) -> Tallies:
    """What the values of a column tell about the type it should have, in Segment's dialect."""
    present = typed.values.drop_null()
    match typed.kind:
        case Kind.NUMBER:
            fits = to_decimals(present).is_plain
            if not fits.all():
                left = np.flatnonzero(~fits)
                fits[left] = [fits_decimal(text) for text in present.take(pa.array(left)).to_pylist()]
            return split(present, np.where(fits, 0, 1), (Seen.NUMBER, Seen.HUGE))
        case Kind.TEXT:
            is_instant = instant_columns.are_instants(present)
            return split(present, np.where(is_instant, 0, 1), (Seen.TIMESTAMP, Seen.TEXT))
        case _:
            return tallied_by_kind(typed)


def tallied_by_kind(typed: Typed) -> Tallies:
    """The same where the kind of the values tells all."""
    present = typed.values.drop_null()
    return (_tally(_OF_KINDS[typed.kind], present, 0, len(present)),)


def _tally(seen: Seen, values: pa.Array, at: int, count: int) -> Tally:
    value = values[at].as_py()
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return Tally(seen, count, text[:SAMPLE_LENGTH])


def split(values: pa.Array, which: npt.NDArray[Any], kinds: Sequence[Seen]) -> Tallies:
    """Values of several kinds; `which` is the number of the kind of each."""
    parts = ((seen, np.flatnonzero(which == number)) for number, seen in enumerate(kinds))
    return tuple(_tally(seen, values, int(rows[0]), len(rows)) for seen, rows in parts if len(rows))
