"""Where everything lies in the lake."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import cached_property

HOUR = 3_600_000_000
DAY = 24 * HOUR
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Folders:
    """The folders of a lake."""

    data: str  # tables
    stage: str  # while a run is going on
    books: str  # what eventlake writes down for itself and for people

    @property
    def reports(self) -> str:
        return f"{self.books}/reports"

    @property
    def quarantine(self) -> str:
        return f"{self.books}/quarantine"

    @property
    def violations(self) -> str:
        return f"{self.books}/violations"

    @property
    def index(self) -> str:
        return f"{self.books}/index"

    @property
    def commits(self) -> str:
        return f"{self.books}/commits"

    @property
    def tops(self) -> set[str]:
        """What they are called at the top of a lake."""
        return {folder.partition("/")[0] for folder in (self.data, self.stage, self.books)}

    def of_run(self, run_id: str) -> str:
        """The staging folder of a run."""
        return f"{self.stage}/{run_id}"


SEGMENT = Folders(data="segment-data/data", stage="segment-stage", books="segment-data")
RUDDERSTACK = Folders(data="rudder-datalake", stage="rudder-warehouse-staging-logs", books="eventlake")


class DatePartition(Enum):
    """The four layouts of Segment's date folders."""

    DAY_HOUR = "day_hour"
    YEAR_MONTH_DAY_HOUR = "year_month_day_hour"
    YEAR_MONTH_DAY = "year_month_day"
    DAY = "day"

    @property
    def keys(self) -> tuple[str, ...]:
        """The partition keys that readers see."""
        return tuple(key for key, _ in _FORMATS[self])

    @property
    def width(self) -> int:
        """How much time the files of one folder cover at most, in microseconds."""
        return HOUR if "hr" in self.keys else DAY

    def values(self, number: int) -> tuple[str, ...]:
        """The values of the keys for the time that begins `number` widths after 1970."""
        return tuple(_written(form, number * self.width) for _, form in _FORMATS[self])

    def folder(self, number: int) -> str:
        """The folder for that time."""
        return "/".join(f"{key}={value}" for key, value in zip(self.keys, self.values(number), strict=True))


# In the way of Go: 2006-01-02 15 is a date and an hour.
_FORMATS = {
    DatePartition.DAY_HOUR: (("day", "2006-01-02"), ("hr", "15")),
    DatePartition.YEAR_MONTH_DAY_HOUR: (("year", "2006"), ("month", "01"), ("day", "02"), ("hr", "15")),
    DatePartition.YEAR_MONTH_DAY: (("year", "2006"), ("month", "01"), ("day", "02")),
    DatePartition.DAY: (("day", "2006-01-02"),),
}
_TOKEN = re.compile("2006|01|02|15")
_PART = re.compile(r"(?:(?P<key>[a-z][a-z0-9_]*)=)?(?P<form>(?:2006|01|02|15)(?:[-_]?(?:2006|01|02|15))*)")
PLAIN_WINDOW = "2006/01/02/15"


def _written(form: str, micros: int) -> str:
    start = _EPOCH + timedelta(microseconds=micros)
    # strftime does not pad years before 1000 on every system
    parts = {"2006": f"{start.year:04d}", "01": f"{start.month:02d}", "02": f"{start.day:02d}"}
    parts["15"] = f"{start.hour:02d}"
    return _TOKEN.sub(lambda token: parts[token[0]], form)


@dataclass(frozen=True)
class TimeWindow:
    """A layout of RudderStack's: 2006/01/02/15, dt=2006-01-02, year=2006/month=01/day=02/hour=15 and so on."""

    layout: str = PLAIN_WINDOW

    def problem(self) -> str | None:
        """What is wrong with the layout."""
        found = [_PART.fullmatch(part) for part in self.layout.split("/")]
        tokens = [token for part in found if part for token in _TOKEN.findall(part["form"])]
        if not all(found) or tokens != ["2006", "01", "02", "15"][: len(tokens)]:
            return (
                "write the year as 2006, the month as 01, the day as 02 and the hour as 15, in this order, with keys "
                "or without: 2006/01/02/15, dt=2006-01-02, year=2006/month=01/day=02/hour=15"
            )
        keys = [part["key"] for part in found if part]
        if any(keys) and not all(keys):
            return "either every folder has a key or none has"
        return None if len(set(keys)) == len(keys) or not any(keys) else "every key must be another"

    @cached_property
    def _parts(self) -> tuple[tuple[str, str], ...]:
        return tuple((key, form) for key, _, form in (part.rpartition("=") for part in self.layout.split("/")))

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(key for key, _ in self._parts if key)

    @property
    def width(self) -> int:
        return HOUR if any("15" in _TOKEN.findall(form) for _, form in self._parts) else DAY

    def values(self, number: int) -> tuple[str, ...]:
        return tuple(_written(form, number * self.width) for key, form in self._parts if key)

    def folder(self, number: int) -> str:
        values = ((key, _written(form, number * self.width)) for key, form in self._parts)
        return "/".join(f"{key}={value}" if key else value for key, value in values)
