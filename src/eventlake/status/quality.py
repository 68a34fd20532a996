"""Lines that are not events, and events that were refused: what to look at when numbers are not as expected."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

import pyarrow.parquet as pq

from eventlake.collector import rejects
from eventlake.collector.options import Spool
from eventlake.collector.rejects import Reject
from eventlake.control.run_lines import RunLine
from eventlake.control.runs import History, Run
from eventlake.workspace import Lake, Workspace

MOST = 200
_FILES = 50
_REPORTS = 200
_SHOWN = 2000  # characters of a line


class BadLine(NamedTuple):
    lake: str
    source_id: str
    run_id: str
    raw_file: str
    line: int
    reason: str
    detail: str
    size: int
    text: str  # its beginning


class BadLines(NamedTuple):
    lines: list[BadLine]
    reasons: dict[str, int]  # how many of those that were looked at, by reason
    looked_at: int


class Wanted(NamedTuple):
    """Of which runs something is asked; whatever is empty stands for all."""

    source_id: str | None = None
    lake: str | None = None
    begun: tuple[int, int] | None = None  # when they began

    def lakes(self, workspace: Workspace) -> list[Lake]:
        if self.lake in workspace.settings.wrong_lakes:
            return []  # what it has cannot be looked at
        return [workspace.lake(self.lake)] if self.lake else list(workspace.lakes.values())

    def syncs(self, history: History, having: str, limit: int | None = None) -> list[RunLine]:
        """Those that counted something, newest first."""
        return history.lines(limit, self.source_id, kinds=("sync",), begun=self.begun, having=having)


class Kept(NamedTuple):
    """How much of something the syncs counted, as their reports tell: for each place and reason."""

    rows: list[tuple[tuple[str, ...], int]]  # most first
    total: int
    is_cut: bool  # there are more runs than were looked at


def quarantined(
    workspace: Workspace, wanted: Wanted, *, run_id: str | None = None, reason: str | None = None
) -> BadLines:
    """The lines of the last runs, or of some, that are not events."""
    shown: list[BadLine] = []
    reasons: Counter[str] = Counter()
    for lake in wanted.lakes(workspace):
        run_ids = [run_id] if run_id else None
        if wanted.begun and not run_id:
            run_ids = [run.run_id for run in wanted.syncs(lake.runs, "quarantined", _FILES)]
        for one in _read(lake, wanted.source_id, run_ids):
            reasons[one.reason] += 1
            if len(shown) < MOST and reason in (None, one.reason):
                shown.append(one)
    return BadLines(shown, dict(reasons.most_common()), reasons.total())


def rescued(workspace: Workspace, wanted: Wanted) -> Kept:
    """How many values did not fit: by lake, table and column."""

    def counted(run: Run) -> Iterator[tuple[tuple[str, ...], int]]:
        for line in (run.report or [])[1:]:
            for column, number in line.get("rescued", {}).items():
                yield (run.lake, f"{line['database']}.{line['table_name']}", column), number

    return _kept(workspace, wanted, "rescued", counted)


def blocked(workspace: Workspace, wanted: Wanted) -> Kept:
    """How many lines were left out: by lake, source and reason."""

    def counted(run: Run) -> Iterator[tuple[tuple[str, ...], int]]:
        for reason, number in (run.report or [{}])[0].get("blocked_by", {}).items():
            yield (run.lake, run.source_id, reason), number

    return _kept(workspace, wanted, "blocked", counted)


def _kept(
    workspace: Workspace, wanted: Wanted, what: str, counted: Callable[[Run], Iterator[tuple[tuple[str, ...], int]]]
) -> Kept:
    history = workspace.history(wanted.lake or "")
    runs = wanted.syncs(history, what, _REPORTS + 1)
    counts: Counter[tuple[str, ...]] = Counter()
    for run in history.with_ids([run.run_id for run in runs[:_REPORTS]]):
        for key, number in counted(run):
            counts[key] += number
    return Kept(counts.most_common(MOST), counts.total(), len(runs) > _REPORTS)


def _read(lake: Lake, source_id: str | None, run_ids: list[str] | None) -> Iterator[BadLine]:
    left = 20 * MOST
    for path in lake.ledger.newest_quarantine_files(_FILES, source_id=source_id, run_ids=run_ids):
        of = dict(part.partition("=")[::2] for part in path.split("/") if "=" in part)
        with suppress(FileNotFoundError), lake.storage.open_input(path) as source:
            for batch in pq.ParquetFile(source).iter_batches(1000):
                for row in batch.to_pylist():
                    text = bytes(row["content"][:_SHOWN]).decode("utf-8", "replace")
                    yield BadLine(
                        *(lake.name, of.get("source", ""), of.get("run_id", ""), row["raw_file"], row["line"]),
                        *(row["reason"], row["detail"] or "", row["size"], text),
                    )
                left -= batch.num_rows
                if left <= 0:
                    return


def refused(workspace: Workspace, source_id: str | None = None) -> list[Reject]:
    """What the collector of this machine refused last, newest first."""
    with suppress(OSError):
        found = rejects.latest(Spool(workspace.folder).rejects, most_bytes=1 << 20)
        return [one for one in reversed(found) if source_id in (None, one.source)][:MOST]
    return []
