"""When a connection is synced: a timetable, as people write it, and the moments that it means.

    every 2h                 from midnight on, or from another time of the day (UTC)
    at 06:00 18:30           times of the day, in a time zone
    cron 0 */2 * * 1-5       minute, hour, day of the month, month, day of the week, in a time zone
    manual                   only when somebody asks for it

A moment at which a sync is due is a slot. Nothing begins within the exclusion window; what was due in it is due when it
ends. Moments are microseconds since 1970.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

MANUAL = "manual"
SECOND = 1_000_000
MINUTE = 60 * SECOND
DAY = 24 * 60 * MINUTE
SHORTEST, LONGEST = 5, 24 * 60  # minutes between two slots

_EVERY = re.compile(r"every\s+(\d{1,4})\s*(m|min|minutes?|h|hours?|d|day)")
_MINUTES = {"m": 1, "h": 60, "d": 24 * 60}
_TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
_WINDOW = re.compile(r"(\S+?)\s*-\s*(\S+)")
_FORMS = "every 2h, at 06:00 18:30, cron 0 */2 * * *, or manual"


class TimeOfDay(NamedTuple):
    hour: int
    minute: int

    @classmethod
    def parse(cls, text: str) -> "TimeOfDay":
        """Raises ValueError."""
        found = _TIME.fullmatch(text.strip())
        if not found:
            raise ValueError(f"{text!r} is not a time of the day: write it as 06:30")
        return cls(int(found[1]), int(found[2]))

    def __str__(self) -> str:
        return f"{self.hour:02d}:{self.minute:02d}"

    @property
    def minutes(self) -> int:
        return self.hour * 60 + self.minute


class Window(NamedTuple):
    """A part of each day, its end not included; it may go over midnight."""

    start: TimeOfDay
    end: TimeOfDay

    @classmethod
    def parse(cls, text: str) -> "Window":
        """Raises ValueError."""
        found = _WINDOW.fullmatch(text.strip())
        if not found:
            raise ValueError(f"{text!r} is not a part of the day: write it as 22:00-06:00")
        window = cls(TimeOfDay.parse(found[1]), TimeOfDay.parse(found[2]))
        if window.start == window.end:
            raise ValueError("a window must end at another time than it begins")
        return window

    def __str__(self) -> str:
        return f"{self.start}-{self.end}"

    def holds(self, minute: int) -> bool:
        """Whether a minute of the day is in it."""
        start, end = self.start.minutes, self.end.minutes
        return start <= minute < end if start < end else minute >= start or minute < end


def zone(name: str) -> ZoneInfo:
    """Raises ValueError."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # the last for a folder of zones
        raise ValueError(f"there is no time zone {name!r}: write it as Europe/Berlin, or UTC") from None


def written(text: str) -> str:
    """A schedule in the one way in which it is stored. Raises ValueError that says what is allowed."""
    words = " ".join(text.strip().split())
    lower = words.lower()
    if lower == MANUAL:
        return MANUAL
    if every := _EVERY.fullmatch(lower):
        minutes = int(every[1]) * _MINUTES[every[2][0]]
        if not SHORTEST <= minutes <= LONGEST:
            raise ValueError(f"a sync can be due every 5m to every 24h, not {words}")
        return f"every {minutes // 60}h" if minutes % 60 == 0 else f"every {minutes}m"
    if lower.startswith("at "):
        times = sorted({TimeOfDay.parse(one) for one in words[3:].replace(",", " ").split()})
        if not times:
            raise ValueError("at which times of the day? For example at 06:00 18:30")
        return f"at {' '.join(map(str, times))}"
    if lower.startswith("cron "):
        _checked_cron(words[5:])
        return f"cron {words[5:]}"
    raise ValueError(f"{text!r} is not a schedule: use {_FORMS}")


def _checked_cron(expression: str) -> None:
    if len(expression.split()) != 5:
        raise ValueError("a cron expression has five fields: minute, hour, day of the month, month, day of the week")
    try:
        CronSim(expression, datetime(2026, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        raise ValueError(f"{expression!r} is not a cron expression, or never comes true: {error}") from None


@dataclass(frozen=True)
class Timetable:
    schedule: str = "every 2h"  # as `written`
    time_zone: str = "UTC"
    start_at: str = "00:00"  # from which "every" counts, in UTC
    exclude_window: str = ""  # in the time zone

    @property
    def is_manual(self) -> bool:
        return self.schedule == MANUAL

    def latest(self, now: int) -> int | None:
        """The last slot that is not later than now."""
        return next(self._slots(now, backward=True), None)

    def following(self, now: int) -> int | None:
        """The first slot that is later than now."""
        return next(self._slots(now, backward=False), None)

    def is_closed(self, now: int) -> bool:
        """Whether nothing may begin now."""
        if not self.exclude_window:
            return False
        local = self._local(now)
        return _window(self.exclude_window).holds(local.hour * 60 + local.minute)

    def next_begin(self, now: int) -> int | None:
        """When the next sync begins, if nothing is due now: at the next slot, or when the window ends."""
        slot = self.following(now)
        return self.opens(slot) if slot is not None else None

    def opens(self, moment: int) -> int:
        """The first full minute from a moment on that is not in the exclusion window."""
        minute = moment
        while self.is_closed(minute):  # at most a day and what the clocks are changed by
            minute = minute // MINUTE * MINUTE + MINUTE
        return minute

    def _slots(self, now: int, *, backward: bool) -> Iterator[int]:
        if self.is_manual:
            return iter(())
        kind, _, rest = self.schedule.partition(" ")
        if kind == "every":
            return self._by_interval(int(rest[:-1]) * _MINUTES[rest[-1]], now, backward=backward)
        crons = [rest] if kind == "cron" else [f"{t.minute} {t.hour} * * *" for t in map(TimeOfDay.parse, rest.split())]
        found = [self._by_cron(cron, now, backward=backward) for cron in crons]
        return iter(sorted(found, reverse=backward))

    def _by_interval(self, minutes: int, now: int, *, backward: bool) -> Iterator[int]:
        """Counted from the start on each day anew, both ways, so that a day has the same slots as every other."""
        start, step = TimeOfDay.parse(self.start_at).minutes % minutes, minutes
        today = now // DAY
        for day in (today, today - 1) if backward else (today, today + 1):
            slots = [day * DAY + minute * MINUTE for minute in range(start, 24 * 60, step)]
            for slot in reversed(slots) if backward else slots:
                if (slot <= now) is backward:
                    yield slot

    def _by_cron(self, expression: str, now: int, *, backward: bool) -> int:
        # From a minute beyond, since it leaves out the moment it is given; what it then gives too much is passed over.
        from_here = self._local(now + (2 if backward else -2) * MINUTE)
        found = (round(one.timestamp()) * SECOND for one in CronSim(expression, from_here, reverse=backward))
        return next(moment for moment in found if (moment <= now) is backward)

    def _local(self, moment: int) -> datetime:
        return datetime.fromtimestamp(moment / SECOND, _zone(self.time_zone))


_zone = lru_cache(zone)
_window = lru_cache(Window.parse)
