"""Views like the tables of Segment's warehouses: what they are, in DuckDB, in Spark and in Glue."""

import base64
import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from aws import Aws, rights_checked
from conftest import InProcess, Lake, SetClock, track
from eventlake.catalog import athena_views, view_sql, warehouse
from eventlake.catalog.base import CatalogTable
from eventlake.catalog.warehouse import Cell, View
from eventlake.commit.commit import show_views
from eventlake.errors import InvalidSettingsError
from eventlake.lake.segment import SegmentDialect, TableNaming
from eventlake.library.spark_tables import spark_tables
from eventlake.runners.spark import SparkRunner
from eventlake.runners.spark_tables import register
from eventlake.schema.evolve import Column, TableSchema
from eventlake.schema.types import ColumnType
from eventlake.sync import jobs
from test_aws import OnAws, on_aws  # noqa: F401 - a fixture

PAGE = Path(__file__).parent.parent / "docs" / "warehouse.md"


def table(key: str, *columns: str, keys: tuple[str, ...] = ("day", "hr"), **types: ColumnType) -> CatalogTable:
    named = [Column(name, ColumnType.STRING, "") for name in ("message_id", "received_at", "user_id", *columns)]
    typed = [Column(name, kind, "") for name, kind in types.items()]
    return CatalogTable("web", key, "src1", key, f"data/{key}", keys, TableSchema((*named, *typed)))


def named(*tables: CatalogTable, **dialect: Any) -> dict[str, View]:
    return {view.name: view for view in warehouse.views(tables, SegmentDialect("src1", "web", **dialect))}


# What the views are


def test_every_call_has_the_table_that_a_warehouse_has_and_users_have_their_last_state() -> None:
    calls = ("identify", "group", "alias", "page", "screen")
    found = named(*(table(call, "group_id") for call in calls), table("track_order_completed"))
    assert list(found) == [
        *("accounts", "aliases", "groups", "identifies", "order_completed", "pages", "screens", "tracks", "users")
    ]
    assert (found["users"].latest_of, found["accounts"].latest_of) == ("user_id", "group_id")
    assert list(named(table("page"))) == ["pages"]
    assert "users" in named(table("identify"))
    assert "accounts" not in named(table("group"))  # nobody said which


def test_columns_have_the_names_of_a_warehouse_and_what_it_does_not_have_is_left_out() -> None:
    left_out = ("channel", "version", "type", "project_id", "metadata_bundled", "integrations_all", "_rescued_data")
    found = named(
        table("track_a", "event", "context_ip", "properties_total", "traits_x", "name", *left_out, "properties_name")
    )
    assert found["a"].parts[0].cells == {
        "id": Cell("message_id"),
        "received_at": Cell("received_at"),
        "user_id": Cell("user_id"),
        "event_text": Cell("event"),
        "context_ip": Cell("context_ip"),
        "total": Cell("properties_total"),
        "name": Cell("properties_name"),  # of a track, a name is a property like any other
        "event": Cell(text="a"),
        "day": Cell("day"),
        "hr": Cell("hr"),
    }
    assert set(found["tracks"].columns) == set(found["a"].columns) - {"total", "name"}
    users = named(table("identify", "anonymous_id", "traits_email", "traits_day"))["users"]
    assert users.parts[0].cells["id"] == Cell("user_id")
    assert set(users.columns) == {"id", "received_at", "user_id", "email", "day"}
    assert users.parts[0].cells["day"] == Cell("traits_day")


@pytest.mark.parametrize("reserved", warehouse.ENVELOPE)
def test_a_property_does_not_replace_what_the_event_says_of_itself(reserved: str) -> None:
    for prefix, call in (("properties_", "track_a"), ("traits_", "identify"), ("properties_", "page")):
        for view in named(table(call, f"{prefix}{reserved}")).values():
            assert Cell(f"{prefix}{reserved}") not in view.parts[0].cells.values()


def test_a_property_that_is_called_like_a_part_of_the_call_or_like_a_partition() -> None:
    both = named(table("page", "name", "properties_name", "properties_day"))["pages"].parts[0].cells
    assert (both["name"], both["day"], both["hr"]) == (Cell("name"), Cell("properties_day"), Cell("hr"))
    assert named(table("page", "properties_name"))["pages"].parts[0].cells["name"] == Cell("properties_name")
    days = named(table("track_a", "properties_day"), table("track_b"))["tracks"]
    assert [part.cells["day"] for part in days.parts] == [Cell("day"), Cell("day")]
    assert "previous_id" in named(table("alias", "previous_id"))["aliases"].columns
    assert "group_id" not in named(table("page", "group_id"))["pages"].columns


def test_an_event_does_not_take_the_name_of_a_table_that_is_for_all() -> None:
    keys = ["track_tracks", "track_users", "track_track_tracks", "track_pages", "track_page", "track_identify"]
    found = named(*map(table, keys))
    assert {view.parts[0].table.name: name for name, view in found.items() if name != "tracks"} == {
        "track_tracks": "track_track_tracks",
        "track_users": "track_users",
        "track_track_tracks": "track_tracks",
        "track_pages": "track_pages",
        "track_page": "page",
        "track_identify": "identify",
    }


def test_names_of_events_do_not_depend_on_how_tables_are_named() -> None:
    plain = named(table("order_completed"), table("track_page"), table("track_x"), naming=TableNaming.PLAIN)
    assert set(plain) == {"order_completed", "page", "track_x", "tracks"}
    events = {part.cells["event"].text for part in plain["tracks"].parts}
    assert events == {"order_completed", "page", "track_x"}


def test_columns_of_several_types_have_one_that_holds_them_all() -> None:
    kinds = ColumnType
    found = named(
        table("track_a", context_n=kinds.BIGINT, context_t=kinds.TIMESTAMP, context_b=kinds.BOOLEAN),
        table("track_b", context_n=kinds.DECIMAL, context_t=kinds.STRING, context_b=kinds.BOOLEAN),
        table("track_c", context_n=kinds.BIGINT),
    )["tracks"]
    assert {name: found.columns[name] for name in ("context_n", "context_t", "context_b")} == {
        "context_n": kinds.DECIMAL,
        "context_t": kinds.STRING,
        "context_b": kinds.BOOLEAN,
    }
    texts = named(table("track_a", context_n=kinds.BIGINT), table("track_b", "context_n"))["tracks"]
    assert texts.columns["context_n"] is kinds.STRING


@given(st.lists(st.sampled_from(["identify", "page", "group", "track_a", "track_tracks", "track_users", "track_b"])))
def test_every_view_can_be_made_and_names_each_column_once(keys: list[str]) -> None:
    columns = ("event", "group_id", "context_x", "properties_x", "traits_x", "properties_id", "anonymous_id")
    tables = [table(key, *columns) for key in dict.fromkeys(keys)]
    found = warehouse.views(tables, SegmentDialect("src1", "web"))
    assert len({view.name for view in found}) == len(found)
    with duckdb.connect() as connection:
        connection.execute("create schema web")
        for one in tables:
            cells = ", ".join(f'"{name}" varchar' for name in (*(c.name for c in one.schema.columns), "day", "hr"))
            connection.execute(f"create table web.{one.name} ({cells})")
        for view in found:
            rows = connection.sql(view_sql.select(view, view_sql.ATHENA))
            assert rows.columns == list(view.columns)


# Their rows, in every engine


def events() -> list[dict[str, Any]]:
    """A few of every call; one person changes, and says less the second time."""
    ann = {"email": "ann@example.com", "plan": "free", "age": 30}

    def call(kind: str, number: int, **fields: Any) -> dict[str, Any]:
        at = f"2026-11-15T10:{number:02}:00Z"
        return {"type": kind, "messageId": f"{kind}{number}", "receivedAt": at, "context": {"ip": "10.0.0.1"}} | fields

    return [
        call("identify", 1, userId="ann", anonymousId="x", traits=ann),
        call("identify", 2, userId="ann", traits={"plan": "paid"}),
        call("identify", 3, userId="bob", traits={"plan": "free"}),
        call("identify", 4, anonymousId="y", traits={"plan": "unknown"}),
        call("group", 5, userId="ann", groupId="acme", traits={"name": "Acme", "size": 5}),
        call("group", 6, userId="bob", groupId="acme", traits={"size": 6}),
        call("page", 7, userId="ann", name="Home", properties={"url": "/", "name": "Home"}),
        call("alias", 8, userId="ann", previousId="x"),
        call("track", 9, userId="ann", event="Order Completed", properties={"total": 12.5, "id": "o1", "it's": "a"}),
        call("track", 10, userId="bob", event="Order Completed", properties={"total": 3}, channel="server"),
        call("track", 11, userId="bob", event="Tracks", properties={"day": "Monday"}),
        call("screen", 12, userId="ann", name="Start"),
    ]


QUERIES = {
    "select id, email, plan, age from shop.users order by id": [
        {"id": "ann", "email": "ann@example.com", "plan": "paid", "age": 30},
        {"id": "bob", "email": None, "plan": "free", "age": None},
    ],
    "select id, name, size from shop.accounts": [{"id": "acme", "name": "Acme", "size": 6}],
    "select event, event_text, count(*) as n from shop.tracks group by event, event_text order by event": [
        {"event": "order_completed", "event_text": "Order Completed", "n": 2},
        {"event": "tracks", "event_text": "Tracks", "n": 1},
    ],
    "select id, cast(total as double) as total, it_s, hr from shop.order_completed order by id": [
        {"id": "track10", "total": 3.0, "it_s": None, "hr": "10"},
        {"id": "track9", "total": 12.5, "it_s": "a", "hr": "10"},
    ],
    "select id, plan from shop.identifies where user_id is null": [{"id": "identify4", "plan": "unknown"}],
    "select name, url from shop.pages": [{"name": "Home", "url": "/"}],
    "select previous_id from shop.aliases": [{"previous_id": "x"}],
    "select day from shop.track_tracks": [{"day": "Monday"}],
    "select t.id from shop.tracks t join shop.users u on t.user_id = u.id where u.plan = 'paid'": [{"id": "track9"}],
    "select name, user_id from shop.screens": [{"name": "Start", "user_id": "ann"}],
    "select count(*) as n from shop.groups": [{"n": 2}],
}


@pytest.fixture
def filled(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path / "place", InProcess(), clock=SetClock())
    lake.workspace.connections.change("web", {"warehouse_database": "shop"})
    lake.sync_of(*events())
    return lake


def test_queries_of_a_warehouse_are_answered(filled: Lake) -> None:
    assert {sql: filled.query(sql) for sql in QUERIES} == QUERIES
    listed = [row["table"] for row in filled.query("show tables") if row["database"] == "shop"]
    assert listed == [view.name for view in filled.place.warehouse_views(filled.connection)]
    described = {row["column_name"]: row["column_type"] for row in filled.query("describe shop.users")}
    assert described["age"] == "BIGINT"
    assert described["received_at"] == "TIMESTAMP WITH TIME ZONE"
    filled.sync_of(track("Signed Up", "m1", properties={"n": 1}))  # what is new is there at once
    assert filled.query("select event from shop.tracks where id = 'm1'") == [{"event": "signed_up"}]
    filled.workspace.connections.change("web", {"warehouse_database": ""})
    with pytest.raises(InvalidSettingsError, match="does not exist"):
        filled.query("select * from shop.users")


@pytest.fixture
def session(spark: SparkRunner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    spark.parallelism  # noqa: B018 - starts it
    folder = str(tmp_path_factory.getbasetemp() / "warehouse")
    made = SparkSession.builder.config("spark.sql.warehouse.dir", folder).getOrCreate()
    yield made
    for database in ("web", "shop"):
        made.sql(f"drop database if exists {database} cascade")


def test_spark_answers_the_same(filled: Lake, session: SparkSession) -> None:
    names = register(session, *spark_tables(filled.place))
    assert "shop.tracks" in names
    assert {sql: [row.asDict() for row in session.sql(sql).collect()] for sql in QUERIES} == QUERIES
    filled.sync_of(track("Signed Up", "m1"))
    register(session, *spark_tables(filled.place))
    assert session.sql("select event from shop.tracks where id = 'm1'").collect()[0].event == "signed_up"
    session.sql("drop view shop.users")
    session.sql("create table shop.users (a int) using parquet")
    with pytest.raises(InvalidSettingsError, match="not of a lake"):
        register(session, *spark_tables(filled.place))


# In Glue


def views_in_glue(aws: Aws, database: str) -> dict[str, dict[str, Any]]:
    found = aws.client("glue").get_tables(DatabaseName=database)["TableList"]
    return {table["Name"]: table for table in found}


def definition(view: dict[str, Any]) -> dict[str, Any]:
    text = re.fullmatch(r"/\* Presto View: (\S+) \*/", view["ViewOriginalText"])
    assert text
    decoded: dict[str, Any] = json.loads(base64.b64decode(text[1]))
    return decoded


def test_athena_finds_views_in_glue_whose_sql_gives_these_rows(on_aws: OnAws) -> None:  # noqa: F811
    lake = on_aws.lake()
    shop = f"shop_{lake.connection.database}"
    lake.workspace.connections.change("web", {"warehouse_database": shop})
    lake.sync_of(*events())
    shown = views_in_glue(on_aws.aws, shop)
    assert sorted(shown) == sorted(view.name for view in lake.place.warehouse_views(lake.connection))
    with duckdb.connect() as connection:  # which understands the SQL of Athena as far as it is used here
        connection.execute("set timezone = 'UTC'")
        connection.execute(f"create schema {lake.connection.database}; create schema {shop}")
        for one in lake.place.catalog.tables():
            rows = lake.query(f"select * from {one.database}.{one.name}")
            columns = ", ".join(
                f'"{c.name}" {view_sql.ATHENA.types[c.type]}'
                for c in (*one.schema.columns, *(Column(key, ColumnType.STRING, "") for key in one.partition_keys))
            )
            connection.execute(f"create table {one.database}.{one.name} ({columns})")
            marks = ", ".join("?" * len(rows[0]))
            connection.executemany(
                f"insert into {one.database}.{one.name} values ({marks})", [list(r.values()) for r in rows]
            )
        for name, view in shown.items():
            told = definition(view)
            assert (view["TableType"], view["Parameters"]["presto_view"]) == ("VIRTUAL_VIEW", "true")
            assert (told["catalog"], told["schema"]) == ("awsdatacatalog", shop)
            connection.execute(f"create view {shop}.{name} as {told['originalSql']}")
            relation = connection.sql(f"select * from {shop}.{name}")
            assert relation.columns == [column["name"] for column in told["columns"]]
            assert relation.columns == [column["Name"] for column in view["StorageDescriptor"]["Columns"]]
            types = [column["type"] for column in told["columns"]]
            assert [str(kind).lower() for kind in relation.types] == types
        for sql, expected in QUERIES.items():
            relation = connection.sql(sql.replace("shop.", f"{shop}."))
            assert [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()] == expected


def test_views_in_glue_follow_their_tables_and_leave_others_alone(on_aws: OnAws) -> None:  # noqa: F811
    lake = on_aws.lake()
    shop, glue = f"shop_{lake.connection.database}", on_aws.aws.client("glue")
    lake.sync_of(track("A", "m1", properties={"x": 1}), track("B", "m2"))
    assert shop not in [database["Name"] for database in glue.get_databases()["DatabaseList"]]
    lake.workspace.connections.change("web", {"warehouse_database": shop})
    glue.create_database(DatabaseInput={"Name": shop})
    glue.create_table(DatabaseName=shop, TableInput={"Name": "b", "Description": "mine"})
    report = lake.sync_of(track("A", "m3", properties={"y": 1}))
    assert f"{shop}.b: there is one in Glue that eventlake did not make" in json.dumps(report)
    found = views_in_glue(on_aws.aws, shop)
    assert set(found) == {"a", "b", "tracks"}
    assert found["b"]["Description"] == "mine"
    assert "properties_y" in definition(found["a"])["originalSql"]

    kept = {key: found["a"][key] for key in ("Name", "TableType", "ViewOriginalText", "StorageDescriptor")}
    mine = {**found["a"]["Parameters"], "mine": "yes"}
    glue.update_table(DatabaseName=shop, TableInput={**kept, "Parameters": mine, "Description": "orders"})
    lake.sync_of(track("A", "m4", properties={"z": 1}))
    after = views_in_glue(on_aws.aws, shop)["a"]
    assert "properties_z" in definition(after)["originalSql"]
    assert (after["Description"], after["Parameters"]["mine"]) == ("orders", "yes")
    version = after["VersionId"]
    lake.sync_of(track("A", "m5", properties={"z": 2}))
    assert views_in_glue(on_aws.aws, shop)["a"]["VersionId"] == version  # nothing changed

    lake.run(jobs.drop(lake.connection, "track_a"))
    assert set(views_in_glue(on_aws.aws, shop)) == {"b", "tracks"}
    glue.delete_table(DatabaseName=shop, Name="tracks")
    assert show_views(lake.place, "src1") == [f"{shop}.b: there is one in Glue that eventlake did not make"]
    assert "tracks" in views_in_glue(on_aws.aws, shop)


def test_views_that_may_not_be_made_are_told_and_stop_no_sync(on_aws: OnAws) -> None:  # noqa: F811
    lake = on_aws.lake()
    lake.sync_of(track("A", "m1"))
    rights = ["s3:*", "glue:GetTables", "glue:GetTable", "glue:UpdateTable", "glue:BatchCreatePartition"]
    on_aws.again(lake, role_arn=on_aws.aws.role(only=rights))
    lake.workspace.connections.change("web", {"warehouse_database": "shop"})
    with rights_checked():
        report = lake.sync_of(track("A", "m2"))
    assert "the views in shop are not up to date in Glue" in json.dumps(report)
    assert lake.query(f"select count(*) as n from {lake.connection.database}.track_a") == [{"n": 2}]


def test_a_view_that_is_too_long_for_athena_is_told(on_aws: OnAws) -> None:  # noqa: F811
    lake = on_aws.lake()
    shop = f"shop_{lake.connection.database}"
    lake.workspace.connections.change("web", {"warehouse_database": shop})
    lake.sync_of(track("A", "m1"), track("B", "m2"))
    assert set(views_in_glue(on_aws.aws, shop)) == {"a", "b", "tracks"}
    report = lake.sync_of(track("A", "m3", properties={f"{'long' * 50}{number}": 1 for number in range(700)}))
    assert f"{shop}.a: its query is too long for Athena" in json.dumps(report)
    assert set(views_in_glue(on_aws.aws, shop)) == {"b", "tracks"}


def test_athena_takes_a_view_that_is_just_short_enough() -> None:
    view = named(table("track_a"))["a"]
    size = len(view_sql.select(view, view_sql.ATHENA))
    assert athena_views.table_input(view, "shop", "src1", "s3://b", longest=size)
    assert athena_views.table_input(view, "shop", "src1", "s3://b", longest=size - 1) is None


# The setting


def test_a_database_of_views_has_nothing_else_in_it(tmp_path: Path) -> None:
    connections = Lake(tmp_path / "place", InProcess()).workspace.connections
    connections.add_source("ios")
    for name, problem in (
        ("web", "the database 'web' belongs to the source 'web'"),
        ("ios", "the database 'ios' belongs to the source 'ios'"),
        ("temp", "DuckDB keeps that name for itself"),
        ("Shop", "is not allowed"),
    ):
        with pytest.raises(InvalidSettingsError, match=problem):
            connections.change("web", {"warehouse_database": name})
    connections.change("web", {"warehouse_database": "shop"})
    connections.change("web", {"warehouse_database": "shop", "lookback_days": "3"})
    for change in ({"warehouse_database": "shop"}, {"database": "shop"}):
        with pytest.raises(InvalidSettingsError, match="the database 'shop' belongs to the source 'web'"):
            connections.change("ios", change)
    connections.copy("web", "ios")
    assert connections.get("ios").settings.warehouse == ""
    assert connections.get("ios").settings.lookback_days == 3


# The page


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def test_the_page_has_the_mapping_that_the_rules_give(filled: Lake) -> None:
    found = filled.place.warehouse_views(filled.connection)
    tables = _table(
        ("in the lake", "in a warehouse"),
        [
            (f"`{one.name}`", ", ".join(f"`{v.name}`" for v in found if any(p.table == one for p in v.parts)))
            for one in filled.place.catalog.tables()
        ],
    )
    rows = []
    for one in filled.place.catalog.tables():
        for column in one.schema.columns:
            names = {
                name: None
                for view in found
                for part in view.parts
                if part.table == one
                for name, cell in part.cells.items()
                if cell.column == column.name
            }
            rows.append((f"`{one.name}`", f"`{column.name}`", " and ".join(f"`{name}`" for name in names) or "none"))
    shared = [(name, other) for table, name, other in rows if table == "`track_order_completed`"]
    own = [row for row in rows if row[1:] not in shared]
    columns = _table(("column of `track_order_completed`", "in a warehouse"), shared)
    columns += "\n" + _table(("table", "column", "in a warehouse"), own)
    text = PAGE.read_text()
    wanted = text
    for name, made in (("tables", tables), ("columns", columns)):
        begin = f"<!-- {name} -->\n"
        wanted = re.sub(f"{begin}.*?<!-- end -->", f"{begin}{made}<!-- end -->", wanted, count=1, flags=re.S)
    if os.environ.get("EVENTLAKE_UPDATE_SCREENS"):
        PAGE.write_text(wanted)
    assert text == wanted
    for sql in re.findall(r"```sql\n(.*?)```", text, re.S):
        assert filled.query(sql)
