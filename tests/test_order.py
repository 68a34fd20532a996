"""What is on disk before what: a recorder of changes proves the order that a power cut must not turn round."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from conftest import Lake
from crash_job import counted
from eventlake.errors import NoSpaceError
from eventlake.storage.local import LocalStorage
from eventlake.sync import jobs
from eventlake.sync.jobs import Job
from test_crash import filled

# One file


class Done(NamedTuple):
    """One thing that was asked of the disk, and what was in the file then."""

    what: str
    name: str
    content: bytes | None = None


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> list[Done]:
    """What is asked of the disk from now on, in order."""
    done: list[Done] = []
    fsync, link, replace = os.fsync, os.link, os.replace

    def recorded_fsync(handle: int) -> None:
        path = Path(f"/proc/self/fd/{handle}").readlink()
        fsync(handle)
        done.append(Done("sync", path.name, path.read_bytes() if path.is_file() else None))

    def recorded(what: str, inner: Callable[..., None]) -> Callable[..., None]:
        def call(source: Path, target: Path) -> None:
            content = Path(source).read_bytes()
            inner(source, target)
            done.append(Done(what, Path(target).name, content))

        return call

    monkeypatch.setattr(os, "fsync", recorded_fsync)
    monkeypatch.setattr(os, "link", recorded("link", link))
    monkeypatch.setattr(os, "replace", recorded("rename", replace))
    return done


@pytest.mark.parametrize(("way", "named"), [("write", "rename"), ("create", "link")])
def test_a_file_is_on_disk_before_it_has_its_name_and_its_name_before_the_call_ends(
    tmp_path: Path, disk: list[Done], way: str, named: str
) -> None:
    content = os.urandom(100_000)
    getattr(LocalStorage(str(tmp_path)), way)("folder/file", content)
    aside, name, folder = disk
    assert (aside.what, aside.content) == ("sync", content)
    assert aside.name.startswith(".file."), "it has another name until it is whole"
    assert name == Done(named, "file", content)
    assert folder == Done("sync", "folder")


@pytest.mark.parametrize("way", ["write", "create"])
def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    storage = LocalStorage(str(tmp_path))
    storage.write("file", b"old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(NoSpaceError):
            getattr(storage, way)("file", b"new and longer")
    assert storage.read("file") == b"old"
    assert [file.path for file in storage.files("")] == ["file"]


# One run


class Change(NamedTuple):
    """A change that a run was about to make, and what the ledger knew of the run and of old files then."""

    what: str
    path: str
    is_recorded: bool
    known: frozenset[str]


def changes_of(lake: Lake, job: Job) -> list[Change]:
    seen: list[Change] = []

    def before(what: str) -> None:
        kind, _, path = what.partition(" ")
        if kind != "database":
            run_id = lake.place.runs.latest(1)[0].run_id
            ledger = lake.place.ledger
            known = {*(f.path for f in ledger.data_files("src1")), *(f.path for f in ledger.index_files("src1"))}
            seen.append(Change(kind, path, ledger.has_recorded(run_id), frozenset(known)))

    counted(lake.workspace, before)
    lake.run(job)
    return seen


JOBS: dict[str, Callable[[Lake], Job]] = {
    "sync": lambda lake: jobs.sync(lake.connection),
    "replay": lambda lake: jobs.replay(lake.connection, None, None),
    "rebuild": lambda lake: jobs.rebuild(lake.workspace.connections.preview("web", {"table_prefix": "x"})),
}


@pytest.mark.parametrize("kind", JOBS)
def test_everything_is_flushed_before_the_manifest_and_again_before_the_ledger(tmp_path: Path, kind: str) -> None:
    lake = filled(tmp_path / "workspace")
    if kind != "sync":
        lake.sync()
    changes = changes_of(lake, JOBS[kind](lake))

    def places(what: str, path: str = "") -> list[int]:
        return [n for n, change in enumerate(changes) if change.what == what and path in change.path]

    (manifest,) = places("create", "segment-data/commits")
    first_flush, second_flush = places("settle")
    moves = places("move")
    assert places("open_output")
    assert places("put")
    assert max(places("open_output") + places("put")) < first_flush < manifest, "what was written, flush, manifest"
    assert manifest < min(moves) <= max(moves) < second_flush, "manifest, names, flush"
    first_recorded = next(n for n, change in enumerate(changes) if change.is_recorded)
    assert second_flush < first_recorded, "flush, ledger"
    (report,) = places("write", "segment-data/reports")
    assert first_recorded <= report
    deleted = [changes[n] for n in places("delete")]
    assert bool(deleted) == (kind != "sync")
    for change in deleted:
        assert change.is_recorded, "the ledger, then the old files"
        assert change.path not in change.known, "nobody is told any more of a file that goes"
