"""Values between flattening and casting: Arrow arrays by kind of JSON value.

A column whose values are all of one kind (nearly every column) is one array. Where kinds are mixed, each kind is
an array of its own with nulls for the others, so nothing is converted before the column's type is known.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, NamedTuple

import pyarrow as pa
from msgspec import Raw


class Kind(StrEnum):
    TEXT = "text"
    INTEGER = "integer"  # fits 64 bits
    NUMBER = "number"  # any other number, as the text that was sent
    BOOLEAN = "boolean"
    JSON = "json"  # an array, or an object too deep to flatten, as JSON text


_INFERRED = {pa.string(): Kind.TEXT, pa.int64(): Kind.INTEGER, pa.bool_(): Kind.BOOLEAN}
_NONE = type(None)
_MIN, _MAX = -(2**63), 2**63 - 1


class Place(NamedTuple):
    """The values of one kind found at one place of the events."""

    column: str
    pointer: str
    kind: Kind


class Typed(NamedTuple):
    """The values of one kind in a column; null where a row has none of that kind."""

    kind: Kind
    values: pa.Array


def by_kind(values: list[Any]) -> Iterator[Typed]:
    """Split a column of parsed JSON values by kind, without converting any."""
    array = _of_one_kind(values)
    if array is not None:
        yield Typed(_INFERRED[array.type], array)
        return
    types = set(map(type, values)) - {_NONE}
    if types == {bytes}:
        yield Typed(Kind.JSON, pa.array(values).cast(pa.string()))
    elif types == {Raw}:
        yield Typed(Kind.NUMBER, pa.array([v if v is None else bytes(v) for v in values]).cast(pa.string()))
    elif types:
        yield from _mixed(values)


def _of_one_kind(values: list[Any]) -> pa.Array | None:
    """The values as an array, if all are texts, all are whole numbers of 64 bits, or all are booleans.

    Left to itself, Arrow converts nothing: it refuses to mix kinds. Only texts and bytes it takes together, as bytes.
    """
    try:
        array = pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return None
    return array if array.type in _INFERRED else None


def _mixed(values: list[Any]) -> Iterator[Typed]:
    texts = _of(str, values)
    if texts:
        yield Typed(Kind.TEXT, pa.array(texts))
    # A whole number beyond 64 bits is a number like those with a fraction.
    whole = [v if type(v) is int and _MIN <= v <= _MAX else None for v in values]
    if any(v is not None for v in whole):
        yield Typed(Kind.INTEGER, pa.array(whole))
    numbers = [_number_text(v) for v in values]
    if any(numbers):
        yield Typed(Kind.NUMBER, pa.array(numbers))
    booleans = _of(bool, values)
    if booleans:
        yield Typed(Kind.BOOLEAN, pa.array(booleans))
    nested = _of(bytes, values)
    if nested:
        yield Typed(Kind.JSON, pa.array(nested).cast(pa.string()))


def _of(kind: type, values: list[Any]) -> list[Any] | None:
    """The values of one type; None if there are none."""
    return [v if type(v) is kind else None for v in values] if kind in map(type, values) else None


def _number_text(value: Any) -> str | None:
    if type(value) is Raw:
        return bytes(value).decode()
    return str(value) if type(value) is int and not _MIN <= value <= _MAX else None
