"""Storage that fails, hangs or is full, runs that meet, and clocks that jump: a clear error, and nothing is lost."""

import errno
import json
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import InProcess, Lake, SetClock, new_bucket, settings_for, track
from eventlake.audit.verify import verify
from eventlake.errors import (
    BusyError,
    CancelledError,
    EventLakeError,
    InternalError,
    NoSpaceError,
    PermissionMissingError,
    TransientError,
)
from eventlake.lake.layout import HOUR
from eventlake.query import query
from eventlake.runners.spark import SparkRunner
from eventlake.storage.objects import ObjectStorage
from eventlake.sync import jobs
from eventlake.sync.run import run
from eventlake.workspace import Workspace
from needs import not_there
from test_crash import KILLS, filled, state

FAULTS: dict[str, tuple[Callable[[], None], type[EventLakeError], str]] = {
    "no space": (lambda: fail(errno.ENOSPC), NoSpaceError, "no_space"),
    "read-only": (lambda: fail(errno.EROFS), PermissionMissingError, "insufficient_permissions"),
    "broken": (lambda: fail(errno.EIO), TransientError, "service_unavailable"),
    "hangs": (lambda: hang(20), TransientError, "service_unavailable"),
}


def fail(code: int) -> None:
    raise OSError(code, os.strerror(code))


def hang(seconds: float) -> None:
    time.sleep(seconds)
    fail(errno.ETIMEDOUT)


class Faulty:
    """Mixed into a storage: its n-th call does not succeed, nor any after it while the fault lasts."""

    calls = 0
    fails_at: int | None = None
    fault: Callable[[], None]
    patience = 0.0

    @property
    def timeout(self) -> float:
        """Short while the fault lasts, and only then: a busy machine must not look like storage that hangs."""
        kind = type(self)
        return 0.2 if kind.fails_at is not None and kind.calls >= kind.fails_at else self.patience

    @timeout.setter
    def timeout(self, seconds: float) -> None:
        self.patience = seconds

    def attempt(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        kind = type(self)
        kind.calls += 1
        if kind.fails_at is not None and kind.calls > kind.fails_at:
            kind.fault()
        return super().attempt(method, *args, **kwargs)  # type: ignore[misc] # the storage's


def faulty(lake: Lake, fault: Callable[[], None], at: int | None) -> type[Faulty]:
    """Give a lake storage that fails from its n-th call on."""
    storage = lake.place.storage
    kind = type("OneFault", (Faulty, type(storage)), {"fault": staticmethod(fault), "fails_at": at})
    options = (storage.options,) if isinstance(storage, ObjectStorage) else ()
    lake.place.__dict__["storage"] = kind(storage.root, *options, timeout=storage.timeout)
    return kind


@pytest.fixture(
    scope="module", params=["disk", *(pytest.param(one, marks=pytest.mark.long) for one in ("s3", "azure"))]
)
def settings(request: pytest.FixtureRequest) -> Callable[[], str | None]:
    """Where the lake is."""
    if request.param == "disk":
        return lambda: None
    server = request.getfixturevalue(request.param)
    return lambda: settings_for(server, new_bucket(server))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, settings: Callable[[], str | None]) -> tuple[object, int]:
    """The state after a sync that nothing disturbs, and how many calls it makes."""
    lake = filled(tmp_path_factory.mktemp("undisturbed") / "workspace", settings())
    storage = faulty(lake, lambda: None, None)
    lake.sync()
    calls = storage.calls
    return state(lake), calls


@pytest.mark.timeout(60 + 20 * KILLS)
@pytest.mark.parametrize("what", FAULTS)
def test_storage_that_fails_at_any_call_gives_a_clear_error_and_the_next_run_completes(
    tmp_path: Path, settings: Callable[[], str | None], undisturbed: tuple[object, int], what: str
) -> None:
    fault, error, code = FAULTS[what]
    expected, calls = undisturbed
    in_bucket = settings() is not None
    if in_bucket and what == "hangs":  # a bucket's library gives up by itself
        fault = FAULTS["broken"][0]
    wanted = min(KILLS // 4 if in_bucket else KILLS // 2, calls)
    points = sorted(random.Random(what).sample(range(calls), wanted))
    for point in points:
        lake = filled(tmp_path / str(point), settings())
        before = state(lake)
        storage = faulty(lake, fault, point)
        with pytest.raises(error) as caught:
            lake.sync()
        assert caught.value.fix
        storage.fails_at = None
        ended = lake.place.runs.latest(1)[0]
        if ended.status == "failed":  # before the commit: reported, and nothing is to be seen
            assert ended.report
            assert ended.report[0]["error_code"] == code
            assert state(lake) == before

        lake.sync()
        assert state(lake) == expected, f"failed at call {point}"
        assert verify(lake.workspace, lake.connection, lake.runner) == [], f"failed at call {point}"
        assert not lake.staged()


def test_an_error_in_a_task_on_spark_keeps_its_class_and_its_fix(spark: SparkRunner) -> None:
    def fill_up(_: None, number: int) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(NoSpaceError, match=r"could not fill up: .*No space left") as caught:
        spark.run(fill_up, None, [1])
    assert "make room" in caught.value.fix


def test_tasks_that_hang_on_spark_are_given_up(spark: SparkRunner, tmp_path: Path) -> None:
    def wait(_: None, seconds: int) -> int:
        time.sleep(seconds)
        return seconds

    assert spark.run(wait, None, [0]) == [0]
    impatient = SparkRunner("local[2]", {}, tmp_path / "spark.log", patience=1)  # takes the Spark that is there
    with pytest.raises(TransientError, match="could not wait: no task ended for 1 seconds"):
        impatient.run(wait, None, [60, 60])
    assert spark.run(wait, None, [0, 0]) == [0, 0]


def test_whoever_watches_can_cancel_a_step_on_spark(spark: SparkRunner) -> None:
    def wait(_: None, seconds: int) -> int:
        time.sleep(seconds)
        return seconds

    def enough(done: int) -> None:
        raise CancelledError(f"after {done} tasks", fix="nothing")

    assert spark.run(wait, None, [0, 0]) == [0, 0]  # the workers are there
    began = time.monotonic()
    with pytest.raises(CancelledError, match="after 0 tasks"):
        spark.run(wait, None, [60, 60], enough)
    assert time.monotonic() - began < 30
    assert spark.run(wait, None, [0, 0]) == [0, 0]


def test_an_error_of_whoever_watches_is_told_and_the_limit_holds(
    spark: SparkRunner, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def wait(_: None, seconds: int) -> int:
        time.sleep(seconds)
        return seconds

    def fail_to_show(done: int) -> None:
        raise ValueError("no terminal")

    assert spark.run(wait, None, [0, 0]) == [0, 0]  # the workers are there
    impatient = SparkRunner("local[2]", {}, tmp_path / "spark.log", patience=5)
    with pytest.raises(TransientError, match="no task ended for 5 seconds"):
        impatient.run(wait, None, [0, 60], fail_to_show)
    assert "no terminal" in caplog.text
    assert impatient.run(wait, None, [0, 1], fail_to_show) == [0, 1]


def test_a_database_that_may_only_be_read_is_told_so(tmp_path: Path) -> None:
    lake = filled(tmp_path / "workspace")
    with lake.workspace.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA query_only=ON")
        with pytest.raises(PermissionMissingError, match="database"):
            connection.exec_driver_sql("DELETE FROM runs")


def test_a_manifest_of_another_workspace_is_neither_replaced_nor_carried_out(tmp_path: Path) -> None:
    lake = filled(tmp_path / "workspace")
    before = state(lake)
    (earlier,) = (lake.root / "segment-data/commits/source=src1").glob("*.json")
    foreign = earlier.read_text().replace(lake.workspace.settings.workspace_id, "another workspace")

    class Meanwhile(InProcess):
        """While a run goes on, another workspace writes a manifest for a run with the same id."""

        def run(self, *args: Any, **kwargs: Any) -> list[Any]:
            run_id = lake.place.runs.latest(1)[0].run_id
            earlier.with_name(f"{run_id}.json").write_text(foreign)
            return super().run(*args, **kwargs)

    lake.runner = Meanwhile()
    with pytest.raises(InternalError, match="another manifest"):
        lake.sync()
    assert state(lake) == before
    assert earlier.with_name(f"{lake.place.runs.latest(1)[0].run_id}.json").read_text() == foreign
    lake.runner = InProcess()
    assert lake.sync()[0]["books"]["loaded"] == 2
    assert verify(lake.workspace, lake.connection, lake.runner) == []


# A disk that is really full

PROGRAM = Path(sys.executable).with_name("eventlake")

SMALL_DISK = """
set -e
mount -t tmpfs -o size=$SIZE none "$LAKE"
cp -r "$RAW" "$LAKE/segment-logs"
"$EVENTLAKE" sync --json >"$OUT/first" 2>"$OUT/error" && exit 3
cat "$OUT/error"
mount -o remount,size=200m "$LAKE"
"$EVENTLAKE" sync --json
"$EVENTLAKE" verify --json
"""


def test_a_full_disk_says_so_and_after_making_room_everything_is_there(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "workspace", InProcess())
    noise = random.Random(1)
    lines = [track("Full", f"m{n}", properties={"text": noise.randbytes(300).hex()}) for n in range(5000)]
    lake.put(*lines)
    raw = Path(shutil.move(lake.root / "segment-logs", tmp_path / "raw"))
    size = sum(file.stat().st_size for file in raw.rglob("*") if file.is_file())
    if not shutil.which("unshare"):
        not_there("small disk", "there is no unshare")
    script = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", SMALL_DISK]
    done = subprocess.run(
        script,
        cwd=lake.workspace.folder,
        env=os.environ
        | {"LAKE": str(lake.root), "RAW": str(raw), "OUT": str(tmp_path), "EVENTLAKE": str(PROGRAM)}
        | {"SIZE": str(int(size * 1.5))},
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare" in done.stderr or "mount" in done.stderr:
        not_there("small disk", done.stderr)
    assert done.returncode == 0, done.stderr
    assert "No space left on device" in (tmp_path / "error").read_text()
    assert "make room" in (tmp_path / "error").read_text()
    sync, *_, differs = (json.loads(line) for line in done.stdout.splitlines() if line.startswith(("{", "[")))
    assert sync["books"]["loaded"] == 5000
    assert differs == []


# Runs that meet


def held_by_a_replay(lake: Lake, inside: threading.Event, go_on: threading.Event) -> threading.Thread:
    """A replay of the source in another thread, which stops in the middle until it may go on."""

    class Waiting(InProcess):
        def run(self, *args: Any, **kwargs: Any) -> list[Any]:
            inside.set()
            assert go_on.wait(60)
            return super().run(*args, **kwargs)

    place = Workspace.open(lake.workspace.folder, lake.workspace.clock)
    thread = threading.Thread(target=lambda: run(place, jobs.replay(lake.connection, None, None), Waiting()))
    thread.start()
    assert inside.wait(60)
    return thread


def test_syncs_go_on_during_a_replay_and_nothing_else_does(tmp_path: Path) -> None:
    lake = filled(tmp_path / "workspace")
    lake.sync()
    rows, runs = state(lake), len(lake.place.runs.latest(100))
    go_on = threading.Event()
    replay = held_by_a_replay(lake, threading.Event(), go_on)
    try:
        for job in (jobs.replay(lake.connection, None, None), jobs.rebuild(lake.connection)):
            with pytest.raises(BusyError, match="a replay, or what excludes one"):
                lake.run(job)
        with pytest.raises(BusyError, match="a replay, or what excludes one"):
            verify(lake.workspace, lake.connection, lake.runner)
        assert state(lake) == rows
        assert lake.sync_of(track("A", "m9"))[0]["books"]["loaded"] == 1
    finally:
        go_on.set()
        replay.join()
    assert len(lake.place.runs.latest(100)) == runs + 2  # what was refused left no trace
    assert {row["message_id"] for row in lake.rows("track_a")} == {"m0", "m1", "m9"}
    assert verify(lake.workspace, lake.connection, lake.runner) == []


def test_no_sync_begins_while_verify_reads(tmp_path: Path) -> None:
    lake = filled(tmp_path / "workspace")
    lake.sync()
    seen: list[str] = []

    class Meanwhile(InProcess):
        def run(self, *args: Any, **kwargs: Any) -> list[Any]:
            with pytest.raises(BusyError):
                lake.sync()
            seen.append(args[0].__name__)
            return super().run(*args, **kwargs)

    assert verify(lake.workspace, lake.connection, Meanwhile()) == []
    assert seen


def test_of_many_syncs_at_once_each_event_is_loaded_by_one(tmp_path: Path) -> None:
    lake = filled(tmp_path / "workspace")
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        outcomes = Counter(pool.map(sync_in_a_process, [lake.workspace.folder] * 12, chunksize=1))
    assert outcomes["done"]
    assert not outcomes.keys() - {"done", "busy"}
    assert sorted(row["message_id"] for table in lake.tables() for row in lake.rows(table)) == ["m0", "m1", "m2"]
    assert verify(lake.workspace, lake.connection, lake.runner) == []


def sync_in_a_process(folder: Path) -> str:
    place = Workspace.open(folder)
    try:
        run(place, jobs.sync(place.connections.get("web")), InProcess())
    except BusyError:
        return "busy"
    return "done"


def test_another_source_is_not_held_up(tmp_path: Path) -> None:
    lake = filled(tmp_path / "workspace")
    other, _ = lake.workspace.connections.add_source("other")
    with lake.place.leases.held(lake.source.id):
        assert run(lake.workspace, jobs.sync(other), lake.runner)[0]["status"] == "finished"


# Clocks


def test_a_clock_that_goes_backward_loses_nothing_and_keeps_the_runs_in_order(tmp_path: Path) -> None:
    clock = SetClock("2026-11-15T12:00:00Z")
    lake = Lake(tmp_path / "workspace", InProcess(), clock=clock)
    lake.sync_of(track("A", "m1"))
    clock.forward(hours=-24 * 400)
    second = lake.sync_of(track("A", "m1"), track("A", "m2"))
    assert (second[0]["books"]["loaded"], second[0]["books"]["duplicates"]) == (1, 1)
    clock.forward(hours=-1)
    third = lake.sync_of(track("A", "m2"), track("A", "m3"))
    assert (third[0]["books"]["loaded"], third[0]["books"]["duplicates"]) == (1, 1)
    assert [run.run_id for run in lake.place.runs.latest(2)] == [third[0]["run_id"], second[0]["run_id"]]
    assert third[0]["start_time"].startswith("2025-10-11")
    assert third[0]["duration_mins"] == 0
    assert verify(lake.workspace, lake.connection, lake.runner) == []


@pytest.mark.parametrize("days", [8, 4000])
def test_a_clock_that_jumps_ahead_does_not_let_copies_in(tmp_path: Path, days: int) -> None:
    clock = SetClock("2026-11-15T12:00:00Z")
    lake = Lake(tmp_path / "workspace", InProcess(), clock=clock)
    lake.sync_of(track("A", "m1"))
    clock.forward(hours=24 * days)
    assert lake.sync_of(track("A", "m2"))[0]["books"]["loaded"] == 1
    clock.forward(hours=1)
    assert lake.sync_of(track("A", "m1"), track("A", "m3"))[0]["books"]["duplicates"] == 1
    clock.forward(hours=-24 * days)  # and back again
    assert lake.sync_of(track("A", "m1"), track("A", "m3"))[0]["books"]["duplicates"] == 2
    assert verify(lake.workspace, lake.connection, lake.runner) == []


class Hurrying(SetClock):
    """A clock on which an hour passes whenever it is looked at."""

    def now_ns(self) -> int:
        self.forward(hours=1)
        return super().now_ns()


def test_a_run_that_crosses_midnight_and_the_end_of_a_year_has_one_report(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "workspace", InProcess(), clock=Hurrying("2026-12-31T17:30:00Z"))
    report = lake.sync_of(
        track("A", "m1", receivedAt="2026-12-31T23:59:59.999999Z"),
        track("A", "m2", receivedAt="2027-01-01T00:00:00Z"),
    )
    assert report[0]["start_time"][:10] == "2026-12-31"
    assert report[0]["finish_time"][:10] == "2027-01-01"
    partitions = {tuple(file.partition): file.rows for file in lake.place.ledger.data_files("src1")}
    assert partitions == {("2026-12-31", "23"): 1, ("2027-01-01", "00"): 1}
    assert lake.query("select count(*) as n from __segment_datalake.sync_reports where type = 'source'") == [{"n": 1}]
    assert verify(lake.workspace, lake.connection, lake.runner) == []


@pytest.fixture(params=["UTC", "America/New_York", "Asia/Kathmandu"])
def local_zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("received", "day", "hour"),
    [
        ("2026-03-08T06:59:59Z", "2026-03-08", "06"),  # New York goes to summer time at 07:00 UTC …
        ("2026-03-08T07:00:00Z", "2026-03-08", "07"),
        ("2026-11-01T05:30:00Z", "2026-11-01", "05"),  # … and back at 06:00 UTC: 01:30 local time comes twice
        ("2026-11-01T06:30:00Z", "2026-11-01", "06"),
        ("2026-11-01T01:30:00-05:00", "2026-11-01", "06"),
        ("2026-11-01T01:30:00-04:00", "2026-11-01", "05"),
        ("2028-02-29T00:00:00Z", "2028-02-29", "00"),
        ("2028-02-28T23:59:59.999999Z", "2028-02-28", "23"),
        ("2000-02-29T12:00:00+14:00", "2000-02-28", "22"),
    ],
)
def test_partitions_are_hours_of_utc_in_any_zone_of_the_machine(
    tmp_path: Path, local_zone: str, received: str, day: str, hour: str
) -> None:
    lake = Lake(tmp_path / "workspace", InProcess())
    lake.sync_of(track("A", "m1", receivedAt=received))
    (file,) = lake.place.ledger.data_files("src1")
    assert tuple(file.partition) == (day, hour)
    (row,) = query(lake.place, "select day, hr, epoch_us(received_at) as at from web.track_a").to_pylist()
    assert (row["day"], row["hr"]) == (day, hour)
    assert file.first_received == row["at"]
    assert file.first_received // HOUR * HOUR <= row["at"] < file.first_received // HOUR * HOUR + HOUR
