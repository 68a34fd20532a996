"""Workspaces of other versions: those of earlier ones go on as they are, those of later ones are refused."""

import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext

from conftest import ON_POSTGRES, InProcess, new_database
from eventlake.audit.verify import verify
from eventlake.catalog import embedded
from eventlake.control import database, migrations, policy_tables, service_tables
from eventlake.errors import ConfigurationError
from eventlake.query import query
from eventlake.sync import jobs
from eventlake.sync.run import run
from eventlake.workspace import Workspace

WORKSPACES = sorted((Path(__file__).parent / "workspaces").glob("*.tar.gz"))
FILE = "sqlite:///eventlake.db"


def test_the_steps_make_the_tables_that_the_program_works_with(tmp_path: Path) -> None:
    known = sa.MetaData()
    for one in (policy_tables.plans, service_tables.orders):
        assert one.metadata is database.metadata, "the tables of both modules are among those compared"
    for tables in (database.metadata, embedded.metadata):
        for table in tables.sorted_tables:
            table.to_metadata(known)
    with database.connect(new_database(), tmp_path).connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), known) == []


def test_the_newest_step_is_the_last_file() -> None:
    assert [file.name[:4] for file in sorted((migrations.FOLDER / "versions").glob("*.py"))][-1] == migrations.NEWEST


def test_many_may_open_a_new_workspace_at_once(tmp_path: Path) -> None:
    address = new_database()
    with ThreadPoolExecutor(8) as threads:
        engines = list(threads.map(lambda _: database.connect(address, tmp_path), range(8)))
    for engine in engines:
        with engine.connect() as connection:
            assert connection.execute(sa.select(sa.func.count()).select_from(database.sources)).scalar() == 0
        engine.dispose()


def test_a_database_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    engine = database.connect(FILE, tmp_path)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    engine.dispose()
    before = (tmp_path / "eventlake.db").read_bytes()
    with pytest.raises(ConfigurationError, match="newer version of eventlake") as refused:
        database.connect(FILE, tmp_path)
    assert "pip install --upgrade eventlake" in refused.value.fix
    assert (tmp_path / "eventlake.db").read_bytes() == before


def test_there_are_workspaces_of_earlier_versions() -> None:
    assert WORKSPACES  # else what follows would pass over them all


@pytest.fixture(params=WORKSPACES, ids=lambda file: file.name.removesuffix(".tar.gz"))
def earlier(request: pytest.FixtureRequest, tmp_path: Path) -> Workspace:
    """A workspace that an earlier version wrote: 120 events of `web`, and 20 of `app` beside 20 that were promised."""
    with tarfile.open(request.param) as packed:
        packed.extractall(tmp_path, filter="data")
    return Workspace.open(tmp_path)


def rows(place: Workspace) -> dict[str, int]:
    """Rows by table, each message once."""
    counted = {}
    for table in ("web.track_order_completed", "web.page", "app.screen"):
        (row,) = query(
            place.lake(), f"select count(*) as n, count(distinct message_id) as ids from {table}"
        ).to_pylist()
        assert row["n"] == row["ids"]
        counted[table.partition(".")[2]] = row["n"]
    return counted


def test_a_workspace_of_an_earlier_version_shows_what_it_has(earlier: Workspace) -> None:
    assert rows(earlier) == {"track_order_completed": 60, "page": 60, "screen": 20}
    assert {(run.kind, run.status) for run in earlier.runs.latest(9)} >= {("drop", "finished"), ("sync", "running")}
    assert [table.table_key for table in earlier.lake().admission.dropped("src_web")] == ["track_junk"]


def test_what_an_earlier_version_promised_is_carried_out(earlier: Workspace) -> None:
    lines = run(earlier, jobs.sync(earlier.connections.get("app")), InProcess())
    assert lines[0]["books"]["lines"] == 0  # all that is new was part of the promise
    assert rows(earlier) == {"track_order_completed": 60, "page": 60, "screen": 40}
    assert not earlier.runs.unfinished()


def test_a_workspace_of_an_earlier_version_goes_on(earlier: Workspace) -> None:
    for connection in earlier.connections.all():
        assert run(earlier, jobs.sync(connection), InProcess())[0]["books"]["loaded"] == 0
        assert run(earlier, jobs.replay(connection, None, None, None), InProcess())[0]["books"]["loaded"] == 0
        assert verify(earlier, connection, InProcess()) == []
    assert rows(earlier) == {"track_order_completed": 60, "page": 60, "screen": 40}


def test_what_was_there_before_there_were_lakes_belongs_to_the_default_one(tmp_path: Path) -> None:
    """Every row of every table, of a source that was switched off as well."""
    address = new_database()
    engine = sa.create_engine(database.connect(address, tmp_path).url)
    with engine.begin() as connection:
        for name in sa.inspect(connection).get_table_names():
            connection.exec_driver_sql(f'DROP TABLE "{name}" CASCADE' if ON_POSTGRES else f'DROP TABLE "{name}"')
    before = sa.MetaData()
    with engine.begin() as connection:
        _taken_to(connection, "0002")
        before.reflect(connection)
        for table in before.sorted_tables:
            if table.name != "alembic_version":
                connection.execute(table.insert().values({c.name: _any(c) for c in table.c}))
    engine.dispose()
    engine = database.connect(address, tmp_path)
    with engine.connect() as connection:
        everything = [*database.metadata.sorted_tables, *embedded.metadata.sorted_tables]
        tables = [table for table in everything if table.name in before.tables or table.name == "connections"]
        found = {table.name: connection.execute(sa.select(table)).mappings().all() for table in tables}
    assert {name: len(rows) for name, rows in found.items()} == {table.name: 1 for table in tables}
    assert {row["lake"] for (row,) in found.values() if "lake" in row} == {"default"}
    for name, (row,) in found.items():
        if name != "connections":
            names = {"segment_type": "table_key"}  # given by a later step
            old = {names.get(column.name, column.name): _any(column) for column in before.tables[name].c}
            old = {name: value for name, value in old.items() if name in row}
            given: dict[str, Any] = {"lake": "default", "owner": ""}  # by later steps
            given |= {"partial": False, "done": 0, "tasks": 0, "stop_asked": False, "error_code": None, "fix": None}
            given |= {"notices": None, "steps": None, **dict.fromkeys(database.COUNTS)} if name == "runs" else {}
            assert dict(row) == old | {name: value for name, value in given.items() if name in row}
    (connected,) = found["connections"]
    assert (connected["enabled"], connected["connected"], connected["settings"]) == (False, True, {"a": 1})


def _any(column: sa.Column[Any]) -> Any:
    if isinstance(column.type, sa.Boolean) or column.name == "enabled":
        return False
    if isinstance(column.type, sa.JSON):
        return {"a": 1}
    return 7 if isinstance(column.type, sa.Integer) else "x"


def _taken_to(connection: sa.Connection, step: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(migrations.FOLDER))
    config.attributes["connection"] = connection
    command.upgrade(config, step)


def test_what_reports_say_is_beside_the_runs_of_an_earlier_version(earlier: Workspace) -> None:
    lines = {line.run_id: line for line in earlier.runs.lines(None)}
    assert len(lines) > 2
    for run_ in earlier.runs.latest(None):
        head = (run_.report or [{}])[0]
        line = lines[run_.run_id]
        assert line.loaded == head.get("books", {}).get("loaded")
        assert line.outcome == run_.outcome
        assert (line.notices or []) == [*head.get("notices", ()), *([head["error"]] if "error" in head else ())]
    assert sum(line.loaded or 0 for line in lines.values() if line.kind == "sync") >= 140
