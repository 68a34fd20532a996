"""Two syncs in one process: the second finds Spark, its workers and the tables there, and is timed."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from eventlake.archive.importer import find_raw_files, import_file
from eventlake.cli import state
from eventlake.sync import jobs
from eventlake.sync.run import run
from eventlake.workspace import Workspace


def main(folder: Path, slug: str, *archives: Path) -> None:
    place = Workspace.open(folder)
    source = place.sources.get(slug)
    seconds: list[float] = []
    with state.spark(place) as runner:
        for archive in archives:
            for file in find_raw_files([archive]):
                import_file(place.storage, source.id, file, now_micros=place.clock.now())
            started = time.perf_counter()
            run(place, jobs.sync(source), runner)
            seconds.append(time.perf_counter() - started)
    print(json.dumps({"cold_sync": seconds[0], "warm_sync": seconds[-1]}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], *map(Path, sys.argv[3:]))
