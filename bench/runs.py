"""One timed run of a contestant, what it left behind, and the medians of several runs."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.contestants import CONTESTANTS, Task, environment
from bench.measure import Cost, measured

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_ID_COLUMNS = ("messageId", "message_id")


@dataclass(frozen=True)
class Entry:
    """A contestant in a scenario, and what it is given there."""

    scenario: str
    label: str  # the contestant, and more where a scenario has it twice
    contestant: str
    task: Task


@dataclass(frozen=True)
class Run:
    entry: Entry
    cost: Cost
    output_bytes: int
    files: int
    copies_left: int
    events_lost: int
    told_seconds: dict[str, float]  # by commands that time themselves


def run(entry: Entry, folder: Path) -> Run:
    """Prepare in an empty folder, then run and measure."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    contestant = CONTESTANTS[entry.contestant]
    command = contestant.prepare(entry.task, folder)
    there = set(folder.glob(contestant.output)) if contestant.output else set()
    before = contestant.told(folder) if contestant.told else (0, 0, 0)
    log = folder.with_suffix(".log")
    cost = measured(command, environment=environment(), log=log)
    if contestant.told:
        files, size, rows = (now - then for now, then in zip(contestant.told(folder), before, strict=True))
        events = min(rows, entry.task.archive.events)
    else:
        written = set(folder.glob(contestant.output)) - there if contestant.output else set()
        files, size = len(written), sum(file.stat().st_size for file in written)
        rows, events = _counted(written)
    is_counted = contestant.one_row_each and (contestant.told or contestant.output)
    return Run(
        entry,
        cost,
        output_bytes=size,
        files=files,
        copies_left=rows - events if is_counted else 0,
        events_lost=entry.task.archive.events - events if is_counted else 0,
        told_seconds=json.loads(log.read_text().splitlines()[-1]) if contestant.tells else {},
    )


def _counted(files: Iterable[Path]) -> tuple[int, int]:
    """How many rows of events, and how many different message ids in them."""
    ids: list[pa.ChunkedArray] = []
    for path in files:
        with pq.ParquetFile(path) as file:
            column = next((name for name in _ID_COLUMNS if name in file.schema_arrow.names), None)
            if column:  # dlt has tables without: the parts of nested values
                ids.append(file.read([column]).column(0))
    if not ids:
        return 0, 0
    together = pa.chunked_array([chunk for part in ids for chunk in part.chunks])
    return len(together), pc.count_distinct(together).as_py()


@dataclass(frozen=True)
class Median:
    """What an entry costs: the median of its runs, number by number; of the peak of a worker, the highest."""

    entry: Entry
    runs: int
    wall_seconds: float
    cpu_seconds: float
    peak_bytes: float
    worker_peak_bytes: float
    output_bytes: float
    files: float
    copies_left: float
    events_lost: float
    told_seconds: dict[str, float]

    @property
    def events_per_cpu_second(self) -> float:
        return self.entry.task.archive.events / self.cpu_seconds

    @property
    def json_bytes_per_cpu_second(self) -> float:
        return self.entry.task.archive.json_bytes / self.cpu_seconds


Medians = dict[tuple[str, str], Median]
"""By scenario and label."""


def medians(runs: list[Run]) -> Medians:
    found: dict[tuple[str, str], list[Run]] = {}
    for one in runs:
        found.setdefault((one.entry.scenario, one.entry.label), []).append(one)
    return {key: _median(own) for key, own in found.items()}


def _median(runs: list[Run]) -> Median:
    told = runs[0].told_seconds
    return Median(
        entry=runs[0].entry,
        runs=len(runs),
        wall_seconds=median(one.cost.wall_seconds for one in runs),
        cpu_seconds=median(one.cost.cpu_seconds for one in runs),
        peak_bytes=median(one.cost.peak_bytes for one in runs),
        worker_peak_bytes=max(one.cost.worker_peak_bytes for one in runs),
        output_bytes=median(one.output_bytes for one in runs),
        files=median(one.files for one in runs),
        copies_left=median(one.copies_left for one in runs),
        events_lost=median(one.events_lost for one in runs),
        told_seconds={name: median(one.told_seconds[name] for one in runs) for name in told},
    )
