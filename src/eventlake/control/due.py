"""Whether a sync of a connection is due. Pure.

Nothing is kept for this but the runs themselves: a slot is taken if a sync was begun since. So slots that were missed
are made up for once, a sync that somebody asked for counts, and a scheduler that died has left nothing to clean up.
"""

from collections.abc import Callable

from eventlake.control.run_lines import RunLine
from eventlake.errors import CancelledError, GivenUpError, waits_for_somebody
from eventlake.timetable import MINUTE, Timetable

FIRST_PAUSE, LONGEST_PAUSE = MINUTE, 30 * MINUTE


def due_since(
    table: Timetable,
    now: int,
    last: RunLine | None,
    *,
    failures: int = 0,
    is_going_on: bool = True,
    has_data: Callable[[], bool] = lambda: True,
) -> int | None:
    """Since when a sync is due; None if none is.

    `last` is the sync that was begun last. If it failed, `failures` are those in a row, with it. If it did not end,
    `is_going_on` says whether anybody still works on it. The first sync is due when there is something to load.
    """
    if table.is_manual or table.is_closed(now):
        return None
    if last is None:
        return 0 if has_data() else None
    slot = table.following(last.started_at)  # the first that was missed
    if slot is not None and slot <= now:
        return slot
    again = again_at(last, failures=failures, is_going_on=is_going_on)
    return last.started_at + 1 if again is not None and again <= now else None


def again_at(last: RunLine, *, failures: int, is_going_on: bool) -> int | None:
    """When a sync that failed is tried again before the next slot; None if it is not.

    The pauses grow. What fails until somebody changes something waits for the next slot.
    """
    if last.status == "running":
        return None if is_going_on else last.started_at
    if last.error_code == GivenUpError.code:
        return last.started_at
    if last.status != "failed" or last.error_code == CancelledError.code or waits_for_somebody(last.error_code):
        return None
    return (last.finished_at or last.started_at) + pause(failures)


def is_awaited(table: Timetable, now: int, since: int, last: RunLine | None, *, failures: int, patience: int) -> bool:
    """Whether a sync that is not over may bring what came after a moment.

    It is not time for it yet, it is due, or it has been going on for no longer than `patience`.
    """
    begin = table.next_begin(since)
    if begin is not None and begin > now:
        return True
    if last is None:
        return False
    if last.status == "running":
        return now - last.started_at <= patience
    return due_since(table, now, last, failures=failures) is not None


def pause(failures: int) -> int:
    """1, 2, 4, … 30 minutes.

    >>> [pause(failures) // MINUTE for failures in (1, 2, 5, 6, 100)]
    [1, 2, 16, 30, 30]
    """
    return min(FIRST_PAUSE << min(max(failures, 1) - 1, 10), LONGEST_PAUSE)


def next_begin(table: Timetable, now: int, last: RunLine | None, *, failures: int = 0) -> int | None:
    """When the next sync begins by itself, as far as it can be told; None if none does."""
    if table.is_manual:
        return None
    moments = [table.opens(now) if last is None else table.next_begin(now)]
    if last is not None:
        slot, again = table.latest(now), again_at(last, failures=failures, is_going_on=True)
        moments += [table.opens(now)] if slot is not None and slot > last.started_at else []
        moments += [table.opens(max(now, again))] if again is not None else []
    return min((moment for moment in moments if moment is not None), default=None)
