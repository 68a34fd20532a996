"""Casting a column to its type; what does not fit is handed back, never dropped.

A cast is made when it is exact or only widens. Otherwise the cell is null and the value is a misfit. Two casts keep
a useful cell although they lose something: a number with more than six decimals is rounded, and a date-time finer
than a microsecond is cut; the original is then a misfit too, unless the source does not want these kept. Casts that go
further, and keep the original beside what they made of it, are in `best_effort`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlake.events import instants
from eventlake.schema import instant_columns, numbers
from eventlake.schema.instant_columns import Mask
from eventlake.schema.kinds import Kind, Typed
from eventlake.schema.numbers import to_decimal, to_whole
from eventlake.schema.types import ColumnType

_WHOLE = re.compile(r"-?[1-9]\d{0,18}|0", re.ASCII)
_PLAIN_NUMBER = re.compile(r"-?(0|[1-9]\d{0,31})(\.\d{1,6})?", re.ASCII)

ROUNDED = "rounded to six decimals"
CUT = "finer than a microsecond"
SPELLING = "sent as text"
FRACTION = "not a whole number"
TOO_LARGE = "does not fit"
NO_ROOM = "the table has its limit of columns"
NO_ROOM_NOW = "too many columns are new at once"
TRUNCATED = "cut to a whole number"
NEAREST = "rounded to a double"
NO_SUCH_DAY = "there is no such day, so the cell has a later one"
CONVERTED = {
    target: f"converted to {target.value}"
    for target in (ColumnType.BIGINT, ColumnType.BOOLEAN, ColumnType.DECIMAL, ColumnType.TIMESTAMP)
}

# With these the cell holds something and the original is kept as well; with the others the cell is null.
BESIDE_THE_CELL = frozenset({ROUNDED, CUT, SPELLING, TRUNCATED, NEAREST, NO_SUCH_DAY, *CONVERTED.values()})
REASONS = (
    BESIDE_THE_CELL | {FRACTION, TOO_LARGE, NO_ROOM, NO_ROOM_NOW} | {f"not a {target.value}" for target in ColumnType}
)


class Misfit(NamedTuple):
    """A value that its cell does not hold, or not exactly."""

    row: int
    json_text: str
    reason: str


class Cast(NamedTuple):
    values: pa.Array
    misfits: list[Misfit]


class Cell(NamedTuple):
    """What becomes of one value."""

    value: Any
    reason: str | None = None  # why the original must be kept as well
    rounded: bool = False


@dataclass(frozen=True)
class Casts:
    """How a dialect brings values into the types of columns."""

    at_once: Callable[[Typed, ColumnType], tuple[pa.Array, Mask]]
    """The values that need no closer look, cast at once, and which are left: most often none or few."""

    one_by_one: Mapping[tuple[Kind, ColumnType], Callable[[Any], Cell]]

    def cast(self, column: Typed, target: ColumnType, *, keep_rounded: bool = True) -> Cast:
        """Values of one kind in the column's type."""
        at_once, left = self.at_once(column, target)
        if not left.any():
            return Cast(at_once, [])
        to_cell = self.one_by_one.get((column.kind, target)) or (lambda _: Cell(None, f"not a {target.value}"))
        cells: list[Any] = []
        misfits = []
        rows = np.flatnonzero(left)
        for row, value in zip(rows.tolist(), column.values.take(pa.array(rows)).to_pylist(), strict=True):
            cell = to_cell(value)
            cells.append(cell.value)
            if cell.reason and (keep_rounded or not cell.rounded):
                misfits.append(Misfit(row, value_text(column.kind, value), cell.reason))
        looked_at = pa.array(cells, _CELLS.get(target, target.arrow)).cast(target.arrow)
        return Cast(pc.replace_with_mask(at_once, pa.array(left), looked_at), misfits)


# Timestamp cells are made from microseconds: datetime objects would be slower and say nothing more.
_CELLS = {ColumnType.TIMESTAMP: pa.int64()}


def _at_once(column: Typed, target: ColumnType) -> tuple[pa.Array, Mask]:
    values = column.values
    none = np.zeros(len(values), bool)
    if (unchanged := as_it_is(column, target)) is not None:
        return unchanged, none
    match column.kind, target:
        case (Kind.INTEGER, ColumnType.DECIMAL):
            return pc.cast(values, target.arrow), none
        case (Kind.NUMBER, ColumnType.DECIMAL):
            made, is_done = numbers.to_decimals(values)
        case (Kind.TEXT, ColumnType.TIMESTAMP):
            made, is_done, _ = instant_columns.parse(values)
        case _:
            made, is_done = pa.nulls(len(values), target.arrow), none
    is_valid = values.is_valid().to_numpy(zero_copy_only=False)
    return made, is_valid & ~is_done


def as_it_is(column: Typed, target: ColumnType) -> pa.Array | None:
    """The values of a column that fits them as they are, or as their texts; None if it does not."""
    match column.kind, target:
        case (Kind.TEXT | Kind.NUMBER | Kind.JSON, ColumnType.STRING):
            return column.values
        case (Kind.INTEGER | Kind.BOOLEAN, ColumnType.STRING):
            return pc.cast(column.values, pa.string())
        case (Kind.INTEGER, ColumnType.BIGINT) | (Kind.BOOLEAN, ColumnType.BOOLEAN):
            return column.values
        case _:
            return None


def _text_to_bigint(text: str) -> Cell:
    if _WHOLE.fullmatch(text) and -(2**63) <= int(text) < 2**63:
        return Cell(int(text))
    return Cell(None, "not a bigint")


def _number_to_bigint(number: str) -> Cell:
    cell = to_decimal(number)
    if cell is None:
        return Cell(None, TOO_LARGE)
    if not cell[1] or cell[0] != cell[0].to_integral_value():
        return Cell(None, FRACTION)
    whole = int(cell[0])
    return Cell(whole) if -(2**63) <= whole < 2**63 else Cell(None, TOO_LARGE)


def cut_to_bigint(number: str) -> Cell:
    found = to_whole(number)
    if found is None:
        return Cell(None, TOO_LARGE)
    whole, is_exact = found
    return Cell(whole, None if is_exact else TRUNCATED)


def _number_to_decimal(number: str) -> Cell:
    cell = to_decimal(number)
    if cell is None:
        return Cell(None, TOO_LARGE)
    value, exact = cell
    return Cell(value) if exact else Cell(value, ROUNDED, rounded=True)


def _text_to_decimal(text: str) -> Cell:
    if not _PLAIN_NUMBER.fullmatch(text):
        return Cell(None, "not a decimal(38,6)")
    value = Decimal(text)
    # 1.10 and 1.1 are one number but two texts (versions, for one): the cell has the number, the row keeps the text.
    odd = ("." in text and text.endswith("0")) or (text.startswith("-") and not value)
    return Cell(value, SPELLING if odd else None)


def _text_to_boolean(text: str) -> Cell:
    return Cell(text == "true") if text in ("true", "false") else Cell(None, "not a boolean")


def _text_to_timestamp(text: str) -> Cell:
    instant = instants.parse(text)
    if instant is None:
        return Cell(None, "not a timestamp")
    return Cell(instant.micros, None if instant.exact else CUT, rounded=not instant.exact)


_ONE_BY_ONE = {
    (Kind.TEXT, ColumnType.BIGINT): _text_to_bigint,
    (Kind.NUMBER, ColumnType.BIGINT): _number_to_bigint,
    (Kind.TEXT, ColumnType.DECIMAL): _text_to_decimal,
    (Kind.NUMBER, ColumnType.DECIMAL): _number_to_decimal,
    (Kind.TEXT, ColumnType.BOOLEAN): _text_to_boolean,
    (Kind.TEXT, ColumnType.TIMESTAMP): _text_to_timestamp,
}

EXACT = Casts(_at_once, _ONE_BY_ONE)


def value_text(kind: Kind, value: Any) -> str:
    """A value of one kind as JSON."""
    return value if kind in (Kind.NUMBER, Kind.JSON) else msgspec.json.encode(value).decode()
