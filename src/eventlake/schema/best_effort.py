"""Casts that read a value as it is plainly meant, although it is of another kind than its column.

`" 42"` is a number to whoever sent it, `"yes"` is true, `2026-11-02 10:00:00` an instant, and so is 1795262400000. The
cell gets that reading, and the original stays beside it with the reason, for the cell alone does not give it back.
Where there are several readings, or none, the cell is null, as with exact casts.
"""

import re
from collections.abc import Callable
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

from msgspec import Raw

from eventlake.events import instants
from eventlake.schema.cast import CONVERTED, EXACT, TOO_LARGE, Casts, Cell, cut_to_bigint
from eventlake.schema.kinds import Kind
from eventlake.schema.numbers import to_decimal
from eventlake.schema.types import ColumnType

LONGEST = 100  # characters; what is longer is no number, word or time

_NUMBER = re.compile(r"([+-]?)0*(\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE]([+-]?\d{1,3}))?", re.ASCII)
_WORDS = {
    **dict.fromkeys(("true", "t", "yes", "y", "on", "1"), True),
    **dict.fromkeys(("false", "f", "no", "n", "off", "0"), False),
}

_DATE = r"(\d{4})([-/])(\d\d)\2(\d\d)"
_TIME = r"[Tt ]\s*(\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)\s*([Zz]|UTC|GMT|[+-]\d\d(?::?\d\d)?)?"
_DATE_TIME = re.compile(f"{_DATE}(?:{_TIME})?", re.ASCII)
# As mails and HTTP have it; and as browsers print their dates, of which the name of the zone is left out.
_MAIL = re.compile(
    r"(?:[A-Z][a-z]{2}, )?\d{1,2} [A-Z][a-z]{2} [12]\d{3} \d\d:\d\d(?::\d\d)? (?:GMT|UTC|[+-]\d{4})", re.ASCII
)
_PRINTED = re.compile(
    r"[A-Z][a-z]{2} ([A-Z][a-z]{2}) (\d\d) (\d{4}) (\d\d:\d\d:\d\d) GMT([+-]\d{4})(?: \([^()]*\))?", re.ASCII
)

# Whole numbers that are instants: seconds from 1973 on, and milliseconds from 1973 on, each up to the year 5138.
_SECONDS = range(10**8, 10**11)
_MILLISECONDS = range(10**11, 10**14)


def timestamp(text: str) -> int | None:
    """The instant that a text plainly names, in microseconds since 1970; None if it names none, or one of several.

    >>> timestamp("1970-01-02"), timestamp("1970-01-01 00:00:00.5 +01:00"), timestamp("01/02/1970")
    (86400000000, -3599500000, None)
    """
    text = text.strip()
    if len(text) > LONGEST:
        return None
    if found := _DATE_TIME.fullmatch(text):
        year, _, month, day, time, zone = found.groups()
        zone = "Z" if zone is None or zone.upper() in ("Z", "UTC", "GMT") else zone
        instant = instants.parse(f"{year}-{month}-{day}T{(time or '00:00').replace(',', '.')}{zone}")
        return instant.micros if instant else None
    if found := _PRINTED.fullmatch(text):
        month, day, year, time, zone = found.groups()
        text = f"{day} {month} {year} {time} {zone}"
    if _MAIL.fullmatch(text):
        try:
            named = parsedate_to_datetime(text)
        except ValueError:
            return None
        micros = instants.micros_of(named.replace(tzinfo=UTC) if named.tzinfo is None else named)
        return micros if instants.FIRST <= micros <= instants.LAST else None
    number = _number(text)
    return instant_of(number) if number else None


def instant_of(number: str) -> int | None:
    """The instant that a number of seconds or milliseconds since 1970 names, in microseconds.

    >>> instant_of("1795262400"), instant_of("1795262400000"), instant_of("17952624")
    (1795262400000000, 1795262400000000, None)
    """
    exact = to_decimal(number)
    if exact is None:
        return None
    value, _ = exact
    for unit, scale in ((_SECONDS, 1_000_000), (_MILLISECONDS, 1000)):
        if unit.start <= value < unit.stop:
            return int(value * scale)
    return None


def received(sent: Any) -> int | None:
    """The instant that a parsed value plainly names, in microseconds since 1970."""
    match sent:
        case str():
            return timestamp(sent)
        case bool():
            return None
        case int():
            return instant_of(str(sent))
        case Raw():
            return instant_of(bytes(sent).decode())
        case _:
            return None


def _number(text: str) -> str | None:
    """The number that a text is, as JSON writes it; None if it is none."""
    found = _NUMBER.fullmatch(text.strip()) if len(text) <= LONGEST else None
    if found is None:
        return None
    sign, digits, exponent = found.groups()
    whole, _, fraction = digits.partition(".")
    return f"{sign.replace('+', '')}{whole or '0'}.{fraction or '0'}e{exponent or '0'}"


def _text_to_bigint(text: str) -> Cell:
    number = _number(text)
    if number is None:
        return Cell(None, "not a bigint")
    cell = cut_to_bigint(number)
    return cell if cell.reason else Cell(cell.value, CONVERTED[ColumnType.BIGINT])


def _text_to_decimal(text: str) -> Cell:
    number = _number(text)
    if number is None:
        return Cell(None, "not a decimal(38,6)")
    found = to_decimal(number)
    return Cell(None, TOO_LARGE) if found is None else Cell(found[0], CONVERTED[ColumnType.DECIMAL])


def _text_to_boolean(text: str) -> Cell:
    word = _WORDS.get(text.strip().lower()) if len(text) <= LONGEST else None
    return Cell(None, "not a boolean") if word is None else Cell(word, CONVERTED[ColumnType.BOOLEAN])


def _number_to_boolean(number: Any) -> Cell:
    value, is_exact = to_decimal(str(number)) or (None, False)
    if not is_exact or value not in (0, 1):
        return Cell(None, "not a boolean")
    return Cell(value == 1, CONVERTED[ColumnType.BOOLEAN])


def _text_to_timestamp(text: str) -> Cell:
    return _at(timestamp(text))


def _number_to_timestamp(number: Any) -> Cell:
    return _at(instant_of(str(number)))


def _at(micros: int | None) -> Cell:
    return Cell(None, "not a timestamp") if micros is None else Cell(micros, CONVERTED[ColumnType.TIMESTAMP])


def _after_exact(place: tuple[Kind, ColumnType], loose: Callable[[Any], Cell]) -> Callable[[Any], Cell]:
    """A cast for what the exact one, if there is one, leaves without a cell."""
    exact = EXACT.one_by_one.get(place)
    if exact is None:
        return loose

    def to_cell(value: Any) -> Cell:
        cell = exact(value)
        return cell if cell.value is not None else loose(value)

    return to_cell


_LOOSE: dict[tuple[Kind, ColumnType], Callable[[Any], Cell]] = {
    (Kind.TEXT, ColumnType.BIGINT): _text_to_bigint,
    (Kind.NUMBER, ColumnType.BIGINT): cut_to_bigint,
    (Kind.TEXT, ColumnType.DECIMAL): _text_to_decimal,
    (Kind.TEXT, ColumnType.BOOLEAN): _text_to_boolean,
    (Kind.INTEGER, ColumnType.BOOLEAN): _number_to_boolean,
    (Kind.NUMBER, ColumnType.BOOLEAN): _number_to_boolean,
    (Kind.TEXT, ColumnType.TIMESTAMP): _text_to_timestamp,
    (Kind.INTEGER, ColumnType.TIMESTAMP): _number_to_timestamp,
    (Kind.NUMBER, ColumnType.TIMESTAMP): _number_to_timestamp,
}

BEST_EFFORT = Casts(
    EXACT.at_once,
    {**EXACT.one_by_one, **{place: _after_exact(place, loose) for place, loose in _LOOSE.items()}},
)
