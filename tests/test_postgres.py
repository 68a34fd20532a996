"""A workspace whose database is a PostgreSQL server: what only a server can do, or cannot take."""

import itertools
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import InProcess, Lake, track
from eventlake.audit.verify import verify
from eventlake.catalog.base import TableChange
from eventlake.catalog.embedded import EmbeddedCatalog
from eventlake.control import database
from eventlake.errors import TransientError
from eventlake.schema.evolve import Column
from eventlake.schema.types import ColumnType
from eventlake.workspace import Workspace
from servers import PostgresServer


@pytest.fixture(scope="module")
def catalog(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> EmbeddedCatalog:
    return EmbeddedCatalog(database.connect(postgres.new_database(), tmp_path_factory.mktemp("workspace")), "default")


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.sampled_from("\0\\0a/~é"), max_size=12))
def test_keys_of_events_are_kept_with_any_character(catalog: EmbeddedCatalog, key: str) -> None:
    column = Column("properties_x", ColumnType.STRING, f"/properties/{key}")
    change = TableChange("web", "page", "src1", "page", "data", ("day",), (column,))
    catalog.apply([change], run_id="1", at=1)
    assert [c.pointer for c in catalog.tables()[0].schema.columns] == [f"/properties/{key}"]
    catalog.drop("web", "page")


def test_hostile_events_are_loaded_and_found_again(postgres: PostgresServer, tmp_path: Path) -> None:
    lake = Lake(tmp_path / "workspace", InProcess(), settings=f'database = "{postgres.new_database()}"\n')
    hostile = {
        "a\0b": 1,
        "back\\slash": "\0",
        "'; drop table runs; --": "x" * 100_000,
        "%s": "%(name)s",
        "é" * 300: True,
    }
    lake.sync_of(track("A\0'; drop table runs; --", "m1", properties=hostile))
    assert len(lake.tables()) == 1
    assert verify(lake.workspace, lake.connection, InProcess()) == []


def test_a_server_that_goes_away_at_any_moment_loses_nothing(postgres: PostgresServer, tmp_path: Path) -> None:
    lake = Lake(tmp_path / "workspace", InProcess(), settings=f'database = "{postgres.new_database()}"\n')
    lake.sync_of(track("A", "m0"))
    statements = cut_at = 0

    def cut_off(connection: sa.Connection, *_: Any) -> None:
        nonlocal statements
        statements += 1
        if statements == cut_at:
            ours = connection.engine.url.query["application_name"]
            with psycopg.connect(postgres.url, autocommit=True) as other:
                other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s", [ours]
                )

    sa.event.listen(lake.workspace.engine, "before_cursor_execute", cut_off)
    failures = 0
    for moment in itertools.count(1):
        cut_at = 0
        lake.put(track("A", f"m{moment}"))
        statements, cut_at = 0, moment
        try:
            lake.sync()
        except TransientError:
            failures += 1
        if statements < moment:  # it ended before
            break
    assert failures > 10
    cut_at = 0
    lake.sync()
    assert sorted(row["message_id"] for row in lake.rows("track_a")) == sorted(f"m{n}" for n in range(moment + 1))
    assert verify(lake.workspace, lake.connection, InProcess()) == []
    assert not lake.place.runs.unfinished()


def test_a_server_that_is_not_there_is_told_without_the_password(tmp_path: Path) -> None:
    Workspace.create(tmp_path / "mine")
    place = Workspace.open(tmp_path / "mine")
    with pytest.raises(TransientError) as told:
        database.connect("postgresql://eventlake:s3cret@127.0.0.1:9/lake", place.folder)
    assert "s3cret" not in str(told.value)
    assert "the workspace database does not answer" in str(told.value)
