"""Which values a line holds, and which of them some cells do not give back. It knows none of the contestants.

A value is a text, a number, true, false, or an empty object or array, at any depth, also within arrays; nulls are
none. A cell gives back a number of the same value, a time of the same instant, anything else exactly; a text does
so for what it spells, be it a number or a whole JSON document. Every cell gives back one value only. Where the cell
is does not matter: names are each contestant's own affair.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections import defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Form = tuple[object, ...]  # equal forms are the same value

# An empty one of these at the top of an event says nothing: most SDKs send `integrations: {}` with every event.
_CONTAINERS = frozenset({"context", "properties", "traits", "integrations", "_metadata"})
_EMPTY_OBJECT: Form = ("object",)
_EMPTY_ARRAY: Form = ("array",)


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with all its members, also those whose key came before."""


class _Number(str):
    """A JSON number as it is written."""

    __slots__ = ()


_exact = json.JSONDecoder(object_pairs_hook=_Pairs, parse_float=_Number, parse_int=_Number)


class Value(NamedTuple):
    """A value of an event: where it is, and the forms of which a cell must have one."""

    path: tuple[str, ...]
    forms: list[Form]


def values_of(line: str) -> list[Value]:
    """The values of an event, as JSON's own rules read its line."""
    return [value for value in _leaves(_exact.decode(line), ()) if not _says_nothing(value)]


def _says_nothing(value: Value) -> bool:
    return value.forms == [_EMPTY_OBJECT] and len(value.path) == 1 and value.path[0] in _CONTAINERS


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[Value]:
    if isinstance(value, _Pairs) and value:
        for key, item in value:
            yield from _leaves(item, (*path, key))
    elif type(value) is list and value:
        for number, item in enumerate(value):
            yield from _leaves(item, (*path, str(number)))
    elif value is not None:
        yield Value(path, _forms(value))


def _forms(value: Any) -> list[Form]:
    """The forms of a value without parts, the one that is most its own first."""
    match value:
        case bool():
            return [("constant", value), ("text", json.dumps(value))]
        case _Number():
            return [_number(value)]
        case str():
            return [("text", value), *_instant(value)]
        case float() if not math.isfinite(value):
            return [("text", "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity")]
        case int() | float():
            return [_number(repr(value)), ("text", repr(value))]
        case Decimal():
            plain = f"{value:f}"
            shortest = plain.rstrip("0").rstrip(".") if "." in plain else plain
            return [_number(plain), ("text", shortest)]
        case dt.datetime():
            return [("instant", _micros(value))]
        case dt.date() | dt.time():
            return [("text", value.isoformat())]
        case bytes():
            return [("text", value.decode(errors="backslashreplace"))]
        case _Pairs() | dict():
            return [_EMPTY_OBJECT]
        case list():
            return [_EMPTY_ARRAY]
        case _:
            return [("text", str(value))]


def _number(digits: str) -> Form:
    """A number by value: no type of Python can hold every number that JSON can."""
    mantissa, _, exponent = digits.lower().partition("e")
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    significant = (whole + fraction).lstrip("0")
    kept = significant.rstrip("0")
    if not kept:
        return ("number", "", "0", 0)
    scale = int(exponent or 0) - len(fraction) + len(significant) - len(kept)
    return ("number", "-" if digits.startswith("-") else "", kept, scale)


_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6}0*)?)?(Z|[+-]\d\d(:?\d\d)?)?)?", re.ASCII)


def _instant(text: str) -> list[Form]:
    """The instant that a text names, if it names one to the microsecond; a day names its beginning."""
    if not _TIME.fullmatch(text):
        return []
    try:
        return [("instant", _micros(dt.datetime.fromisoformat(text)))]
    except ValueError:
        return []


def _micros(moment: dt.datetime) -> int:
    """Microseconds since 1970; a time without a zone is UTC."""
    return ((moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)) - _EPOCH) // dt.timedelta(microseconds=1)


def _spelled(text: str) -> Any:
    """What a text spells as JSON, or as Python spells true and false; the text itself if it does not."""
    if text in ("True", "False"):
        return text == "True"
    if not text or text[0] not in '{["-0123456789tf':
        return text
    try:
        return _exact.decode(text)
    except (ValueError, RecursionError):
        return text


def missing(values: list[Value], cells: Iterable[object]) -> list[Value]:
    """The values that no cell gives back."""
    pool = _Pool()
    for cell in cells:
        pool.offer(cell)
    rest = [value for value in values if not pool.take(value.forms[:1])]
    rest = [value for value in rest if not pool.take(value.forms)]
    if rest:
        pool.open_texts()
        rest = [value for value in rest if not pool.take(value.forms)]
    return rest


@dataclass
class _Pool:
    """What the cells of an event offer; what was taken is gone."""

    offers: dict[Form, list[int]] = field(default_factory=lambda: defaultdict(list))  # form → numbers of cells
    texts: dict[int, str] = field(default_factory=dict)
    taken: set[int] = field(default_factory=set)
    cells: int = 0

    def offer(self, cell: object) -> None:
        """Add a cell, or all that are nested in it; an object with nothing but nulls in it is an empty one."""
        if cell is None:
            return
        if isinstance(cell, _Pairs):
            cell = [item for _, item in cell] or {}
        if isinstance(cell, dict):
            inner = [item for item in cell.values() if item is not None]
            cell = inner or {}
        if isinstance(cell, list) and cell:
            for item in cell:
                self.offer(item)
            return
        number, self.cells = self.cells, self.cells + 1
        for form in _forms(cell):
            self.offers[form].append(number)
        if type(cell) is str:  # and not a number that a text spelled
            self.texts[number] = cell

    def take(self, forms: list[Form]) -> bool:
        for form in forms:
            numbers = self.offers.get(form, [])
            while numbers:
                number = numbers.pop()
                if number not in self.taken:
                    self.taken.add(number)
                    return True
        return False

    def open_texts(self) -> None:
        """Offer what the texts that nobody took spell."""
        for number, text in list(self.texts.items()):
            spelled = text if number in self.taken else _spelled(text)
            if spelled is not text:
                self.offer(spelled)
