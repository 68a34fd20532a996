"""Full ISO-8601 date-times as instants: microseconds since 1970, UTC."""

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

ARROW = pa.timestamp("us", tz="UTC")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
FIRST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND

# Seconds may be missing, as ISO-8601 allows; a date alone is not an instant. There is no year 0000, as in `datetime`.
_YEAR = r"(\d{3}[1-9]|\d{2}[1-9]\d|\d[1-9]\d{2}|[1-9]\d{3})"
_ZONED = rf"^{_YEAR}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{{1,6}})?)?(Z|[+-]\d\d(:?\d\d)?)$"
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
    offset = int(zone_hours or 0) * 60 + int(zone_minutes or 0)
    if int(zone_hours or 0) > 23 or int(zone_minutes or 0) > 59:
        return None
    try:
        local = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second or 0), tzinfo=UTC)
    except ValueError:
        return None
    micros = (local - _EPOCH) // _MICROSECOND + int(fraction[:6].ljust(6, "0"))
    micros -= offset * 60_000_000 * (-1 if sign == "-" else 1)
    return Instant(micros, not fraction[6:].strip("0")) if FIRST <= micros <= LAST else None


def parse_all(texts: pa.Array) -> pa.Array | None:
    """The instants of a column at once; None if any text needs a closer look."""
    if not pc.all(pc.match_substring_regex(texts, _ZONED)).as_py():
        return None
    try:
        instants = pc.cast(texts, ARROW)
    except pa.ArrowInvalid:
        return None
    bounds = pc.min_max(instants.cast(pa.int64())).as_py()
    within = bounds["min"] is None or FIRST <= bounds["min"] <= bounds["max"] <= LAST
    return instants if within else None


def to_text(micros: int) -> str:
    """An instant as ISO-8601 text in UTC."""
    return (_EPOCH + timedelta(microseconds=micros)).isoformat().replace("+00:00", "Z")


def micros_of(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND
