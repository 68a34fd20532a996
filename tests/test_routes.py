"""A message may have rows in several tables: messages are counted once, rows by table, and every law holds."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import InProcess, Lake, SetClock, track
from eventlake.audit.repair import repair
from eventlake.audit.verify import verify
from eventlake.schema.types import ColumnType
from eventlake.sync import jobs


def twofold(folder: Path) -> Lake:
    """A lake in which an event has a row in `tracks` and one in a table of its own."""
    return Lake(folder, InProcess(), clock=SetClock(), settings='[lake]\nroot = "lake"\ndialect = "rudderstack"\n')


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return twofold(tmp_path / "workspace")


EVENTS = [
    track("A", "m1", properties={"n": 1}),
    track("B", "m2", properties={"n": "two"}),
    track("A", "m1", properties={"n": 9}),
    track("B", "m3", receivedAt="2026-11-15T11:00:00Z"),
]


ROWS = {"tracks": ["m1", "m2", "m3"], "a": ["m1"], "b": ["m2", "m3"]}


def rows(lake: Lake, table: str) -> list[str]:
    return [row["id"] for row in lake.rows(table)]


def agrees(lake: Lake) -> bool:
    return verify(lake.workspace, lake.connection, lake.runner) == []


def test_messages_are_counted_once_and_rows_by_table(lake: Lake) -> None:
    report = lake.sync_of(*EVENTS, b"broken")
    books = report[0]["books"]
    assert (books["lines"], books["loaded"], books["duplicates"], books["quarantined"]) == (5, 3, 1, 1)
    by_table = {line["table_name"]: line for line in report[1:]}
    assert {name: line["row_count"] for name, line in by_table.items()} == {"tracks": 3, "a": 1, "b": 2}
    assert by_table["tracks"]["books"]["duplicates"] == by_table["a"]["books"]["duplicates"] == 1
    assert (rows(lake, "tracks"), rows(lake, "a"), rows(lake, "b")) == (
        ["m1", "m2", "m3"],
        ["m1"],
        ["m2", "m3"],
    )
    assert sum(file.messages for file in lake.place.ledger.index_files("src1")) == 3
    assert (lake.types("b")["n"], lake.types("a")["n"]) == ("string", "bigint")
    assert "n" not in lake.types("tracks")
    assert agrees(lake)


def test_copies_are_noticed_in_all_tables_also_after_the_index_was_lost(lake: Lake) -> None:
    lake.sync_of(*EVENTS)
    for file in (lake.root / "eventlake" / "index").rglob("*.ids"):
        file.unlink()
    report = lake.sync_of(*EVENTS, track("A", "m4"))
    assert report[0]["reindexed"]["messages"] == 3
    assert report[0]["books"]["loaded"] == 1
    assert rows(lake, "tracks") == ["m1", "m2", "m3", "m4"]
    assert agrees(lake)


def test_a_replay_of_one_table_leaves_the_rows_of_its_messages_in_others_alone(lake: Lake) -> None:
    lake.sync_of(*EVENTS)
    whole = lake.rows("tracks")
    before = {file.path for file in lake.place.ledger.data_files("src1") if file.table_key != "b"}
    report = lake.run(jobs.replay(lake.connection, None, None, frozenset({"b"})))
    assert report[0]["rewritten"] == 2
    after = {file.path for file in lake.place.ledger.data_files("src1")}
    assert before < after
    assert (rows(lake, "tracks"), rows(lake, "b")) == (["m1", "m2", "m3"], ["m2", "m3"])
    assert agrees(lake)
    for raw in (lake.root / "segment-logs").rglob("*.gz"):  # what only the lake has is carried over, there alone
        raw.unlink()
    report = lake.run(jobs.replay(lake.connection, None, None, frozenset({"b"})))
    assert (report[0]["carried_over"], report[0]["rewritten"]) == (2, 0)
    lake.run(jobs.replay(lake.connection, None, None))
    assert (rows(lake, "tracks"), rows(lake, "a"), rows(lake, "b")) == (
        ["m1", "m2", "m3"],
        ["m1"],
        ["m2", "m3"],
    )
    assert without_load_time(lake.rows("tracks")) == without_load_time(whole)


def without_load_time(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without the time at which they were written."""
    return [{name: cell for name, cell in row.items() if name != "uuid_ts"} for row in rows]


def test_a_message_that_is_new_to_a_replay_of_one_table_gets_all_its_rows(lake: Lake) -> None:
    lake.put(*EVENTS[:2], name="a.gz")
    lake.sync()
    lake.put(*EVENTS, name="a.gz")
    report = lake.run(jobs.replay(lake.connection, None, None, frozenset({"b"})))
    assert (report[0]["books"]["loaded"], report[0]["rewritten"]) == (1, 1)
    assert {table: rows(lake, table) for table in lake.tables()} == ROWS
    assert lake.sync()[0]["books"]["loaded"] == 0, "the file has changed since it was loaded"
    assert agrees(lake)


def test_a_column_of_one_table_gets_another_type_and_that_of_the_other_stays(lake: Lake) -> None:
    lake.sync_of(*EVENTS)
    lake.run(jobs.retype(lake.connection, "a", "n", ColumnType.DOUBLE))
    assert (lake.types("a")["n"], lake.types("b")["n"]) == ("double", "string")
    assert agrees(lake)


def test_a_data_file_that_is_lost_is_brought_back(lake: Lake) -> None:
    lake.sync_of(*EVENTS)
    gone = next(file for file in lake.place.ledger.data_files("src1") if file.table_key == "tracks")
    lake.place.storage.delete(gone.path)
    findings = verify(lake.workspace, lake.connection, lake.runner)
    assert {finding.kind for finding in findings} == {"data_file_gone", "rows"}
    repair(lake.workspace, lake.connection, findings, lake.runner)
    assert agrees(lake)
    assert rows(lake, "tracks") == ["m1", "m2", "m3"]


def test_messages_of_a_table_that_is_dropped_stay_in_the_others(lake: Lake) -> None:
    lake.sync_of(*EVENTS)
    lake.run(jobs.drop(lake.connection, "b"))
    assert (lake.tables(), rows(lake, "tracks")) == (["a", "tracks"], ["m1", "m2", "m3"])
    assert agrees(lake)
    report = lake.sync_of(*EVENTS, track("B", "m4"))
    assert (report[0]["books"]["loaded"], report[0]["books"]["blocked"]) == (1, 0)
    assert rows(lake, "tracks") == ["m1", "m2", "m3", "m4"]
    assert agrees(lake)
    lake.run(jobs.drop(lake.connection, "tracks"))
    report = lake.sync_of(track("B", "m5"), track("A", "m6"))
    assert (report[0]["books"]["loaded"], report[0]["books"]["blocked"]) == (1, 1)
    assert (lake.tables(), rows(lake, "a")) == (["a"], ["m1", "m6"])
    assert agrees(lake)


def test_a_message_that_has_no_room_in_one_table_waits_for_it_in_quarantine(lake: Lake) -> None:
    lake.sync_of(track("A", "m1"))
    lake.workspace.connections.change("web", {"table_limit": "2"})
    report = lake.sync_of(track("A", "m2"), track("B", "m3"))
    assert (report[0]["books"]["loaded"], report[0]["books"]["quarantined"]) == (1, 1)
    assert rows(lake, "tracks") == ["m1", "m2"]
    lake.workspace.connections.change("web", {"table_limit": "3"})
    lake.run(jobs.allow(lake.connection, frozenset({"b"}), were_loaded=False))
    assert (rows(lake, "tracks"), rows(lake, "b")) == (["m1", "m2", "m3"], ["m3"])
    assert agrees(lake)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from("ABC"), st.integers(0, 9), st.integers(0, 3)), min_size=1, max_size=8),
        min_size=1,
        max_size=4,
    )
)
def test_every_message_has_its_rows_once_however_it_comes(
    tmp_path_factory: pytest.TempPathFactory, syncs: list[list[tuple[str, int, int]]]
) -> None:
    lake = twofold(tmp_path_factory.mktemp("routes") / "workspace")
    first: dict[str, tuple[str, int]] = {}
    for events in syncs:
        lines = []
        for event, number, value in events:
            lines.append(track(event, f"m{number}", properties={"n": value}))
        lake.sync_of(*lines)
    rows_of_all = {row["id"]: row for row in lake.rows("tracks")}
    assert sorted(rows_of_all) == sorted({f"m{number}" for events in syncs for _, number, _ in events})
    for table in lake.tables():
        for row in lake.rows(table) if table != "tracks" else ():
            assert row["id"] not in first
            first[row["id"]] = (table, row["n"])
            assert rows_of_all[row["id"]]["event"] == table
    assert sorted(first) == sorted(rows_of_all)
    assert agrees(lake)
