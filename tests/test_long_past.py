"""A long past does not slow what happens today: how often the database is asked does not depend on it."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from bench.driver import Imagining, sync_of_one
from bench.past import Past, write_past

from eventlake.archive import layout as archive
from eventlake.control.connections import Connection
from eventlake.status.listing import listed

SHORT = Past(raw_files=300, data_files=60, runs=10, tables=6, columns=5)
LONG = Past(raw_files=3000, data_files=600, runs=100, tables=60, columns=5)


def with_past(folder: Path, past: Past | None) -> tuple[Imagining, Connection]:
    place = Imagining.create(folder)
    connection, _ = place.connections.add_source("web")
    if past:
        place.listed[archive.folder(connection.source.id)] = write_past(place.lake(), connection, past)
    sync_of_one(place, connection, 0)
    return place, connection


@contextlib.contextmanager
def noted(engine: sa.Engine) -> Iterator[list[str]]:
    """What the database is asked meanwhile."""
    statements: list[str] = []

    def note(_1: object, _2: object, statement: str, *_: object) -> None:
        statements.append(statement)

    sa.event.listen(engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        sa.event.remove(engine, "before_cursor_execute", note)


def test_a_sync_asks_the_database_no_more_often(tmp_path: Path) -> None:
    asked = []
    for past in (SHORT, LONG):
        place, connection = with_past(tmp_path / f"{past.tables}", past)
        place.lake()  # what is opened once
        with noted(place.engine) as statements:
            sync_of_one(place, connection, 1)
        (last,) = place.runs.latest(1)
        assert last.report
        assert last.report[0]["books"]["lines"] == 1000  # and none of the past
        asked.append([words for words in statements if "runs SET" not in words])  # notes of progress, by the clock
        place.close()
    assert asked[0] == asked[1]


def test_tables_are_told_by_a_few_queries_and_as_the_ledger_has_them(tmp_path: Path) -> None:
    asked = []
    for past in (SHORT, LONG):
        place, connection = with_past(tmp_path / f"{past.tables}", past)
        with noted(place.engine) as statements:
            page = listed(place.engine, limit=None)
        asked.append(len(statements))
        assert page.total == len(page.tables) == past.tables
        for table in page.tables:
            files = place.lake().ledger.data_files(connection.source.id, table.table_key)
            assert (table.files, table.rows, table.bytes) == (
                len(files),
                sum(file.rows for file in files),
                sum(file.size for file in files),
            )
            assert table.first_received == min(file.first_received for file in files)
            assert table.last_received == max(file.last_received for file in files)
            assert table.partitions == len(place.lake().catalog.partitions(table.database, table.name))
            assert listed(place.engine, lake="default", name=table.full_name).tables == [table]
        with place.engine.connect() as database:
            sums = next(words for words in statements if "first_received" in words)
            plan = "explain query plan " + sums.replace("(__[POSTCOMPILE_lake_1])", "('default')")
            steps = [row[3] for row in database.exec_driver_sql(plan, _guesses(plan))]
        assert any("COVERING INDEX ix_data_files_sums" in step for step in steps), steps
        place.close()
    assert asked[0] == asked[1] <= 5


def _guesses(statement: str) -> tuple[str, ...]:
    return ("x",) * statement.count("?")


@pytest.mark.long
def test_a_sync_after_hundreds_of_thousands_of_files_takes_a_second_longer(tmp_path: Path) -> None:
    """By the processor's time: the machine is busy with other tests."""
    seconds = []
    for past in (None, Past(raw_files=200_000, data_files=100_000, runs=3000, tables=400)):
        place, connection = with_past(tmp_path / f"{past}"[:4], past)
        took = []
        for number in range(1, 4):
            begun = time.process_time()
            sync_of_one(place, connection, number)
            took.append(time.process_time() - begun)
        seconds.append(min(took))
        place.close()
    assert seconds[1] < seconds[0] + 1.0
