"""A process that is killed at any point: the next run ends as if nothing had happened.

`make test` tries a few points, `make torture` hundreds: EVENTLAKE_KILLS says how many.
"""

import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from conftest import InProcess, Lake, SetClock, track
from eventlake.sync.verify import verify

KILLS = int(os.environ.get("EVENTLAKE_KILLS", "20"))

# Carries out a job in a process that kills itself, without any clean-up, at its n-th change to the lake or to the
# database. Prints how many changes there were if it lives.
JOB = """
import os, signal, sys
from pathlib import Path
import sqlalchemy as sa
sys.path.insert(0, sys.argv[4])
from conftest import InProcess
from eventlake.storage.local import LocalStorage
from eventlake.storage.s3 import S3Storage
from eventlake.sync import jobs
from eventlake.sync.run import run
from eventlake.workspace import Workspace

made, last = 0, int(sys.argv[3])

def tick(*_args, **_kwargs):
    global made
    if made == last:
        os.kill(os.getpid(), signal.SIGKILL)
    made += 1

def before(cls, name):
    inner = getattr(cls, name)
    def outer(*args, **kwargs):
        tick()
        return inner(*args, **kwargs)
    setattr(cls, name, outer)

for name in ("write", "create", "move", "delete", "delete_folder", "open_output", "settle"):
    for kind in (LocalStorage, S3Storage):
        before(kind, name)
workspace = Workspace.open(Path(sys.argv[1]))
sa.event.listen(workspace.engine, "commit", tick)
source = workspace.sources.get("web")
job = jobs.sync(source) if sys.argv[2] == "sync" else jobs.replay(source, None, None)
run(workspace, job, InProcess())
print(made)
"""


def killed_at(folder: Path, job: str, change: int, after: float | None = None) -> subprocess.CompletedProcess[str]:
    """Carry out a job that dies at a change, or after some seconds, or not at all."""
    script = [sys.executable, "-c", JOB, str(folder), job, str(change), str(Path(__file__).parent)]
    process = subprocess.Popen(script, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, err = process.communicate(timeout=after)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
    return subprocess.CompletedProcess(script, process.returncode, out, err)


def filled(folder: Path, settings: str | None = None) -> Lake:
    lake = Lake(folder, InProcess(), clock=SetClock(), settings=settings)
    lake.sync_of(track("A", "m0", properties={"price": 1}))
    lake.put(track("A", "m1", properties={"price": 1.5}), track("A", "m0"), track("B", "m2"), b"broken")
    return lake


def state(lake: Lake) -> object:
    """Tables, catalog, ledger and reports, without the names and times of the runs that made them."""
    place = lake.workspace
    tables = {table: lake.rows(table) for table in lake.tables()}
    kept = lake.query("select line, reason, content from __segment_datalake.quarantine order by all")
    catalog = [
        (table.name, table.schema, place.catalog.partitions("web", table.name)) for table in place.catalog.tables()
    ]
    raw = [file._replace(etag="", run_id="") for file in place.ledger.raw_files("src1").values()]
    data: Counter[tuple[str, ...]] = Counter()  # a replay may have joined the files of a partition
    for file in place.ledger.data_files("src1"):
        data[file.segment_type, *file.partition] += file.rows
    index = sorted((f.messages, f.checksum) for f in place.ledger.index_files("src1"))
    reports = [lines_of(run.report) for run in place.runs.latest(100) if run.report]
    return tables, kept, catalog, raw, data, index, [told for told in reports if told]


def lines_of(report: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a sync that loaded something reported."""
    if report[0]["status"] != "finished" or "replay" in report[0] or not report[0]["books"]["lines"]:
        return []
    own = {"workspace_id", "run_id", "start_time", "finish_time", "duration_mins", "s3_bucket"}
    return [{key: value for key, value in line.items() if key not in own} for line in report]


class Undisturbed(NamedTuple):
    """How a job ends that nothing disturbs, how many changes it makes, and how long it takes."""

    state: object
    changes: int
    seconds: float


@pytest.fixture(scope="module", params=["sync", "replay"])
def job(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def undisturbed(job: str, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    lake = ready_for(job, tmp_path_factory.mktemp("undisturbed") / "workspace")
    began = time.monotonic()
    changes = int(killed_at(lake.workspace.folder, job, -1).stdout)
    return Undisturbed(state(lake), changes, time.monotonic() - began)


def ready_for(job: str, folder: Path) -> Lake:
    lake = filled(folder)
    if job == "replay":
        lake.sync()
    return lake


def check_after_a_kill(lake: Lake, undisturbed: Undisturbed, when: str) -> None:
    lake.sync()
    assert state(lake) == undisturbed.state, when
    assert verify(lake.workspace, lake.source, lake.runner) == [], when
    assert not lake.staged(), when
    assert not lake.workspace.runs.unfinished("src1"), when


@pytest.mark.timeout(60 + 20 * KILLS)
def test_killed_at_any_change_the_next_sync_ends_in_the_same_state(
    tmp_path: Path, job: str, undisturbed: Undisturbed
) -> None:
    wanted = KILLS // 2 if job == "sync" else KILLS // 4
    rounds, rest = divmod(wanted, undisturbed.changes)
    some = sorted(random.Random(job).sample(range(undisturbed.changes), rest))  # always the same
    for number, point in enumerate([*range(undisturbed.changes)] * rounds + some):
        lake = ready_for(job, tmp_path / str(number))
        died = killed_at(lake.workspace.folder, job, point)
        assert died.returncode == -9, died.stderr
        check_after_a_kill(lake, undisturbed, f"killed before change {point}")


@pytest.mark.timeout(60 + 20 * KILLS)
def test_killed_at_any_moment_the_next_sync_ends_in_the_same_state(
    tmp_path: Path, job: str, undisturbed: Undisturbed
) -> None:
    for number in range(KILLS // 8):
        lake = ready_for(job, tmp_path / str(number))
        moment = random.uniform(0.3, 1.1) * undisturbed.seconds
        died = killed_at(lake.workspace.folder, job, -1, after=moment)
        assert died.returncode in (-9, 0), died.stderr
        check_after_a_kill(lake, undisturbed, f"killed after {moment} seconds")


def test_old_staging_folders_are_removed_and_young_ones_of_others_stay(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake", InProcess(), clock=SetClock("2026-11-15T12:00:00Z"))
    now = lake.workspace.clock.now_ns()
    folders = {days: lake.root / "segment-stage" / str(now - days * 86_400 * 10**9) for days in (13, 15)}
    for folder in folders.values():
        folder.mkdir(parents=True)
        (folder / "staged").touch()
    lake.sync_of(track())
    assert {days: folder.exists() for days, folder in folders.items()} == {13: True, 15: False}
