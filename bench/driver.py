"""What a driver does with a billion events, without the events: its tasks are answered with made-up results.

Everything else is real: discovery, planning, the books, the manifest, and the commit to the ledger and the catalog of a
lake with a long past. The time in which results are made up is not counted. And how long a sync of one more file takes
with that past, with some of it, and without: the raw archive lists all files of the past, which itself takes no time.

    PYTHONPATH=tests python -m bench.driver billion|history FOLDER
"""

from __future__ import annotations

import gzip
import itertools
import json
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.made_up import EVENTS_PER_TASK, MadeUp
from bench.past import Past, write_past
from eventlake.archive import layout as archive
from eventlake.control import database as db
from eventlake.lake import ids
from eventlake.lake.layout import DAY, HOUR, SEGMENT
from eventlake.storage.base import Storage, StoredFile
from eventlake.storage.local import LocalStorage
from eventlake.sync import jobs
from eventlake.sync.run import run
from eventlake.workspace import Workspace
from runner_without_spark import InProcess  # of the tests

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from eventlake.control.connections import Connection
    from eventlake.settings.storage import StorageSettings

STAGE_TASKS = 12_000
_FILES_PER_TASK = 5
_BYTES_PER_TASK = 64 << 20
_LOOK_BACK = 84  # runs
_CHECKSUM = "0" * 32
SOME_PAST = Past(raw_files=30_000, data_files=15_000, runs=400, tables=40)


class Imagined(LocalStorage):
    """A folder that lists files which are not there, beside those that are, and moves them."""

    listed: dict[str, list[StoredFile]]  # by folder

    def files(self, folder: str) -> Iterator[StoredFile]:
        return itertools.chain(self.listed.get(folder, ()), super().files(folder))

    def move_all(self, moves: Iterable[tuple[str, str]]) -> None:
        super().move_all(move for move in moves if Path(self.full(move[0])).exists())


class Imagining(Workspace):
    """A workspace with a lake of which most is imagined."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.listed: dict[str, list[StoredFile]] = {}  # by folder

    def storage_of(self, settings: StorageSettings) -> Storage:
        storage = Imagined(str(self.folder / settings.root))
        storage.listed = self.listed
        return storage


def _look_back(place: Imagining, connection: Connection) -> None:
    """Runs of the last week, with as many ids as this one has."""
    messages = STAGE_TASKS * EVENTS_PER_TASK // ids.BUCKETS
    size, _ = ids.index_sizes(messages)
    folder = f"{SEGMENT.index}/source={connection.source.id}"
    rows: list[dict[str, Any]] = []
    for number in range(_LOOK_BACK):
        at = place.clock.now() // DAY * DAY - number * 2 * HOUR
        for part in range(ids.BUCKETS):
            file = {"path": f"{folder}/{at * 1000:019d}-{part}.ids", "run_id": f"{at * 1000:019d}", "synced_at": at}
            more = {"lake": "default", "source_id": connection.source.id, "messages": messages, "checksum": _CHECKSUM}
            rows.append(file | more)
    with place.engine.begin() as database:
        database.execute(db.index_files.insert(), rows)
    place.listed[folder] = [StoredFile(row["path"], size, "e") for row in rows]


def billion(folder: Path) -> dict[str, float]:
    Workspace.create(folder)
    place = Imagining.open(folder)
    connection, _ = place.connections.add_source("web")
    past = Past()
    write_past(place.lake(), connection, past)
    _look_back(place, connection)
    raw = archive.folder(connection.source.id)
    place.listed[raw] = [
        StoredFile(f"{raw}/{20_400 * DAY // 1000}/{number:06d}.gz", _BYTES_PER_TASK // _FILES_PER_TASK, "e")
        for number in range(STAGE_TASKS * _FILES_PER_TASK)
    ]
    runner = MadeUp(past.table_keys)
    started = time.perf_counter()
    run(place, jobs.sync(connection), runner)
    return {"driver": time.perf_counter() - started - runner.seconds}


def sync_of_one(place: Workspace, connection: Connection, number: int) -> float:
    events = (
        {"type": "track", "event": f"Event {n % 3:05d}", "messageId": f"{number}-{n}", "properties": {"0": "x"}}
        for n in range(1000)
    )
    path = archive.path(connection.source.id, place.clock.now(), f"new-{number}.gz")
    place.archive.write(path, gzip.compress("\n".join(map(json.dumps, events)).encode()))
    started = time.perf_counter()
    run(place, jobs.sync(connection), InProcess())
    return time.perf_counter() - started


def history(folder: Path) -> dict[str, float]:
    told = {}
    for name, past in (("empty", None), ("some past", SOME_PAST), ("long past", Past())):
        place = Imagining.create(folder / name)
        connection, _ = place.connections.add_source("web")
        if past:
            place.listed[archive.folder(connection.source.id)] = write_past(place.lake(), connection, past)
        sync_of_one(place, connection, 0)  # after which its tables are there
        told[name] = statistics.median(sync_of_one(place, connection, number) for number in (1, 2, 3))
    return told


if __name__ == "__main__":
    what, folder = sys.argv[1:]
    print(json.dumps({"billion": billion, "history": history}[what](Path(folder))))
