"""Where everything lies in the lake."""

from datetime import UTC, datetime, timedelta
from enum import Enum

DATA = "segment-data/data"
REPORTS = "segment-data/reports"
QUARANTINE = "segment-data/quarantine"
INDEX = "segment-data/index"
COMMITS = "segment-data/commits"
STAGE = "segment-stage"

HOUR = 3_600_000_000
DAY = 24 * HOUR
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class DatePartition(Enum):
    """The four layouts of date folders; all from receivedAt, in UTC."""

    DAY_HOUR = "day_hour"
    YEAR_MONTH_DAY_HOUR = "year_month_day_hour"
    YEAR_MONTH_DAY = "year_month_day"
    DAY = "day"

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(key for key, _ in _FORMATS[self])

    @property
    def width(self) -> int:
        """How much time one partition covers, in microseconds."""
        return HOUR if "hr" in self.keys else DAY

    def values(self, number: int) -> tuple[str, ...]:
        """The values of the partition that begins `number` widths after 1970."""
        start = _EPOCH + timedelta(microseconds=number * self.width)
        # strftime does not pad years before 1000 on every system, isoformat does
        parts = {
            "%Y": f"{start.year:04d}",
            "%m": f"{start.month:02d}",
            "%d": f"{start.day:02d}",
            "%H": f"{start.hour:02d}",
        }
        parts["%Y-%m-%d"] = start.date().isoformat()
        return tuple(parts[form] for _, form in _FORMATS[self])

    def folder(self, values: tuple[str, ...]) -> str:
        return "/".join(f"{key}={value}" for key, value in zip(self.keys, values, strict=True))


_FORMATS = {
    DatePartition.DAY_HOUR: (("day", "%Y-%m-%d"), ("hr", "%H")),
    DatePartition.YEAR_MONTH_DAY_HOUR: (("year", "%Y"), ("month", "%m"), ("day", "%d"), ("hr", "%H")),
    DatePartition.YEAR_MONTH_DAY: (("year", "%Y"), ("month", "%m"), ("day", "%d")),
    DatePartition.DAY: (("day", "%Y-%m-%d"),),
}
