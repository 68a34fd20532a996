"""Full ISO-8601 date-times as instants: microseconds since 1970, UTC."""

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
FIRST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND

_DATE_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?(?:Z|([+-])(\d\d)(?::?(\d\d))?)?", re.ASCII
)


class Instant(NamedTuple):
    micros: int
    exact: bool  # False when the text was finer than a microsecond


def parse(text: str) -> Instant | None:
    """The instant that a full ISO-8601 date-time names; without a zone it is UTC.

    >>> parse("1970-01-01T02:00:00.5+02:00")
    Instant(micros=500000, exact=True)
    >>> parse("1970-01-01") is None
    True
    """
    match = _DATE_TIME.fullmatch(text)
    if not match:
        return None
    year, month, day, hour, minute, second, fraction, sign, zone_hours, zone_minutes = match.groups()
    fraction = fraction or ""
    hours, minutes = int(zone_hours or 0), int(zone_minutes or 0)
    if hours > 23 or minutes > 59:
        return None
    try:
        local = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second or 0), tzinfo=UTC)
    except ValueError:
        return None
    micros = (local - _EPOCH) // _MICROSECOND + int(fraction[:6].ljust(6, "0"))
    micros -= (hours * 60 + minutes) * 60_000_000 * (-1 if sign == "-" else 1)
    return Instant(micros, not fraction[6:].strip("0")) if FIRST <= micros <= LAST else None


def to_text(micros: int) -> str:
    """An instant as ISO-8601 text in UTC."""
    return (_EPOCH + timedelta(microseconds=micros)).isoformat().replace("+00:00", "Z")


def to_milliseconds(micros: int) -> str:
    """An instant as the text that Segment writes: always with three decimals.

    >>> to_milliseconds(0)
    '1970-01-01T00:00:00.000Z'
    """
    return (_EPOCH + timedelta(microseconds=micros)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def micros_of(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND
