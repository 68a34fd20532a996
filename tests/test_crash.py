"""A process that is killed at any point: the next run ends as if nothing had happened, and readers see no half run.

Every change that a run makes to the lake or to the database is a point at which it is killed once. `make test` tries
every fifth, `make test-long` all of them; EVENTLAKE_KILLS says how often runs are killed at a random moment besides.
"""

import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest

from conftest import IN_BUCKETS, ON_POSTGRES, InProcess, Lake, SetClock, track
from crash_job import killed_at
from eventlake.audit.repair import repair
from eventlake.audit.verify import verify
from eventlake.errors import StagingLostError
from eventlake.sync import requests

KILLS = int(os.environ.get("EVENTLAKE_KILLS", "20"))


def filled(folder: Path, settings: str | None = None) -> Lake:
    lake = Lake(folder, InProcess(), clock=SetClock(), settings=settings)
    lake.sync_of(track("A", "m0", properties={"price": 1}))
    lake.put(track("A", "m1", properties={"price": 1.5}), track("A", "m0"), track("B", "m2"), b"broken")
    return lake


def state(lake: Lake) -> object:
    """Tables, catalog, ledger and reports, without the names and times of the runs that made them."""
    place = lake.workspace
    tables = lake.all_rows()
    kept = lake.query("select line, reason, content from __segment_datalake.quarantine order by all")
    catalog = [
        (table.name, table.schema, place.lake().catalog.partitions("web", table.name))
        for table in place.lake().catalog.tables()
    ]
    raw = [file._replace(etag="", run_id="") for file in place.lake().ledger.raw_files("src1").values()]
    data: Counter[tuple[str, ...]] = Counter()  # a replay may have joined the files of a partition
    for file in place.lake().ledger.data_files("src1"):
        data[file.table_key, *file.partition] += file.rows
    index = sorted((f.messages, f.checksum) for f in place.lake().ledger.index_files("src1"))
    reports = [lines_of(run.report) for run in place.runs.latest(100) if run.report]
    return tables, kept, catalog, raw, data, index, [told for told in reports if told]


def lines_of(report: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a sync that loaded something reported."""
    if report[0]["status"] != "finished" or "replay" in report[0] or not report[0]["books"]["lines"]:
        return []
    own = {"workspace_id", "run_id", "start_time", "finish_time", "duration_mins", "s3_bucket"}
    own |= {"azure_storage_account", "azure_storage_container"}
    return [{key: value for key, value in line.items() if key not in own} for line in report]


class Undisturbed(NamedTuple):
    """How a job ends that nothing disturbs, how many changes it makes, and how long it takes."""

    state: object
    messages: list[str]
    changes: int
    seconds: float


@pytest.fixture(scope="module", params=["sync", "replay", "rebuild"])
def job(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def ready(job: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Lake]:
    """Makes lakes for the job, all alike."""
    folder = tmp_path_factory.mktemp(job)
    numbers = itertools.count()
    first = ready_for(job, folder / "first")
    first.workspace.engine.dispose()

    def another() -> Lake:
        place = folder / str(next(numbers))
        if IN_BUCKETS or ON_POSTGRES:  # which are not copied with the folder
            return ready_for(job, place)
        shutil.copytree(first.workspace.folder, place)
        return Lake(place, InProcess(), clock=SetClock("2026-11-15T13:00:00Z"))

    return another


@pytest.fixture(scope="module")
def undisturbed(job: str, ready: Callable[[], Lake]) -> Undisturbed:
    lake = ready()
    began = time.monotonic()
    changes = killed_at(lake.workspace.folder, job, -1).changes
    return Undisturbed(state(lake), seen_by_queries(lake), changes, time.monotonic() - began)


def ready_for(job: str, folder: Path) -> Lake:
    lake = filled(folder)
    if job == "replay":  # in two parts
        lake.put(track("A", "m3", receivedAt="2026-11-13T10:00:00Z"), day="2026-11-13")
    if job != "sync":
        lake.sync()
    return lake


def check_after_a_kill(lake: Lake, job: str, undisturbed: Undisturbed, when: str) -> None:
    lake.sync()
    if job == "rebuild" and lake.connection.settings.prefix == "":  # killed before the commit: it never happened
        assert seen_by_queries(lake) == undisturbed.messages, when
        killed_at(lake.workspace.folder, job, -1)
    assert state(lake) == undisturbed.state, when
    assert verify(lake.workspace, lake.connection, lake.runner) == [], when
    if requests.unfinished_replay(lake.place, lake.connection):
        killed_at(lake.workspace.folder, "rest of a replay", -1)
        assert state(lake) == undisturbed.state, when
        assert not requests.unfinished_replay(lake.place, lake.connection), when
    assert not lake.staged(), when
    assert not lake.place.runs.unfinished("src1"), when


def seen_by_queries(lake: Lake) -> list[str]:
    """The messages of all rows that `eventlake query` finds."""
    return sorted(row["message_id"] for rows in lake.all_rows().values() for row in rows)


def seen_in_folders(lake: Lake) -> list[str]:
    """The messages of all rows that a reader finds which opens every file below `data`."""
    files = [lake.root / "segment-data" / "data" / path for path in lake.data_files()]
    return sorted(m for file in files for m in pq.read_table(file, partitioning=None).column("message_id").to_pylist())


def check_what_readers_see(lake: Lake, job: str, undisturbed: Undisturbed, when: str) -> None:
    """While a run is half done: all of it or nothing by query; by folder no row is missing, and none is half."""
    before = ["m0"] if job == "sync" else undisturbed.messages
    queried, listed = seen_by_queries(lake), seen_in_folders(lake)
    if job == "rebuild":  # for a moment a table is there under its old name and under its new one
        assert set(queried) == set(before), when
        assert max(Counter(queried).values()) <= 2, when
    else:
        assert queried in (before, undisturbed.messages), when
    assert set(before) <= set(listed) <= set(undisturbed.messages), when
    most = 1 if job == "sync" else 2  # old and new files of a partition side by side
    assert max(Counter(listed).values()) <= most, when


@pytest.mark.timeout(900)
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.long, id="all"), pytest.param(5, id="every fifth")])
def test_killed_at_any_change_readers_see_no_half_run_and_the_next_sync_ends_in_the_same_state(
    job: str, ready: Callable[[], Lake], undisturbed: Undisturbed, step: int
) -> None:
    assert undisturbed.changes > 10
    for point in range(0, undisturbed.changes, step):
        lake = ready()
        killed_at(lake.workspace.folder, job, point)
        when = f"killed before change {point} of {undisturbed.changes}"
        check_what_readers_see(lake, job, undisturbed, when)
        check_after_a_kill(lake, job, undisturbed, when)


@pytest.mark.timeout(60 + 20 * KILLS)
def test_killed_at_any_moment_the_next_sync_ends_in_the_same_state(
    job: str, ready: Callable[[], Lake], undisturbed: Undisturbed
) -> None:
    for _ in range(KILLS // 8):
        lake = ready()
        moment = random.uniform(0.3, 1.1) * undisturbed.seconds
        killed_at(lake.workspace.folder, job, -1, after=moment)
        check_after_a_kill(lake, job, undisturbed, f"killed after {moment} seconds")


@pytest.mark.parametrize("point", range(3))
def test_killed_again_while_it_recovers_it_still_ends_in_the_same_state(
    job: str, ready: Callable[[], Lake], undisturbed: Undisturbed, point: int
) -> None:
    lake = ready()
    killed_at(lake.workspace.folder, job, undisturbed.changes - 3)
    killed_at(lake.workspace.folder, "sync", point)
    check_after_a_kill(lake, job, undisturbed, f"killed once more before change {point}")


@pytest.mark.long
@pytest.mark.parametrize("step", ["stage", "dedupe", "publish"])
def test_a_driver_killed_while_spark_works_for_it_changes_nothing(tmp_path: Path, step: str) -> None:
    lake = Lake(tmp_path / "workspace", InProcess())
    lake.put(*(track("AB"[n % 2], f"m{n}", properties={f"p{k}": n * k for k in range(30)}) for n in range(20_000)))
    program = Path(sys.executable).with_name("eventlake")
    process = subprocess.Popen([program, "sync"], cwd=lake.workspace.folder, start_new_session=True)
    try:
        deadline = time.monotonic() + 120
        while not (runs := lake.place.runs.latest(1)) or runs[0].step != step:
            assert process.poll() is None, f"it ended before the step {step} was seen"
            assert time.monotonic() < deadline
            time.sleep(0.002)
        process.kill()
        assert process.wait() == -signal.SIGKILL
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # Java too
    assert lake.place.runs.latest(1)[0].status == "running"
    assert lake.sync()[0]["books"]["loaded"] == 20_000
    assert lake.place.runs.latest(2)[1].status == "failed"
    assert verify(lake.workspace, lake.connection, lake.runner) == []
    assert not lake.staged()


# What a run had staged is gone: a bucket's rule may remove it, or a person who makes room


COMMITS = "segment-data/commits"


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "step", [pytest.param(1, marks=pytest.mark.long, id="all"), pytest.param(4, id="every fourth")]
)
def test_a_run_whose_staged_files_are_gone_is_undone_and_done_again(
    job: str, ready: Callable[[], Lake], undisturbed: Undisturbed, step: int
) -> None:
    after_the_manifest = killed_at(ready().workspace.folder, job, -1, since=COMMITS).changes
    undone = 0
    for point in range(0, after_the_manifest, step):
        lake = ready()
        killed_at(lake.workspace.folder, job, point, since=COMMITS)
        run_id = lake.place.runs.latest(1)[0].run_id
        lake.place.storage.delete_folder("segment-stage")
        when = f"killed before change {point} after the manifest"
        check_after_a_kill(lake, job, undisturbed, when)
        ended = lake.place.runs.get(run_id)
        if ended.status == "failed":
            assert ended.report
            if job == "replay" and ended.report[0]["error_code"] == "interrupted":
                continue  # it was the second part, which had no manifest yet
            undone += 1
            assert ended.report[0]["error_code"] == "staging_lost"
            assert "was undone" in ended.report[0]["error"]
            assert not lake.place.storage.stat(f"{COMMITS}/source=src1/{run_id}.json")
    assert 0 < undone <= after_the_manifest // step


def test_a_run_whose_staged_files_vanish_while_it_commits_says_what_the_next_one_does(tmp_path: Path) -> None:
    lake = filled(tmp_path / "workspace")

    class Sweeping(InProcess):
        """After the last step somebody makes room on the disk."""

        def run(self, function: Callable[[Any, Any], Any], *args: Any, **kwargs: Any) -> list[Any]:
            results = super().run(function, *args, **kwargs)
            if function.__name__ == "publish":
                lake.place.storage.delete_folder("segment-stage")
            return results

    lake.runner = Sweeping()
    with pytest.raises(StagingLostError, match="files are gone") as caught:
        lake.sync()
    assert "loaded by the next" in caught.value.fix
    lake.runner = InProcess()
    assert lake.sync()[0]["books"]["loaded"] == 2
    assert verify(lake.workspace, lake.connection, lake.runner) == []


def test_data_files_that_were_deleted_after_the_ledger_knew_them_do_not_hold_up_recovery(tmp_path: Path) -> None:
    lake = filled(tmp_path / "workspace")
    changes = killed_at(filled(tmp_path / "other").workspace.folder, "sync", -1, since=COMMITS).changes
    for point in range(changes):  # until the ledger has the run
        lake = filled(tmp_path / str(point))
        killed_at(lake.workspace.folder, "sync", point, since=COMMITS)
        run_id = lake.place.runs.latest(1)[0].run_id
        if lake.place.ledger.has_recorded(run_id):
            break
    assert lake.place.runs.get(run_id).status == "running"
    gone = next(file for file in lake.place.ledger.data_files("src1") if file.run_id == run_id)
    lake.place.storage.delete(gone.path)
    lake.sync()
    assert lake.place.runs.get(run_id).status == "finished"
    findings = verify(lake.workspace, lake.connection, lake.runner)
    assert [finding.kind for finding in findings] == ["data_file_gone", "rows"]
    repair(lake.workspace, lake.connection, findings, lake.runner)
    assert verify(lake.workspace, lake.connection, lake.runner) == []


def test_old_staging_folders_are_removed_and_young_ones_of_others_stay(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake", InProcess(), clock=SetClock("2026-11-15T12:00:00Z"))
    now = lake.workspace.clock.now_ns()
    folders = {days: lake.root / "segment-stage" / str(now - days * 86_400 * 10**9) for days in (13, 15)}
    for folder in folders.values():
        folder.mkdir(parents=True)
        (folder / "staged").touch()
    lake.sync_of(track())
    assert {days: folder.exists() for days, folder in folders.items()} == {13: True, 15: False}
