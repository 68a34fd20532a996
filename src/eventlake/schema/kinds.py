"""Values between flattening and casting: Arrow arrays by kind of JSON value.

A column whose values are all of one kind (nearly every column) is one array. Where kinds are mixed, each kind is
an array of its own with nulls for the others, so nothing is converted before the column's type is known.
"""

from collections.abc import Iterator
from enum import Enum
from typing import Any, NamedTuple

import pyarrow as pa
from msgspec import Raw

from eventlake.schema import instants
from eventlake.schema.numbers import fits_decimal, to_decimals
from eventlake.schema.types import Seen


class Kind(Enum):
    TEXT = "text"
    INTEGER = "integer"  # fits 64 bits
    NUMBER = "number"  # any other number, as the text that was sent
    BOOLEAN = "boolean"
    JSON = "json"  # an array, or an object too deep to flatten, as JSON text


_ARROW = {Kind.INTEGER: pa.int64(), Kind.BOOLEAN: pa.bool_()}
_NONE = type(None)


class Typed(NamedTuple):
    """The values of one kind in a column; null where a row has none of that kind."""

    kind: Kind
    values: pa.Array


def by_kind(values: list[Any]) -> Iterator[Typed]:
    """Split a column of parsed JSON values by kind, without converting any."""
    types = set(map(type, values)) - {_NONE}
    if types == {str}:
        yield Typed(Kind.TEXT, pa.array(values, pa.string()))
    elif types == {bool}:
        yield Typed(Kind.BOOLEAN, pa.array(values, pa.bool_()))
    elif types == {bytes}:
        yield Typed(Kind.JSON, pa.array(values, pa.binary()).cast(pa.string()))
    elif types == {int}:
        try:
            yield Typed(Kind.INTEGER, pa.array(values, pa.int64()))
        except OverflowError:
            yield from _mixed(values)
    elif types == {Raw}:
        yield Typed(
            Kind.NUMBER,
            pa.array([v if v is None else bytes(v) for v in values], pa.binary()).cast(pa.string()),
        )
    else:
        yield from _mixed(values)


def _mixed(values: list[Any]) -> Iterator[Typed]:
    split: dict[Kind, list[Any]] = {}
    for row, value in enumerate(values):
        if value is not None:
            kind, stored = _kind_of(value)
            split.setdefault(kind, [None] * len(values))[row] = stored
    for kind in Kind:
        if kind in split:
            yield Typed(kind, pa.array(split[kind], _ARROW.get(kind, pa.string())))


def _kind_of(value: Any) -> tuple[Kind, Any]:
    if isinstance(value, str):
        return Kind.TEXT, value
    if isinstance(value, bool):
        return Kind.BOOLEAN, value
    if isinstance(value, int):
        return (Kind.INTEGER, value) if -(2**63) <= value < 2**63 else (Kind.NUMBER, str(value))
    if isinstance(value, Raw):
        return Kind.NUMBER, bytes(value).decode()
    return Kind.JSON, value.decode()


def seen_in(typed: Typed) -> Seen:
    """What a column's values tell about the type it should have."""
    match typed.kind:
        case Kind.INTEGER:
            return Seen.INTEGER
        case Kind.BOOLEAN:
            return Seen.BOOLEAN
        case Kind.JSON:
            return Seen.NESTED
        case Kind.NUMBER:
            return Seen.NUMBER if _all_fit_decimal(typed.values) else Seen.NUMBER | Seen.HUGE
        case Kind.TEXT:
            return Seen.TIMESTAMP if _all_instants(typed.values) else Seen.TEXT


def _all_fit_decimal(numbers: pa.Array) -> bool:
    return to_decimals(numbers) is not None or all(map(fits_decimal, numbers.drop_null().to_pylist()))


def _all_instants(texts: pa.Array) -> bool:
    present = texts.drop_null()
    if instants.parse(present[0].as_py()) is None:  # most text columns are told by their first value
        return False
    return instants.parse_all(present) is not None or all(map(instants.parse, present.to_pylist()))
