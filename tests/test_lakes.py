"""Several lakes in a workspace: one source goes to each with settings, books and tables of its own."""

import json
import re
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import IN_BUCKETS, ON_POSTGRES, InProcess, Lake, SetClock, new_database, track, with_database
from crash_job import killed_at, with_counted_storage
from eventlake.alerts.watch import Watch
from eventlake.archive import layout as archive
from eventlake.audit.verify import verify
from eventlake.control.alerts import Kind
from eventlake.control.settings import as_stored
from eventlake.errors import (
    BusyError,
    ConfigurationError,
    EventLakeError,
    InvalidSettingsError,
    NotFoundError,
    UnknownLakeError,
)
from eventlake.lake import kept_connection
from eventlake.lake.kept_connection import KeptConnection
from eventlake.query import query
from eventlake.schedule.scheduler import Scheduler
from eventlake.sync import jobs
from eventlake.sync.run import run
from eventlake.workspace import CONFIG, PATIENCE_WITH_NOTES, Workspace
from test_schedule import Place, settle

TWO = '[lakes.second]\nroot = "elsewhere"\n'


def opened(folder: Path, settings: str = TWO) -> Workspace:
    if not (folder / CONFIG).exists():
        Workspace.create(folder)
        (folder / CONFIG).write_text(f'workspace_id = "test"\ndatabase = "{new_database()}"\n{settings}')
        with_database(folder)
    return Workspace.open(folder, SetClock())


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    """A workspace with two lakes and one source, which is connected to both."""
    workspace = opened(tmp_path / "workspace")
    workspace.connections.add_source("web", source_id="src1")
    workspace.connections.connect("web", "second")
    return workspace


def put(workspace: Workspace, name: str, *lines: dict[str, Any] | bytes) -> None:
    texts = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    workspace.archive.write(archive.path("src1", 1_794_700_800_000_000, f"{name}.ndjson"), b"\n".join(texts))


def sync(workspace: Workspace, name: str) -> dict[str, Any]:
    return run(workspace, jobs.sync(workspace.connections.get(name)), InProcess())[0]


def ids(workspace: Workspace, lake: str, table: str = "web.track_clicked") -> list[str]:
    rows = query(workspace.lake(lake), f"select message_id from {table} order by 1").to_pylist()
    return [row["message_id"] for row in rows]


# A source in two lakes


def test_each_lake_has_all_events_and_books_of_its_own(place: Workspace) -> None:
    put(place, "1", track(message_id="m1"), track(message_id="m2"), b"no event")
    first = sync(place, "web/default")["books"]
    put(place, "2", track(message_id="m2"), track(message_id="m3"))
    assert (first["lines"], first["loaded"], first["quarantined"]) == (3, 2, 1)
    second = sync(place, "web/second")["books"]  # both files, of which the other lake has one
    assert (second["lines"], second["loaded"], second["duplicates"], second["quarantined"]) == (5, 3, 1, 1)
    third = sync(place, "web/default")["books"]
    assert (third["lines"], third["loaded"], third["duplicates"]) == (2, 1, 1)
    for name in ("default", "second"):
        assert ids(place, name) == ["m1", "m2", "m3"]
        quarantine = query(place.lake(name), "select content from __segment_datalake.quarantine").to_pylist()
        assert [row["content"] for row in quarantine] == [b"no event"]
        assert verify(place, place.connections.get(f"web/{name}"), InProcess()) == []
    reports = query(place.lake("second"), "select distinct run_id from __segment_datalake.sync_reports").to_pylist()
    assert [row["run_id"] for row in reports] == [run.run_id for run in place.lake("second").runs.latest(9)]
    assert len(place.runs.latest(9)) == 3


def test_lakes_differ_in_settings_names_and_folders(place: Workspace) -> None:
    place.connections.change("web/second", {"date_partition": "day", "table_prefix": "x", "column_limit": "20"})
    put(place, "1", track(message_id="m1", properties={f"p{n}": n for n in range(30)}))
    sync(place, "web/default")
    sync(place, "web/second")
    (wide,) = place.lake().catalog.tables()
    (narrow,) = place.lake("second").catalog.tables()
    assert (wide.name, narrow.name) == ("track_clicked", "x_track_clicked")
    assert (wide.partition_keys, narrow.partition_keys) == (("day", "hr"), ("day",))
    assert len(wide.schema.columns) > 30 > len(narrow.schema.columns)
    assert ids(place, "second", "web.x_track_clicked") == ["m1"]


def test_a_replay_and_a_rebuild_of_one_lake_leave_the_other_alone(place: Workspace) -> None:
    put(place, "1", track(message_id="m1"))
    for name in ("default", "second"):
        sync(place, f"web/{name}")
    files = place.lake().ledger.data_files("src1")
    run(place, jobs.rebuild(place.connections.preview("web/second", {"table_prefix": "y"})), InProcess())
    assert place.connections.get("web/second").settings.prefix == "y"
    assert place.connections.get("web/default").settings.prefix == ""
    assert place.lake().ledger.data_files("src1") == files
    assert (ids(place, "default"), ids(place, "second", "web.y_track_clicked")) == (["m1"], ["m1"])


def test_a_table_that_is_dropped_from_one_lake_stays_in_the_other(place: Workspace) -> None:
    put(place, "1", track(message_id="m1"), track("Junk", "j1"))
    for name in ("default", "second"):
        sync(place, f"web/{name}")
    run(place, jobs.drop(place.connections.get("web/second"), "track_junk"), InProcess())
    put(place, "2", track("Junk", "j2"))
    assert sync(place, "web/second")["books"]["blocked"] == 1
    assert sync(place, "web/default")["books"]["loaded"] == 1
    assert ids(place, "default", "web.track_junk") == ["j1", "j2"]
    assert [table.name for table in place.lake("second").catalog.tables()] == ["track_clicked"]
    assert [dropped.table_key for dropped in place.lake("second").admission.dropped("src1")] == ["track_junk"]
    assert place.lake().admission.dropped("src1") == []


def test_runs_of_one_source_in_two_lakes_do_not_wait_for_each_other(place: Workspace) -> None:
    put(place, "1", track(message_id="m1"))
    with place.lake().leases.held("src1"):
        assert sync(place, "web/second")["books"]["loaded"] == 1
        with pytest.raises(BusyError):
            sync(place, "web/default")


def test_a_lake_that_is_away_does_not_hold_up_the_other(place: Workspace) -> None:
    put(place, "1", track(message_id="m1"))
    shutil.rmtree(place.folder / "elsewhere")
    (place.folder / "elsewhere").write_text("a file where the folder of the lake should be")
    with pytest.raises(EventLakeError, match="elsewhere"):
        sync(place, "web/second")
    assert sync(place, "web/default")["books"]["loaded"] == 1
    (place.folder / "elsewhere").unlink()
    assert sync(place, "web/second")["books"]["loaded"] == 1


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=99) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.timeout(100)
def test_a_lake_that_keeps_silent_holds_up_neither_the_other_nor_whoever_changes_a_connection(
    tmp_path: Path, silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
        monkeypatch.setenv(f"AWS_{name}", "any")
    hanging = f'[lakes.second]\nroot = "s3://acme-events/lake"\ns3 = {{ endpoint = "{silent}", path_style = true }}\n'
    place = opened(tmp_path / "workspace", hanging + 'aws = { region = "eu-west-1" }\n')
    place.connections.add_source("web", source_id="src1")
    begun = time.monotonic()
    place.connections.connect("web", "second", {"lookback_days": "30"})
    assert time.monotonic() - begun < 3 * PATIENCE_WITH_NOTES  # and not the 300 seconds that its runs are given
    place.lake("second").runs.start("src1", "sync", place.clock.now_ns())  # as one that hangs there
    put(place, "1", track(message_id="m1"))
    begun = time.monotonic()
    assert sync(place, "web/default")["books"]["loaded"] == 1
    assert time.monotonic() - begun < PATIENCE_WITH_NOTES
    begun = time.monotonic()
    assert not place.connections.enable("web/second", False).enabled
    assert time.monotonic() - begun < 3 * PATIENCE_WITH_NOTES


def test_a_change_that_comes_while_a_run_notes_its_connection_is_noted(place: Workspace) -> None:
    """The run has read how the connection is, and is slow to write it down."""
    put(place, "1", track(message_id="m1"))
    note = kept_connection.path_of(place.lake().folders, "src1")
    place.lake().storage.delete(note)  # as if the lake had been away
    changes = 0

    def change(what: str) -> None:
        nonlocal changes
        if what == f"write {note}" and not changes:
            changes += 1
            Workspace.open(place.folder).connections.enable("web/default", False)

    with_counted_storage(place, change)
    sync(place, "web/default")
    assert changes
    assert not KeptConnection.unpacked(place.lake().storage.read(note)).enabled


def test_a_lake_can_be_built_from_the_archive_at_any_time(tmp_path: Path) -> None:
    place = opened(tmp_path / "workspace")
    place.connections.add_source("web", source_id="src1")
    for number in range(3):
        put(place, str(number), track(message_id=f"m{number}"))
        sync(place, "web")
    place.connections.connect("web", "second")
    assert sync(place, "web/second")["books"]["loaded"] == 3
    assert ids(place, "second") == ids(place, "default")


def test_an_archive_of_its_own_serves_all_lakes(tmp_path: Path) -> None:
    place = opened(tmp_path / "workspace", f'[archive]\nroot = "raw"\n{TWO}')
    place.connections.add_source("web", source_id="src1")
    place.connections.connect("web", "second")
    put(place, "1", track(message_id="m1"))
    for name in ("web/default", "web/second"):
        sync(place, name)
        connection = place.connections.get(name)
        assert verify(place, connection, InProcess()) == []
        assert run(place, jobs.replay(connection, None, None), InProcess())[0]["rewritten"] == 1
    assert [path.name for path in place.folder.rglob("segment-logs")] == ["segment-logs"]
    assert (place.folder / "raw" / "segment-logs").is_dir()
    next((place.folder / "raw").rglob("1.ndjson")).unlink()
    assert {finding.kind for finding in verify(place, place.connections.get("web/second"), InProcess())} == {
        "raw_file_gone"
    }


def test_a_lake_that_the_database_does_not_know_is_refused_and_the_other_is_not(place: Workspace) -> None:
    put(place, "1", track(message_id="m1"))
    sync(place, "web/second")
    other = opened(place.folder.parent / "other")
    other.connections.add_source("web", source_id="src1")
    other.connections.connect("web", "second")
    shutil.copytree(place.folder / "elsewhere", other.folder / "elsewhere", dirs_exist_ok=True)
    put(other, "1", track(message_id="m1"))
    with pytest.raises(UnknownLakeError, match="elsewhere"):
        sync(other, "web/second")
    assert sync(other, "web/default")["books"]["loaded"] == 1


# Connections


def test_what_came_while_a_connection_was_disabled_is_loaded_when_it_is_enabled_again(place: Workspace) -> None:
    put(place, "1", track(message_id="m1"))
    sync(place, "web/default")
    place.connections.enable("web/default", False)
    put(place, "2", track(message_id="m2"))
    assert [one.enabled for one in place.connections.all()] == [False, True]
    place.connections.enable("web/default", True)
    sync(place, "web/default")
    assert ids(place, "default") == ["m1", "m2"]


def test_a_source_that_is_connected_again_goes_on_where_it_ended(place: Workspace) -> None:
    place.connections.change("web/second", {"lookback_days": "3"})
    put(place, "1", track(message_id="m1"))
    sync(place, "web/second")
    place.connections.disconnect("web/second")
    assert [one.lake for one in place.connections.all()] == ["default"]
    assert ids(place, "second") == ["m1"]  # its tables stay
    with pytest.raises(NotFoundError, match="not connected to the lake 'second'") as error:
        place.connections.get("web/second")
    assert "eventlake connect web second" in error.value.fix
    with pytest.raises(InvalidSettingsError, match="would break its existing tables"):
        place.connections.connect("web", "second", {"date_partition": "day"})
    again = place.connections.connect("web", "second")
    assert (again.enabled, again.settings.lookback_days) == (True, 3)
    put(place, "2", track(message_id="m1"), track(message_id="m2"))
    assert sync(place, "web/second")["books"]["loaded"] == 1
    assert verify(place, again, InProcess()) == []


@pytest.mark.skipif(IN_BUCKETS or ON_POSTGRES, reason="it copies the folder of a workspace")
def test_a_run_that_died_is_finished_after_its_source_was_connected_again(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "workspace", InProcess(), clock=SetClock())
    lake.sync_of(track("A", "m1"))
    changes = killed_at(_with_more(lake, tmp_path / "other").workspace.folder, "sync", -1, since="commits").changes
    for point in range(changes):
        copy = _with_more(lake, tmp_path / str(point))
        killed_at(copy.workspace.folder, "sync", point, since="commits")
        copy.workspace.connections.disconnect("web")
        copy.workspace.connections.connect("web")
        copy.sync()
        assert [row["message_id"] for row in copy.rows("track_a")] == ["m1", "m2"], f"killed before change {point}"
        assert verify(copy.workspace, copy.connection, copy.runner) == []


def _with_more(lake: Lake, folder: Path) -> Lake:
    lake.workspace.engine.dispose()
    shutil.copytree(lake.workspace.folder, folder)
    copy = Lake(folder, InProcess(), clock=SetClock("2026-11-15T13:00:00Z"))
    copy.put(track("A", "m2"), name="more.gz")
    return copy


def test_a_connection_that_never_ran_leaves_nothing_behind(place: Workspace) -> None:
    place.connections.change("web/second", {"database": "other"})
    place.connections.disconnect("web/second")
    assert place.lake("second").connections == []
    assert place.connections.connect("web", "second").database == "web"


def test_the_name_of_a_source_alone_means_its_connection_to_the_default_lake_or_its_only_one(place: Workspace) -> None:
    assert place.connections.get("web").lake == "default"
    assert [one.name for one in place.connections.find("web")] == ["web", "web/second"]
    place.connections.disconnect("web")
    assert place.connections.get("web").lake == "second"
    assert place.connections.get("src1/second").lake == "second"


LIKE = {"date_partition": "day", "lookback_days": "30", "table_prefix": "x", "database": "shared"}


def test_a_connection_can_be_like_another(place: Workspace) -> None:
    second = place.connections.change("web/second", LIKE)
    place.connections.add_source("ios", source_id="src2", lake="second")
    place.connections.disconnect("ios")
    ios = place.connections.connect("ios", "second", {"lookback_days": "5"}, like="web/second")
    assert ios.settings == second.settings.model_copy(update={"database": "ios", "lookback_days": 5})
    assert place.connections.copy("web/second", "web/default").settings == second.settings  # of the same source: all
    put(place, "1", track(message_id="m1"))
    sync(place, "web/default")
    place.connections.change("web/second", {"date_partition": "day_hour", "column_limit": "50"})
    with pytest.raises(InvalidSettingsError, match="changing date_partition of 'web' would break") as error:
        place.connections.copy("web/second", "web/default")
    assert "eventlake replay web --all --set date_partition=day_hour" in error.value.fix
    assert place.connections.get("web/default").settings.column_limit == 2000  # nothing of it was taken


def test_what_has_tables_cannot_be_connected_like_one_whose_tables_are_others(place: Workspace) -> None:
    first = place.connections.change("web/second", {"date_partition": "day", "lookback_days": "30"})
    put(place, "1", track(message_id="m1"))
    sync(place, "web/second")
    place.connections.disconnect("web/second")
    with pytest.raises(InvalidSettingsError, match="changing date_partition of 'web/second' would break") as error:
        place.connections.connect("web", "second", like="web/default")
    assert "connect it as it was (`eventlake connect web second`)" in error.value.fix
    assert [one.lake for one in place.connections.all()] == ["default"]
    alike = place.connections.connect("web", "second", {"date_partition": "day"}, like="web/default")
    assert alike.settings == first.settings.model_copy(update={"lookback_days": 7})
    put(place, "2", track(message_id="m2"))
    assert sync(place, "web/second")["books"]["loaded"] == 1
    assert verify(place, alike, InProcess()) == []


def test_two_connections_of_a_lake_must_not_write_one_table(place: Workspace) -> None:
    place.connections.add_source("ios", source_id="src2")
    with pytest.raises(InvalidSettingsError, match="'web' of ios/second belongs to the connection web/second"):
        place.connections.connect("ios", "second", {"database": "web"})
    place.connections.change("web/second", {"database": "other"})
    assert place.connections.connect("ios", "second", {"database": "web"}).database == "web"
    place.connections.disconnect("ios/second")
    put(place, "1", track(message_id="m1"))
    sync(place, "web/second")
    place.connections.disconnect("web/second")
    with pytest.raises(
        InvalidSettingsError, match="belongs to the connection web/second"
    ):  # whose tables are still there
        place.connections.connect("ios", "second", {"database": "other"})


REFUSED: dict[str, tuple[Callable[[Workspace], object], str]] = {
    "unknown lake": (lambda place: place.connections.connect("web", "third"), "there is no lake 'third'"),
    "unknown lake of a source": (lambda place: place.connections.get("web/third"), "there is no lake 'third'"),
    "unknown lake to look at": (lambda place: place.lake("third"), "there is no lake 'third'"),
    "unknown source": (lambda place: place.connections.find("app"), "there is no source 'app'"),
    "connected already": (
        lambda place: place.connections.connect("web", "second"),
        "web is connected to the lake 'second' already",
    ),
    "no such setting": (
        lambda place: place.connections.change("web/second", {"colour": "red"}),
        "there is no setting 'colour'",
    ),
    "like nothing": (lambda place: place.connections.copy("ios/second", "web/second"), "there is no source 'ios'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_in_a_sentence(place: Workspace, case: str) -> None:
    attempt, told = REFUSED[case]
    with pytest.raises(EventLakeError) as error:
        attempt(place)
    assert told in error.value.problem
    assert error.value.fix


def test_a_lake_that_is_no_longer_in_the_settings_is_told(place: Workspace) -> None:
    (place.folder / CONFIG).write_text((place.folder / CONFIG).read_text().replace(TWO, ""))
    again = Workspace.open(place.folder)
    with pytest.raises(NotFoundError, match="there is no lake 'second'"):
        run(again, jobs.sync(next(one for one in again.connections.all() if one.lake == "second")), InProcess())


def test_a_connection_to_a_lake_that_is_no_longer_there_can_be_removed(place: Workspace) -> None:
    (place.folder / CONFIG).write_text((place.folder / CONFIG).read_text().replace(TWO, ""))
    again = Workspace.open(place.folder)
    again.connections.disconnect("web/second")
    assert [one.lake for one in again.connections.all()] == ["default"]
    with pytest.raises(NotFoundError, match="there is no lake 'second'"):
        again.connections.connect("web", "second")


def test_syncs_of_other_lakes_are_begun_although_the_dialect_of_one_was_changed(tmp_path: Path) -> None:
    folder, clock = tmp_path / "workspace", SetClock()
    opened(folder).connections.add_source("web", source_id="src1")
    Workspace.open(folder).connections.connect("web", "second")
    (folder / CONFIG).write_text((folder / CONFIG).read_text().replace(TWO, f'{TWO}dialect = "rudderstack"\n'))
    place = Place.open(folder, clock)
    place._given = InProcess()
    put(place, "1", track(message_id="m1"))
    scheduler = Scheduler(place)
    scheduler.tick()
    settle(scheduler)
    assert [(run.kind, run.status) for run in place.lake().runs.latest(9)] == [("sync", "finished")]


def test_a_lake_of_which_a_setting_is_wrong_stops_neither_orders_nor_alerts_of_others(tmp_path: Path) -> None:
    folder, clock = tmp_path / "workspace", SetClock()
    opened(folder).connections.add_source("web", source_id="src1")
    first = Workspace.open(folder, clock)
    first.connections.connect("web", "second")
    put(first, "1", track(message_id="m1"))
    sync(first, "web/second")
    clock.forward(hours=1)
    config = folder / CONFIG
    hook = '[channels.hook]\nkind = "webhook"\nurl = "http://127.0.0.1:9/"\n'
    config.write_text(config.read_text().replace(TWO, f'{TWO}runner = {{ kind = "emr" }}\n{hook}'))
    place = Place.open(folder, clock)
    place._given = InProcess()
    place.alerts.subscribe(Kind.VOLUME, "hook")
    place.orders.place("second", "src1", "sync", {}, "ann")
    place.orders.place("default", "src1", "sync", {}, "ann")
    scheduler = Scheduler(place)
    scheduler.tick()
    settle(scheduler)
    assert [(run.kind, run.status) for run in place.lake().runs.latest(9)] == [("sync", "finished")]
    latest = place.runs.latest(9)
    failed = [run.report for run in latest if run.lake == "second" and run.status == "failed" and run.report]
    assert "cluster_id" in failed[0][0]["error"]
    Watch(place).look()


def test_a_run_has_the_settings_of_the_moment_it_begins(place: Workspace) -> None:
    """Another run of the connection may have changed them while this one waited for it."""
    put(place, "1", track(message_id="m1"))
    sync(place, "web/default")
    put(place, "2", track(message_id="m2"))
    waiting, replay = (
        jobs.sync(place.connections.get("web/default")),
        jobs.replay(place.connections.get("web/default"), None, None),
    )
    changed = {"date_partition": "day", "table_prefix": "x"}
    run(place, jobs.rebuild(place.connections.preview("web/default", changed)), InProcess())
    with pytest.raises(InvalidSettingsError, match="changed after this was asked for"):
        run(place, replay, InProcess())
    run(place, waiting, InProcess())
    assert ids(place, "default", "web.x_track_clicked") == ["m1", "m2"]
    assert verify(place, place.connections.get("web/default"), InProcess()) == []


def test_every_setting_of_a_connection_is_kept(place: Workspace) -> None:
    changed = place.connections.change("web/second", LIKE)
    assert place.connections.get("web/second") == changed
    assert changed.settings == as_stored(changed.settings.model_dump(mode="json"))


def test_of_several_lakes_that_are_not_the_default_one_must_be_named(tmp_path: Path) -> None:
    place = opened(tmp_path / "workspace", f'{TWO}[lakes.third]\nroot = "third"\n')
    place.connections.add_source("web", lake="second")
    place.connections.connect("web", "third")
    with pytest.raises(InvalidSettingsError, match="web is connected to 2 lakes") as error:
        place.connections.get("web")
    assert error.value.fix == "name one: web/second or web/third"


# The settings file

LAKE = '[lakes.aws]\nroot = "s3://acme-events/lake"\n'
WRONG = {
    "a key of the workspace": ('databse = "x"', "databse: there is no such setting; perhaps database"),
    "a key of a section": ("[spark]\nmastr = 'x'", "spark.mastr: there is no such setting; perhaps master"),
    "a key of a lake": (
        "[lakes.a]\nroot = 'a'\ntimout = 3",
        "lakes.a.timout: there is no such setting; perhaps timeout",
    ),
    "a key of a kind": (
        LAKE + 'runner = { kind = "emr", cluster = "j-1" }',
        "lakes.aws.runner.cluster: there is no such setting; perhaps cluster_id",
    ),
    "a key like no other": ("xyz = 1", "xyz: there is no such setting"),
    "no root": ("[lakes.a]\ntimeout = 3", "lakes.a.root: is required"),
    "no such kind": (
        LAKE + 'catalog = { kind = "iceberg" }',
        "lakes.aws.catalog: there is no such kind; use one of embedded, glue, hive",
    ),
    "what a kind needs": (LAKE + 'runner = { kind = "emr" }', "lakes.aws.runner.cluster_id: is required"),
    "a runner that needs a bucket": (
        '[lakes.a]\nroot = "a"\nrunner = { kind = "emr", cluster_id = "j-1" }',
        "lakes.a: runner = emr needs a lake in a bucket",
    ),
    "an archive that a cluster cannot read": (
        LAKE + 'runner = { kind = "emr", cluster_id = "j-1" }',
        "the runner of the lake aws needs a raw archive in a bucket",
    ),
    "one root for two": ('[lakes.a]\nroot = "./lake/"', "the lakes default and a are both in"),
    "the default lake twice": (
        '[lakes.default]\nroot = "a"',
        "lakes.default: the default lake has its settings in [lake]",
    ),
    "a name that is none": ('[lakes."a b"]\nroot = "a"', "lakes.a b: not the name of a lake"),
    "no table": (LAKE + 'runner = "emr"', "lakes.aws.runner: must be a table"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_mistake_in_the_settings_is_told_with_its_place_and_the_nearest_key(tmp_path: Path, case: str) -> None:
    text, told = WRONG[case]
    (tmp_path / CONFIG).write_text(f'workspace_id = "x"\n{text}\n')

    def opened() -> None:
        """Of a further lake it is told when somebody asks for it; anything else keeps the workspace shut."""
        place = Workspace.open(tmp_path)
        for lake in place.settings.wrong_lakes:
            place.lake(lake)

    with pytest.raises(ConfigurationError) as error:
        opened()
    assert told in error.value.problem


def test_several_lakes_of_which_something_is_wrong_are_left_out_each_with_its_reason(tmp_path: Path) -> None:
    on_emr = 'root = "s3://acme-a/{0}"\nrunner = {{ kind = "emr", cluster_id = "j-2AXXXXXXGAPLF" }}\n'
    (tmp_path / CONFIG).write_text(
        f'workspace_id = "x"\n[catalog]\nkind = "glue"\n[lakes.a]\n{on_emr.format("a")}[lakes.b]\n{on_emr.format("b")}'
        '[lakes.c]\nroot = "c"\ntimeuot = 1\n[lakes.good]\nroot = "good"\n'
    )
    place = Workspace.open(tmp_path)
    assert list(place.lakes) == ["good"]
    assert sorted(place.named_lakes) == ["a", "b", "c", "default", "good"]
    for name, told in {
        "a": "the runner of the lake a needs a raw archive in a bucket",
        "b": "the runner of the lake b needs a raw archive in a bucket",
        "c": "lakes.c.timeuot: there is no such setting; perhaps timeout",
        "default": "catalog.kind = glue needs a lake in a bucket",
    }.items():
        with pytest.raises(ConfigurationError, match=re.escape(told)):
            place.lake(name)
        assert place.history(name).latest(1) == []


def test_a_lake_has_all_that_the_default_one_has(tmp_path: Path) -> None:
    sections = """
runner = "emr"
[lake]
root = "s3://acme-events/lake"
timeout = 7
[aws]
region = "eu-west-1"
[s3]
path_style = true
[catalog]
kind = "glue"
glue_catalog_id = "123456789012"
[spark]
conf = { a = "b" }
patience = 9
[emr]
cluster_id = "j-1"
machine = "aarch64"

[lakes.other]
root = "s3://acme-events/other"
timeout = 7
aws = { region = "eu-west-1" }
s3 = { path_style = true }
catalog = { kind = "glue", catalog_id = "123456789012" }
runner = { kind = "emr", cluster_id = "j-1", machine = "aarch64", conf = { a = "b" }, patience = 9 }
"""
    (tmp_path / CONFIG).write_text(f'workspace_id = "x"\n{sections}')
    default, other = Workspace.open(tmp_path).settings.all_lakes.values()
    assert default.model_copy(update={"root": other.root}) == other
    assert other.where == {"s3_bucket": "acme-events"}
