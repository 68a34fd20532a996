"""The column types of the lake, and which one a column gets from the values that were seen.

What was seen is a set (`Seen`), joined by union: neither the order of the events nor the way they are
split over tasks can change the type that follows from it.
"""

import functools
from enum import Enum, Flag
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


class ColumnType(Enum):
    """A column's type, by the name that catalogs and reports use."""

    BIGINT = "bigint"
    BOOLEAN = "boolean"
    DECIMAL = "decimal(38,6)"  # of numbers in Segment's dialect
    DOUBLE = "double"  # of numbers in RudderStack's
    STRING = "string"
    TIMESTAMP = "timestamp"

    @property
    def arrow(self) -> "pa.DataType":
        return _arrow_types()[self]

    @classmethod
    def named(cls, text: str) -> "ColumnType | None":
        """The type that people call so; `decimal` is short for the only one there is."""
        return cls.DECIMAL if text == "decimal" else next((kind for kind in cls if kind.value == text), None)


@functools.cache
def _arrow_types() -> "dict[ColumnType, pa.DataType]":
    import pyarrow as pa  # noqa: PLC0415 - commands that only look at the catalog shall answer at once

    return {
        ColumnType.BIGINT: pa.int64(),
        ColumnType.BOOLEAN: pa.bool_(),
        ColumnType.DECIMAL: pa.decimal128(38, 6),
        ColumnType.DOUBLE: pa.float64(),
        ColumnType.STRING: pa.string(),
        ColumnType.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    }


SEGMENT_TYPES = tuple(kind for kind in ColumnType if kind is not ColumnType.DOUBLE)
RUDDER_TYPES = tuple(kind for kind in ColumnType if kind is not ColumnType.DECIMAL)


class Seen(Flag):
    """Which kinds of values a column has held."""

    NOTHING = 0
    INTEGER = 1  # a whole number that fits 64 bits
    NUMBER = 2  # any other number whose integer part fits decimal(38,6)
    HUGE = 4  # a number too large for decimal(38,6)
    BOOLEAN = 8
    TIMESTAMP = 16  # text that is a full ISO-8601 date-time
    TEXT = 32
    NESTED = 64  # an array, or an object too deep to flatten; kept as JSON text


def infer(seen: Seen, numbers: ColumnType = ColumnType.DECIMAL) -> ColumnType:
    """The narrowest type that holds everything seen; any mix but whole numbers and fractions is text.

    Numbers with fractions are of the type that the dialect has for them.
    """
    if seen is Seen.INTEGER:
        return ColumnType.BIGINT
    if seen in (Seen.NUMBER, Seen.INTEGER | Seen.NUMBER):
        return numbers
    return {Seen.BOOLEAN: ColumnType.BOOLEAN, Seen.TIMESTAMP: ColumnType.TIMESTAMP}.get(seen, ColumnType.STRING)


# The envelope of Segment's spec has known types; one odd first event must not decide about `user_id` for ever.
ENVELOPE_TYPES: dict[str, ColumnType] = {
    "message_id": ColumnType.STRING,
    "type": ColumnType.STRING,
    "event": ColumnType.STRING,
    "user_id": ColumnType.STRING,
    "anonymous_id": ColumnType.STRING,
    "group_id": ColumnType.STRING,
    "previous_id": ColumnType.STRING,
    "name": ColumnType.STRING,
    "category": ColumnType.STRING,
    "channel": ColumnType.STRING,
    "project_id": ColumnType.STRING,
    "received_at": ColumnType.TIMESTAMP,
    "sent_at": ColumnType.TIMESTAMP,
    "timestamp": ColumnType.TIMESTAMP,
    "original_timestamp": ColumnType.TIMESTAMP,
}
