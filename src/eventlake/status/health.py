"""Rows that were loaded, day by day, and which tables they went to."""

import time
from collections import Counter
from typing import NamedTuple

from eventlake.status.funnel import rows_by_day
from eventlake.timetable import DAY
from eventlake.workspace import Workspace

DAYS = 30
_REMEMBERED = 300  # answers
_REMEMBERED_FOR = 300.0  # seconds: a history may be restored


class TableShare(NamedTuple):
    lake: str
    database: str
    table: str
    rows: int
    share: float  # of all rows of the day


class SourceRows(NamedTuple):
    source_id: str
    rows: int
    share: float


class Days:
    """Rows by day. What days that are over came to is remembered for some minutes, for who looks again."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._known: dict[tuple[str | None, int, int], tuple[float, list[tuple[int, int]]]] = {}

    def of(self, source_id: str | None = None, *, count: int = DAYS) -> list[tuple[int, int]]:
        """The beginning of each of the last days, and the rows that syncs loaded on it; today is the last."""
        today = self._workspace.clock.now() // DAY * DAY
        yesterday = today - DAY  # a run that was begun then may still go on
        key = (source_id, count, today)
        until, over = self._known.get(key, (0.0, []))
        if until < time.monotonic():
            over = rows_by_day(self._workspace, today - (count - 1) * DAY, yesterday, source_id)
            self._known = dict(list(self._known.items())[-_REMEMBERED:])
            self._known[key] = (time.monotonic() + _REMEMBERED_FOR, over)
        return [*over, *rows_by_day(self._workspace, max(yesterday, today - (count - 1) * DAY), today + DAY, source_id)]


def sources_of_day(workspace: Workspace, day: int) -> list[SourceRows]:
    """Which sources the rows of a day came from, most first."""
    rows: Counter[str] = Counter()
    for (_, source_id, _), counts in workspace.runs.counts(day, day + DAY, per=DAY).items():
        rows[source_id] += counts.loaded
    return [SourceRows(name, number, number / max(1, rows.total())) for name, number in rows.most_common() if number]


def tables_of_day(workspace: Workspace, source_id: str, day: int) -> list[TableShare]:
    """Which tables the rows of a source went to on a day, most first."""
    rows: Counter[tuple[str, str, str]] = Counter()
    for lake in workspace.lakes.values():
        for run in lake.runs.begun_between(source_id, day, day + DAY):
            if run.kind == "sync" and run.status == "finished":
                for line in (run.report or [])[1:]:
                    rows[lake.name, line["database"], line["table_name"]] += line["row_count"]
    whole = max(1, rows.total())
    return [TableShare(*name, number, number / whole) for name, number in rows.most_common() if number]
