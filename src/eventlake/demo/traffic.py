"""When demo events arrive: a day with a quiet night, a busy evening, calmer weekends and some noise."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eventlake.demo.dice import Dice

MINUTE_MS = 60_000
LAST_SECOND_MS = 1_000  # nothing new is received in it, so that the copy of any event still fits in

# Weight of each hour of the day in UTC, read at full hours and interpolated in between.
_HOURS = (22, 15, 11, 9, 10, 16, 30, 52, 74, 86, 90, 92, 96, 92, 88, 90, 94, 102, 116, 128, 130, 112, 76, 42)
_WEEKDAYS = (1.0, 1.0, 0.98, 1.02, 1.05, 0.82, 0.78)  # Monday first


def arrivals(dice: Dice, *, events: int, start_ms: int, end_ms: int) -> Iterator[int]:
    """Yield exactly `events` times of receipt, in order, in milliseconds of the Unix epoch."""
    minutes = range(start_ms, end_ms, MINUTE_MS)
    shares = list(accumulate(_weight(minute) * (0.8 + 0.4 * dice.random()) for minute in minutes))
    sent = 0
    for minute, share in zip(minutes, shares, strict=True):
        due = round(events * share / shares[-1])
        room = min(MINUTE_MS, end_ms - LAST_SECOND_MS - minute)
        yield from sorted(minute + dice.below(room) for _ in range(due - sent))
        sent = due


def _weight(time_ms: int) -> float:
    time = datetime.fromtimestamp(time_ms // 1000, UTC)
    this_hour, next_hour = _HOURS[time.hour], _HOURS[(time.hour + 1) % 24]
    return _WEEKDAYS[time.weekday()] * (this_hour + (next_hour - this_hour) * time.minute / 60)
