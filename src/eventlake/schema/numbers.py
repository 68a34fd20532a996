"""Numbers, from the digits that were sent."""

from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Raw

ARROW = pa.decimal128(38, 6)

MAX_DIGITS = 4000  # Python refuses to make an integer of more than 4,300 digits from text

_PLACES = Decimal("0.000001")
_LIMIT = Decimal(10) ** 32
_WIDE = Context(prec=60, rounding=ROUND_HALF_EVEN)


def fraction(digits: str) -> Raw:
    """A number with a fraction or an exponent: kept as it was sent, because a float would change it."""
    return Raw(digits.encode())


def whole(digits: str) -> int | Raw:
    return int(digits) if len(digits) <= MAX_DIGITS else Raw(digits.encode())


def to_decimal(number: str) -> tuple[Decimal, bool] | None:
    """The number rounded to six places and whether that is exact; None when it is too large.

    >>> to_decimal("1.50"), to_decimal("0.1234567"), to_decimal("1e400")
    ((Decimal('1.500000'), True), (Decimal('0.123457'), False), None)
    """
    try:
        value = Decimal(number)
    except InvalidOperation:  # an exponent beyond what even Decimal can hold
        return None
    if value and value.adjusted() >= 32:
        return None
    rounded = (value or Decimal(0)).quantize(_PLACES, context=_WIDE)
    return (rounded, rounded == value) if rounded.copy_abs() < _LIMIT else None


# Arrow's own cast wraps around without a word beyond 32 digits and with large exponents, so it sees neither.
_PLAIN = r"^-?\d{1,25}(\.\d{1,6})?$"


def are_plain(numbers: pa.Array) -> pa.Array:
    """Which numbers need no closer look."""
    return pc.match_substring_regex(numbers, _PLAIN)


def to_decimals(numbers: pa.Array) -> pa.Array | None:
    """A column of numbers at once; None if any needs a closer look."""
    return pc.cast(numbers, ARROW) if pc.all(are_plain(numbers)).as_py() else None


def fits_decimal(number: str) -> bool:
    return to_decimal(number) is not None
