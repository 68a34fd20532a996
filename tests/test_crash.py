"""A process that is killed at any point: the next run ends as if nothing had happened.

`make test` tries a few points, `make torture` hundreds: EVENTLAKE_KILLS says how many.
"""

import os
import random
import subprocess
import sys
from pathlib import Path

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
from eventlake.storage.files import Storage
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

for name in ("write", "move", "delete", "delete_folder", "open_output", "settle"):
    before(Storage, name)
workspace = Workspace.open(Path(sys.argv[1]))
sa.event.listen(workspace.engine, "commit", tick)
source = workspace.sources.get("web")
job = jobs.sync(source) if sys.argv[2] == "sync" else jobs.replay(source, None, None)
run(workspace, job, InProcess())
print(made)
"""


def killed_at(folder: Path, job: str, change: int) -> subprocess.CompletedProcess[str]:
    script = [sys.executable, "-c", JOB, str(folder), job, str(change), str(Path(__file__).parent)]
    return subprocess.run(script, capture_output=True, text=True, check=False)


def filled(folder: Path) -> Lake:
    lake = Lake(folder, InProcess(), clock=SetClock())
    lake.sync_of(track("A", "m0", properties={"price": 1}))
    lake.put(track("A", "m1", properties={"price": 1.5}), track("A", "m0"), track("B", "m2"), b"broken")
    return lake


def state(lake: Lake) -> object:
    tables = {table: lake.rows(table) for table in lake.tables()}
    kept = lake.query("select line, reason, content from __segment_datalake.quarantine order by all")
    books = [(f.lines, f.loaded, f.duplicates, f.quarantined) for f in lake.workspace.ledger.raw_files("src1").values()]
    return tables, kept, books


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[object, dict[str, int]]:
    """The state after a sync that nothing disturbs, and how many changes a sync and a replay make."""
    folder = tmp_path_factory.mktemp("undisturbed") / "workspace"
    lake = filled(folder)
    changes = {job: int(killed_at(folder, job, -1).stdout) for job in ("sync", "replay")}
    return state(lake), changes


def points(job: str, changes: int) -> list[int]:
    """Every change if there are kills enough, else some of them, always the same."""
    wanted = KILLS * 2 // 3 if job == "sync" else KILLS // 3
    rest, one_each = wanted % changes, wanted // changes
    return list(range(changes)) * one_each + sorted(random.Random(job).sample(range(changes), rest))


@pytest.mark.timeout(60 + 20 * KILLS)
@pytest.mark.parametrize("job", ["sync", "replay"])
def test_killed_at_any_change_the_next_sync_ends_in_the_same_state(
    tmp_path: Path, undisturbed: tuple[object, dict[str, int]], job: str
) -> None:
    expected, changes = undisturbed
    for number, point in enumerate(points(job, changes[job])):
        lake = filled(tmp_path / str(number))
        if job == "replay":
            lake.sync()
        died = killed_at(lake.workspace.folder, job, point)
        assert died.returncode == -9, died.stderr
        lake.sync()
        assert state(lake) == expected, f"killed before change {point}"
        assert verify(lake.workspace, lake.source, lake.runner) == [], f"killed before change {point}"
        assert not list((lake.root / "segment-stage").glob("*"))
        assert not lake.workspace.runs.unfinished("src1")


def test_old_staging_folders_are_removed_and_young_ones_of_others_stay(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake", InProcess(), clock=SetClock("2026-11-15T12:00:00Z"))
    now = lake.workspace.clock.now_ns()
    folders = {days: lake.root / "segment-stage" / str(now - days * 86_400 * 10**9) for days in (13, 15)}
    for folder in folders.values():
        folder.mkdir(parents=True)
        (folder / "staged").touch()
    lake.sync_of(track())
    assert {days: folder.exists() for days, folder in folders.items()} == {13: True, 15: False}
