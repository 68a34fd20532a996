"""Which raw files a run takes, and which files of the index it searches."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import SetClock
from eventlake.control.connections import Connection
from eventlake.control.ledger import Entry, IndexFile, LoadedFile
from eventlake.lake import ids
from eventlake.lake.layout import DAY
from eventlake.runners.base import no_progress
from eventlake.storage.base import StoredFile
from eventlake.sync import jobs
from eventlake.sync.discover import Found, discover
from eventlake.sync.index import Index
from eventlake.sync.jobs import Job
from eventlake.sync.state import read_state
from eventlake.sync.work import Sizes, Work
from eventlake.tasks.scope import Mode, Scope
from eventlake.tasks.staged import RawFile
from eventlake.workspace import Workspace
from runner_without_spark import InProcess

FOLDER = "segment-logs/src1/1700006400000"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    Workspace.create(tmp_path)
    workspace = Workspace.open(tmp_path, SetClock())
    workspace.connections.add_source("web", source_id="src1")
    workspace.connections.add_source("app", source_id="src2")
    return workspace


@pytest.fixture
def connection(workspace: Workspace) -> Connection:
    return workspace.connections.get("web")


def put(workspace: Workspace, name: str, folder: str = FOLDER) -> StoredFile:
    workspace.lake().storage.write(f"{folder}/{name}", name.encode())
    (stored,) = [file for file in workspace.lake().storage.files(folder) if file.path == f"{folder}/{name}"]
    return stored


def record(workspace: Workspace, entry: Entry) -> None:
    with workspace.lake().leases.held(entry.source_id) as lease:
        entry.base = workspace.lake().ledger.last_run(entry.source_id)
        workspace.lake().ledger.record(entry, lease)


def load(workspace: Workspace, *files: tuple[StoredFile, dict[str, Any]], source: str = "src1") -> None:
    """Put files into the ledger, each with what differs from an ordinary one."""
    entries = []
    for stored, changes in files:
        lines = {"lines": 1, "loaded": 1, "duplicates": 0, "suppressed": 0, "blocked": 0, "quarantined": 0}
        known = {"checksum": "", "digest": "", "first_received": 0, "last_received": 0}
        entries.append(
            LoadedFile(**{"source_id": source, "run_id": "1", **stored._asdict(), **lines, **known, **changes})
        )
    record(workspace, Entry("1", source, 0, [], raw_files=entries))


def index(workspace: Workspace, *days: int, source: str = "src1") -> list[IndexFile]:
    """Files of the index, one for each day, each of a run of its own."""
    files = []
    for day in days:
        path = f"segment-data/index/source={source}/{day:03}.ids"
        rows = {name: np.zeros(2, ids.FIELDS[name]) for name in ids.INDEX_FIELDS}
        with workspace.lake().storage.open_output(path) as sink:
            ids.write(sink, ids.Ids(rows))
        files.append(IndexFile(path, str(day), 2, "0", day * DAY))
        record(workspace, Entry(str(day), source, 0, [], index_files=files[-1:]))
    return files


def found_by(workspace: Workspace, job: Job) -> Found:
    lake = workspace.lake()
    work = Work(lake, job, InProcess(), no_progress, "1", Sizes())
    return discover(work, read_state(lake, job))


def taken(workspace: Workspace, job: Job) -> list[str]:
    """The names of the raw files that a job takes; each has the number of its place."""
    found = found_by(workspace, job)
    assert [file.number for file in found.files] == list(range(len(found.files)))
    return [file.path.rpartition("/")[2] for file in found.files]


def test_a_sync_takes_what_was_not_loaded_and_what_has_changed(workspace: Workspace, connection: Connection) -> None:
    stored = {name: put(workspace, name) for name in ("a", "b", "c", "d", "e")}
    other = put(workspace, "f", "segment-logs/src2/1700006400000")
    put(workspace, ".hidden")
    load(
        workspace, (stored["a"], {}), (stored["b"], {"size": 99}), (stored["c"], {"etag": "another"}), (stored["d"], {})
    )
    load(workspace, (stored["e"]._replace(path=other.path), {}), source="src2")
    found = found_by(workspace, jobs.sync(connection))
    assert found.files == [RawFile(number, *stored[name]) for number, name in enumerate("bce")]
    assert found.gone == 0


def test_a_sync_searches_the_days_of_the_look_back_or_all_if_a_file_has_changed(workspace: Workspace) -> None:
    workspace.connections.change("web", {"lookback_days": "2"})
    connection = workspace.connections.get("web")
    files = index(workspace, *range(6))
    index(workspace, 7, source="src2")
    stored = put(workspace, "a")
    found = found_by(workspace, jobs.sync(connection))
    assert found.searched == files[3:]
    assert read_state(workspace.lake(), jobs.sync(connection)).index == Index(files, [])
    load(workspace, (stored, {"etag": "another"}))
    put(workspace, "b")
    assert found_by(workspace, jobs.sync(connection)).searched == files


def test_what_is_lost_of_the_index_is_told_and_not_searched(workspace: Workspace, connection: Connection) -> None:
    files = index(workspace, 1, 2, 3)
    workspace.lake().storage.write(files[1].path, b"cut off")
    for job in (jobs.sync(connection), jobs.replay(connection, None, None)):
        found = found_by(workspace, job)
        assert found.searched == [files[0], files[2]]
        assert read_state(workspace.lake(), job).index == Index([files[0], files[2]], [files[1]])


# Replay


def test_a_replay_takes_the_loaded_files_that_can_hold_what_it_wants_and_counts_those_that_are_gone(
    workspace: Workspace, connection: Connection
) -> None:
    spans = {"a": (0, 9), "b": (0, 10), "c": (12, 13), "d": (19, 30), "e": (20, 30), "f": (0, 99)}
    stored = {name: put(workspace, name) for name in (*spans, "unloaded", "gone", "gone too", "gone before")}
    spans |= {"gone": (11, 12), "gone too": (13, 14), "gone before": (1, 2)}
    load(
        workspace,
        *((stored[name], {"first_received": first, "last_received": last}) for name, (first, last) in spans.items()),
    )
    for name in ("gone", "gone too", "gone before"):
        workspace.lake().storage.delete(stored[name].path)
    job = Job(connection, Mode.REPLAY, Scope(10, 20))
    assert taken(workspace, job) == ["b", "c", "d", "f"]
    assert found_by(workspace, job).files[1] == RawFile(1, *stored["c"])
    assert found_by(workspace, job).gone == 2
    assert taken(workspace, jobs.rebuild(connection)) == ["a", "b", "c", "d", "e", "f"]
    assert found_by(workspace, jobs.rebuild(connection)).gone == 3


def test_files_of_which_all_was_left_out_are_looked_at_again(workspace: Workspace, connection: Connection) -> None:
    nothing: dict[str, Any] = {"first_received": None, "last_received": None}
    files: dict[str, dict[str, Any]] = {
        "empty": nothing,
        "blocked": {**nothing, "blocked": 1},
        "quarantined": {**nothing, "quarantined": 1},
        "some blocked": {"blocked": 1},
        "whole": {},
    }
    load(workspace, *((put(workspace, name), changes) for name, changes in files.items()))
    everything = jobs.replay(connection, None, None)
    assert taken(workspace, everything) == ["blocked", "quarantined", "some blocked", "whole"]
    left_out = jobs.allow(connection, frozenset({"track_a"}), were_loaded=False)
    assert taken(workspace, left_out) == ["blocked", "quarantined", "some blocked"]


def test_a_replay_searches_the_whole_index(workspace: Workspace) -> None:
    workspace.connections.change("web", {"lookback_days": "1"})
    files = index(workspace, *range(6))
    assert found_by(workspace, jobs.replay(workspace.connections.get("web"), None, None)).searched == files
