"""Numbers, from the digits that were sent."""

from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import Raw

from eventlake.native import texts as native

ARROW = pa.decimal128(38, 6)

MAX_DIGITS = 4000  # Python refuses to make an integer of more than 4,300 digits from text

_PLACES = Decimal("0.000001")
_DIGITS_OF_64_BITS = 20  # one more than such a number has
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


def to_whole(number: str) -> tuple[int, bool] | None:
    """The number cut to a whole one, and whether nothing was cut off; None when it has more than 64 bits.

    >>> to_whole("-1.9"), to_whole("1e3"), to_whole("1e19")
    ((-1, False), (1000, True), None)
    """
    try:
        value = Decimal(number)
    except InvalidOperation:  # far beyond one, or far below
        return None if float(number) else (0, False)
    if value and value.adjusted() >= _DIGITS_OF_64_BITS:
        return None
    whole = int(value)
    return (whole, whole == value) if -(2**63) <= whole < 2**63 else None


class Decimals(NamedTuple):
    """What the texts of a column are."""

    values: pa.Array  # null where a number needs a closer look
    is_plain: npt.NDArray[np.bool_]


def to_decimals(numbers: pa.Array) -> Decimals:
    """A column of numbers at once, but for those that have many digits or an exponent."""
    if not native.can_read():
        return Decimals(pa.nulls(len(numbers), ARROW), np.zeros(len(numbers), bool))
    millionths, found = native.decimals(numbers)
    is_plain = found > 0
    validity = None if is_plain.all() else pa.py_buffer(np.packbits(is_plain, bitorder="little"))
    return Decimals(pa.Array.from_buffers(ARROW, len(numbers), [validity, pa.py_buffer(millionths)]), is_plain)


def fits_decimal(number: str) -> bool:
    return to_decimal(number) is not None
