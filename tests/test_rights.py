"""What is made for its owner only, whatever the umask says, and what stays as somebody set it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import InProcess, Lake, track
from eventlake.collector.options import Spool
from eventlake.workspace import Workspace

ON_DISK = '[lake]\nroot = "lake"\n'


@pytest.fixture(autouse=True)
def generous_umask() -> Iterator[None]:
    before = os.umask(0o000)
    yield
    os.umask(before)


def mode(path: Path) -> str:
    return f"{path.stat().st_mode & 0o777:03o}"


def test_files_of_a_workspace_can_be_read_by_their_owner_only(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "workspace", InProcess(), settings=ON_DISK)
    with lake.workspace.engine.connect():  # while somebody works with it, SQLite has files beside its own
        lake.sync_of(track())
        folder = lake.workspace.folder
        assert {path.name: mode(path) for path in folder.iterdir()} == {
            "eventlake.toml": "600",
            "eventlake.db": "600",
            "eventlake.db-wal": "600",
            "eventlake.db-shm": "600",
            "lake": "700",
        }
    assert mode(folder) == "700"


def test_rights_that_somebody_gave_stay(tmp_path: Path) -> None:
    folder = tmp_path / "workspace"
    folder.mkdir(mode=0o755)
    (folder / "lake").mkdir(mode=0o750)
    Workspace.create(folder)
    (folder / "eventlake.toml").chmod(0o640)
    (folder / "eventlake.db").touch(mode=0o660)
    place = Workspace.open(folder)
    place.connections.add_source("web")
    place.lake().storage.write("segment-logs/x", b"")
    found = {path.name: mode(path) for path in (folder, *folder.iterdir())}
    assert found | {"workspace": "755", "lake": "750", "eventlake.toml": "640", "eventlake.db": "660"} == found


def test_below_the_lakes_folder_the_umask_decides_so_that_a_lake_can_be_shared_by_opening_it(tmp_path: Path) -> None:
    os.umask(0o022)
    lake = Lake(tmp_path / "workspace", InProcess(), settings=ON_DISK)
    lake.sync_of(track())
    below = list(lake.root.rglob("*"))
    assert len(below) > 10
    assert {mode(path) for path in below} == {"755", "644"}


def test_a_lake_elsewhere_is_made_for_its_owner_too(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "workspace", InProcess(), settings=f'[lake]\nroot = "{tmp_path}/data/lake"\n')
    lake.put(track())
    assert mode(tmp_path / "data" / "lake") == "700"


def test_what_the_collector_holds_is_for_its_owner_only(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.make()
    folders = (spool.folder, spool.logs, spool.recent, spool.rejects, spool.counters)
    assert {mode(folder) for folder in folders} == {"700"}
