"""What became of events: how many came, and of those that syncs read, how many were loaded, and why others were not.

Both sums are exact. They are about different moments: an event is counted as received when it comes, and in the books
when a sync reads it.
"""

from typing import NamedTuple

from eventlake.control.collected import HOUR, Taken
from eventlake.control.run_lines import Counts
from eventlake.timetable import DAY
from eventlake.workspace import Workspace

EXPLAINED = {
    "received": "Events that were sent to the collector.",
    "refused": "Events that the collector did not take: they break its rules, or the source is switched off.",
    "accepted": "Events that are on disk, and in the raw archive a minute later.",
    "copies": "Accepted events that came twice within a day and were archived once.",
    "lines": "Lines of raw files that syncs read.",
    "suppressed": "Events of users who are not to be stored.",
    "blocked": "Events that a rule of yours leaves out.",
    "duplicates": "Events whose message id was loaded before.",
    "quarantined": "Lines that are not events, kept with the reason.",
    "loaded": "Events that became rows.",
    "rescued": "Values that did not fit their column, kept beside the row.",
}


class Funnel(NamedTuple):
    collected: Taken
    books: Counts

    @property
    def received(self) -> int:
        return self.collected.accepted + self.collected.refused

    def plus(self, other: "Funnel") -> "Funnel":
        books = Counts(*(one + more for one, more in zip(self.books, other.books, strict=True)))
        return Funnel(self.collected.plus(other.collected), books)


def funnels(workspace: Workspace, start: int, stop: int, source_id: str | None = None) -> dict[str, Funnel]:
    """What came, and what syncs that began in [start, stop) did: source id → sums over all its lakes."""
    found = {key: Funnel(taken, Counts()) for key, taken in workspace.collected.between(start, stop, source_id).items()}
    for (_, source, _), counts in workspace.runs.counts(start, stop, per=DAY, source_id=source_id).items():
        found[source] = found.get(source, Funnel(Taken(), Counts())).plus(Funnel(Taken(), counts))
    return found


def books_of_connections(workspace: Workspace, start: int, stop: int) -> dict[tuple[str, str], Counts]:
    """What syncs of each connection that began in [start, stop) did: (source id, lake) → sums."""
    found: dict[tuple[str, str], Counts] = {}
    for (_, source, lake), counts in workspace.runs.counts(start, stop, per=DAY).items():
        before = found.get((source, lake), Counts())
        found[source, lake] = Counts(*(one + more for one, more in zip(before, counts, strict=True)))
    return found


def total(found: dict[str, Funnel]) -> Funnel:
    whole = Funnel(Taken(), Counts())
    for one in found.values():
        whole = whole.plus(one)
    return whole


def rows_by_hour(workspace: Workspace, start: int, stop: int, source_id: str | None = None) -> list[tuple[int, int]]:
    """Rows that syncs loaded, by the hour in which they began; also hours without any."""
    return _by(workspace, start, stop, HOUR, source_id)


def rows_by_day(workspace: Workspace, start: int, stop: int, source_id: str | None = None) -> list[tuple[int, int]]:
    return _by(workspace, start, stop, DAY, source_id)


def _by(workspace: Workspace, start: int, stop: int, per: int, source_id: str | None) -> list[tuple[int, int]]:
    rows = workspace.runs.rows(start, stop, per=per, source_id=source_id)
    return [(period, rows.get(period, 0)) for period in range(start // per * per, stop, per)]
