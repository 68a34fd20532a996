"""Lakes whose tables are shown in a Hive metastore, on MariaDB: read by Spark, and while the metastore is away."""

import json
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import boto3
import pytest
from pymetastore.hive_metastore import ttypes as thrift

from commands import command, examination
from conftest import InProcess, Lake, SetClock, settings_for, track
from eventlake.audit.repair import repair
from eventlake.audit.verify import verify
from eventlake.catalog.base import SYSTEM_DATABASE
from eventlake.errors import (
    InvalidSettingsError,
    TransientError,
)
from eventlake.lake.report_columns import REPORT_COLUMNS
from eventlake.schema.types import ColumnType
from eventlake.sync import jobs, requests
from eventlake.workspace import Workspace
from hive_engine import Hive, foreign, types_of
from metastores import BUCKET, HiveServer
from servers import AzureServer, S3Server, free_ports

# Lakes


class OnHive:
    """Makes workspaces whose tables are shown in the metastore."""

    def __init__(self, server: HiveServer, folder: Path) -> None:
        self.server = server
        self.folder = folder

    def lake(self, settings: str = '[lake]\nroot = "lake"\n') -> Lake:
        path = self.folder / f"a place {uuid.uuid4().hex}"
        settings += f'[catalog]\nkind = "hive"\nuri = "{self.server.uri}"\nlocation_scheme = "s3a"\n'
        lake = Lake(path, InProcess(), clock=SetClock(), settings=settings)
        name = lake.connection.settings.names_database
        lake.workspace.connections.change("web", {name: f"web_{path.name[8:]}"})
        return lake


@pytest.fixture
def on_hive(metastore: HiveServer, tmp_path: Path) -> OnHive:
    return OnHive(metastore, tmp_path)


def test_a_sync_shows_its_tables_in_the_metastore(on_hive: OnHive, engine: Hive) -> None:
    lake = on_hive.lake()
    lake.sync_of(track("A", "m1", properties={"price": 1}), track("A", "m1"), track("B", "m2"))
    lake.sync_of(track("A", "m3", receivedAt="2026-11-15T11:00:00Z", properties={"price": 2, "name": "x"}))
    database = lake.connection.database
    assert engine.tables(database) == ["track_a", "track_b"]
    names = [column.name for column in engine.table(database, "track_a").sd.cols]
    assert names[-2:] == ["properties_price", "properties_name"]
    partitions = engine.partitions(database, "track_a")
    assert [partition.values for partition in partitions] == [["2026-11-15", "10"], ["2026-11-15", "11"]]
    for partition in partitions:
        (file,) = Path(partition.sd.location.removeprefix("file:")).iterdir()
        assert file.suffix == ".parquet"
    assert verify(lake.workspace, lake.connection, InProcess()) == []


@pytest.mark.long
def test_a_lake_in_a_bucket_is_shown_as_engines_know_it(on_hive: OnHive, engine: Hive, s3: S3Server) -> None:
    boto3.client("s3", endpoint_url=s3.endpoint).create_bucket(Bucket=BUCKET)
    _shown_elsewhere(on_hive.lake(settings_for(s3, BUCKET)), engine, f"s3a://{BUCKET}/lake")


@pytest.mark.long
def test_a_lake_on_azure_is_shown(on_hive: OnHive, engine: Hive, azure: AzureServer) -> None:
    azure.client.create_container(BUCKET)
    _shown_elsewhere(on_hive.lake(settings_for(azure, BUCKET)), engine, f"{azure.root(BUCKET)}/lake")


def _shown_elsewhere(lake: Lake, engine: Hive, root: str) -> None:
    database, location = lake.connection.database, f"{root}/segment-data/data/src1/segment_type=track_a"
    for n in range(2):
        lake.sync_of(track("A", f"m{n}", properties={f"n{n}": n}))
        table = engine.table(database, "track_a")
        (partition,) = engine.partitions(database, "track_a")
        assert table.sd.location == location
        assert partition.sd.location == f"{location}/day=2026-11-15/hr=10"
        assert partition.sd.cols == table.sd.cols
    assert verify(lake.workspace, lake.connection, InProcess()) == []


def test_what_is_missing_in_the_metastore_is_found_by_verify_and_comes_back(on_hive: OnHive, engine: Hive) -> None:
    lake = on_hive.lake()
    lake.sync_of(track("A", "m1", properties={"price": 1}), track("B", "m2"), track("C", "m3"))
    database = lake.connection.database
    engine.metastore.ask("drop_table", "drop", database, "track_a", False)
    engine.metastore.ask("drop_partition", "drop", database, "track_b", ["2026-11-15", "10"], False)
    table = engine.table(database, "track_c")
    table.sd.cols.pop()
    engine.edit(table)
    found = verify(lake.workspace, lake.connection, InProcess())
    assert [(finding.kind, finding.where, finding.detail) for finding in found] == [
        ("not_in_hive", f"{database}.track_a", "the table is missing"),
        ("not_in_hive", f"{database}.track_b", "1 partitions are missing: 2026-11-15/10, …"),
        ("not_in_hive", f"{database}.track_c", "columns are missing, or have other types"),
    ]
    repair(lake.workspace, lake.connection, found, InProcess())
    assert verify(lake.workspace, lake.connection, InProcess()) == []


def test_a_table_of_somebody_else_is_not_written_to(on_hive: OnHive, engine: Hive) -> None:
    lake = on_hive.lake()
    database = lake.connection.database
    engine.metastore.ask("create_database", "make", thrift.Database(database, parameters={}))
    engine.make(foreign(database, "track_a"))
    before = engine.table(database, "track_a")
    lake.put(track("A", "m1"))
    with pytest.raises(InvalidSettingsError, match="not made by eventlake"):
        lake.sync()
    assert engine.table(database, "track_a") == before
    assert lake.data_files() == []


def test_tables_that_somebody_made_there_are_gone_on_with(on_hive: OnHive, engine: Hive) -> None:
    lake = on_hive.lake('[lake]\ndialect = "rudderstack"\n')
    database = lake.connection.database
    cols = [thrift.FieldSchema("id", "varchar(65535)", "theirs"), thrift.FieldSchema("price", "bigint", None)]
    location = f"file://{lake.root}/rudder-datalake/{database}/a"
    engine.metastore.ask("create_database", "make", thrift.Database(database, parameters={}))
    with pytest.raises(Exception, match=f"the database {database} of the Hive metastore"):
        requests.adopt(lake.place, lake.connection)
    engine.make(foreign(database, "a", cols=cols, location=location, parameters={"EXTERNAL": "TRUE", "owner": "me"}))
    lake.put(track("A", "m1", properties={"price": 1.5}))
    with pytest.raises(InvalidSettingsError, match="was not made by eventlake"):
        lake.sync()
    lake.run(requests.adopt(lake.place, lake.connection))
    lake.sync()
    table = engine.table(database, "a")
    assert types_of(table)[:2] == [("id", "varchar(65535)"), ("price", "bigint")]
    assert ("event_text", "string") in types_of(table)
    assert (table.parameters["owner"], table.sd.cols[0].comment) == ("me", "theirs")
    assert lake.query(f"select price from {database}.a") == [{"price": 1}]


@pytest.mark.parametrize("dialect", ["rudderstack", "segment"])
def test_a_table_that_was_taken_over_there_keeps_what_its_makers_have_in_it(
    on_hive: OnHive, engine: Hive, dialect: str
) -> None:
    lake = on_hive.lake(f'[lake]\ndialect = "{dialect}"\n')
    if dialect == "rudderstack":
        lake.workspace.connections.change("web", {"time_window_layout": "dt=2006-01-02"})
    key, ident = ("a", "id") if dialect == "rudderstack" else ("track_a", "message_id")
    rules, database = lake.connection.dialect, lake.connection.database
    location, keys = f"file://{lake.root}/{rules.location(key)}", rules.date_partition.keys
    cols = [thrift.FieldSchema(ident, "string", None)]
    engine.metastore.ask("create_database", "make", thrift.Database(database, parameters={}))
    partition_keys = [thrift.FieldSchema(name, "string", None) for name in keys]
    table = foreign(database, key, cols=cols, location=location, partitionKeys=partition_keys)
    table.tableType, table.parameters = "EXTERNAL_TABLE", {"EXTERNAL": "TRUE"}
    engine.make(table)
    old = thrift.Partition(["2026-10-01", "09"][: len(keys)], database, key, 0, 0, table.sd, {})
    old.sd.location = f"{location}/as-they-like"
    engine.metastore.ask("add_partition", "add", old)
    (before,) = engine.partitions(database, key)
    lake.run(requests.adopt(lake.place, lake.connection))
    lake.sync_of(
        track("A", "m1", userId="ann", properties={"n": 1}),
        track("A", "m2", userId="bob", receivedAt="2026-11-16T10:00:00Z"),
    )
    lake.workspace.suppressions.add(["bob"])
    lake.run(jobs.replay(lake.connection, None, None))
    lake.run(jobs.rebuild(lake.connection))
    job = requests.retype(lake.place, f"{database}.{key}", "n" if key == "a" else "properties_n", "string")
    assert job
    lake.run(job)
    assert before in engine.partitions(database, key)
    assert verify(lake.workspace, lake.connection, InProcess()) == []
    other = {lake.connection.settings.names_database: f"{database}_2"}
    lake.run(jobs.rebuild(lake.workspace.connections.preview("web", other)))
    assert before in engine.partitions(database, key)
    assert "eventlake" not in str(engine.table(database, key).parameters)


def test_reports_of_somebody_else_stay_theirs(on_hive: OnHive, engine: Hive) -> None:
    on_hive.lake().place.hive.make_database(SYSTEM_DATABASE)
    if "sync_reports" in engine.tables(SYSTEM_DATABASE):
        engine.metastore.ask("drop_table", "drop", SYSTEM_DATABASE, "sync_reports", False)
    engine.make(foreign(SYSTEM_DATABASE, "sync_reports"))
    before = engine.table(SYSTEM_DATABASE, "sync_reports")
    on_hive.lake().sync_of(track("A", "m1"))
    assert engine.table(SYSTEM_DATABASE, "sync_reports") == before


def test_reports_have_their_table(on_hive: OnHive, engine: Hive) -> None:
    lake = on_hive.lake()
    if "sync_reports" in engine.tables(SYSTEM_DATABASE):  # another test's lake made it for its own reports
        engine.metastore.ask("drop_table", "drop", SYSTEM_DATABASE, "sync_reports", False)
    lake.sync_of(track("A", "m1"))
    lake.sync_of(track("A", "m2"))
    table = engine.table(SYSTEM_DATABASE, "sync_reports")
    other = on_hive.lake()
    other.sync_of(track("A", "m1"))
    assert engine.table(SYSTEM_DATABASE, "sync_reports") == table  # which is the first one's
    assert table.sd.location == f"file:{lake.root}/segment-data/reports"
    names = [column.name for column in (*table.sd.cols, *table.partitionKeys)]
    assert sorted(names) == sorted(column.name for column in REPORT_COLUMNS if column.hive)
    found = engine.partitions(SYSTEM_DATABASE, "sync_reports")
    runs = [run.run_id for run in reversed(lake.place.runs.latest(2))]
    assert [partition.values for partition in found] == [["src1", "2026-11-15", run] for run in runs]
    for partition in found:
        (report,) = Path(partition.sd.location.removeprefix("file:")).iterdir()
        assert json.loads(report.read_text().splitlines()[0])["run_id"] == partition.values[2]


# What happens when it goes away in the middle


class Ending(InProcess):
    """A runner in the middle of whose work a server ends."""

    def __init__(self, server: HiveServer) -> None:
        self.server = server

    def run(self, *asked: Any, **further: Any) -> list[Any]:
        self.server.stop()
        return super().run(*asked, **further)


@pytest.mark.long
def test_a_metastore_that_is_away_from_the_beginning_fails_the_run_and_nothing_is_lost(on_hive: OnHive) -> None:
    lake = on_hive.lake()
    lake.sync_of(track("A", "m1"))
    lake.put(track("A", "m2"))
    on_hive.server.stop()
    try:
        with pytest.raises(TransientError, match="no answer from thrift://"):
            lake.sync()
    finally:
        on_hive.server.start()
    ended = lake.place.runs.latest(1)[0]
    assert ended.report
    assert (ended.status, ended.report[0]["error_code"]) == ("failed", "service_unavailable")
    lake.sync()
    assert lake.query(f"select message_id from {lake.connection.database}.track_a order by 1") == [
        {"message_id": "m1"},
        {"message_id": "m2"},
    ]
    assert verify(lake.workspace, lake.connection, InProcess()) == []


@pytest.mark.long
def test_a_run_waits_for_a_metastore_that_went_away_before_its_commit(on_hive: OnHive, engine: Hive) -> None:
    lake = on_hive.lake()
    lake.sync_of(track("A", "m1"))
    lake.runner = Ending(on_hive.server)
    lake.put(track("A", "m2", properties={"late": 1}), track("B", "m3"))
    try:
        with pytest.raises(TransientError, match="no answer from thrift://"):
            lake.sync()
        waiting = lake.place.runs.latest(1)[0]
        assert waiting.status == "running"
        assert waiting.report
        assert waiting.report[0]["error_code"] == "service_unavailable"
    finally:
        on_hive.server.start()
    lake.runner = InProcess()
    lake.sync()
    assert lake.place.runs.get(waiting.run_id).status == "finished"
    assert engine.tables(lake.connection.database) == ["track_a", "track_b"]
    assert engine.table(lake.connection.database, "track_a").sd.cols[-1].name == "properties_late"
    assert verify(lake.workspace, lake.connection, InProcess()) == []


@pytest.mark.long
def test_a_metastore_killed_in_the_middle_of_a_commit_loses_nothing(on_hive: OnHive, engine: Hive) -> None:
    lake = on_hive.lake()
    lake.workspace.connections.change("web", {"new_tables_per_run": "100"})
    names = sorted(f"track_e{n:02}" for n in range(40))
    lake.put(*(track(f"E{n:02}", f"m{n}") for n in range(40)))
    database = lake.connection.database
    shown = f"select count(*) from metastore.TBLS join metastore.DBS using (DB_ID) where NAME = '{database}'"

    def kill_in_the_middle() -> None:
        while int(on_hive.server.database.sql(shown)[0][0]) < 5:
            pass
        on_hive.server.stop()

    killer = threading.Thread(target=kill_in_the_middle, daemon=True)
    killer.start()
    try:
        with pytest.raises(TransientError, match="no answer from thrift://"):
            lake.sync()
    finally:
        killer.join()
        on_hive.server.start()
    run = lake.place.runs.latest(1)[0]
    assert run.status == "running"
    assert 5 <= len(engine.tables(database)) < 40
    assert [table for table in lake.tables() if not lake.query(f"select count(*) n from {database}.{table}")] == []
    lake.sync()
    assert lake.place.runs.get(run.run_id).status == "finished"
    assert engine.tables(database) == names
    for name in names:
        assert lake.query(f"select count(*) as n from {database}.{name}") == [{"n": 1}]
        assert [one.values for one in engine.partitions(database, name)] == [["2026-11-15", "10"]]
    assert verify(lake.workspace, lake.connection, InProcess()) == []


# Settings


GOOD = ["thrift://host:9083", "thrift://a.b-c_d:1,thrift://[::1]:65535", "thrift://10.0.0.1:9083, thrift://b:9083"]
BAD = ["host:9083", "thrift://host", "thrift://host:0", "thrift://host:65536", "thrift://host:1,", "http://host:1", ""]


@pytest.mark.parametrize("uri", [*GOOD, *BAD])
def test_addresses_of_metastores_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uri: str) -> None:
    Workspace.create(tmp_path)
    monkeypatch.setenv("EVENTLAKE_CATALOG__KIND", "hive")
    monkeypatch.setenv("EVENTLAKE_CATALOG__URI", uri)
    if uri in GOOD:
        assert Workspace.open(tmp_path).lake().settings.catalog.uris == [one.strip() for one in uri.split(",")]  # type: ignore[union-attr]
        return
    with pytest.raises(InvalidSettingsError, match=r"catalog\.uri: not thrift://host:9083") as caught:
        Workspace.open(tmp_path)
    assert caught.value.code == "invalid_settings.configuration"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ('[catalog]\nkind = "hive"\n', "catalog: kind = hive needs uri = thrift://host:9083"),
        ('[catalog]\nkind = "iceberg"\n', "catalog.kind: "),
        ('[lakes.a]\nroot = "a"\ncatalog = { kind = "hive" }\n', "lakes.a.catalog.uri: is required"),
        ('[lakes.a]\nroot = "a"\ncatalog = { kind = "hive", uri = "x" }\n', "lakes.a.catalog.uri: not thrift://host"),
        (
            '[lakes.a]\nroot = "a"\ncatalog = { kind = "hive", url = "thrift://host:9083" }\n',
            "lakes.a.catalog.url: there is no such setting; perhaps uri",
        ),
        ('[lakes.a]\nroot = "a"\ncatalog = { kind = "trino" }\n', "use one of embedded, glue, hive"),
        (
            '[lakes.a]\nroot = "a"\ncatalog = { kind = "hive", uri = "thrift://h:1", location_scheme = "s3n" }\n',
            "lakes.a.catalog.location_scheme: ",
        ),
    ],
)
def test_settings_that_cannot_be_right_are_named(tmp_path: Path, settings: str, message: str) -> None:
    (tmp_path / "eventlake.toml").write_text(f'workspace_id = "test"\n{settings}')

    def opened() -> None:
        """What is wrong in a section of a further lake is told when somebody asks for that lake."""
        place = Workspace.open(tmp_path)
        for lake in place.settings.wrong_lakes:
            place.lake(lake)

    with pytest.raises(InvalidSettingsError) as caught:
        opened()
    assert message in caught.value.problem


def test_a_client_that_is_not_installed_is_told(tmp_path: Path) -> None:
    lake = OnHive(HiveServer(tmp_path, None, 9083), tmp_path).lake()  # type: ignore[arg-type]
    program = (
        "import sys; sys.modules['pymetastore'] = None; from pathlib import Path; "
        "from eventlake.workspace import Workspace; Workspace.open(Path(sys.argv[1])).lake().catalog"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(lake.workspace.folder)], capture_output=True, text=True, check=False
    )
    assert "pip install 'eventlake[hive]'" in done.stderr


# Commands


def metastore_steps(lake: Lake) -> dict[str, dict[str, Any]]:
    told = examination(lake.place, "metastore")
    return {name: one for name, one in told.items() if name.startswith("metastore")}


STEPS = ["reach", "fetch schema", "create table", "compare versions", "delete table"]


@pytest.mark.parametrize("is_new", [True, pytest.param(False, marks=pytest.mark.long)])
def test_the_doctor_tries_the_metastore_step_by_step_and_leaves_nothing_behind(
    on_hive: OnHive, engine: Hive, is_new: bool
) -> None:
    lake = on_hive.lake()
    for name in engine.tables(SYSTEM_DATABASE):
        engine.metastore.ask("drop_table", "drop", SYSTEM_DATABASE, name, False)
    if SYSTEM_DATABASE in engine.metastore.ask("get_all_databases", "look"):
        engine.metastore.ask("drop_database", "drop", SYSTEM_DATABASE, True, False)
    if not is_new:
        lake.sync_of(track("A", "m1"))

    def there() -> tuple[list[str], ...]:
        databases = sorted(engine.metastore.ask("get_all_databases", "look"))
        return databases, engine.tables(SYSTEM_DATABASE), sorted(str(file) for file in lake.root.rglob("*"))

    before = there()
    told = metastore_steps(lake)
    assert list(told) == [f"metastore: {step}" for step in STEPS]
    assert {step["status"] for step in told.values()} == {"passed"}
    assert there()[:2] == before[:2]
    assert [path for path in there()[2] if path not in before[2] and Path(path).is_file()] == []
    assert not list(lake.root.rglob("*doctor*"))


@pytest.mark.long
def test_the_doctor_says_that_the_metastore_is_away(tmp_path: Path) -> None:
    nobody = HiveServer(tmp_path, None, free_ports(1)[0])  # type: ignore[arg-type]
    told = metastore_steps(OnHive(nobody, tmp_path).lake())
    reach, *others = told.values()
    assert (reach["status"], reach["code"]) == ("failed", "service_unavailable")
    assert nobody.uri in reach["detail"]
    assert {step["status"] for step in others} == {"skipped"}


def test_all_tables_are_shown_on_demand(on_hive: OnHive, engine: Hive) -> None:
    lake = on_hive.lake()
    lake.sync_of(track("A", "m1"), track("B", "m2"))
    database = lake.connection.database
    engine.metastore.ask("drop_table", "drop", database, "track_a", False)
    assert "2 tables are shown in the Hive metastore." in command(lake.workspace.folder, "catalog", "publish").stderr
    assert engine.tables(database) == ["track_a", "track_b"]
    assert [one.values for one in engine.partitions(database, "track_a")] == [["2026-11-15", "10"]]
    done = command(lake.workspace.folder, "catalog", "trim")
    assert done.returncode == 2
    assert "the Hive metastore keeps no versions of tables" in done.stderr


# Spark


class SparkReader:
    """A Spark in a process of its own, which knows of the lake what the metastore tells."""

    def __init__(self, server: HiveServer, folder: Path, *settings: str) -> None:
        program = str(Path(__file__).with_name("spark_with_hive.py"))
        words = [sys.executable, program, server.uri, str(folder / "warehouse"), *settings]
        self.log = folder / "spark.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                words, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )

    def ask(self, *statements: str) -> list[Any]:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(statements) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, self.log.read_text()[-3000:]
        answers: list[Any] = json.loads(line)
        return answers

    def rows(self, statement: str) -> Any:
        (answer,) = self.ask(statement)
        return [tuple(row.values()) for row in answer] if isinstance(answer, list) else answer


@pytest.fixture(scope="module")
def spark_reader(metastore: HiveServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkReader]:
    reader = SparkReader(metastore, tmp_path_factory.mktemp("spark"))
    with reader.process:
        yield reader
        assert reader.process.stdin
        reader.process.stdin.close()


def rows_of_lake(lake: Lake, columns: str) -> list[tuple[Any, ...]]:
    found = lake.query(f"select {columns} from {lake.connection.database}.track_a order by 1")
    return [tuple(str(value) if isinstance(value, Decimal) else value for value in row.values()) for row in found]


@pytest.mark.long
def test_spark_reads_what_the_metastore_tells_through_all_changes(on_hive: OnHive, spark_reader: SparkReader) -> None:
    lake = on_hive.lake()
    web, spark = lake.connection.database, spark_reader

    def same(columns: str) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = spark.rows(f"select {columns} from {web}.track_a order by 1")
        assert found == rows_of_lake(lake, columns)
        return found

    lake.sync_of(track("A", "m1", properties={"price": 1}), track("B", "b1"))
    assert same("message_id, properties_price, day, hr") == [("m1", 1, "2026-11-15", "10")]

    # People work with it as well, and columns come, also to partitions that are there.
    assert spark.ask(
        f"alter table {web}.track_a set tblproperties ('team' = 'growth')",
        f"alter table {web}.track_a change column properties_price comment 'in cents'",
        f"analyze table {web}.track_a compute statistics",
    ) == [[], [], []]
    lake.sync_of(
        track("A", "m2", properties={"price": 2, "name": "x"}),
        track(
            "A",
            "m3",
            receivedAt="2026-11-15T03:00:00Z",
            properties={"amount": 1.5, "at": "2026-11-15T03:04:05.678901Z"},
        ),
    )
    assert same("message_id, properties_price, properties_name, properties_amount, day, hr") == [
        ("m1", 1, None, None, "2026-11-15", "10"),
        ("m2", 2, "x", None, "2026-11-15", "10"),
        ("m3", None, None, "1.500000", "2026-11-15", "03"),
    ]
    assert spark.rows(f"select unix_micros(properties_at) from {web}.track_a where hr = '03'") == [(1794711845678901,)]
    described_columns = {row["col_name"]: row for row in spark.ask(f"describe {web}.track_a")[0]}
    assert described_columns["properties_price"]["comment"] == "in cents"
    assert described_columns["properties_amount"]["data_type"] == "decimal(38,6)"
    assert ("team", "growth") in spark.rows(f"show tblproperties {web}.track_a")

    # Only the files of a partition are looked at.
    filtered = f"from {web}.track_a where day = '2026-11-15' and hr = '03'"
    ((plan,),) = spark.rows(f"explain select message_id {filtered}")
    assert "PartitionFilters: [isnotnull(day" in plan
    ((file,),) = spark.rows(f"select input_file_name() {filtered}")
    assert "/day=2026-11-15/hr=03/" in file
    assert spark.rows(f"select count(*) from {web}.track_a where day < '2026'") == [(0,)]

    # So does who reads with Hive's own classes, by the columns of each partition.
    _, rows = spark.ask(
        "set spark.sql.hive.convertMetastoreParquet = false",
        f"select message_id, properties_price, properties_name, hr from {web}.track_a order by 1",
    )
    assert [tuple(row.values()) for row in rows] == rows_of_lake(
        lake, "message_id, properties_price, properties_name, hr"
    )

    lake.run(jobs.replay(lake.connection, None, None))
    assert len(same("message_id, properties_price, properties_name, properties_amount, day, hr")) == 3

    for kind, price in (
        (ColumnType.STRING, "1"),
        (ColumnType.BIGINT, 1),
    ):  # the second is refused by the metastore as such
        lake.run(jobs.retype(lake.connection, "track_a", "properties_price", kind))
        assert same("message_id, properties_price, properties_name, hr")[0] == ("m1", price, None, "10")

    lake.run(jobs.rebuild(lake.workspace.connections.preview("web", {"date_partition": "day"})))
    assert same("message_id, properties_price, properties_name, day") == [
        ("m1", 1, None, "2026-11-15"),
        ("m2", 2, "x", "2026-11-15"),
        ("m3", None, None, "2026-11-15"),
    ]
    assert spark.rows(f"show partitions {web}.track_a") == [("day=2026-11-15",)]
    assert ("team", "growth") in spark.rows(f"show tblproperties {web}.track_a")
    assert verify(lake.workspace, lake.connection, InProcess()) == []

    lake.run(jobs.drop(lake.connection, "track_b"))
    assert [name for _, name, _ in spark.rows(f"show tables in {web}")] == ["track_a"]


@pytest.mark.long
def test_spark_reads_reports(on_hive: OnHive, engine: Hive, spark_reader: SparkReader) -> None:
    if "sync_reports" in engine.tables(SYSTEM_DATABASE):  # another test's lake made it for its own reports
        engine.metastore.ask("drop_table", "drop", SYSTEM_DATABASE, "sync_reports", False)
    lake = on_hive.lake()
    lake.sync_of(track("A", "m1", properties={"price": 1}), track("B", "m2"))
    lake.sync_of(b"no event")
    runs = [run.run_id for run in reversed(lake.place.runs.latest(2))]
    columns = "run_id, type, status, table_name, row_count, is_new, partitions, new_columns[0].name as first, notices"
    rows = spark_reader.ask(
        f"select {columns} from {SYSTEM_DATABASE}.sync_reports where source_id = 'src1' and day = '2026-11-15' "
        "order by run_id, type desc, table_name"
    )[0]
    assert [(row["run_id"], row["type"], row["status"], row["table_name"], row["row_count"]) for row in rows] == [
        (runs[0], "source", "finished", "", 2),
        (runs[0], "event", "finished", "track_a", 1),
        (runs[0], "event", "finished", "track_b", 1),
        (runs[1], "source", "finished", "", 0),
    ]
    assert rows[1]["partitions"] == [{"year": None, "month": None, "day": "2026-11-15", "hr": "10"}]
    assert (rows[1]["is_new"], rows[1]["first"]) == (True, "message_id")
    assert "not an event" in rows[3]["notices"][0]
    ((start,),) = spark_reader.rows(f"select start_time from {SYSTEM_DATABASE}.sync_reports where run_id = '{runs[1]}'")
    assert start.startswith("2026-11-15 12:00:00")


@pytest.mark.long
def test_spark_reads_tables_of_rudderstacks_dialect_with_folders_that_are_no_partitions(
    on_hive: OnHive, spark_reader: SparkReader
) -> None:
    lake = on_hive.lake('[lake]\ndialect = "rudderstack"\n')
    lake.sync_of(track("A", "m1", properties={"price": 1, "text": "x" * 70_000}))
    lake.sync_of(track("A", "m2", receivedAt="2026-11-16T10:00:00Z", properties={"price": 2}))
    found = spark_reader.rows(f"select id, price, length(text) from {lake.connection.database}.a order by 1")
    assert found == [("m1", 1, 70_000), ("m2", 2, None)]
    assert verify(lake.workspace, lake.connection, InProcess()) == []
