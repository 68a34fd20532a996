"""Two syncs in one process, with the CPU time of all processes they take: on a Spark of this process, or over Connect.

The second finds everything there. What the first takes more is told beside it; the server itself is started before.

    PYTHONPATH=tests python -m bench.over_connect spark|connect FOLDER SLUG ARCHIVE ARCHIVE
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil  # type: ignore[import-untyped]

from connects import connect_server  # of the tests
from eventlake.archive.importer import find_raw_files, import_file
from eventlake.cli.runners import Runners
from eventlake.sync import jobs
from eventlake.sync.run import run
from eventlake.workspace import CONFIG, Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator


def _cpu_seconds() -> float:
    """Of this process and all below it, with those that have ended and were waited for."""
    me = psutil.Process()
    return sum(sum(process.cpu_times()[:4]) for process in [me, *me.children(recursive=True)])


@contextmanager
def _server(workspace: Path) -> Iterator[None]:
    """Let the runs of a workspace go to a Connect server like the Spark that they would start."""
    with tempfile.TemporaryDirectory() as folder, connect_server(Path(folder), master="local[*]") as server:
        settings = (workspace / CONFIG).read_text()
        (workspace / CONFIG).write_text(f'runner = {{ kind = "connect", url = "{server.url}" }}\n{settings}')
        yield


def _synced(workspace: Path, slug: str, archives: list[Path]) -> dict[str, float]:
    place = Workspace.open(workspace)
    connection = place.connections.get(slug)
    told: dict[str, float] = {}
    with Runners(place) as runners, runners.of(connection.lake) as runner:
        for name, archive in zip(("first ", ""), archives, strict=True):
            for file in find_raw_files([archive]):
                import_file(place.archive, connection.source.id, file, now_micros=place.clock.now())
            wall, cpu = time.perf_counter(), _cpu_seconds()
            run(place, jobs.sync(connection), runner)
            told |= {f"{name}sync": time.perf_counter() - wall, f"{name}CPU": _cpu_seconds() - cpu}
    return told


def main(kind: str, folder: str, slug: str, *archives: str) -> None:
    workspace, paths = Path(folder), list(map(Path, archives))
    if kind == "spark":
        told = _synced(workspace, slug, paths)
    else:
        began = time.perf_counter()
        with _server(workspace):
            told = {"server": time.perf_counter() - began, **_synced(workspace, slug, paths)}
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
