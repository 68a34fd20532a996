"""The commit, step by step: a manifest is carried out, finished later, or taken back, and every end is reported."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from conftest import InProcess, Lake, SetClock
from eventlake.catalog.base import TableChange
from eventlake.catalog.embedded import EmbeddedCatalog
from eventlake.commit.commit import fulfil, promise
from eventlake.commit.manifest import Manifest, manifests
from eventlake.commit.recover import recover
from eventlake.commit.run_reports import save_delay, save_failure
from eventlake.control.database import leases
from eventlake.control.leases import Lease
from eventlake.control.ledger import Entry, IndexFile, LakeFile, TableFiles
from eventlake.errors import InternalError, LeaseLostError, StagingLostError
from eventlake.reports import report
from eventlake.schema.evolve import Column
from eventlake.schema.types import ColumnType
from eventlake.storage.local import LocalStorage

STEP = 86_400 * 10**9
OLD, NEW = "segment-data/data/old", "segment-data/data/new"
OLD_IDS, NEW_IDS = "segment-data/index/old", "segment-data/index/new"


class Registered(EmbeddedCatalog):
    """A catalog that shows what it was told of reports, as Glue does."""

    def __init__(self, engine: sa.Engine) -> None:
        super().__init__(engine, "default")
        self.reports: list[tuple[str, str, str]] = []

    def register_report(self, source_id: str, day: str, run_id: str) -> None:
        self.reports.append((source_id, day, run_id))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake with a table that will go, and with files that others take the place of."""
    lake = Lake(tmp_path / "workspace", InProcess(), clock=SetClock())
    place = lake.place
    place.__dict__["catalog"] = Registered(lake.workspace.engine)
    place.catalog.apply([change("track_old")], run_id="1", at=1)
    files = [LakeFile(OLD, "src1", "page", ["2026-11-15", "10"], 1, 3, "d", 5, 6, "1")]
    index = [IndexFile(OLD_IDS, "1", 1, "f", 1)]
    with place.leases.held("src1") as lease:
        place.ledger.record(Entry("1", "src1", 1, [], files=[TableFiles("page", files)], index_files=index), lease)
    for path in (OLD, OLD_IDS):
        place.storage.write(path, b"old")
    return lake


@pytest.fixture
def lease(lake: Lake) -> Iterator[Lease]:
    with lake.place.leases.held("src1") as lease:
        yield lease


def change(table: str) -> TableChange:
    partitions = (("2026-11-15", "10"),)
    columns = (Column("message_id", ColumnType.STRING, "/messageId"),)
    return TableChange("web", table, "src1", table, f"data/{table}", ("day", "hr"), columns, partitions=partitions)


def started(lake: Lake) -> str:
    run_id = lake.place.runs.start("src1", "sync", lake.workspace.clock.now_ns())
    lake.place.storage.write(f"segment-stage/{run_id}/left", b"")
    return run_id


def lines(lake: Lake, run_id: str, workspace_id: str = "") -> list[dict[str, Any]]:
    head = report.RunHead(workspace_id or lake.workspace.settings.workspace_id, "src1", run_id, "web", 0)
    return report.finished(head, 0, [], {"kind": "sync"})


def staged(lake: Lake, run_id: str, workspace_id: str = "") -> Manifest:
    """What a run is about to do, with its files in the staging folder."""
    entry = Entry(
        run_id=run_id,
        source_id="src1",
        at=777,
        report=lines(lake, run_id, workspace_id),
        files=[
            TableFiles("page", [LakeFile(NEW, "src1", "page", ["2026-11-15", "10"], 1, 3, "d", 5, 6, run_id)], [OLD])
        ],
        index_files=[IndexFile(NEW_IDS, run_id, 1, "f", 777)],
        removed_index_files=[OLD_IDS],
        base=lake.place.ledger.last_run("src1"),
    )
    moves = [(f"segment-stage/{run_id}/data", NEW), (f"segment-stage/{run_id}/ids", NEW_IDS)]
    for written, _ in moves:
        lake.place.storage.write(written, b"new")
    return Manifest(entry=entry, moves=moves, tables=[change("page")], dropped_tables=[("web", "track_old")])


def content(lake: Lake) -> dict[str, bytes]:
    storage = lake.place.storage
    return {path: storage.read(path) for path in (OLD, OLD_IDS, NEW, NEW_IDS) if storage.stat(path)}


def report_of(lake: Lake, run_id: str) -> dict[str, Any] | None:
    found = list((lake.root / "segment-data/reports").glob(f"day=*/source=src1/run_id={run_id}/report.json"))
    line: dict[str, Any] | None = json.loads(found[0].read_text()) if found else None
    return line


def manifest_path(lake: Lake, run_id: str) -> Path:
    return lake.root / f"segment-data/commits/source=src1/{run_id}.json"


BEFORE = {OLD: b"old", OLD_IDS: b"old"}
AFTER = {NEW: b"new", NEW_IDS: b"new"}


def check_done(lake: Lake, manifest: Manifest) -> None:
    """All that the manifest says is so."""
    place, run_id = lake.place, manifest.entry.run_id
    assert content(lake) == AFTER
    assert lake.tables() == ["page"]
    assert [(event.run_id, event.at) for event in place.catalog.history("web", "page")] == [(run_id, 777)]
    assert place.ledger.data_files("src1") == manifest.entry.data_files
    assert place.ledger.index_files("src1") == manifest.entry.index_files
    ended = place.runs.get(run_id)
    assert (ended.status, ended.finished_at, ended.report) == ("finished", 777, manifest.entry.report)
    assert report_of(lake, run_id) == manifest.entry.report[0]
    assert isinstance(place.catalog, Registered)
    assert set(place.catalog.reports) == {("src1", "1970-01-01", run_id)}
    assert not lake.staged()


def test_what_a_manifest_says_is_done_and_may_be_done_again(lake: Lake, lease: Lease) -> None:
    manifest = staged(lake, started(lake))
    promise(lake.place, manifest, lease)
    assert content(lake) == BEFORE
    assert list(manifests(lake.place, "src1")) == [manifest]
    for _ in range(2):
        fulfil(lake.place, manifest, lease)
        check_done(lake, manifest)


def test_a_file_that_went_after_the_ledger_knew_it_does_not_hold_up_the_rest(lake: Lake, lease: Lease) -> None:
    manifest = staged(lake, started(lake))
    fulfil(lake.place, manifest, lease)
    lake.place.storage.delete(NEW)
    fulfil(lake.place, manifest, lease)
    assert content(lake) == {NEW_IDS: b"new"}


def test_manifests_come_in_the_order_of_their_runs(lake: Lake, lease: Lease) -> None:
    ids = [started(lake) for _ in range(3)]
    for run_id in reversed(ids):
        promise(lake.place, staged(lake, run_id), lease)
    assert [manifest.entry.run_id for manifest in manifests(lake.place, "src1")] == ids


def test_a_manifest_that_is_there_is_not_replaced(lake: Lake, lease: Lease) -> None:
    run_id = started(lake)
    promise(lake.place, staged(lake, run_id, "another workspace"), lease)
    with pytest.raises(InternalError) as caught:
        promise(lake.place, staged(lake, run_id), lease)
    path = manifest_path(lake, run_id)
    assert caught.value.problem == f"there is another manifest for run {run_id}: {path}"
    assert caught.value.fix == "do not let two workspaces share a lake; run it again: nothing was published"
    assert "another workspace" in path.read_text()
    failed = lake.place.runs.get(run_id)
    assert (failed.status, failed.report) == ("failed", [])
    assert content(lake) == BEFORE


class Slow(LocalStorage):
    """Storage that takes so long to write a manifest that another run comes in between."""

    meanwhile: Callable[[], None]

    def create(self, path: str, content: bytes) -> bool:
        created = super().create(path, content)
        self.meanwhile()
        return created


@pytest.mark.parametrize("other", ["gave it up", "carried it out"])
def test_a_manifest_that_came_too_late_stays_only_if_another_has_carried_it_out(
    lake: Lake, lease: Lease, other: str
) -> None:
    place, run_id = lake.place, started(lake)
    earlier = place.runs.start("src1", "sync", 1)  # the newest run is another
    place.runs.failed(earlier, [])
    manifest = staged(lake, run_id)

    def take_over() -> None:
        with place.workspace.engine.begin() as connection:
            connection.execute(leases.update().values(expires_at=0))
        with place.leases.held("src1") as mine:
            if other == "carried it out":
                fulfil(place, manifest, mine)
            else:
                place.runs.failed(run_id, [])

    place.__dict__["storage"] = storage = Slow(str(lake.root))
    storage.meanwhile = take_over
    with pytest.raises(LeaseLostError):
        promise(place, manifest, lease)
    assert manifest_path(lake, run_id).exists() == (other == "carried it out")
    assert place.runs.get(run_id).status == ("finished" if other == "carried it out" else "failed")


# Runs that died


def test_a_run_that_died_after_its_manifest_is_finished_by_the_next(lake: Lake, lease: Lease) -> None:
    dead = started(lake)
    manifest = staged(lake, dead)
    promise(lake.place, manifest, lease)
    running = started(lake)
    recover(lake.place, lake.connection, lease, mine=running)
    assert lake.place.runs.get(running).status == "running"
    lake.place.storage.delete_folder(f"segment-stage/{running}")
    check_done(lake, manifest)


@pytest.mark.parametrize("foreign", [False, True], ids=["no manifest", "one of another workspace"])
def test_runs_that_died_before_their_manifests_have_failed_and_are_reported(
    lake: Lake, lease: Lease, foreign: bool
) -> None:
    dead = [started(lake), started(lake)]
    running = started(lake)
    if foreign:
        promise(lake.place, staged(lake, dead[0], "another workspace"), lease)
    recover(lake.place, lake.connection, lease, mine=running)
    assert [lake.place.runs.get(run_id).status for run_id in (*dead, running)] == ["failed", "failed", "running"]
    for run_id in dead:
        failed = lake.place.runs.get(run_id)
        line = report_of(lake, run_id)
        assert failed.report == [line]
        assert line
        assert line["start_time"] == report.time_text(failed.started_at * 1000)
        assert (line["workspace_id"], line["source_id"], line["run_id"], line["database"]) == (
            lake.workspace.settings.workspace_id,
            "src1",
            run_id,
            "web",
        )
        assert (line["error"], line["error_code"]) == (
            "the process ended before the run did; nothing was published",
            "interrupted",
        )
    assert report_of(lake, running) is None
    assert content(lake) == BEFORE
    assert not {*lake.staged()} & {*dead}


def test_a_run_whose_staged_files_are_gone_is_taken_back(lake: Lake, lease: Lease) -> None:
    dead = started(lake)
    promise(lake.place, staged(lake, dead), lease)
    lake.place.storage.move(f"segment-stage/{dead}/data", NEW)
    lake.place.storage.delete(f"segment-stage/{dead}/ids")
    recover(lake.place, lake.connection, lease, mine="")
    assert content(lake) == BEFORE
    assert not manifest_path(lake, dead).exists()
    assert lake.place.ledger.data_files("src1")[0].path == OLD
    line = report_of(lake, dead)
    assert line
    stage = lake.place.storage.full("segment-stage")
    assert line["error_code"] == "staging_lost"
    assert line["error"] == (
        f"run {dead} cannot be finished: files are gone that it left in {stage}; the run was undone, and a sync loads "
        "its raw files again"
    )


def test_a_run_whose_files_vanish_while_it_commits_says_what_the_next_one_does(lake: Lake, lease: Lease) -> None:
    manifest = staged(lake, started(lake))
    lake.place.storage.delete(manifest.moves[0][0])
    with pytest.raises(StagingLostError) as caught:
        fulfil(lake.place, manifest, lease)
    assert caught.value.fix == "run it again: this run is undone, and its raw files are loaded by the next"


# What failures leave


def test_failures_that_had_no_place_for_their_reports_get_them_later(lake: Lake, lease: Lease) -> None:
    """As far back as nothing but failures is in between; what is there is not written again."""
    place = lake.place
    ids = [started(lake) for _ in range(6)]
    too_early, finished, lost, there, silent, running = ids
    for run_id in (too_early, lost, there):
        place.runs.failed(run_id, lines(lake, run_id))
    place.runs.failed(silent, [])
    place.runs.finished(finished, lines(lake, finished), 1)
    report.save(place.storage, place.folders, [lines(lake, there)[0] | {"note": "as it is"}])
    place.runs.failed(running, lines(lake, running))  # by whatever; it has its own report to write
    lake.workspace.connections.add_source("ios", source_id="src2")
    place.runs.finished(place.runs.start("src2", "sync", place.clock.now_ns()), [], 1)
    recover(place, lake.connection, lease, mine=running)
    assert report_of(lake, lost) == lines(lake, lost)[0]
    assert (report_of(lake, there) or {})["note"] == "as it is"
    assert [report_of(lake, run_id) for run_id in (too_early, finished, silent, running)] == [None] * 4
    assert isinstance(place.catalog, Registered)
    assert place.catalog.reports == [("src1", "1970-01-01", lost)]


def test_staging_folders_go_when_their_runs_have_ended_or_when_they_are_old(lake: Lake, lease: Lease) -> None:
    place = lake.place
    lake.workspace.connections.add_source("ios", source_id="src2")
    now = place.clock.now_ns()
    long_running = place.runs.start("src2", "sync", now - 20 * STEP)
    ended = started(lake)
    place.runs.failed(ended, [])
    folders = {
        ended: False,
        long_running: True,
        str(now - 15 * STEP): False,
        str(now - 14 * STEP + STEP // 10): True,
        str(now): True,
        "of somebody": True,
    }
    for name in folders:
        place.storage.write(f"segment-stage/{name}/file", b"")
    recover(place, lake.connection, lease, mine="")
    assert sorted(lake.staged()) == sorted(name for name, stays in folders.items() if stays)


def test_a_failure_is_reported_and_its_staging_folder_goes(lake: Lake) -> None:
    run_id, other = started(lake), started(lake)
    save_failure(lake.place, run_id, lines(lake, run_id))
    failed = lake.place.runs.get(run_id)
    assert (failed.status, failed.report) == ("failed", lines(lake, run_id))
    assert report_of(lake, run_id) == lines(lake, run_id)[0]
    assert lake.staged() == [other]


def test_a_failure_is_in_the_history_although_the_lake_cannot_be_written_to(lake: Lake) -> None:
    run_id = started(lake)
    (lake.root / "segment-data/reports").write_text("in the way of the folder")
    with pytest.raises(Exception, match="reports"):
        save_failure(lake.place, run_id, lines(lake, run_id))
    assert lake.place.runs.get(run_id).status == "failed"


def test_a_run_that_waits_to_be_finished_says_so_and_one_that_is_finished_keeps_its_report(lake: Lake) -> None:
    waiting, done = started(lake), started(lake)
    lake.place.runs.finished(done, lines(lake, done), 1)
    for run_id in (waiting, done):
        save_delay(lake.place, run_id, lines(lake, run_id))
    assert (report_of(lake, waiting), report_of(lake, done)) == (lines(lake, waiting)[0], None)
    assert lake.place.runs.get(waiting).report == lines(lake, waiting)
    assert lake.place.runs.get(waiting).status == "running"
