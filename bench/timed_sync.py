"""Syncs in one process that times them, and the steps of the last: raw files that are there, or some archives in turn.

From the second archive on a sync finds Spark, its workers and the tables there: it is warm.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from eventlake.archive.importer import find_raw_files, import_file
from eventlake.cli.runners import Runners
from eventlake.sync import jobs
from eventlake.sync.run import run
from eventlake.workspace import Workspace

if TYPE_CHECKING:
    from eventlake.control.connections import Connection
    from eventlake.runners.base import Runner


class _Watch:
    """Hears from a sync when its steps begin and end."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._began: dict[str, float] = {}

    def __call__(self, step: str, done: int, tasks: int) -> None:
        now = time.perf_counter()
        began = self._began.setdefault(step, now)
        if done == tasks:
            self.seconds[step] = now - began


def _timed(place: Workspace, connection: Connection, runner: Runner) -> dict[str, float]:
    watch = _Watch()
    started = time.perf_counter()
    run(place, jobs.sync(connection), runner, watch)
    return {"sync": time.perf_counter() - started, **watch.seconds}


def main(folder: Path, slug: str, *archives: Path) -> None:
    place = Workspace.open(folder)
    connection = place.connections.get(slug)
    with Runners(place) as runners, runners.of(connection.lake) as runner:
        for archive in archives:
            for file in find_raw_files([archive]):
                import_file(place.archive, connection.source.id, file, now_micros=place.clock.now())
            told = _timed(place, connection, runner)
        if not archives:
            told = _timed(place, connection, runner)
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], *map(Path, sys.argv[3:]))
