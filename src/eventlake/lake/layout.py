"""Where everything lies in the lake, and what tables are called."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum

from eventlake.schema import names

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


class TableNaming(Enum):
    PREFIXED = "prefixed"  # track_order_completed
    PLAIN = "plain"  # order_completed


@dataclass(frozen=True)
class LakeRules:
    """How the events of one source become folders and tables."""

    source_folder: str  # the source's id, or its slug
    database: str
    table_prefix: str = ""
    date_partition: DatePartition = DatePartition.DAY_HOUR
    naming: TableNaming = TableNaming.PREFIXED

    def segment_type(self, call: str, event: str) -> str:
        """The type of an event, as folders name it: `identify`, `track_order_completed`."""
        if call != "track":
            return call
        name = names.event_name(event)
        # In plain naming, a track event called "Page" must not land among the page calls.
        plain = self.naming is TableNaming.PLAIN and name not in (
            "identify",
            "page",
            "screen",
            "group",
            "alias",
        )
        return names.shortened(name if plain else f"track_{name}", names.MAX_TABLE_LENGTH)

    def table_name(self, segment_type: str) -> str:
        return f"{self.table_prefix}_{segment_type}" if self.table_prefix else segment_type

    def location(self, segment_type: str) -> str:
        return f"{DATA}/{self.source_folder}/segment_type={segment_type}"
