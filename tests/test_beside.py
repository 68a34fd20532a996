"""Replays beside syncs: whatever the order of their steps, and whoever is killed, the lake holds every message once."""

import json
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from conftest import EXAMPLES, IN_BUCKETS, ON_POSTGRES, InProcess, Lake, SetClock, settings_of_new_lake, track
from crash_job import killed_at
from eventlake.audit.restore import restore
from eventlake.audit.verify import verify
from eventlake.commit.manifest import Manifest, manifests, path_of
from eventlake.control.database import leases
from eventlake.control.leases import Lane
from eventlake.control.ledger import Entry, TableFiles
from eventlake.errors import BusyError, CancelledError, InvalidSettingsError, LeaseLostError
from eventlake.reports.report import RunHead, finished
from eventlake.sync import jobs, requests
from eventlake.sync.carry_out import carry_out
from eventlake.sync.run import run
from eventlake.sync.state import read_state
from stepwise import BUSY, Stepwise

CHANGED = [track("A", "m1"), track("A", "m2", properties={"n": 2}), track("B", "m3", properties={"fresh": 1})]
NEW = [track("A", "m4", properties={"fresh": "one"}), track("B", "m5", properties={"fresh": "two"}), track("A", "m1")]
LATER = [track("C", "m6"), track("B", "m7", properties={"fresh": 3})]
DISCARDS = "rudder_discards"  # has a row for each value that its cell does not hold
MESSAGES = [f"m{number}" for number in range(1, 9)]


def filled(folder: Path, dialect: str) -> Lake:
    """A lake in which a raw file has grown since it was loaded, with another one that is new.

    A sync and a replay both find a message that is not in the lake, with a column that is not there: of whole numbers
    for the replay, of text for the sync. With days of its own for a part each, the replay has two parts.
    """
    section = settings_of_new_lake() or "[lake]\n"
    new = section.replace("[lake]\n", f'[lake]\ndialect = "{dialect}"\n')
    lake = Lake(folder, InProcess(), clock=SetClock(), settings=new)
    lake.put(track("A", "m8", receivedAt="2026-11-13T10:00:00Z"), day="2026-11-13")
    lake.put(*CHANGED[:2], b"broken", name="changed.gz")
    lake.sync()
    lake.put(*CHANGED, b"broken", name="changed.gz")
    lake.put(*NEW, name="new.gz")
    return lake


@pytest.fixture(scope="module", params=["segment", pytest.param("rudderstack", marks=pytest.mark.long)])
def another(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Lake]:
    """Makes such lakes, all alike."""
    folder = tmp_path_factory.mktemp("beside")
    first = filled(folder / "first", request.param)
    first.workspace.engine.dispose()

    def made() -> Lake:
        place = folder / f"{len(list(folder.iterdir()))}"
        if IN_BUCKETS or ON_POSTGRES:  # which are not copied with the folder
            return filled(place, request.param)
        shutil.copytree(first.workspace.folder, place)
        return Lake(place, InProcess(), clock=SetClock("2026-11-15T13:00:00Z"))

    return made


def check(lake: Lake) -> None:
    """Every message is there once, with its values, and everything agrees."""
    found = lake.all_rows()
    of_calls = found.pop("tracks", None)
    assert _ids(lake, found) == Counter(MESSAGES)
    assert of_calls is None or Counter(row["id"] for row in of_calls) == Counter(MESSAGES)
    fresh = {
        row[_message_column(lake, table)]: _value(row)
        for table, rows in found.items()
        for row in rows
        if table != DISCARDS and _value(row) is not None
    }
    discarded = {row["row_id"]: row["column_value"] for row in found.get(DISCARDS, ()) if row["column_name"] == "fresh"}
    assert fresh | discarded == {"m3": "1", "m4": "one", "m5": "two", "m7": "3"}
    assert verify(lake.workspace, lake.connection, lake.runner) == []
    assert not lake.place.runs.unfinished("src1")
    assert not lake.staged()


def _message_column(lake: Lake, table: str) -> str:
    return lake.connection.dialect.columns(table).message_column


def _ids(lake: Lake, found: dict[str, list[dict[str, Any]]]) -> Counter[str]:
    """How often each message has a row in the tables of events."""
    tables = found.keys() - {DISCARDS}
    return Counter(row[_message_column(lake, table)] for table in tables for row in found[table])


def _value(row: dict[str, Any]) -> str | None:
    """What was sent as `fresh`, from the cell or from what is kept beside it."""
    rescued = json.loads(row.get("_rescued_data") or "{}").get("/properties/fresh", {}).get("value")
    value = row.get("properties_fresh", row.get("fresh")) if rescued is None else rescued
    return None if value is None else str(value)


Turns = list[tuple[int, int, bool]]  # which run goes on, for how many steps, and whether it is killed then


TURNS = st.lists(st.tuples(st.integers(0, 1), st.integers(1, 40), st.sampled_from([False] * 7 + [True])), max_size=9)


@settings(max_examples=max(3, EXAMPLES // 10), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TURNS)
@example([])
@example([(1, 99, False), (0, 99, False)])  # one after the other
@example([(0, 99, False), (1, 99, False)])
@example([(1, 12, False), (0, 99, False)])  # the sync is committed while the replay goes on
@example([(0, 12, False), (1, 99, False), (0, 99, False)])  # the replay waits for the sync
@example([(0, 12, False), (1, 99, False), (0, 3, True)])  # and goes on when the sync is killed
@example([(1, 12, True)])
@pytest.mark.timeout(900)
def test_in_any_order_of_steps_every_message_is_there_once(another: Callable[[], Lake], turns: Turns) -> None:
    driven(another(), turns)


@pytest.mark.long
@settings(max_examples=EXAMPLES // 2, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TURNS)
@pytest.mark.timeout(1800)
def test_in_many_orders_of_steps_every_message_is_there_once(another: Callable[[], Lake], turns: Turns) -> None:
    driven(another(), turns)


def _key(lake: Lake, name: str) -> str:
    return next(table.table_key for table in lake.place.catalog.tables() if table.name == name)


class Reader:
    """Somebody who looks at the lake again and again while runs go on."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._messages: set[str] = set()
        self._columns: dict[str, tuple[str, ...]] = {}

    def look(self) -> None:
        """No row that was there is gone, none is half or there twice, and columns are only appended."""
        found = self._lake.all_rows()
        found.pop("tracks", None)  # where each has a second row
        queried = _ids(self._lake, found)
        assert set(queried) >= self._messages
        assert set(queried.values()) <= {1}
        self._messages = set(queried)
        listed: set[str] = set()
        for table in found.keys() - {DISCARDS}:
            folder = self._lake.root / self._lake.connection.dialect.location(_key(self._lake, table))
            for path in folder.rglob("*.parquet"):
                with suppress(FileNotFoundError):  # it was replaced since it was listed
                    column = pq.read_table(path, partitioning=None).column(_message_column(self._lake, table))
                    listed.update(column.to_pylist())
        assert listed >= self._messages
        columns = {
            table.name: tuple(column.name for column in table.schema.columns)
            for table in self._lake.place.catalog.tables()
        }
        for table, before in self._columns.items():
            assert columns[table][: len(before)] == before
        self._columns = columns


def driven(lake: Lake, turns: Turns) -> None:
    """Drive a sync and a replay, and another sync when the first has ended, and look at what is there on the way."""
    folder, reader = lake.workspace.folder, Reader(lake)
    runs = [Stepwise(folder, "sync"), Stepwise(folder, "replay")]
    later = False
    for number, steps, is_killed in turns:
        reader.look()
        run = runs[number]
        for _ in range(steps):
            if not run.step():
                break
        if is_killed and not run.has_ended:
            run.kill()
        if number == 0 and run.has_ended and not later:  # another sync begins
            later = True
            lake.put(*LATER, name="later.gz")
            runs[0] = Stepwise(folder, "sync")
    while not all(run.has_ended for run in runs):
        for run in runs:
            while run.step():
                pass
    assert {run.exit_code for run in runs} <= {0, BUSY, -signal.SIGKILL}
    if not later:
        lake.put(*LATER, name="later.gz")
    reader.look()
    lake.sync()
    check(lake)
    if requests.unfinished_replay(lake.place, lake.connection):  # it was killed, or had to give way
        for _ in carry_out(lake.workspace, requests.rest_of_replay(lake.place, lake.connection), lake.runner):
            reader.look()
        check(lake)
    lake.run(jobs.replay(lake.connection, None, None))
    check(lake)
    reader.look()


class Meanwhile(InProcess):
    """A runner during whose step something else happens, once."""

    def __init__(self, step: str, happens: Callable[[], object]) -> None:
        self.steps: list[str] = []
        self._step = step
        self._happens = happens

    def run(self, function: Callable[[Any, Any], Any], *args: Any, **kwargs: Any) -> list[Any]:
        results = super().run(function, *args, **kwargs)
        self.steps.append(function.__name__)
        if function.__name__ == self._step and self.steps.count(self._step) == 1:
            self._happens()
        return results


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path / "workspace", InProcess(), clock=SetClock())
    lake.sync_of(track("A", "m1", properties={"n": 1}), track("B", "m2"))
    return lake


def replayed(lake: Lake, step: str, happens: Callable[[], object], **scope: Any) -> tuple[dict[str, Any], list[str]]:
    """Replay everything while something happens; the report of the run, and its steps."""
    runner = Meanwhile(step, happens)
    quick, lake.runner = lake.runner, runner
    try:
        lines = lake.run(jobs.replay(lake.connection, None, None, **scope))
    finally:
        lake.runner = quick
    return lines[0], runner.steps


def names(lake: Lake) -> list[str]:
    return sorted(row["message_id"] for rows in lake.all_rows().values() for row in rows)


def synced(lake: Lake, *events: Any) -> Callable[[], None]:
    """A sync of these events in the middle of something else, whose rows are there at once."""

    def sync() -> None:
        runner, lake.runner = lake.runner, InProcess()
        before = names(lake)
        lake.sync_of(*events)
        lake.runner = runner
        assert names(lake) == sorted([*before, *(event["messageId"] for event in events)])

    return sync


@pytest.mark.parametrize("step", ["stage", "dedupe", "publish"])
def test_a_sync_is_committed_while_a_replay_goes_on_which_is_not_made_again_for_it(lake: Lake, step: str) -> None:
    events = [track("A", "m3", properties={"n": 3, "new": True}), track("C", "m4")]
    report, steps = replayed(lake, step, synced(lake, *events))
    assert steps == ["stage", "dedupe", "publish"]
    assert (report["rewritten"], report["books"]["loaded"]) == (2, 0)
    assert names(lake) == ["m1", "m2", "m3", "m4"]
    assert lake.types("track_a")["properties_new"] == "boolean"
    assert verify(lake.workspace, lake.connection, lake.runner) == []
    assert lake.sync()[0]["notices"] == ["No data found"]


@pytest.mark.parametrize("step", ["stage", "dedupe", "publish"])
def test_a_replay_that_loads_what_a_sync_may_have_loaded_meanwhile_is_made_again(tmp_path: Path, step: str) -> None:
    lake = filled(tmp_path / "workspace", "segment")

    def sync() -> None:
        runner, lake.runner = lake.runner, InProcess()
        assert lake.sync()[0]["books"]["loaded"] == 3
        lake.runner = runner

    report, steps = replayed(lake, step, sync)
    assert steps == ["stage", "dedupe", "publish"] * 2
    assert (report["rewritten"], report["books"]["loaded"]) == (6, 0)
    lake.put(*LATER, name="later.gz")
    lake.sync()
    check(lake)


def test_a_replay_is_made_again_if_a_column_that_it_found_has_got_another_type(lake: Lake) -> None:
    """A key that came with a raw file of before, in a table that was refused then."""
    lake.workspace.connections.change("web", {"column_limit": "20"})
    wide = {f"k{number:02}": number for number in range(20)}
    lake.sync_of(track("W", "m3", properties=wide))
    assert "properties_k19" not in lake.types("track_w")
    lake.workspace.connections.change("web", {"column_limit": "2000"})
    meanwhile = synced(lake, track("W", "m4", properties={"k19": "text"}))
    report, steps = replayed(lake, "publish", meanwhile, table_keys=frozenset({"track_w"}))
    assert steps == ["stage", "dedupe", "publish"] * 2
    assert report["rewritten"] == 2
    assert {row["message_id"]: row["properties_k19"] for row in lake.rows("track_w")} == {"m3": "19", "m4": "text"}
    assert verify(lake.workspace, lake.connection, lake.runner) == []


def columns(lake: Lake, table_key: str) -> list[list[str]]:
    """The columns of a table's data files, each as readers by position see them."""
    files = lake.place.ledger.data_files(lake.connection.source.id, table_key)
    return [pq.read_schema(lake.root / file.path).names for file in files]


def test_a_replay_is_made_again_if_a_column_came_where_it_has_its_first_rescued_values(lake: Lake) -> None:
    """Every file has the columns of the table in their order, as many as there were."""
    lake.workspace.connections.change("web", {"rescue_rounded": "false"})
    lake.sync_of(track("R", "m3", properties={"n": 0.5}))
    lake.sync_of(track("R", "m4", properties={"n": 1.23456789}))
    assert "_rescued_data" not in lake.types("track_r")
    lake.workspace.connections.change("web", {"rescue_rounded": "true"})
    meanwhile = synced(lake, track("R", "m5", properties={"n": 2.5, "late": True}))
    _, steps = replayed(lake, "publish", meanwhile, table_keys=frozenset({"track_r"}))
    assert steps == ["stage", "dedupe", "publish"] * 2
    whole = list(lake.types("track_r"))
    assert "_rescued_data" in whole
    assert all(names == whole[: len(names)] for names in columns(lake, "track_r"))
    assert verify(lake.workspace, lake.connection, lake.runner) == []


def test_a_lost_index_that_both_make_anew_is_made_anew_once(lake: Lake) -> None:
    for file in (lake.root / "segment-data" / "index").rglob("*.ids"):
        file.unlink()
    report, steps = replayed(lake, "publish", synced(lake, track("A", "m3")))
    assert steps == ["stage", "reindex", "dedupe", "publish", "stage", "dedupe", "publish"]
    assert "reindexed" not in report
    assert verify(lake.workspace, lake.connection, lake.runner) == []


def test_a_replay_goes_on_with_the_list_of_people_that_it_began_with(lake: Lake) -> None:
    lake.workspace.suppressions.add(["bob"])

    def meanwhile() -> None:
        lake.workspace.suppressions.add(["eve"])
        synced(lake, track("A", "m9"))()

    replayed(lake, "stage", meanwhile)
    assert "m9" in names(lake)
    assert verify(lake.workspace, lake.connection, lake.runner) == []


def test_only_one_replay_goes_on_at_a_time_and_nothing_that_changes_tables_beside_it(lake: Lake) -> None:
    alone = [
        jobs.replay(lake.connection, None, None),
        jobs.rebuild(lake.connection),
        jobs.reindex(lake.connection),
        jobs.drop(lake.connection, "track_a"),
        jobs.allow(lake.connection, frozenset({"track_z"}), were_loaded=False),
    ]
    refused = 0

    def others() -> None:
        nonlocal refused
        for job in alone:
            with pytest.raises(BusyError, match="a replay, or what excludes one, of this connection is going on"):
                lake.run(job)
            refused += 1
        with pytest.raises(BusyError):
            verify(lake.workspace, lake.connection, lake.runner)

    replayed(lake, "stage", others)
    assert refused == len(alone)
    assert len([run for run in lake.place.runs.latest(None) if run.kind != "sync"]) == 1, "no run was begun"


def test_a_replay_that_lives_is_left_alone_by_syncs_and_one_that_died_is_given_up(lake: Lake) -> None:
    def sync() -> None:
        (replay,) = lake.place.runs.unfinished("src1")
        synced(lake, track("A", "m3"))()
        assert [run.run_id for run in lake.place.runs.unfinished("src1")] == [replay.run_id]
        assert lake.staged() == [replay.run_id] or IN_BUCKETS

    replayed(lake, "stage", sync)
    dead = lake.place.runs.start("src1", "replay", lake.workspace.clock.now_ns())
    with lake.place.leases.held("src1", Lane.REPLAY):
        lake.sync()
        assert lake.place.runs.get(dead).status == "running", "it may be the one who holds the lane"
    lake.sync()
    assert lake.place.runs.get(dead).status == "failed"
    dead = lake.place.runs.start("src1", "replay", lake.workspace.clock.now_ns())
    with lake.place.leases.held("src1"):  # a sync goes on
        died = lake.place.runs.start("src1", "sync", lake.workspace.clock.now_ns())
        with pytest.raises(KeyboardInterrupt):
            replayed(lake, "publish", _interrupt)
        assert lake.place.runs.get(dead).status == "failed", "given up by the replay"
        assert lake.place.runs.get(died).status == "running", "it may be the sync that goes on"


def _interrupt() -> None:
    raise KeyboardInterrupt


# The commit


def overtaken(lake: Lake) -> tuple[str, str]:
    """Leave the manifest of a replay that froze between two lines, for as long as others take to believe it dead.

    The id of its run, and where one of its files will be.
    """
    place = lake.place
    job = jobs.replay(lake.connection, None, None)
    state = read_state(place, job)
    head = RunHead("test", "src1", place.runs.start("src1", "replay", lake.workspace.clock.now_ns()), "web", 0)
    late = "segment-data/data/src1/segment_type=track_a/late.parquet"
    place.storage.write(f"segment-stage/{head.run_id}/data", b"late")
    lines = finished(head, 0, [], {"kind": "replay"})
    lines[0]["workspace_id"] = lake.workspace.settings.workspace_id
    removed = [file.path for file in state.data_files if file.table_key == "track_a"]
    entry = Entry(head.run_id, "src1", 1, lines, files=[TableFiles("track_a", [], removed)], base=state.last_run)
    manifest = Manifest(entry, [(f"segment-stage/{head.run_id}/data", late)], [])
    with place.leases.held("src1", Lane.REPLAY):
        lake.sync_of(track("A", "m3"))
    place.storage.create(path_of(place, "src1", head.run_id), msgspec.json.encode(manifest))
    return head.run_id, late


@pytest.mark.parametrize("is_lost", [False, True], ids=["", "after the database was lost"])
def test_a_manifest_that_was_overtaken_is_undone_and_not_carried_out(lake: Lake, is_lost: bool) -> None:
    place = lake.place
    run_id, late = overtaken(lake)
    if is_lost:
        place.ledger.forget("src1")
        restore(lake.workspace, "default")
    assert lake.sync()[0]["status"] == "finished"
    ended = place.runs.get(run_id)
    assert ended.report
    assert (ended.status, ended.report[0]["error_code"]) == ("failed", "overtaken")
    assert place.storage.stat(late) is None
    assert place.storage.stat(path_of(place, "src1", run_id)) is None
    assert names(lake) == ["m1", "m2", "m3"]
    assert verify(lake.workspace, lake.connection, lake.runner) == []


@pytest.mark.parametrize("kind", ["replay", "rebuild"])
def test_a_run_that_had_died_is_no_sync_and_a_replay_on_top_of_it_is_made_again(lake: Lake, kind: str) -> None:
    """It is carried out only when the replay commits: a sync held the lane when that began."""
    killed_at(lake.workspace.folder, kind, 2, since="segment-data/commits")
    lane = lake.place.leases.held("src1")
    lane.__enter__()
    if kind == "rebuild":  # after which the scope that was asked for may be none
        with pytest.raises(InvalidSettingsError, match="changed after this was asked for"):
            replayed(lake, "publish", lambda: lane.__exit__(None, None, None))
    else:
        _, steps = replayed(lake, "publish", lambda: lane.__exit__(None, None, None))
        assert steps == ["stage", "dedupe", "publish"] * 2
    assert names(lake) == ["m1", "m2"]
    assert verify(lake.workspace, lake.connection, lake.runner) == []


def test_a_replay_that_stood_still_and_was_given_up_cannot_go_on(lake: Lake) -> None:
    def freeze() -> None:
        with lake.workspace.engine.begin() as connection:
            here = leases.c.name == "src1/default/replay"
            connection.execute(leases.update().where(here).values(expires_at=0))
        synced(lake, track("A", "m3"))()

    before = lake.data_files()
    with pytest.raises(LeaseLostError):
        replayed(lake, "publish", freeze)
    (replay,) = [run for run in lake.place.runs.latest(None) if run.kind == "replay"]
    assert replay.status == "failed"
    assert lake.place.storage.stat(path_of(lake.place, "src1", replay.run_id)) is None
    assert set(before) < set(lake.data_files())
    assert names(lake) == ["m1", "m2", "m3"]
    lake.sync()
    assert verify(lake.workspace, lake.connection, lake.runner) == []


def test_a_sync_waits_for_a_replay_that_commits_and_that_for_a_sync_that_is_running(lake: Lake) -> None:
    lanes, order = lake.place.leases, []
    sync_runs, replay_waits, replay_commits = threading.Event(), threading.Event(), threading.Event()

    def replay() -> None:
        with lanes.held("src1", Lane.REPLAY) as own:
            sync_runs.wait(30)
            with lanes.committing("src1", own, replay_waits.set) as all_lanes:
                order.append("replay")
                all_lanes.confirm()
                replay_commits.set()
                time.sleep(0.3)
                order.append("replay ends")

    def another_sync() -> None:
        replay_waits.wait(30)
        with lanes.held("src1"):
            order.append("second sync")

    threads = [threading.Thread(target=replay), threading.Thread(target=another_sync)]
    for thread in threads:
        thread.start()
    with lanes.held("src1"):
        sync_runs.set()
        assert replay_waits.wait(30)
        time.sleep(0.3)
        order.append("first sync ends")
    for thread in threads:
        thread.join(30)
    assert order == ["first sync ends", "replay", "replay ends", "second sync"]


def test_a_replay_that_waits_for_a_sync_can_be_cancelled(lake: Lake) -> None:
    def progress(step: str, done: int, tasks: int) -> None:
        if step == "waiting for a sync":
            raise CancelledError("enough", fix="")

    before = lake.data_files()
    with lake.place.leases.held("src1"), pytest.raises(CancelledError):
        run(lake.workspace, jobs.replay(lake.connection, None, None), lake.runner, progress)
    assert lake.place.runs.latest(1)[0].status == "failed"
    assert (lake.data_files(), lake.staged()) == (before, [])


def test_a_lake_is_restored_in_the_order_of_commits_and_not_in_that_of_beginnings(lake: Lake) -> None:
    """The replay began first, and wrote a file anew that a sync had added meanwhile."""
    grown = [track("A", "m1", properties={"n": 1}), track("B", "m2"), track("A", "m9")]
    lake.put(*grown, name="1.gz")

    def sync() -> None:
        runner, lake.runner = lake.runner, InProcess()
        lake.sync()
        lake.runner = runner

    _, steps = replayed(lake, "publish", sync)
    assert steps.count("publish") == 2
    lake.sync_of(track("C", "m4"))
    kinds = [one.entry.report[0]["kind"] for one in manifests(lake.place, "src1")]
    assert kinds == ["sync", "sync", "replay", "sync"]
    assert [run.kind for run in reversed(lake.place.runs.latest(None))] == ["sync", "replay", "sync", "sync"]
    expected = lake.all_rows()
    files = lake.place.ledger.data_files("src1")
    lake.place.ledger.forget("src1")
    restore(lake.workspace, "default")
    assert lake.place.ledger.data_files("src1") == files
    assert lake.all_rows() == expected
    assert verify(lake.workspace, lake.connection, lake.runner) == []
    assert lake.sync()[0]["notices"] == ["No data found"]
