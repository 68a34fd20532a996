"""A workspace whose database is lost, after every kind of run: the lake gives it back."""

import io
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from conftest import InProcess, Lake, SetClock, new_database, track
from crash_job import with_counted_storage
from eventlake.audit.repair import repair
from eventlake.audit.restore import restore, unknown_sources
from eventlake.audit.verify import verify
from eventlake.catalog import embedded
from eventlake.control import database
from eventlake.errors import ConfigurationError, DamagedError, EventLakeError, InvalidSettingsError, UnknownLakeError
from eventlake.reports.report import path as report_path
from eventlake.schema.types import ColumnType
from eventlake.sync import jobs, requests
from eventlake.sync.carry_out import carry_out
from eventlake.sync.run import run
from eventlake.sync.work import Sizes
from eventlake.workspace import CONFIG, Workspace

# Keys cannot be given back; who held a lease and where a run was does not matter once it has ended.
LEFT_OUT = {"write_keys", "leases"}
UNKNOWN = {"created_at", "step", "steps", "done", "tasks"}

Rows = dict[str, list[dict[str, Any]]]


def rows_of(workspace: Workspace) -> Rows:
    """All that a database knows."""
    tables = [*database.metadata.sorted_tables, *embedded.metadata.sorted_tables]
    with workspace.engine.connect() as connection:
        found = {
            table.name: [dict(row._mapping) for row in connection.execute(sa.select(table))]
            for table in tables
            if table.name not in LEFT_OUT
        }
    return {name: sorted((_known(name, row) for row in rows), key=str) for name, rows in found.items()}


def _known(name: str, row: dict[str, Any]) -> dict[str, Any]:
    unknown = UNKNOWN - ({"created_at"} if name == "catalog_tables" else set())
    if row.get("status") == "failed":  # noted a moment after it was reported; its kind is not
        unknown |= {"finished_at", "kind"}
    return {key: value for key, value in row.items() if key not in unknown}


def lost(workspace: Workspace) -> Workspace:
    """The same workspace with a new database."""
    workspace.engine.dispose()
    config = workspace.folder / CONFIG
    address = new_database()
    if address.startswith("sqlite"):
        for file in workspace.folder.glob("eventlake.db*"):
            file.unlink()
    else:
        config.write_text(re.sub(r'database = ".*"', f'database = "{address}"', config.read_text()))
    return Workspace.open(workspace.folder, workspace.clock)


def a_sync(lake: Lake) -> None:
    lake.sync_of(track("A", "m3", properties={"new": 1.5, "price": "n/a"}), track("B", "m4"), b"bad")


def a_replay(lake: Lake) -> None:
    lake.run(jobs.replay(lake.connection, None, None))


def a_retype(lake: Lake) -> None:
    lake.run(jobs.retype(lake.connection, "track_a", "properties_price", ColumnType.STRING))


def a_rebuild(lake: Lake) -> None:
    wanted = {"table_prefix": "x", "date_partition": "day", "partition_by_slug": "true"}
    lake.run(jobs.rebuild(lake.workspace.connections.preview("web", wanted)))


def other_settings_after_a_rebuild(lake: Lake) -> None:
    a_rebuild(lake)
    lake.workspace.connections.change("web", {"lookback_days": "unlimited", "types": "b=string"})
    lake.sync_of(track("A", "m3"))


def a_drop(lake: Lake) -> None:
    lake.run(jobs.drop(lake.connection, "track_a"))


def a_drop_taken_back(lake: Lake) -> None:
    a_drop(lake)
    lake.run(jobs.allow(lake.connection, frozenset({"track_a"}), were_loaded=True))


def a_table_refused(lake: Lake) -> None:
    lake.workspace.connections.change("web", {"table_limit": "1"})
    lake.sync_of(track("Late", "m9"))


def a_replay_in_parts(lake: Lake) -> None:
    lake.put(track("A", "m3", receivedAt="2026-11-14T10:00:00Z"), day="2026-11-14")
    lake.sync()
    replay = requests.replay(lake.place, lake.connection, None, None)
    a_day_each = Sizes(bytes_per_part=1, bytes_per_part_and_core=0)
    assert len(list(carry_out(lake.workspace, replay, lake.runner, sizes=a_day_each))) == 2


def a_repair(lake: Lake) -> None:
    next(iter((lake.root / "segment-data" / "data").rglob("*.parquet"))).unlink()
    found = verify(lake.workspace, lake.connection, lake.runner)
    repair(lake.workspace, lake.connection, found, lake.runner)


def a_lost_partition(lake: Lake) -> None:
    """Which is known to the catalog, and of which no file is left."""
    lake.sync_of(track("A", "m3", receivedAt="2026-11-14T10:00:00Z"))
    for file in (lake.root / "segment-data" / "data").rglob("day=2026-11-14/**/*.parquet"):
        file.unlink()
    found = verify(lake.workspace, lake.connection, lake.runner)
    assert found
    repair(lake.workspace, lake.connection, found, lake.runner)


def what_was_taken_over(lake: Lake) -> None:
    """A table that Segment made, where a connection would make its own."""
    lake.workspace.connections.add_source("ios", source_id="src2")
    other = lake.workspace.connections.get("ios")
    content = io.BytesIO()
    pq.write_table(pa.table({"message_id": ["o1"], "properties_n": [5]}), content)
    path = f"{other.dialect.location('track_old')}/day=2026-10-01/hr=09/theirs.parquet"
    lake.place.storage.write(path, content.getvalue())
    lake.run(requests.adopt(lake.place, other))
    event = json.dumps(track("Old", "i1", properties={"n": "n/a"})).encode()
    lake.workspace.archive.write("segment-logs/src2/1794700800000/1", event)
    lake.run(jobs.sync(other))


def a_lost_index(lake: Lake) -> None:
    for file in (lake.root / "segment-data" / "index").rglob("*.ids"):
        file.unlink()
    lake.sync_of(track("A", "m3"))


def a_failure(lake: Lake) -> None:
    a_sync(lake)
    next(iter((lake.root / "segment-logs").rglob("*.gz"))).unlink()
    with pytest.raises(InvalidSettingsError):
        lake.run(jobs.rebuild(lake.connection))


def nothing_new(lake: Lake) -> None:
    lake.sync()


def a_connection_that_never_ran(lake: Lake) -> None:
    lake.workspace.connections.add_source("ios", source_id="src2", name="Our app")
    lake.workspace.connections.change("ios", {"date_partition": "day"})
    lake.workspace.connections.enable("ios", False)


KINDS: dict[str, Callable[[Lake], None]] = {
    function.__name__: function
    for function in (
        a_sync,
        a_replay,
        a_replay_in_parts,
        a_repair,
        a_retype,
        a_rebuild,
        other_settings_after_a_rebuild,
        a_drop,
        a_drop_taken_back,
        a_table_refused,
        a_lost_index,
        a_lost_partition,
        what_was_taken_over,
        a_failure,
        nothing_new,
        a_connection_that_never_ran,
    )
}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path / "workspace", InProcess(), clock=SetClock())
    lake.workspace.connections.change("web", {"lookback_days": "30", "types": "a=string"})
    lake.sync_of(track("A", "m1", properties={"price": 1}), track("A", "m2", properties={"price": 2}))
    return lake


@pytest.mark.parametrize("kind", KINDS)
def test_a_lost_database_is_given_back_by_the_lake(lake: Lake, kind: str) -> None:
    KINDS[kind](lake)
    before = rows_of(lake.workspace)
    again = lost(lake.workspace)
    restored, *others = restore(again, "default")
    assert len(others) == (kind in ("a_connection_that_never_ran", "what_was_taken_over"))
    assert rows_of(again) == before
    assert (restored.connection.source.slug, restored.is_guessed) == ("web", False)
    assert sum(one.runs for one in (restored, *others)) == len(before["runs"])
    assert unknown_sources(again.lake()) == {}
    assert restore(again, "default") == []
    connection = again.connections.get("web")
    lake.workspace = again
    if kind != "a_failure":  # of which a raw file is gone
        assert verify(again, connection, InProcess()) == []
    lake.put(track("A", "m1", properties={"price": 1}), track("A", "m5"), name="copies.gz")
    books = lake.sync()[0]["books"]
    if kind == "a_drop":
        assert (books["loaded"], books["blocked"]) == (0, 2)
    else:
        assert (books["loaded"], books["duplicates"]) == (1, 1)


def test_runs_one_after_the_other_are_given_back_together(lake: Lake) -> None:
    for kind in (a_sync, a_replay, a_retype, a_lost_index, a_drop_taken_back, a_rebuild, a_sync):
        kind(lake)
    lake.workspace.connections.add_source("ios", source_id="src2")
    other = lake.workspace.connections.get("ios")
    lake.workspace.archive.write("segment-logs/src2/1794700800000/1", json.dumps(track("A", "i1")).encode())
    run(lake.workspace, jobs.sync(other), InProcess())
    before = rows_of(lake.workspace)
    again = lost(lake.workspace)
    assert [one.connection.name for one in restore(again, "default")] == ["web", "ios"]
    assert rows_of(again) == before


def test_an_old_copy_of_the_database_is_brought_up_to_date(lake: Lake, tmp_path: Path) -> None:
    if not new_database().startswith("sqlite"):
        pytest.skip("copies the file of a database")
    lake.workspace.engine.dispose()
    shutil.copy(lake.workspace.folder / "eventlake.db", tmp_path / "copy.db")
    for kind in (a_sync, a_retype, a_drop):
        kind(lake)
    before = rows_of(lake.workspace)
    again = lost(lake.workspace)
    shutil.copy(tmp_path / "copy.db", again.folder / "eventlake.db")
    again = Workspace.open(again.folder, SetClock())
    with pytest.raises(UnknownLakeError) as refused:
        run(again, jobs.sync(again.connections.get("web")), InProcess())
    assert "eventlake restore" in refused.value.fix
    restore(again, "default")
    assert rows_of(again) == before
    assert len(again.sources.keys("web")) == 1  # what the copy has is kept


class DiedError(Exception):
    pass


def died_at(lake: Lake, job: jobs.Job, what: str, *, time: int = 1) -> None:
    """Carry out a job that dies before a change of the lake: the first of this kind, or a later one."""
    left = time

    def die(change: str) -> None:
        nonlocal left
        left -= change.startswith(what)
        if not left:
            raise DiedError

    own = lake.place.storage
    with_counted_storage(lake.workspace, die)
    with pytest.raises(DiedError):
        lake.run(job)
    lake.place.__dict__["storage"] = own


@pytest.mark.parametrize(
    ("change", "time"),
    [pytest.param("move", 1, id="before any file got its name"), pytest.param("settle", 2, id="after all had")],
)
def test_a_run_whose_manifest_was_written_is_finished_after_a_restore(lake: Lake, change: str, time: int) -> None:
    lake.put(track("A", "m3"))
    died_at(lake, jobs.sync(lake.connection), change, time=time)  # the first time is before the manifest is written
    again = lost(lake.workspace)
    restore(again, "default")
    assert [run.status for run in again.runs.latest(9)] == ["running", "finished"]
    lake.workspace = again
    assert lake.sync()[0]["books"]["lines"] == 0
    assert [row["message_id"] for row in lake.rows("track_a")] == ["m1", "m2", "m3"]
    assert verify(again, again.connections.get("web"), InProcess()) == []


def test_a_rebuild_that_was_promised_and_lost_leaves_the_settings_that_its_tables_have(lake: Lake) -> None:
    wanted = lake.workspace.connections.preview("web", {"table_prefix": "x", "date_partition": "day"})
    died_at(lake, jobs.rebuild(wanted), "move")
    again = lost(lake.workspace)
    (restored,) = restore(again, "default")
    assert restored.is_unfinished
    assert restored.connection.settings.prefix == ""
    shutil.rmtree(lake.root / "segment-stage")  # as a bucket's rule does after some days
    lake.workspace = again
    lake.sync_of(track("A", "m3"))
    assert [row["message_id"] for row in lake.rows("track_a")] == ["m1", "m2", "m3"]
    assert verify(again, again.connections.get("web"), InProcess()) == []


def test_a_rebuild_that_was_promised_is_carried_out_with_its_settings(lake: Lake) -> None:
    wanted = lake.workspace.connections.preview("web", {"table_prefix": "x", "date_partition": "day"})
    died_at(lake, jobs.rebuild(wanted), "move")
    again = lost(lake.workspace)
    restore(again, "default")
    lake.workspace = again
    lake.sync_of(track("A", "m3"))
    assert lake.connection.settings == wanted.settings
    assert [row["message_id"] for row in lake.rows("x_track_a")] == ["m1", "m2", "m3"]
    assert verify(again, again.connections.get("web"), InProcess()) == []


def test_a_run_that_was_given_up_stays_so_although_its_manifest_came(lake: Lake) -> None:
    """As that of a process that stood still until another had taken its place, and died before it took it back."""
    lake.put(track("A", "m3"))
    died_at(lake, jobs.sync(lake.connection), "move")
    place = lake.place
    (late,) = [run for run in place.runs.latest(9) if run.status == "running"]
    manifest = f"segment-data/commits/source=src1/{late.run_id}.json"
    content = place.storage.read(manifest)
    place.storage.delete(manifest)
    lake.sync()  # gives it up, and loads its file
    place.storage.write(manifest, content)
    lake.sync_of(track("A", "m4"))
    again = lost(lake.workspace)
    restore(again, "default")
    assert {run.run_id: run.status for run in again.runs.latest(9)}[late.run_id] == "failed"
    lake.workspace = again
    assert verify(again, again.connections.get("web"), InProcess()) == []
    assert [row["message_id"] for row in lake.rows("track_a")] == ["m1", "m2", "m3", "m4"]


def test_a_name_that_one_source_gave_up_and_another_took_is_the_others(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "workspace", InProcess(), source_id="zzz")
    lake.sync_of(track("A", "m1"))
    lake.run(jobs.rebuild(lake.workspace.connections.preview("web", {"database": "old_web"})))
    lake.workspace.connections.add_source("new", source_id="aaa")
    lake.workspace.connections.change("new", {"database": "web"})
    lake.workspace.archive.write("segment-logs/aaa/1794700800000/1", json.dumps(track("A", "n1")).encode())
    lake.run(jobs.sync(lake.workspace.connections.get("new")))
    before = rows_of(lake.workspace)
    again = lost(lake.workspace)
    assert len(restore(again, "default")) == 2
    assert rows_of(again) == before


def test_a_copy_of_another_lake_is_refused_and_that_one_left_alone(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "workspace", InProcess(), settings='[lakes.second]\nroot = "second"\n')
    lake.sync_of(track("A", "m1"))
    shutil.copytree(lake.root, lake.workspace.folder / "second")
    lake.workspace.connections.connect("web", "second")
    with pytest.raises(UnknownLakeError):
        run(lake.workspace, jobs.sync(lake.workspace.connections.get("web/second")), InProcess())
    before = rows_of(lake.workspace)
    with pytest.raises(InvalidSettingsError, match="has the runs of the lake 'default'"):
        restore(lake.workspace, "second")
    assert rows_of(lake.workspace) == before


@pytest.mark.parametrize("kind", ["commits", "reports"])
def test_a_damaged_file_is_named(lake: Lake, kind: str) -> None:
    path = next(path for path in (lake.root / "segment-data" / kind).rglob("*.json"))
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(DamagedError, match=path.name):
        restore(lost(lake.workspace), "default")


def test_a_restore_that_dies_is_begun_again(lake: Lake) -> None:
    a_sync(lake)
    before = rows_of(lake.workspace)
    again = lost(lake.workspace)

    def die(_step: str, done: int, _of: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        restore(again, "default", die)
    with pytest.raises(UnknownLakeError):
        run(again, jobs.sync(again.connections.get("web")), InProcess())
    restore(again, "default")
    assert rows_of(again) == before


def test_each_lake_is_given_back_by_itself(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "workspace", InProcess(), settings='[lakes.second]\nroot = "second"\n')
    lake.workspace.connections.connect("web", "second", {"table_prefix": "x"})
    lake.put(track("A", "m1"))
    for name in ("web/default", "web/second"):
        run(lake.workspace, jobs.sync(lake.workspace.connections.get(name)), InProcess())
    before = rows_of(lake.workspace)
    again = lost(lake.workspace)
    assert [one.connection.name for name in again.lakes for one in restore(again, name)] == ["web", "web/second"]
    assert rows_of(again) == before


def test_what_was_connected_and_never_ran_comes_back_as_it_was(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "workspace", InProcess(), settings='[lakes.second]\nroot = "second"\n')
    lake.sync_of(track("A", "m1"))
    connections = lake.workspace.connections
    connections.connect("web", "second", {"lookback_days": "30"})
    connections.enable("web/second", False)
    connections.add_source("ios", source_id="src2", lake="second")
    connections.disconnect("ios/second")  # nothing of it is left
    before = rows_of(lake.workspace)
    again = lost(lake.workspace)
    found = [one for name in again.lakes for one in restore(again, name)]
    assert [(one.connection.name, one.runs, one.is_guessed) for one in found] == [
        ("web", 1, False),
        ("web/second", 0, False),
    ]
    assert [source.slug for source in again.sources.all()] == ["web"]
    assert rows_of(again)["connections"] == before["connections"]
    assert [unknown_sources(place) for place in again.lakes.values()] == [{}, {}]
    again.connections.enable("web/second", True)
    assert run(again, jobs.sync(again.connections.get("web/second")), InProcess())[0]["books"]["loaded"] == 1


def test_a_connection_whose_only_run_failed_comes_back_with_it(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "workspace", InProcess(), clock=SetClock())
    lake.put(track("A", "m1"))
    died_at(lake, jobs.sync(lake.connection), "")  # before its first change of the lake
    before = rows_of(lake.workspace)
    assert [run["status"] for run in before["runs"]] == ["failed"]
    again = lost(lake.workspace)
    restore(again, "default")
    assert rows_of(again) == before


def test_settings_that_were_lost_are_not_replaced_by_those_of_a_source_added_anew(lake: Lake) -> None:
    """Somebody who lost the database may add the source again, before it comes to mind to restore it."""
    before = lake.connection.settings
    again = lost(lake.workspace)
    again.connections.add_source("web", source_id="src1")
    again.connections.change("web", {"date_partition": "day"})
    restore(again, "default")
    assert again.connections.get("web").settings == before


def test_what_another_workspace_wrote_is_left_alone(lake: Lake) -> None:
    again = lost(lake.workspace)
    config = again.folder / CONFIG
    config.write_text(re.sub(r'workspace_id = ".*"', 'workspace_id = "another"', config.read_text()))
    other = Workspace.open(again.folder)
    assert restore(other, "default") == []
    assert other.sources.all() == []
    other.connections.add_source("mine", source_id="src1")
    other.connections.add_source("app", source_id="src2")
    note = json.loads((lake.root / "segment-data" / "connections" / "source=src1.json").read_text())
    assert (note["slug"], note["settings"]["lookback_days"]) == ("web", 30)
    assert (lake.root / "segment-data" / "connections" / "source=src2.json").exists()


def older(lake: Lake) -> None:
    """Give the manifests their first form."""
    for path in (lake.root / "segment-data" / "commits").rglob("*.json"):
        manifest = json.loads(path.read_text())
        del manifest["connection"], manifest["version"]
        entry = manifest["entry"]
        files = entry.pop("files")
        entry["data_files"] = [file for table in files for file in table["added"]]
        entry["removed_data_files"] = [removed for table in files for removed in table["removed"]]
        del entry["base"]
        for change in manifest["tables"]:
            change["segment_type"] = change.pop("table_key")
        path.write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"database": "my_web", "table_prefix": "x", "date_partition": "year_month_day"},
        {"table_naming": "plain", "partition_by_slug": "true"},
    ],
)
def test_settings_that_no_manifest_notes_are_guessed_from_the_tables(tmp_path: Path, settings: dict[str, str]) -> None:
    lake = Lake(tmp_path / "workspace", InProcess())
    expected = lake.workspace.connections.change("web", settings)
    lake.sync_of(track("Order Completed", "m1"), {**track("", "p1"), "type": "page"})
    lake.sync()
    older(lake)
    again = lost(lake.workspace)
    (restored,) = restore(again, "default")
    assert restored.is_guessed
    assert restored.connection.settings == expected.settings
    assert restored.connection.source.slug == ("my-web" if "database" in settings else "web")
    lake.workspace = again
    assert run(again, jobs.sync(restored.connection), InProcess())[0]["books"]["lines"] == 0
    assert verify(again, restored.connection, InProcess()) == []


def test_sources_whose_names_are_guessed_alike_are_both_given_back(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "workspace", InProcess())
    lake.workspace.connections.change("web", {"table_prefix": "a"})
    lake.workspace.connections.add_source("ios", source_id="Src2")
    lake.workspace.connections.change("ios", {"table_prefix": "b", "database": "web"})
    lake.workspace.archive.write("segment-logs/Src2/1794700800000/1", json.dumps(track("A", "n1")).encode())
    lake.sync_of(track("A", "m1"))
    lake.run(jobs.sync(lake.workspace.connections.get("ios")))
    older(lake)
    again = lost(lake.workspace)
    assert sorted(one.connection.source.slug for one in restore(again, "default")) == ["src1", "web"]


@pytest.mark.parametrize("form", ["of today", "of before"])
def test_a_run_whose_report_is_gone_is_carried_out_after_a_restore_and_not_undone(lake: Lake, form: str) -> None:
    lake.sync_of(track("A", "m8"))
    lake.run(jobs.replay(lake.connection, None, None))
    expected = lake.all_rows()
    last = lake.place.runs.latest(1)[0]
    assert last.report
    lake.place.storage.delete(report_path(lake.place.folders, last.report[0]))
    if form == "of before":
        older(lake)
    again = lost(lake.workspace)
    restore(again, "default")
    copy = Lake(again.folder, lake.runner, clock=lake.workspace.clock)
    copy.sync()
    assert {table: copy.rows(table) for table in copy.tables()} == expected
    assert verify(copy.workspace, copy.connection, copy.runner) == []


def test_partitions_that_a_run_of_before_forgot_stay_forgotten(tmp_path: Path) -> None:
    """Its manifest named all partitions that a table had from then on."""
    lake = Lake(tmp_path / "workspace", InProcess())
    hours = [f"2026-11-15T{hour}:00:00Z" for hour in ("08", "09", "10")]
    lake.sync_of(*(track("A", f"m{hour}", userId=f"u{hour}", receivedAt=hour) for hour in hours))
    lake.workspace.suppressions.add([f"u{hours[1]}"])
    lake.run(jobs.replay(lake.connection, None, None))
    kept = lake.place.catalog.partitions("web", "track_a")
    assert [hour for _, hour in kept] == ["08", "10"]
    for path in (lake.root / "segment-data" / "commits").rglob("*.json"):
        manifest = json.loads(path.read_text())
        for change in manifest["tables"]:
            change["anew"] = bool(change.pop("forgotten"))
        path.write_text(json.dumps(manifest | {"version": 3}))
    again = lost(lake.workspace)
    restore(again, "default")
    assert again.lake().catalog.partitions("web", "track_a") == kept


def test_a_manifest_of_a_newer_version_is_refused_and_left_alone(lake: Lake) -> None:
    (path,) = (lake.root / "segment-data" / "commits").rglob("*.json")
    text = path.read_text().replace('"version":4', '"version":5')
    path.write_text(text)
    with pytest.raises(ConfigurationError, match="newer version of eventlake") as refused:
        restore(lost(lake.workspace), "default")
    assert "pip install --upgrade eventlake" in refused.value.fix
    assert path.read_text() == text


def test_a_source_whose_name_is_taken_is_told(lake: Lake) -> None:
    again = lost(lake.workspace)
    again.connections.add_source("web", source_id="another")
    with pytest.raises(EventLakeError, match="already a source with the slug or id 'web'"):
        restore(again, "default")
