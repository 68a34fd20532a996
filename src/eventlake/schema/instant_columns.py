"""Columns of ISO-8601 date-times as instants, all at once."""

import pyarrow as pa
import pyarrow.compute as pc

from eventlake.events.instants import FIRST, LAST

ARROW = pa.timestamp("us", tz="UTC")

# Seconds may be missing, as ISO-8601 allows; a date alone is not an instant. There is no year 0000, as in `datetime`.
_YEAR = r"(\d{3}[1-9]|\d{2}[1-9]\d|\d[1-9]\d{2}|[1-9]\d{3})"
_ZONED = rf"^{_YEAR}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{{1,6}})?)?(Z|[+-]\d\d(:?\d\d)?)$"


def are_plain(texts: pa.Array) -> pa.Array:
    """Which texts need no closer look, as long as the calendar has their days."""
    return pc.match_substring_regex(texts, _ZONED)


def parse_all(texts: pa.Array) -> pa.Array | None:
    """The instants of a column at once; None if any text needs a closer look."""
    if not pc.all(are_plain(texts)).as_py():
        return None
    try:
        instants = pc.cast(texts, ARROW)
    except pa.ArrowInvalid:
        return None
    bounds = pc.min_max(instants.cast(pa.int64())).as_py()
    within = bounds["min"] is None or FIRST <= bounds["min"] <= bounds["max"] <= LAST
    return instants if within else None
