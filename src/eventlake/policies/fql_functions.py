"""What the filter query language compares, and its functions. What makes no sense is null."""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from msgspec import Raw

from eventlake.policies import casing
from eventlake.policies.globs import matches

_MOST_ZEROS = 40
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)


def number(text: str) -> int | Decimal | None:
    """A number from its text; None if it is beyond all bounds."""
    try:
        found = Decimal(text)
    except InvalidOperation:
        return None
    return int(found) if found == found.to_integral_value() and found.adjusted() < 30 else found


def number_text(value: Decimal) -> str:
    """A number as JSON has it: with all its digits, if those are not mostly zeros."""
    return format(value, "f") if abs(value.adjusted()) <= _MOST_ZEROS else str(value)


def plain(value: Any) -> Any:
    """A value of an event, with its number as a number."""
    return number(bytes(value).decode()) if isinstance(value, Raw) else value


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | Decimal):
        return "number"
    return {str: "string", list: "array", dict: "object", type(None): "null"}.get(type(value), "null")


def _equal(one: Any, other: Any) -> bool:
    return _kind(one) == _kind(other) and bool(one == other)


def _ordered(holds: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def compare(one: Any, other: Any) -> bool:
        kind = _kind(one)
        return kind == _kind(other) and kind in ("number", "string") and holds(one, other)

    return compare


COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": _equal,
    "!=": lambda one, other: not _equal(one, other),
    ">": _ordered(lambda one, other: one > other),
    ">=": _ordered(lambda one, other: one >= other),
    "<": _ordered(lambda one, other: one < other),
    "<=": _ordered(lambda one, other: one <= other),
    "in": lambda one, among: isinstance(among, list) and any(_equal(one, plain(other)) for other in among),
}


def _contains(text: Any, part: Any) -> bool:
    if isinstance(text, list):
        return any(_equal(plain(one), part) for one in text)
    return isinstance(text, str) and isinstance(part, str) and part in text


def _of_text(change: Callable[[str], str]) -> Callable[[Any], Any]:
    return lambda text: change(text) if isinstance(text, str) else None


def _as_number(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return (
        number(value.strip())
        if isinstance(value, str) and _NUMBER.fullmatch(value.strip())
        else (value if _kind(value) == "number" else None)
    )


def _as_text(value: Any) -> Any:
    match _kind(value):
        case "string":
            return value
        case "boolean":
            return str(value).lower()
        case "number":
            return number_text(value) if isinstance(value, Decimal) else str(value)
        case _:
            return None


def _as_boolean(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}.get(value.strip().lower()) if isinstance(value, str) else None


FUNCTIONS: Mapping[str, tuple[int, Callable[..., Any]]] = {
    "contains": (2, _contains),
    "length": (1, lambda value: len(value) if isinstance(value, str | list) else None),
    **{name: (1, _of_text(change)) for name, change in casing.FUNCTIONS.items()},
    "typeof": (1, _kind),
    "match": (2, lambda text, glob: isinstance(text, str) and isinstance(glob, str) and matches(text, glob)),
    "bool": (1, _as_boolean),
    "string": (1, _as_text),
    "number": (1, _as_number),
}
