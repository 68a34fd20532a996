"""Rolls the logs of a workspace one after the other, whatever happens, and tells how it goes.

One process at a time does it: the one that holds the collector's lock.
"""

import time
from collections.abc import Callable

from eventlake.collector import condition, log
from eventlake.collector.condition import Condition
from eventlake.collector.counters import Counters
from eventlake.collector.mend import Mended, mend
from eventlake.collector.options import Spool
from eventlake.collector.recent import RecentIds
from eventlake.collector.roll import Rolled, roll
from eventlake.errors import EventLakeError
from eventlake.reports.words import count, either
from eventlake.workspace import Workspace

_TRY_AGAIN_AFTER = 10.0
_INSISTING = 600.0  # seconds in which damaged ids wait for an archive that is away

Tell = Callable[[str], None]


class Roller:
    def __init__(self, workspace: Workspace, roll_seconds: float, tell: Tell) -> None:
        self._workspace = workspace
        self._tell = tell
        self._spool = Spool(workspace.folder)
        self._recent = RecentIds(self._spool.recent)
        self._counters = Counters(self._spool.counters, "roller")
        self._condition = Condition(roll_seconds)
        self._failing_since: float | None = None
        self._not_before = 0.0  # for the next attempt, after one that failed
        condition.save(self._spool, self._condition)

    def seal_left(self) -> None:
        """Take over the logs of processes that are gone; only when none runs."""
        for path in log.left_open(self._spool.logs):
            log.seal(path)
        self._not_before = 0

    def one(self) -> bool:
        """Roll the next log; whether that was done, and the one after it may follow."""
        if time.monotonic() < self._not_before:
            return False
        try:
            waiting = log.sealed(self._spool.logs)
            if waiting:
                storage = self._workspace.archive
                since = min(map(log.opened_at, waiting))
                insist = time.monotonic() - (self._failing_since or time.monotonic()) < _INSISTING
                for mended in mend(self._recent, storage, since=since, insist=insist):
                    self._tell_of(mended)
                self._count(roll(waiting[0], storage, self._recent))
        except Exception as error:  # whatever it is, the collector goes on, and what it has is in its logs
            problem = error.problem if isinstance(error, EventLakeError) else f"{type(error).__name__}: {error}"
            self._tell(f"cannot write to the archive: {problem}; trying again, nothing is lost")
            self._counters.add("archive_errors")
            self._note(problem)
            self._not_before = time.monotonic() + _TRY_AGAIN_AFTER
            self._failing_since = self._failing_since or time.monotonic()
            return False
        self._failing_since = None
        if waiting:
            self._note(None)
        return bool(waiting)

    def left(self) -> int:
        """How many logs are still to be rolled."""
        return len(log.sealed(self._spool.logs))

    def _note(self, problem: str | None) -> None:
        if self._condition.archive_problem != problem:
            self._condition = Condition(self._condition.roll_seconds, problem)
            condition.save(self._spool, self._condition)

    def _count(self, rolled: Rolled) -> None:
        for source, number in rolled.archived.items():
            self._counters.add("events_archived", number, source)
        for source, number in rolled.copies.items():
            self._counters.add("events_copies", number, source)
        events, left_out = rolled.archived.total(), rolled.copies.total()
        if events or left_out:
            copies = f", {either(left_out, 'copy', 'copies')} left out" if left_out else ""
            self._tell(f"{count(events, 'event')} to the archive in {count(len(rolled.files), 'file')}{copies}")
        if rolled.damaged:
            self._tell(f"{rolled.damaged} bytes of a log are damaged; the log is kept as *.damaged")

    def _tell_of(self, mended: Mended) -> None:
        told = f"a file of recent ids is damaged; it is kept as {mended.kept_as.name}"
        if mended.problem is None:
            self._tell(f"{told}, and made anew from the archive: {mended.messages:,} messages")
        else:
            self._tell(
                f"{told}, but cannot be made anew: {mended.problem}; "
                "copies of the last day may be archived again, and the next sync leaves them out"
            )
        for path in mended.unread:
            self._tell(f"cannot read {path} for it")
