"""eventlake as a library: what docs/library.md shows, threads, a Spark of one's own, no folder."""

import json
import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from pyspark.sql import SparkSession

import eventlake
from collectors import Collector
from conftest import track
from eventlake.archive import layout as archive
from eventlake.archive.importer import import_file
from eventlake.errors import BusyError, CancelledError, ConfigurationError, InvalidSettingsError, NotFoundError
from eventlake.library import Report, Runners, Workspace
from eventlake.runners.spark import SparkRunner
from eventlake.sync import jobs
from eventlake.sync.run import run
from eventlake.workspace import CONFIG
from runner_without_spark import InProcess

PAGE = Path(__file__).parent.parent / "docs" / "library.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def events(count: int, name: str = "Order Completed") -> list[dict[str, Any]]:
    return [track(name, f"m{number}", properties={"total": number}) for number in range(count)]


def raw_file(folder: Path, lines: list[dict[str, Any]], name: str = "events") -> Path:
    path = folder / name
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


@pytest.fixture
def place(tmp_path: Path, spark: SparkRunner) -> Workspace:
    """A workspace with ten events in its archive; it runs on the Spark of this process."""
    spark.parallelism  # noqa: B018 - starts it
    workspace = eventlake.create(tmp_path / "lake")
    connection, _ = workspace.connections.add_source("web", source_id="src1")
    import_file(workspace.archive, "src1", raw_file(tmp_path, events(10)), now_micros=workspace.clock.now())
    assert connection.name == "web"
    return workspace


@pytest.fixture
def session(spark: SparkRunner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session of the Spark of this process, without what another test left in it."""
    spark.parallelism  # noqa: B018
    warehouse = str(tmp_path_factory.getbasetemp() / "warehouse")
    made = SparkSession.builder.config("spark.sql.warehouse.dir", warehouse).getOrCreate()
    yield made
    made.sql("drop database if exists web cascade")


def test_the_page_shows_what_works(
    tmp_path: Path,
    spark: SparkRunner,
    session: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {
        "path": raw_file(tmp_path, events(3)),
        "spark": session,
        "database": "sqlite:///values.db",
        "root": "values",
    }
    for block in BLOCKS:
        exec(block, names)
    said = capsys.readouterr().out
    assert "web 3 rows, 0 duplicates\n" in said
    assert "track_order_completed 3 " in said
    assert "is not a workspace" in said
    assert names["names"] == ["web.track_order_completed"]
    assert "count(1)" in said
    assert names["rows"] == [{"orders": 3}]
    assert names["differs"] == {"web": []}
    assert names["load_web"]() == 0
    assert spark._started._jsc is not None  # which was there before


def test_reports_are_typed(place: Workspace) -> None:
    (report,) = place.sync("web")
    assert (report.kind, report.rows, report.books.lines, report.books.balance) == ("sync", 10, 10, True)
    (table,) = report.tables
    assert (table.name, table.rows, table.new_columns["properties_total"]) == ("track_order_completed", 10, "bigint")
    assert report.run_id == place.runs.latest(1)[0].run_id
    assert report.failed_files == {}
    (again,) = place.sync()
    assert (again.rows, again.tables) == (0, [])


def test_a_file_that_cannot_be_read_is_named(place: Workspace) -> None:
    path = archive.path("src1", 1_794_700_800_000_000, "broken.gz")
    place.archive.write(path, b"\x1f\x8b")
    (report,) = place.sync()
    assert list(report.failed_files) == [path]
    assert report.notices


def test_a_lake_is_changed_and_looked_at(place: Workspace) -> None:
    place.sync()
    (table,) = place.tables()
    assert table.name == "track_order_completed"
    retyped = place.retype("web.track_order_completed", "properties_total", "string")
    assert isinstance(retyped, Report)
    assert place.retype("web.track_order_completed", "properties_total", "string") is None
    assert place.query("select max(properties_total) as m from web.track_order_completed").to_pylist() == [{"m": "9"}]
    day = datetime(2026, 11, 15, tzinfo=UTC)
    (replayed,) = place.replay("web", day, None, ["Order Completed"])
    assert (replayed.kind, replayed.rows, replayed.books.duplicates) == ("replay", 0, 10)
    place.rebuild("web", {"table_prefix": "x"})
    assert [table.name for table in place.tables()] == ["x_track_order_completed"]
    next((place.folder / "lake" / "segment-data" / "data").rglob("*.parquet")).unlink()
    assert place.verify()["web"] != []
    assert place.verify("web", mend=True) == {"web": []}


def test_progress_is_told(place: Workspace) -> None:
    told: list[tuple[str, int, int]] = []
    place.sync(progress=lambda *step: told.append(step))
    assert {step for step, _, _ in told} >= {"stage", "dedupe", "publish"}
    assert all(0 <= done <= of for _, done, of in told)


@pytest.mark.parametrize("when", ["stage", "dedupe", "publish"])
def test_a_run_that_is_cancelled_publishes_nothing_and_can_be_done_again(place: Workspace, when: str) -> None:
    cancel = Event()

    def watch(step: str, _done: int, _of: int) -> None:
        if step == when:
            cancel.set()

    with pytest.raises(CancelledError, match="nothing of it was published"):
        place.sync(progress=watch, cancel=cancel)
    failed = place.runs.latest(1)[0]
    assert failed.status == "failed"
    assert (failed.report or [{}])[0]["error_code"] == "cancelled"
    assert place.tables() == []
    assert list(place.lake().storage.folders("segment-stage")) == []
    cancel.clear()
    assert [report.rows for report in place.sync(cancel=cancel)] == [10]
    cancel.set()
    with pytest.raises(CancelledError):
        place.verify(cancel=cancel)
    assert place.verify() == {"web": []}


def test_what_cannot_be_is_raised(place: Workspace, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no source 'app'"):
        place.sync("app")
    with pytest.raises(NotFoundError, match="no table for the event 'Nothing'"):
        place.replay("web", events=["Nothing"])
    with pytest.raises(InvalidSettingsError, match="has no time zone"):
        place.replay("web", datetime(2026, 11, 15))  # noqa: DTZ001
    with pytest.raises(InvalidSettingsError, match="'2026-11-15' is not a time"):
        place.replay("web", "2026-11-15")  # type: ignore[arg-type]
    with pytest.raises(InvalidSettingsError, match="3 is not a SparkSession"):
        eventlake.open(place.folder, spark=3)
    with pytest.raises(InvalidSettingsError, match="a folder, or settings"):
        eventlake.open()
    with pytest.raises(InvalidSettingsError, match="a folder, or settings"):
        eventlake.open(tmp_path, settings={"workspace_id": "x"})
    with pytest.raises(ConfigurationError, match="settings: lak: there is no such setting; perhaps lake"):
        eventlake.open(settings={"workspace_id": "x", "lak": 1})
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        eventlake.nothing  # noqa: B018 # type: ignore[attr-defined]


def test_if_one_fails_the_others_are_loaded(place: Workspace, tmp_path: Path) -> None:
    place.connections.add_source("app", source_id="src2")
    import_file(place.archive, "src2", raw_file(tmp_path, events(1), "app"), now_micros=place.clock.now())
    with place.lake().leases.held("src2"), pytest.raises(BusyError):
        place.sync()
    assert place.query("select count(*) as n from web.track_order_completed").to_pylist() == [{"n": 10}]
    assert [report.rows for report in place.sync()] == [1, 0]


def test_what_is_disabled_is_passed_over_and_refused_if_it_is_named(place: Workspace) -> None:
    place.connections.enable("web", False)
    assert place.sync() == []
    with pytest.raises(InvalidSettingsError, match="web/default is disabled"):
        place.sync("web")


def test_threads_share_a_workspace(place: Workspace, tmp_path: Path) -> None:
    for number in range(4):
        place.connections.add_source(f"s{number}", source_id=f"id{number}")
        path = raw_file(tmp_path, events(5 + number), f"s{number}")
        import_file(place.archive, f"id{number}", path, now_micros=place.clock.now())
    with ThreadPoolExecutor(4) as threads:
        reports = list(threads.map(lambda number: place.sync(f"s{number}")[0], range(4)))
    assert [report.rows for report in reports] == [5, 6, 7, 8]
    assert all(found == [] for found in place.verify("s0", "s3").values())


def test_a_spark_that_a_run_uses_is_not_stopped_for_another(tmp_path: Path) -> None:
    workspace = eventlake.create(tmp_path / "lake")
    with (workspace.folder / CONFIG).open("a") as settings:
        settings.write('[lakes.same]\nroot = "same"\nrunner = { patience = 5 }\n')
        settings.write('[lakes.other]\nroot = "other"\nrunner = { master = "local[1]" }\n')
    with Runners(eventlake.open(workspace.folder)) as runners:
        with runners.of("default"), runners.of("same"), pytest.raises(BusyError, match="other settings"):
            runners.of("other").__enter__()
        with runners.of("other"):
            pass


def test_closing_opens_nothing(tmp_path: Path) -> None:
    eventlake.create(tmp_path / "lake").close()
    assert not (tmp_path / "lake" / "eventlake.db").exists()


def test_settings_as_values_need_no_file(tmp_path: Path, spark: SparkRunner) -> None:
    settings = {
        "workspace_id": "x",
        "database": f"sqlite:///{tmp_path}/elsewhere/a.db",
        "lake": {"root": str(tmp_path / "lake")},
    }
    with eventlake.open(settings=settings) as place:
        place.connections.add_source("web", source_id="src1")
        import_file(place.archive, "src1", raw_file(tmp_path, events(2)), now_micros=place.clock.now())
        assert [report.rows for report in place.sync()] == [2]
    with eventlake.open(settings=settings) as place:
        assert [report.rows for report in place.sync()] == [0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "events", "lake"]


def test_with_settings_as_values_nothing_is_taken_from_the_workspace_whose_folder_one_is_in(
    tmp_path: Path, spark: SparkRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its collector acknowledged is its own, whoever has the same source."""
    with Collector(tmp_path / "other", "--roll-seconds", "3600") as collector:
        assert collector.post("/v1/track", {"userId": "u", "event": "A", "messageId": "m1"}).status == 200
        collector.kill()
    monkeypatch.chdir(collector.folder)
    settings = {"workspace_id": "x", "database": f"sqlite:///{tmp_path}/x.db", "lake": {"root": str(tmp_path / "lake")}}
    with eventlake.open(settings=settings) as place:
        place.connections.add_source("web", source_id="src1")
        assert [report.rows for report in place.sync()] == [0]
    with eventlake.open(collector.folder) as other:
        assert [report.rows for report in other.sync()] == [1]


ALONE = """
import os, signal, sys
import eventlake
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
handlers, error = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)], os.fstat(2)
with eventlake.open(sys.argv[1], spark=spark) as workspace:
    rows = [report.rows for report in workspace.sync()]
assert rows == [10], rows
assert spark.sql("select 1 as one").collect()[0].one == 1  # it goes on
assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == handlers
assert os.path.samestat(os.fstat(2), error)
spark.stop()
"""


OWN_SESSION = """
import sys
import eventlake
from eventlake.errors import EventLakeError
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
try:
    eventlake.open(sys.argv[1], spark=spark).sync()
except EventLakeError as error:
    print(type(error).__name__, error.problem, error.fix)
spark.stop()
"""


def test_a_session_that_is_handed_over_goes_on_and_nothing_is_printed(place: Workspace) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(place.folder)],
        env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout == b""


def test_a_session_whose_workers_are_another_python_is_told_as_that(place: Workspace, tmp_path: Path) -> None:
    """They are `python3` of the path, unless PYSPARK_PYTHON says otherwise, whatever runs the program itself."""
    other = tmp_path / "bin"
    venv.create(other.parent / "venv", with_pip=False)
    other.symlink_to(other.parent / "venv" / "bin")
    environment = {key: value for key, value in os.environ.items() if key not in ("PYSPARK_PYTHON", "PYTHONPATH")}
    done = subprocess.run(
        [sys.executable, "-c", OWN_SESSION, str(place.folder)],
        env=environment | {"SPARK_LOCAL_IP": "127.0.0.1", "PATH": f"{other}:{os.environ['PATH']}"},
        capture_output=True,
        timeout=200,
        check=False,
    )
    told = done.stdout.decode()
    assert told.startswith("SetupError Spark could not stage: the Python that its workers run does not have"), told
    assert f"set PYSPARK_PYTHON={sys.executable} before Spark is started" in told


def test_a_spark_that_is_started_says_nothing(place: Workspace) -> None:
    program = """
import sys, eventlake
with eventlake.open(sys.argv[1]) as workspace:
    workspace.sync()
    assert not any(workspace.verify().values())
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(place.folder)], capture_output=True, timeout=200, check=True
    )
    assert (done.stdout, done.stderr) == (b"", b"")


def test_nothing_heavy_is_loaded_before_something_is_asked_for() -> None:
    program = (
        "import sys, eventlake; print(sorted({'sqlalchemy', 'pyarrow', 'pyspark', 'duckdb'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.decode().strip() == "[]"


# Tables in Spark


def test_spark_sees_what_queries_see_and_nothing_else(place: Workspace, session: SparkSession, tmp_path: Path) -> None:
    odd = [track("Order Completed", f"n{n}", properties={"new": n / 4, "odd": [n]}) for n in range(3)]
    later = [{**event, "receivedAt": "2026-11-16T03:00:00Z"} for event in odd]
    place.sync()
    import_file(place.archive, "src1", raw_file(tmp_path, later, "later"), now_micros=place.clock.now())
    place.sync()
    file = next((place.folder / "lake" / "segment-data" / "data").rglob("*.parquet"))
    (file.parent / "foreign.parquet").write_bytes(file.read_bytes())  # as one of a run that commits at this moment
    assert place.spark_views(session) == ["web.track_order_completed"]
    columns = "message_id, properties_total, properties_new, properties_odd, day, hr"
    sql = f"select {columns} from web.track_order_completed order by message_id"
    expected = place.query(sql).to_pylist()
    assert len(expected) == 13
    assert [row.asDict() for row in session.sql(sql).collect()] == expected
    assert session.sql("select count(*) as n from web.track_order_completed where hr = '03'").collect()[0].n == 3
    (file.parent / "foreign.parquet").unlink()
    place.rebuild("web", {"date_partition": "day", "partition_by_slug": "true"})
    place.spark_views(session)
    assert session.sql("select count(*) as n from web.track_order_completed").collect()[0].n == 13


def test_tables_that_are_gone_from_the_lake_go_from_the_session(
    place: Workspace, session: SparkSession, tmp_path: Path
) -> None:
    more = [track("Other", "o1")]
    import_file(place.archive, "src1", raw_file(tmp_path, more, "more"), now_micros=place.clock.now())
    place.sync()
    session.sql("create database if not exists web")
    session.sql(f"create table web.mine (a int) using parquet location '{tmp_path}/own'")
    assert place.spark_views(session) == ["web.track_order_completed", "web.track_other"]
    run(place, jobs.drop(place.connections.get("web"), "track_other"), InProcess())
    place.spark_views(session)
    assert sorted(table.name for table in session.catalog.listTables("web")) == ["mine", "track_order_completed"]
    place.rebuild("web", {"table_prefix": "x", "database": "elsewhere"})
    assert place.spark_views(session) == ["elsewhere.x_track_order_completed"]
    assert [table.name for table in session.catalog.listTables("web")] == ["mine"]


def test_a_table_of_the_sessions_own_is_left_alone(place: Workspace, session: SparkSession, tmp_path: Path) -> None:
    place.sync()
    session.sql("create database if not exists web")
    session.sql(f"create table web.track_order_completed (a int) using parquet location '{tmp_path}/own'")
    with pytest.raises(InvalidSettingsError, match="not of a lake"):
        place.spark_views(session)
    assert session.table("web.track_order_completed").columns == ["a"]


@pytest.mark.parametrize("name", ["it's {a,b} [x] *? \\\\ `y`"])
def test_a_lake_in_a_folder_with_an_odd_name_is_read(tmp_path: Path, session: SparkSession, name: str) -> None:
    place = eventlake.create(tmp_path / name)
    place.connections.add_source("web", source_id="src1")
    import_file(place.archive, "src1", raw_file(tmp_path, events(4)), now_micros=place.clock.now())
    place.sync()
    place.spark_views(session)
    assert session.sql("select count(*) as n from web.track_order_completed").collect()[0].n == 4
