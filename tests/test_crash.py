"""A process that dies at any point of the commit: the next run ends as if nothing had happened."""

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import InProcess, Lake, SetClock, track

from eventlake.sync.verify import verify

# Runs a sync in a process of its own that is killed, without any clean-up, at the n-th change it makes to the lake or
# to the database.
DIE = """
import os, signal, sys
from pathlib import Path
import sqlalchemy as sa
sys.path.insert(0, sys.argv[3])
from conftest import InProcess
from eventlake.storage.files import Storage
from eventlake.sync import jobs
from eventlake.sync.run import run
from eventlake.workspace import Workspace

left = int(sys.argv[2])

def tick(*_args, **_kwargs):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)

def before(cls, name):
    inner = getattr(cls, name)
    def outer(*args, **kwargs):
        tick()
        return inner(*args, **kwargs)
    setattr(cls, name, outer)

for name in ("write", "move", "delete", "delete_folder", "open_output"):
    before(Storage, name)
workspace = Workspace.open(Path(sys.argv[1]))
sa.event.listen(workspace.engine, "commit", tick)
run(workspace, jobs.sync(workspace.sources.get("web")), InProcess())
print("finished")
"""


def state(lake: Lake) -> object:
    tables = {table: lake.rows(table) for table in lake.tables()}
    kept = lake.query("select line, reason, content from __segment_datalake.quarantine order by all")
    books = [(f.lines, f.loaded, f.duplicates, f.quarantined) for f in lake.workspace.ledger.raw_files("src1").values()]
    return tables, kept, books


def filled(folder: Path) -> Lake:
    lake = Lake(folder, InProcess(), clock=SetClock())
    lake.sync_of(track("A", "m0", properties={"price": 1}))
    lake.put(track("A", "m1", properties={"price": 1.5}), track("A", "m0"), track("B", "m2"), b"broken")
    return lake


@pytest.mark.parametrize("changes", [0, 1, 2, 5, 8, 11, 13, 15, 17, 19, 20, 21, 23, 25])
def test_killed_at_any_change_the_next_sync_ends_in_the_same_state(tmp_path: Path, changes: int) -> None:
    undisturbed = filled(tmp_path / "undisturbed")
    undisturbed.sync()
    lake = filled(tmp_path / "killed")
    script = [sys.executable, "-c", DIE, str(tmp_path / "killed"), str(changes), str(Path(__file__).parent)]
    died = subprocess.run(script, capture_output=True, text=True, check=False)
    assert died.returncode in (0, -9), died.stderr
    lake.sync()
    assert state(lake) == state(undisturbed)
    assert verify(lake.workspace, lake.source, lake.runner) == []
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
