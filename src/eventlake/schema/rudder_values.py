"""What values are to RudderStack, and how they are cast to the type of their column.

A whole number is a bigint however it is written (5.0, 1e3), any other a double; a text is a timestamp if it looks like
one (2019-09-26 does). A column keeps the type that it got first. What differs becomes text in a string column, a number
in a double one, and is cut to a whole number in a bigint one; anything else leaves the cell null. Theirs do that
without a word in some cases; here the original is always kept.
"""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from math import isinf

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eventlake.events import instants
from eventlake.schema import instant_columns
from eventlake.schema.cast import CUT, NEAREST, NO_SUCH_DAY, TOO_LARGE, Casts, Cell, as_it_is, cut_to_bigint
from eventlake.schema.instant_columns import Mask
from eventlake.schema.kinds import Kind, Typed
from eventlake.schema.tallies import Tallies
from eventlake.schema.tallying import split, tallied_by_kind
from eventlake.schema.types import ColumnType, Seen

_MOST_CHARACTERS = 40  # of a timestamp
_EXACT_CHARACTERS = 15  # of a number without an exponent: a double gives so many digits back
_EXACT_WHOLE = 2**53
_MOST_DIGITS = 20  # one more than a number of 64 bits has
_TIMESTAMP = re.compile(
    r"(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
    r"(?:\s|[T\s]([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:\.(\d+))?)?(?:[Zz]|([+-])([01]\d|2[0-3]):?([0-5]\d))?)?",
    re.ASCII,
)


def timestamp(text: str) -> Cell | None:
    """The instant that a text names, in microseconds since 1970; None if it names none. Without a zone it is UTC.

    >>> timestamp("1970-01-02"), timestamp("1970-01-01T00:00:00.5+0530").value, timestamp("20210101")
    (Cell(value=86400000000, reason=None, rounded=False), -19799500000, None)
    """
    match = _TIMESTAMP.fullmatch(text) if len(text) <= _MOST_CHARACTERS else None
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, sign, zone_hours, zone_minutes = match.groups()
    fraction = fraction or ""
    try:
        first = datetime(int(year), int(month), 1, int(hour or 0), int(minute or 0), int(second or 0), tzinfo=UTC)
        local = first + timedelta(days=int(day) - 1)  # the 31st of April is the 1st of May
    except (ValueError, OverflowError):
        return None
    micros = instants.micros_of(local) + int(fraction[:6].ljust(6, "0"))
    micros -= (int(zone_hours or 0) * 60 + int(zone_minutes or 0)) * 60_000_000 * (-1 if sign == "-" else 1)
    if not instants.FIRST <= micros <= instants.LAST:
        return None
    if local.month != int(month):
        return Cell(micros, NO_SUCH_DAY)
    return Cell(micros, CUT, rounded=True) if fraction[6:].strip("0") else Cell(micros)


def tallied(typed: Typed) -> Tallies:
    """What the values of a column tell about the type it should have."""
    values = typed.values.drop_null()
    match typed.kind:
        case Kind.NUMBER:
            return split(values, _number_kinds(values), (Seen.INTEGER, Seen.NUMBER, Seen.HUGE))
        case Kind.TEXT:
            return split(values, np.where(_are_timestamps(values), 0, 1), (Seen.TIMESTAMP, Seen.TEXT))
        case _:
            return tallied_by_kind(typed)


def _number_kinds(texts: pa.Array) -> npt.NDArray[np.int64]:
    """Of each number: 0 if it is whole and has 64 bits, 1 if not, 2 if it is beyond a double."""
    has_fraction = pc.match_substring_regex(texts, r"^-?\d{1,300}\.\d*[1-9]\d*$").to_numpy(zero_copy_only=False)
    kinds = np.ones(len(texts), np.int64)
    left = np.flatnonzero(~has_fraction)
    kinds[left] = [_number_kind(text) for text in texts.take(pa.array(left)).to_pylist()]
    return kinds


def _number_kind(text: str) -> int:
    if isinf(float(text)):
        return 2
    whole = _whole(text)
    return 0 if whole is not None and -(2**63) <= whole < 2**63 else 1


def _whole(text: str) -> int | None:
    """The number, if it is whole and has no more digits than one of 64 bits."""
    number = _decimal(text)
    if number is None or number.adjusted() >= _MOST_DIGITS:
        return None
    whole = int(number)
    return whole if whole == number else None


def _decimal(text: str) -> Decimal | None:
    """The number; None if its exponent is beyond what even Decimal can hold."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


def _are_timestamps(texts: pa.Array) -> Mask:
    found: Mask = np.array(_plain_timestamps(texts).is_valid())
    left = np.flatnonzero(~found)
    likely = left[pc.match_substring_regex(texts.take(pa.array(left)), r"^\d{4}-\d{2}-\d{2}").to_numpy(False)]
    found[likely] = [timestamp(text) is not None for text in texts.take(pa.array(likely)).to_pylist()]
    return found


def _plain_timestamps(texts: pa.Array) -> pa.Array:
    """The timestamps among texts that all readers agree about; null where a closer look is needed."""
    made, is_exact, _ = instant_columns.parse(texts)
    plain = pc.and_(pc.ends_with(texts, "Z"), pc.less_equal(pc.binary_length(texts), _MOST_CHARACTERS))
    return pc.if_else(pc.and_(plain, pa.array(is_exact)), made, None)


def _at_once(column: Typed, target: ColumnType) -> tuple[pa.Array, Mask]:
    values = column.values
    if (unchanged := as_it_is(column, target)) is not None:
        return unchanged, np.zeros(len(values), bool)
    match column.kind, target:
        case (Kind.INTEGER, ColumnType.DOUBLE):
            is_exact = pc.less_equal(pc.abs(values), _EXACT_WHOLE)
            made = pc.cast(pc.if_else(is_exact, values, None), pa.float64())
        case (Kind.NUMBER, ColumnType.DOUBLE):
            is_exact = pc.and_not(
                pc.less_equal(pc.binary_length(values), _EXACT_CHARACTERS),
                pc.match_substring_regex(values, "[eE]"),
            )
            made = pc.cast(pc.if_else(is_exact, values, None), pa.float64())
        case (Kind.TEXT, ColumnType.TIMESTAMP):
            made = _plain_timestamps(values)
        case _:
            made = pa.nulls(len(values), target.arrow)
    is_left = pc.and_(values.is_valid(), made.is_null())
    return made, is_left.to_numpy(zero_copy_only=False)


def _integer_to_double(number: int) -> Cell:
    return Cell(float(number), None if int(float(number)) == number else NEAREST)


def _number_to_double(text: str) -> Cell:
    number = float(text)
    if isinf(number):
        return Cell(None, TOO_LARGE)
    return Cell(number, None if _is_same(text, number) else NEAREST)


def _is_same(text: str, number: float) -> bool:
    """Whether a double, as it is printed, gives a number back."""
    return _decimal(text) == Decimal(repr(number))


def _text_to_timestamp(text: str) -> Cell:
    return timestamp(text) or Cell(None, "not a timestamp")


CASTS = Casts(
    _at_once,
    {
        (Kind.NUMBER, ColumnType.BIGINT): cut_to_bigint,
        (Kind.INTEGER, ColumnType.DOUBLE): _integer_to_double,
        (Kind.NUMBER, ColumnType.DOUBLE): _number_to_double,
        (Kind.TEXT, ColumnType.TIMESTAMP): _text_to_timestamp,
    },
)
