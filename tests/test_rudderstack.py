"""A lake as RudderStack's S3 data lake has it, from raw lines to what other engines read."""

import io
import json
import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from conftest import IN_BUCKETS, ON_POSTGRES, InProcess, Lake, SetClock, settings_of_new_lake, track
from crash_job import killed_at
from eventlake.audit.repair import repair
from eventlake.audit.restore import restore
from eventlake.audit.verify import verify
from eventlake.errors import InvalidSettingsError, NotFoundError
from eventlake.events.instants import micros_of
from eventlake.lake.rudderstack import RudderStackDialect
from eventlake.library.spark_tables import spark_tables
from eventlake.query import query
from eventlake.runners.spark import SparkRunner
from eventlake.runners.spark_tables import register
from eventlake.sync import jobs, requests
from eventlake.sync.run import run
from eventlake.workspace import CONFIG, Workspace

in_folders = pytest.mark.skipif(IN_BUCKETS, reason="these lakes are in folders")


def rudder(folder: Path, runner: Any = None, **options: str) -> Lake:
    settings = (settings_of_new_lake() or "[lake]\n").replace("[lake]\n", '[lake]\ndialect = "rudderstack"\n')
    lake = Lake(folder, runner or InProcess(), clock=SetClock(), settings=settings)
    lake.workspace.connections.change("web", {"skip_users_table": "false", **options})
    return lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return rudder(tmp_path / "workspace")


def agrees(lake: Lake) -> bool:
    return verify(lake.workspace, lake.connection, lake.runner) == []


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


STAMPS = {
    "context_source_id": "src1",
    "context_source_type": "HTTP",
    "context_destination_id": "default",
    "context_destination_type": "S3_DATALAKE",
}
ORDER = {
    "type": "track",
    "event": "Order Completed",
    "messageId": "m1",
    "anonymousId": "a1",
    "userId": "u1",
    "channel": "web",
    "receivedAt": "2026-11-15T10:20:30.123Z",
    "sentAt": "2026-11-15T10:20:29Z",
    "timestamp": "2026-11-15T10:20:28Z",
    "originalTimestamp": "2026-11-15T10:20:27Z",
    "request_ip": "9.9.9.9",
    "context": {"ip": "1.2.3.4", "app": {"buildNumber": 7}, "locale": ""},
    "properties": {
        "orderTotal": 12.5,
        "items": [{"sku": "x"}],
        "Coupon": None,
        "order": "o",
        "shipped": "2026-11-16",
    },
    "integrations": {"All": True},
}
SIGN_UP = {
    "type": "identify",
    "messageId": "m2",
    "userId": "u1",
    "receivedAt": "2026-11-15T10:30:00Z",
    "traits": {"email": "a@b.c", "age": 41},
    "context": {"traits": {"plan": "free"}},
}


def filled(row: dict[str, Any]) -> dict[str, Any]:
    """The cells of a row that are not null, without what is kept beside them."""
    return {name: cell for name, cell in row.items() if cell is not None and name != "_rescued_data"}


def test_two_batches_give_the_rows_that_theirs_would(lake: Lake) -> None:
    """Some tables are known and some are new, values conflict, and copies come."""
    first = lake.sync_of(ORDER, ORDER, SIGN_UP, b"no event")
    assert {line["table_name"]: line["row_count"] for line in first[1:]} == {
        "identifies": 1,
        "order_completed": 1,
        "tracks": 1,
        "users": 1,
    }
    books = first[0]["books"]
    assert (books["lines"], books["loaded"], books["duplicates"], books["quarantined"]) == (4, 2, 1, 1)
    loaded = at("2026-11-15T12:00:00")
    of_event = {
        "id": "m1",
        "anonymous_id": "a1",
        "user_id": "u1",
        "channel": "web",
        "event": "order_completed",
        "event_text": "Order Completed",
        "received_at": at("2026-11-15T10:20:30.123"),
        "sent_at": at("2026-11-15T10:20:29"),
        "_timestamp": at("2026-11-15T10:20:28"),
        "original_timestamp": at("2026-11-15T10:20:27"),
        "uuid_ts": loaded,
        "context_ip": "1.2.3.4",
        "context_passed_ip": "1.2.3.4",
        "context_request_ip": "9.9.9.9",
        "context_app_build_number": 7,
        **STAMPS,
    }
    assert filled(lake.row("tracks")) == of_event
    own = {"order_total": 12.5, "items": '[{"sku":"x"}]', "_order": "o", "shipped": at("2026-11-16T00:00:00")}
    assert filled(lake.row("order_completed")) == {**of_event, **own}
    of_user = {
        "received_at": at("2026-11-15T10:30:00"),
        "uuid_ts": loaded,
        "email": "a@b.c",
        "age": 41,
        "context_traits_plan": "free",
        **STAMPS,
    }
    assert filled(lake.row("identifies")) == {"id": "m2", "user_id": "u1", **of_user}
    assert filled(lake.row("users")) == {"id": "u1", "_message_id": "m2", **of_user}
    assert {"anonymous_id", "channel", "sent_at", "original_timestamp", "_timestamp"} < lake.row("users").keys()
    assert lake.rows_of_discards() == []

    later = {**ORDER, "messageId": "m3", "receivedAt": "2026-11-15T11:00:00Z"}
    second = lake.sync_of(
        {**later, "properties": {"orderTotal": "n/a", "shipped": "2026-02-30", "id": "mine", "gift": True}},
        {**SIGN_UP, "messageId": "m4", "userId": " ", "traits": {"age": 41.5}},
        {
            "type": "group",
            "messageId": "m5",
            "groupId": "g1",
            "traits": {"plan": "pro"},
            "receivedAt": later["receivedAt"],
        },
        ORDER,
    )
    assert (second[0]["books"]["loaded"], second[0]["books"]["duplicates"]) == (3, 1)
    of_later = {**of_event, "id": "m3", "received_at": at("2026-11-15T11:00:00")}
    assert [filled(row) for row in lake.rows("tracks")] == [of_event, of_later]
    assert [filled(row) for row in lake.rows("order_completed")] == [
        {**of_event, **own},
        {**of_later, "gift": True, "shipped": at("2026-03-02T00:00:00")},
    ]
    nobody = {name: cell for name, cell in of_user.items() if name != "email"}
    assert [filled(row) for row in lake.rows("identifies")] == [
        {"id": "m2", "user_id": "u1", **of_user},
        {"id": "m4", "user_id": " ", **nobody},
    ]
    assert [row["id"] for row in lake.rows("users")] == ["u1"], "who is not named has no row among the users"
    group = {"id": "m5", "group_id": "g1", "plan": "pro", "received_at": at("2026-11-15T11:00:00"), "uuid_ts": loaded}
    assert filled(lake.row("groups")) == {**group, **STAMPS}
    told = [
        (r["table_name"], r["row_id"], r["column_name"], r["column_value"], r["reason"])
        for r in lake.rows_of_discards()
    ]
    assert told == [
        ("order_completed", "m3", "id", "mine", "the column id is for /messageId"),
        ("order_completed", "m3", "order_total", "n/a", "not a double"),
        ("order_completed", "m3", "shipped", "2026-02-30", "there is no such day, so the cell has a later one"),
        ("identifies", "m4", "age", "41.5", "cut to a whole number"),
    ]
    assert {(row["received_at"], row["uuid_ts"]) for row in lake.rows_of_discards()} == {
        (at("2026-11-15T11:00:00"), loaded),
        (at("2026-11-15T10:30:00"), loaded),
    }
    assert agrees(lake)


def test_types_are_as_theirs(lake: Lake) -> None:
    lake.sync_of(track("A", "m1", properties={"i": 5.0, "d": 1.5, "b": True, "s": "12", "t": "2020-01-01", "l": [1]}))
    types = lake.types("a")
    assert [types[name] for name in "idbstl"] == ["bigint", "double", "boolean", "string", "timestamp", "string"]
    assert (types["id"], types["received_at"], types["event"]) == ("string", "timestamp", "string")


# Where files lie, and who reads them


def paths(lake: Lake) -> set[str]:
    files = (path for path in lake.root.rglob("*.parquet") if "quarantine" not in path.parts)
    return {str(path.parent.relative_to(lake.root)) for path in files}


def test_folders_are_those_of_rudderstack_and_nothing_of_segment_is_there_but_the_archive(lake: Lake) -> None:
    lake.sync_of(track("A", "m1", properties={"n": 1}))
    lake.sync_of(track("A", "m2", properties={"n": "x"}), b"no event")
    hour = "2026/11/15/10"
    assert paths(lake) == {f"rudder-datalake/web/{table}/{hour}" for table in ("tracks", "a", "rudder_discards")}
    assert {path.name for path in lake.root.iterdir() if any(path.rglob("*"))} == {
        "eventlake",
        "rudder-datalake",
        "segment-logs",
    }
    assert sorted(path.name for path in (lake.root / "eventlake").iterdir()) == [
        "commits",
        "connections",
        "index",
        "quarantine",
        "reports",
    ]


@pytest.mark.parametrize(
    ("layout", "folder", "keys"),
    [
        ("dt=2006-01-02", "dt=2026-11-15", ["dt"]),
        ("year=2006/month=01", "year=2026/month=11", ["year", "month"]),
        ("year=2006/month=01/day=02/hour=15", "year=2026/month=11/day=15/hour=10", ["year", "month", "day", "hour"]),
    ],
)
def test_folders_may_have_any_number_of_keys(tmp_path: Path, layout: str, folder: str, keys: list[str]) -> None:
    lake = rudder(tmp_path / "workspace", time_window_layout=layout)
    lake.sync_of(track("A", "m1", properties={"n": 1, "month": 3}), track("A", "m2", receivedAt="2026-11-16T00:00:00Z"))
    assert f"rudder-datalake/web/a/{folder}" in paths(lake)
    table = next(table for table in lake.place.catalog.tables() if table.name == "a")
    assert list(table.partition_keys) == keys
    assert len(lake.place.catalog.partitions("web", "a")) == (1 if "month" in keys and "day" not in keys else 2)
    values = dict(part.split("=") for part in folder.split("/"))
    assert lake.query("select * from web.a where id = 'm1'")[0].items() >= values.items()
    kept = "month" not in keys
    assert [row["column_name"] for row in lake.rows_of_discards()] == ([] if kept else ["month"])
    assert agrees(lake)
    lake.run(jobs.replay(lake.connection, None, None))
    assert agrees(lake)


@in_folders
def test_other_engines_read_the_files_without_hints(tmp_path: Path, spark: SparkRunner) -> None:
    lake = rudder(tmp_path / "workspace", spark)
    lake.sync_of(track("A", "m1", properties={"n": 1, "d": 0.5, "t": "2020-01-01"}))
    lake.sync_of(track("A", "m2", properties={"n": 2, "new": True}))
    files = sorted(map(str, (lake.root / "rudder-datalake/web/a").rglob("*.parquet")))
    expected = [("m1", 1, 0.5, at("2020-01-01T00:00:00")), ("m2", 2, None, None)]
    columns = ["id", "n", "d", "t"]
    with duckdb.connect() as engine:
        engine.execute("SET TimeZone = 'UTC'")
        glob = f"{lake.root}/rudder-datalake/web/a/*/*/*/*/*.parquet"
        assert engine.execute(
            f"select id, n, d, t from read_parquet('{glob}', union_by_name=true) order by id"
        ).fetchall() == (expected)
    read = ds.dataset(files).to_table(columns=columns).sort_by("id").to_pylist()
    assert [tuple(row.values()) for row in read] == expected
    session = SparkSession.builder.getOrCreate()
    found = session.read.option("mergeSchema", True).parquet(*files).orderBy("id")
    rows = found.selectExpr("id", "n", "d", "unix_micros(t) as t").collect()
    assert [tuple(row) for row in rows] == [(*row[:3], micros_of(row[3]) if row[3] else None) for row in expected]
    parquet = pq.ParquetFile(files[0]).schema.column(pq.read_schema(files[0]).names.index("t"))
    assert "isAdjustedToUTC=true, timeUnit=microseconds" in str(parquet.logical_type)


@in_folders
def test_spark_sees_the_tables_of_a_layout_with_and_without_keys(tmp_path: Path, spark: SparkRunner) -> None:
    session = SparkSession(spark._context)
    for layout in ("2006/01/02/15", "dt=2006-01-02"):
        lake = rudder(tmp_path / layout.replace("/", "-"), time_window_layout=layout)
        lake.sync_of(track("A", "m1", properties={"n": 1}), track("A", "m2", properties={"n": 2}))
        names = register(session, *spark_tables(lake.place))
        assert f"{lake.connection.database}.a" in names
        rows = session.sql(f"select n from {lake.connection.database}.a order by n").collect()
        assert [row.n for row in rows] == [1, 2]
        for name in names:
            session.sql(f"drop table {name}")


# Settings


def test_the_namespace_is_named_after_the_source_as_theirs_is(tmp_path: Path) -> None:
    Workspace.create(tmp_path, "rudderstack")
    place = Workspace.open(tmp_path)
    made, _ = place.connections.add_source("web-2", name="Web Shop v2")
    assert made.database == "web_shop_v_2"
    assert place.connections.change("web-2", {"namespace": "Mein Shop"}).database == "mein_shop"
    long = "a very long name of a source " * 8
    expected = ("a_very_long_name_of_a_source_" * 8)[:127]
    assert place.connections.add_source("long", name=long)[0].database == expected
    assert place.connections.change("web-2", {"namespace": f"x {long}"}).database == f"x_{expected}"[:127]


@pytest.mark.parametrize(
    ("setting", "value", "problem"),
    [
        ("namespace", "pg_web", "does not begin with pg_"),
        ("time_window_layout", "YYYY/MM", "write the year as 2006"),
        ("time_window_layout", "event=2006", "event is the name of a column that tables have"),
        ("time_window_layout", "year=2006/01", "either every folder has a key or none has"),
        ("skip_tracks_table", "perhaps", "must be true or false"),
        ("source_category", "x", "'event' or 'cloud'"),
        ("types", "total=decimal", "'decimal' is not a column type: use one of bigint, boolean, double"),
        ("types", "properties.total=double", "write it as in the lake"),
        ("database", "web", "there is no setting 'database'"),
        ("table_prefix", "x", "there is no setting 'table_prefix'"),
    ],
)
def test_a_wrong_setting_is_refused_with_what_is_allowed(lake: Lake, setting: str, value: str, problem: str) -> None:
    with pytest.raises(InvalidSettingsError) as error:
        lake.workspace.connections.change("web", {setting: value})
    assert problem in f"{error.value.problem} {error.value.fix}"


def test_the_namespace_cannot_be_changed_once_there_are_tables(lake: Lake) -> None:
    lake.sync_of(track("A", "m1"))
    for change in (
        {"namespace": "other"},
        {"time_window_layout": "dt=2006-01-02"},
        {"underscore_divide_numbers": "true"},
    ):
        with pytest.raises(InvalidSettingsError, match="would break its existing tables"):
            lake.workspace.connections.change("web", change)
    wanted = lake.workspace.connections.preview("web", {"namespace": "other", "underscore_divide_numbers": "true"})
    lake.run(jobs.rebuild(wanted))
    assert paths(lake) == {f"rudder-datalake/other/{table}/2026/11/15/10" for table in ("a", "tracks")}
    assert [table.database for table in lake.place.catalog.tables()] == ["other", "other"]
    assert agrees(lake)


def test_a_type_may_be_declared_beforehand_and_changed_later(lake: Lake) -> None:
    lake.workspace.connections.change("web", {"types": "a:total=double, *_code=string"})
    lake.sync_of(track("A", "m1", properties={"total": 5, "zip_code": 12345}))
    assert (lake.types("a")["total"], lake.types("a")["zip_code"]) == ("double", "string")
    job = requests.retype(lake.place, "web.a", "total", "bigint")
    assert job
    lake.run(job)
    assert lake.row("a")["total"] == 5
    for table, column, kind in (("a", "total", "decimal"), ("a", "id", "bigint"), ("a", "uuid_ts", "string")):
        with pytest.raises(InvalidSettingsError):
            requests.retype(lake.place, f"web.{table}", column, kind)


def test_a_lake_whose_dialect_was_changed_in_the_settings_file_is_refused(tmp_path: Path) -> None:
    lake = rudder(tmp_path / "workspace")
    lake.sync_of(track("A", "m1"))
    config = lake.workspace.folder / CONFIG
    config.write_text(config.read_text().replace('dialect = "rudderstack"\n', ""))
    there, again = sorted(lake.root.rglob("*")), Workspace.open(lake.workspace.folder, SetClock())
    web = again.connections.get("web")
    attempts: list[Callable[[], object]] = [
        lambda: run(again, jobs.sync(web), InProcess()),
        lambda: run(again, jobs.replay(web, None, None), InProcess()),
        lambda: verify(again, web, InProcess()),
        lambda: query(again.lake(), "select 1"),
    ]
    for attempt in attempts:
        with pytest.raises(InvalidSettingsError, match="is in the dialect rudderstack") as error:
            attempt()
        assert 'put dialect = "rudderstack" back' in error.value.fix
    assert sorted(lake.root.rglob("*")) == there


def test_the_raw_options_of_an_event_are_honoured(lake: Lake) -> None:
    def with_options(message_id: str, destination: str, **options: bool) -> dict[str, Any]:
        return track("Order", message_id, integrations={destination: {"options": options}}, properties={"user": "x"})

    lake.sync_of(
        track("Order", "m1", properties={"user": "x"}),
        with_options("m2", "S3_DATALAKE", skipTracksTable=True),
        with_options("m3", "DATA_WAREHOUSE", skipReservedKeywordsEscaping=True),
        with_options("m4", "S3_DATALAKE", skipTracksTable=False),
        {**SIGN_UP, "messageId": "m5", "integrations": {"DATA_WAREHOUSE": {"options": {"skipUsersTable": True}}}},
    )
    assert [row["id"] for row in lake.rows("tracks")] == ["m1", "m3", "m4"]
    assert [(row["id"], row["_user"]) for row in lake.rows("_order")] == [("m1", "x"), ("m2", "x"), ("m4", "x")]
    assert filled(lake.row("order")).items() >= {"id": "m3", "user": "x"}.items()
    assert "users" not in lake.tables()
    assert agrees(lake)


def test_an_event_may_ask_for_the_names_of_blendo(lake: Lake) -> None:
    options = {"S3_DATALAKE": {"options": {"useBlendoCasing": True}}}
    asked = {"price in $": 1, "sha256Hash": "h", "2nd": True, "order": "o", "a": {"bC": 1}, "Größe": 2}
    lake.sync_of(
        track(" Sign-Up (v2)", "m1", integrations=options, properties=asked),
        track(r"C:\New", "m2", integrations=options),
        track(" Sign-Up (v2)", "m3", properties={"sha256Hash": "h"}),
    )
    row = filled(lake.row("sign_up__v2_"))
    assert (
        row.items() >= {"price_in_$": 1, "sha256hash": "h", "_2nd": True, "_order": "o", "a_bc": 1, "gr__e": 2}.items()
    )
    assert lake.row("sign_up_v2")["sha256_hash"] == "h"
    assert lake.row(r"c_\new")["id"] == "m2"
    assert [(row["event"], row["event_text"]) for row in lake.rows("tracks")] == [
        ("sign_up_v2", " Sign-Up (v2)"),
        ("c_new", r"C:\New"),
        ("sign_up_v2", " Sign-Up (v2)"),
    ]
    assert agrees(lake)


def test_records_of_a_cloud_application_are_known_by_their_own_ids(tmp_path: Path) -> None:
    lake = rudder(tmp_path / "workspace", source_category="cloud")
    deep = {"a": {"b": {"c": {"d": {"e": 1}, "f": 2}}}}
    record = {"type": "extract", "event": "Contacts", "messageId": "m1", "recordId": "r1", "properties": deep}
    lake.sync_of(record, {**record, "messageId": "m2"})
    lake.sync_of(track("Contacts", "m3", properties={"_message_id": 1}))
    assert [(row["row_id"], row["column_name"]) for row in lake.rows_of_discards()] == [("m3", "_message_id")]
    assert (lake.rows("contacts")[2]["id"], lake.row("tracks")["id"]) == ("m3", "m3")
    rows = lake.rows("contacts")[:2]
    assert [(row["id"], row["_message_id"], row["event"]) for row in rows] == [
        ("r1", "m1", "Contacts"),
        ("r1", "m2", "Contacts"),
    ]
    assert (rows[0]["a_b_c_d"], rows[0]["a_b_c_f"]) == ('{"e":1}', 2)
    assert lake.tables() == ["contacts", "rudder_discards", "tracks"]
    assert "no fast reader" not in str(lake.place.runs.latest(1)[0].report)
    assert agrees(lake)


# Names that file systems and catalogs do not bear


def test_a_long_name_is_stored_under_a_shorter_folder_and_keeps_its_table(lake: Lake) -> None:
    lake.sync_of(track("long " * 60, "m1", properties={"key " * 100: 1}))
    name = "_".join(["long"] * 60)
    assert lake.tables() == [name, "tracks"]
    assert lake.row(name)["_".join(["key"] * 100)] == 1
    assert all(len(part) <= 200 for path in paths(lake) for part in path.split("/"))
    assert agrees(lake)


@pytest.mark.parametrize(
    "event", ["../../etc", "a/b", "", " ", "x'; drop table users; --", "\x00", "🎉", "con", "users"]
)
def test_hostile_event_names_stay_where_tables_are(lake: Lake, event: str) -> None:
    report = lake.sync_of(track(event, "m1", properties={event: event, "../x": 1}))
    assert report[0]["books"]["loaded"] == (1 if event else 0)
    inside = {path.split("/")[:2] == ["rudder-datalake", "web"] for path in paths(lake)}
    assert inside <= {True}
    assert agrees(lake)


# Runs


def test_a_replay_of_one_event_writes_its_discards_anew_and_no_others(lake: Lake) -> None:
    lake.sync_of(track("A", "m1", properties={"n": 1}), track("B", "m2", properties={"n": 1}))
    lake.sync_of(track("A", "m3", properties={"n": "x"}), track("B", "m4", properties={"n": "y"}))
    before = {file.path for file in lake.place.ledger.data_files("src1") if (file.owner or file.table_key) != "a"}
    report = lake.run(requests.replay(lake.place, lake.connection, None, None, ["A"]))
    assert report[0]["rewritten"] == 2
    after = {file.path for file in lake.place.ledger.data_files("src1")}
    assert before < after
    assert [(row["row_id"], row["column_value"]) for row in lake.rows_of_discards()] == [("m3", "x"), ("m4", "y")]
    assert agrees(lake)
    with pytest.raises(NotFoundError):
        requests.replay(lake.place, lake.connection, None, None, ["C"])


def test_a_table_that_is_dropped_takes_its_discards_along(lake: Lake) -> None:
    lake.sync_of(track("A", "m1", properties={"n": 1}), track("B", "m2", properties={"n": 1}))
    lake.sync_of(track("A", "m3", properties={"n": "x"}), track("B", "m4", properties={"n": "y"}))
    lake.run(requests.drop(lake.place, "web.a"))
    assert lake.tables() == ["b", "rudder_discards", "tracks"]
    assert [row["row_id"] for row in lake.rows_of_discards()] == ["m4"]
    assert agrees(lake)
    for ask in (lambda: requests.drop(lake.place, "web.rudder_discards"), _retype_discards(lake)):
        with pytest.raises(InvalidSettingsError, match="made from the other tables"):
            ask()


def _retype_discards(lake: Lake) -> Callable[[], object]:
    return lambda: requests.retype(lake.place, "web.rudder_discards", "reason", "bigint")


@pytest.mark.parametrize("table", ["tracks", "a", "users", "rudder_discards"])
def test_what_is_lost_of_any_table_is_found_and_mended(lake: Lake, table: str) -> None:
    lake.sync_of(track("A", "m1", properties={"n": 1}), SIGN_UP)
    lake.sync_of(track("A", "m3", properties={"n": "x"}))
    before = {name: lake.query(f"select * exclude (uuid_ts) from web.{name} order by all") for name in lake.tables()}
    gone = next(file for file in lake.place.ledger.data_files("src1") if file.table_key == table)
    lake.place.storage.delete(gone.path)
    findings = verify(lake.workspace, lake.connection, lake.runner)
    assert "data_file_gone" in {finding.kind for finding in findings}
    repair(lake.workspace, lake.connection, findings, lake.runner)
    assert agrees(lake)
    after = {name: lake.query(f"select * exclude (uuid_ts) from web.{name} order by all") for name in lake.tables()}
    assert after == before


def test_a_table_is_replayed_by_its_own_name_where_events_asked_for_one(lake: Lake) -> None:
    options = {"S3_DATALAKE": {"options": {"skipReservedKeywordsEscaping": True}}}
    lake.sync_of(track("order", "m1", integrations=options), track("A", "m2"))
    keys = {table.name: table.table_key for table in lake.place.catalog.tables()}
    for name in ("order", f"{lake.connection.database}.order"):
        job = requests.replay(lake.place, lake.connection, None, None, [name])
        assert job.scope
        assert job.scope.table_keys == frozenset({keys["order"]})
    with pytest.raises(NotFoundError, match="no table for the event 'nothing'"):
        requests.replay(lake.place, lake.connection, None, None, ["nothing"])
    with pytest.raises(InvalidSettingsError, match="ends before it begins"):
        requests.replay(lake.place, lake.connection, 5, 5)


@pytest.mark.skipif(ON_POSTGRES, reason="deletes an SQLite file")
def test_a_database_that_is_lost_is_built_anew_from_the_lake(lake: Lake) -> None:
    lake.sync_of(track("A", "m1", properties={"n": 1}), SIGN_UP)
    lake.sync_of(track("A", "m3", properties={"n": "x"}))
    before = {table: lake.query(f"select * from web.{table} order by all") for table in lake.tables()}
    settings = lake.connection.settings
    lake.workspace.close()
    (lake.workspace.folder / "eventlake.db").unlink()
    place = Workspace.open(lake.workspace.folder, SetClock("2026-11-15T14:00:00Z"))
    restore(place, "default")
    lake.workspace = place
    assert lake.connection.settings == settings
    assert {table: lake.query(f"select * from web.{table} order by all") for table in lake.tables()} == before
    assert agrees(lake)
    assert lake.sync()[0]["books"]["loaded"] == 0


@pytest.mark.skipif(ON_POSTGRES, reason="copies an SQLite file")
@pytest.mark.parametrize(
    "step", [pytest.param(1, marks=pytest.mark.long, id="all"), pytest.param(7, id="every seventh")]
)
@pytest.mark.parametrize("job", ["sync", "replay", "rebuild"])
def test_killed_at_any_change_readers_see_no_half_run_and_the_next_run_makes_it_good(
    tmp_path: Path, job: str, step: int
) -> None:
    def ready(name: str) -> Lake:
        lake = rudder(tmp_path / name)
        lake.sync_of(track("A", "m0", properties={"n": 1}), SIGN_UP)
        lake.put(track("A", "m1", properties={"n": "x"}), track("A", "m0"), track("B", "m3"), b"broken")
        if job != "sync":
            lake.sync()
        return lake

    first = ready("first")
    before = rows_but_times(first)
    first.workspace.close()

    def another(name: str) -> Lake:
        if IN_BUCKETS:  # which are not copied with the folder
            return ready(name)
        shutil.copytree(first.workspace.folder, tmp_path / name)
        return Lake(tmp_path / name, InProcess(), clock=SetClock("2026-11-15T13:00:00Z"))

    undisturbed = another("undisturbed")
    changes = killed_at(undisturbed.workspace.folder, job, -1).changes
    after = rows_but_times(undisturbed)
    assert {"rudder_discards", "users", "tracks", "a", "b"} <= after.keys()
    for change in range(0, changes, step):
        lake = another(str(change))
        killed_at(lake.workspace.folder, job, change)
        if job != "rebuild":  # while one goes on, a table may be there with the keys of both layouts
            assert rows_but_times(lake) in (before, after), change  # columns may be there before their values
        lake.sync()
        if job == "rebuild" and rows_but_times(lake) == before:  # killed before the commit: it never happened
            killed_at(lake.workspace.folder, job, -1)
        assert rows_but_times(lake) == after, change
        assert agrees(lake), change
        assert not lake.staged(), change


def rows_but_times(lake: Lake) -> dict[str, Any]:
    """All cells of all rows, without the time at which each was written."""
    return {
        table: sorted(
            str(sorted((name, cell) for name, cell in row.items() if cell is not None and name != "uuid_ts"))
            for row in rows
        )
        for table, rows in lake.all_rows().items()
        if rows
    }


@in_folders
def test_what_is_under_way_lies_where_theirs_does(tmp_path: Path) -> None:
    lake = rudder(tmp_path / "workspace")
    lake.put(track("A", "m1"))
    assert killed_at(lake.workspace.folder, "sync", 10).was_killed
    assert (lake.root / "rudder-warehouse-staging-logs").is_dir()
    assert {path.name for path in lake.root.iterdir()} <= {
        *("rudder-warehouse-staging-logs", "rudder-datalake", "eventlake", "segment-logs")
    }


# Two dialects beside each other


def test_one_source_fills_a_lake_of_each_dialect_with_books_of_their_own(tmp_path: Path) -> None:
    settings = '[lakes.rudder]\nroot = "rudder"\ndialect = "rudderstack"\n'
    lake = Lake(tmp_path / "workspace", InProcess(), clock=SetClock(), settings=settings)
    place = lake.workspace
    place.connections.connect("web", "rudder", {"skip_users_table": "false"})
    lake.put(ORDER, SIGN_UP, {**ORDER, "messageId": "m9"})
    reports = [run(place, jobs.sync(one), lake.runner) for one in place.connections.find("web")]
    assert [report[0]["books"]["loaded"] for report in reports] == [3, 3]
    assert [table.name for table in place.lake().catalog.tables()] == ["identify", "track_order_completed"]
    assert [table.name for table in place.lake("rudder").catalog.tables()] == [
        "identifies",
        "order_completed",
        "tracks",
        "users",
    ]
    for one in place.connections.find("web"):
        assert verify(place, one, lake.runner) == []
    with pytest.raises(InvalidSettingsError, match="are for the dialect segment"):
        place.connections.copy("web/default", "web/rudder")
    shutil.rmtree(tmp_path / "workspace" / "rudder")
    (tmp_path / "workspace" / "rudder").write_text("in the way")
    lake.put(track("A", "m10"))
    assert run(place, jobs.sync(place.connections.get("web")), lake.runner)[0]["books"]["loaded"] == 1


def test_reports_are_json_lines_beside_the_books(lake: Lake) -> None:
    report = lake.sync_of(ORDER)
    (path,) = (lake.root / "eventlake" / "reports").rglob("report.json")
    assert [json.loads(line) for line in path.read_text().splitlines()] == report


# Tables that somebody else made


def written(path: Path, table: pa.Table) -> Path:
    """A Parquet file, in a folder or in a bucket."""
    content = io.BytesIO()
    pq.write_table(table, content)
    if not IN_BUCKETS:
        path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.getvalue())
    return path


def theirs(lake: Lake, table: str, **columns: Any) -> Path:
    """A file as RudderStack writes it: columns in order of their names, times without a zone."""
    folder = lake.root / "rudder-datalake" / "web" / table / "2026/10/01/09"
    others = list(folder.iterdir()) if folder.exists() else []
    path = folder / f"1790845200.src1.{table}.{len(others)}.parquet"
    received = pa.array([at("2026-10-01T09:00:00")]).cast(pa.timestamp("us"))
    cells = {name: pa.array([value]) for name, value in columns.items()} | {"received_at": received}
    return written(path, pa.table(dict(sorted(cells.items()))))


@in_folders
def test_files_of_both_give_the_same_instants_to_whoever_reads_them_as_the_page_says(
    tmp_path: Path, spark: SparkRunner
) -> None:
    lake = rudder(tmp_path / "workspace", spark)
    theirs(lake, "a", id="old")
    lake.run(requests.adopt(lake.place, lake.connection))
    lake.sync_of(track("A", "m1", receivedAt="2026-11-15T10:00:00Z"))
    page = (Path(__file__).parent.parent / "docs" / "coming-from-rudderstack.md").read_text()
    section = page.partition("## Settings side by side")[0].replace("FOLDER", f"{lake.root}/rudder-datalake/web/a")
    sql, of_spark, of_arrow = re.findall(r"```(?:sql|python)\n(.+?)```", section, re.DOTALL)
    expected = [("m1", micros_of(at("2026-11-15T10:00:00"))), ("old", micros_of(at("2026-10-01T09:00:00")))]
    with duckdb.connect() as engine:
        engine.execute("SET TimeZone = 'America/New_York'")
        engine.execute(sql)
        assert sorted((name, micros_of(time)) for name, time in engine.fetchall()) == expected
    session = SparkSession.builder.getOrCreate().newSession()
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    found: dict[str, Any] = {"spark": session}
    exec(of_spark, found)
    rows = found["rows"].selectExpr("id", "unix_micros(received_at)").collect()
    assert sorted(map(tuple, rows)) == expected
    exec(of_arrow, found)
    read = found["rows"].to_pylist()
    assert sorted((row["id"], micros_of(row["received_at"])) for row in read) == expected


@in_folders
def test_tables_of_rudderstack_are_gone_on_with_in_their_types(lake: Lake) -> None:
    old = theirs(lake, "a", id="old", event="a", price=5, plan=True)
    theirs(lake, "a", id="older", event="a", ratio=0.5)
    theirs(lake, "tracks", id="old", user_id=7, uuid_ts="2026-10-01", context_source_id=1)
    shown = requests.adopt(lake.place, lake.connection).adopted
    assert [(table.table, len(table.added)) for table in shown] == [("a", 6), ("tracks", 5)]
    report = lake.run(requests.adopt(lake.place, lake.connection))
    assert report[0]["notices"] == ["2 tables with 11 columns taken over"]
    assert (lake.types("a")["price"], lake.types("a")["plan"], lake.types("a")["ratio"]) == (
        "bigint",
        "boolean",
        "double",
    )
    lake.sync_of(track("A", "m1", properties={"price": 1.5, "plan": "pro", "new": "x"}, userId="u1"))
    row = lake.row("a")
    assert (row["price"], row["plan"], row["new"]) == (1, None, "x")
    of_call = lake.row("tracks")
    assert of_call["user_id"] is None, "theirs is a bigint, and stays one"
    assert (of_call["uuid_ts"][:19], of_call["context_source_id"]) == ("2026-11-15 12:00:00", None)
    told = {(r["table_name"], r["column_name"], r["column_value"]) for r in lake.rows_of_discards()}
    assert told == {("a", "price", "1.5"), ("a", "plan", "pro"), ("tracks", "user_id", "u1")}
    with duckdb.connect() as engine:
        glob = f"{lake.root}/rudder-datalake/web/a/*/*/*/*/*.parquet"
        sql = f"select id, price from read_parquet('{glob}', union_by_name=true) order by id"
        assert engine.execute(sql).fetchall() == [("m1", 1), ("old", 5), ("older", None)]
    assert agrees(lake), "files of theirs are left alone"
    lake.run(jobs.replay(lake.connection, None, None))
    assert old.exists()
    (old.parent / "1794744000000004000-0123456789abcdef-1.parquet").write_bytes(old.read_bytes())
    assert [one.kind for one in verify(lake.workspace, lake.connection, lake.runner)] == ["foreign_file"]


def test_what_cannot_be_gone_on_with_is_refused(lake: Lake) -> None:
    def refused(problem: str) -> None:
        with pytest.raises((InvalidSettingsError, NotFoundError)) as error:
            requests.adopt(lake.place, lake.connection)
        assert problem in error.value.problem

    refused("there is no table in")
    odd = theirs(lake, "a", id="old", tags=["x"])
    refused("web.a has columns of types that the dialect rudderstack does not write: tags (list<")
    odd.unlink()
    numbered = theirs(lake, "a", id=5)
    refused("web.a.id is bigint, and must be string")
    numbered.unlink()
    theirs(lake, "a", id="old")
    lake.sync_of(track("B", "m1"))
    refused("web has tables of its own already")


@in_folders
def test_what_a_connection_does_without_is_passed_over_when_the_rest_is_taken_over(lake: Lake) -> None:
    theirs(lake, "a", id="old", price=5, tags=["x"])
    odd = theirs(lake, "odd", id="old")
    (lake.root / "rudder-datalake/web/odd/dt=2026-10-01").mkdir()
    odd.rename(lake.root / "rudder-datalake/web/odd/dt=2026-10-01/1.parquet")

    def refused() -> str:
        with pytest.raises(InvalidSettingsError) as error:
            requests.adopt(lake.place, lake.connection)
        (select,) = re.findall(r"connection set web select=(\S+)`", error.value.fix)
        return str(select)

    lake.workspace.connections.change("web", {"select": refused()})
    lake.workspace.connections.change("web", {"select": refused()})
    assert lake.connection.settings.select == "-odd, -a:tags"
    report = lake.run(requests.adopt(lake.place, lake.connection))
    assert report[0]["notices"] == ["1 table with 3 columns taken over"]
    lake.sync_of(track("A", "m1", properties={"price": 1, "tags": "y"}), track("Odd", "m2"))
    assert lake.tables() == ["a", "tracks"]
    assert "tags" not in lake.types("a")
    assert agrees(lake)


def test_folders_that_do_not_tell_the_name_of_their_table_are_not_taken_for_another() -> None:
    dialect = RudderStackDialect("src1", "lake", "web")
    for key in ("a", "a" * 200, "a" * 191 + "_20261115"):
        assert dialect.key_at(dialect.location(key)) in (key, None)
    assert dialect.key_at(dialect.location("order_20261115")) == "order_20261115"
    assert dialect.key_at(dialect.location("a" * 300)) is None
    assert dialect.key_at(f"{dialect.data_folder}/{'a' * 300}") is None
    assert dialect.key_at("rudder-datalake/other/a") is None


@pytest.mark.skipif(ON_POSTGRES, reason="deletes an SQLite file")
def test_what_was_taken_over_is_known_after_a_restore(lake: Lake) -> None:
    theirs(lake, "a", id="old", price=5)
    lake.run(requests.adopt(lake.place, lake.connection))
    lake.sync_of(track("A", "m1", properties={"price": 1.5}))
    types = lake.types("a")
    lake.workspace.close()
    (lake.workspace.folder / "eventlake.db").unlink()
    lake.workspace = Workspace.open(lake.workspace.folder, SetClock("2026-11-15T14:00:00Z"))
    restore(lake.workspace, "default")
    assert lake.types("a") == types
    assert agrees(lake)


def test_tables_of_segment_are_gone_on_with_as_well(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "workspace", InProcess(), clock=SetClock())
    folder = lake.root / "segment-data/data/src1/segment_type=page/day=2026-10-01/hr=09"
    cells = {
        "message_id": pa.array(["old"]),
        "received_at": pa.array([at("2026-10-01T09:00:00")]),
        "name": pa.array(["x"]),
    }
    written(folder / "part-0.parquet", pa.table(cells | {"properties_n": pa.array([5])}))
    lake.run(requests.adopt(lake.place, lake.connection))
    lake.sync_of({"type": "page", "messageId": "m1", "properties": {"n": "five"}})
    assert lake.types("page")["properties_n"] == "bigint"
    assert lake.rescued("page")["/properties/n"]["value"] == "five"
    assert agrees(lake)


# What a stranger found


def as_they_are(message_id: str, **fields: Any) -> dict[str, Any]:
    """An event that wants reserved words as they are."""
    options = {"S3_DATALAKE": {"options": {"skipReservedKeywordsEscaping": True}}}
    return track("A", message_id, integrations=options, **fields)


def test_names_that_an_event_asks_for_do_not_mix_up_the_values_of_others(lake: Lake) -> None:
    lake.sync_of(
        as_they_are("m1", properties={"order": "pppp"}, userProperties={"order": "u"}),
        as_they_are("m2", properties={"order": "second"}),
        as_they_are("m3", properties={"order": "third", "_timestamp": "1999-01-01"}),
    )
    assert [row["order"] for row in lake.rows("a")] == ["u", "second", "third"]
    told = [(row["row_id"], row["column_name"], row["column_value"]) for row in lake.rows_of_discards()]
    assert told == [("m1", "order", "pppp"), ("m3", "_timestamp", "1999-01-01")]
    assert agrees(lake)


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_value_that_was_cut_stays_beside_the_column_that_it_was_for(lake: Lake, is_lost: bool) -> None:
    lake.workspace.connections.change("web", {"allow_users_context_traits": "true"})

    def identify(message_id: str, age: Any) -> dict[str, Any]:
        return {**SIGN_UP, "messageId": message_id, "traits": {}, "context": {"traits": {"age": age}}}

    lake.sync_of(
        track("A", "m0", properties={"order": "x"}), as_they_are("m1", properties={"order": 1}), identify("i1", 1)
    )
    raw = lake.put(as_they_are("m2", properties={"order": 2.5}), identify("i2", 2.5), identify("i3", "abc"))
    lake.sync()

    def found() -> tuple[Any, Any, Any]:
        orders = [(row["order"], row["_order"]) for row in lake.rows("a")]
        ages = [(row["age"], row["context_traits_age"]) for row in lake.rows("identifies")]
        names = ("table_name", "row_id", "column_name", "column_value")
        return orders, ages, sorted(tuple(row[name] for name in names) for row in lake.rows_of_discards())

    before = found()
    assert before[0] == [(None, "x"), (1, None), (2, None)]
    assert before[1] == [(1, 1), (2, 2), (None, None)]
    assert [entry[2] for entry in before[2] if entry[0] == "identifies"] == ["age", "context_traits_age"] * 2
    if is_lost:
        raw.unlink()
    lake.run(jobs.replay(lake.connection, None, None))
    assert found() == before


def test_a_discard_of_a_row_without_an_id_names_its_message(lake: Lake) -> None:
    theirs(lake, "users", id=5)
    lake.run(requests.adopt(lake.place, lake.connection))
    lake.sync_of({**SIGN_UP, "userId": "abc"})
    assert [(row["row_id"], row["column_value"]) for row in lake.rows_of_discards()] == [("m2", "abc")]
    assert agrees(lake)


def test_traits_do_not_fill_the_columns_of_users_that_are_for_others(lake: Lake) -> None:
    lake.sync_of(
        {**SIGN_UP, "anonymousId": "a", "traits": {"anonymousId": "x", "channel": "y", "sent_at": "2001-01-01"}}
    )
    assert {lake.row("users")[name] for name in ("anonymous_id", "channel", "sent_at")} == {None}
    assert len(lake.rows_of_discards()) == 6, "in both tables"
    assert agrees(lake)


def test_what_was_taken_over_fixes_namespace_and_layout(lake: Lake) -> None:
    theirs(lake, "a", id="old")
    lake.run(requests.adopt(lake.place, lake.connection))
    with pytest.raises(InvalidSettingsError, match="would break its existing tables"):
        lake.workspace.connections.change("web", {"namespace": "other"})


def test_objects_that_a_table_has_nothing_of_take_no_room_in_it(tmp_path: Path) -> None:
    lake = rudder(tmp_path / "workspace", column_limit="20")
    odd = [track("A", f"m{n}", properties={f"o{n}": {"y": 1}, "B": 1, "b": 2}) for n in range(90)]
    lake.sync_of(*odd, track("A", "last", context={"page": {"url": "u"}}, properties={"B": 1, "b": 2}))
    assert lake.rows("tracks")[0]["context_page_url"] == "u"
    assert "tracks" not in {row["table_name"] for row in lake.rows_of_discards()}


def test_a_user_that_is_only_a_blank_of_another_script_is_none_however_it_is_read(lake: Lake) -> None:
    blank = {**SIGN_UP, "userId": "\u3000"}
    lines = [{**blank, "messageId": "m8", "traits": {"a": 1}}, {**blank, "messageId": "m9", "traits": {"a": 1, "A": 2}}]
    lake.sync_of(*(json.dumps(line, ensure_ascii=False).encode() for line in lines))
    assert lake.tables() == ["identifies", "rudder_discards"]


def test_discards_that_are_gone_leave_nothing_for_verify_to_find(tmp_path: Path) -> None:
    lake = rudder(tmp_path / "workspace", time_window_layout="dt=2006-01-02")
    lake.sync_of(track("A", "m1", properties={"order": 1}))
    lake.sync_of(track("A", "m2", properties={"order": "x", "n": 1}))
    job = requests.retype(lake.place, "web.a", "_order", "string")
    assert job
    lake.run(job)
    assert [row["_order"] for row in lake.rows("a")] == ["1", "x"]
    assert lake.rows_of_discards() == []
    assert agrees(lake)


def test_a_source_may_be_called_like_a_namespace_that_is_not_allowed(tmp_path: Path) -> None:
    Workspace.create(tmp_path, "rudderstack")
    assert Workspace.open(tmp_path).connections.add_source("pg-shop")[0].database == "source_pg_shop"


def test_a_key_that_comes_twice_is_kept_beside_the_row_that_has_its_column(lake: Lake) -> None:
    lake.sync_of(b'{"type":"track","event":"A","messageId":"m1","properties":{"x":1,"x":2},"userId":"u","userId":"v"}')
    told = [(row["table_name"], row["column_name"], row["column_value"]) for row in lake.rows_of_discards()]
    assert sorted(told) == [("a", "x", "2"), ("tracks", "user_id", "v")]


def test_files_in_another_layout_are_not_gone_on_with(tmp_path: Path) -> None:
    lake = rudder(tmp_path / "workspace", time_window_layout="dt=2006-01-02")
    theirs(lake, "a", id="old")
    with pytest.raises(InvalidSettingsError, match=r"web\.a is laid out by 0000/00/00/00, and web by dt="):
        requests.adopt(lake.place, lake.connection)
