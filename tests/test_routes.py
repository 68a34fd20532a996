"""A message may have rows in several tables: messages are counted once, rows by table, and every law holds."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import InProcess, Lake, SetClock, track
from eventlake.audit.repair import repair
from eventlake.audit.verify import verify
from eventlake.control.connections import Connections
from eventlake.lake.dialects import Route, SegmentDialect
from eventlake.sync import jobs


class Twofold(SegmentDialect):
    """Every event also has a row in one table of all events."""

    def route(self, call: str, event: str) -> Route:
        return "all", *super().route(call, event)

    def routes(self, table_keys: frozenset[str]) -> frozenset[Route]:
        return frozenset(("all", key) for key in table_keys - {"all"})


def twofold(folder: Path) -> Lake:
    lake = Lake(folder, InProcess(), clock=SetClock())
    place = lake.workspace
    place.__dict__["connections"] = Connections(place.engine, place.sources, {"default": Twofold}, place.clock.now)
    return lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return twofold(tmp_path / "workspace")


EVENTS = [
    track("A", "m1", properties={"n": 1}),
    track("B", "m2", properties={"n": "two"}),
    track("A", "m1", properties={"n": 9}),
    track("B", "m3", receivedAt="2026-11-15T11:00:00Z"),
]


ROWS = {"all": ["m1", "m2", "m3"], "track_a": ["m1"], "track_b": ["m2", "m3"]}


def rows(lake: Lake, table: str) -> list[str]:
    return [row["message_id"] for row in lake.rows(table)]


def agrees(lake: Lake) -> bool:
    return verify(lake.workspace, lake.connection, lake.runner) == []


def test_messages_are_counted_once_and_rows_by_table(lake: Lake) -> None:
    report = lake.sync_of(*EVENTS, b"broken")
    books = report[0]["books"]
    assert (books["lines"], books["loaded"], books["duplicates"], books["quarantined"]) == (5, 3, 1, 1)
    by_table = {line["table_name"]: line for line in report[1:]}
    assert {name: line["row_count"] for name, line in by_table.items()} == {"all": 3, "track_a": 1, "track_b": 2}
    assert by_table["all"]["books"]["duplicates"] == by_table["track_a"]["books"]["duplicates"] == 1
    assert (rows(lake, "all"), rows(lake, "track_a"), rows(lake, "track_b")) == (
        ["m1", "m2", "m3"],
        ["m1"],
        ["m2", "m3"],
    )
    assert sum(file.messages for file in lake.place.ledger.index_files("src1")) == 3
    assert (lake.types("all")["properties_n"], lake.types("track_a")["properties_n"]) == ("string", "bigint")
    assert agrees(lake)


def test_copies_are_noticed_in_all_tables_also_after_the_index_was_lost(lake: Lake) -> None:
    lake.sync_of(*EVENTS)
    for file in (lake.root / "segment-data" / "index").rglob("*.ids"):
        file.unlink()
    report = lake.sync_of(*EVENTS, track("A", "m4"))
    assert report[0]["reindexed"]["messages"] == 3
    assert report[0]["books"]["loaded"] == 1
    assert rows(lake, "all") == ["m1", "m2", "m3", "m4"]
    assert agrees(lake)


def test_a_replay_of_one_table_leaves_the_rows_of_its_messages_in_others_alone(lake: Lake) -> None:
    lake.sync_of(*EVENTS)
    whole = lake.rows("all")
    before = {file.path for file in lake.place.ledger.data_files("src1") if file.table_key != "track_b"}
    report = lake.run(jobs.replay(lake.connection, None, None, frozenset({"track_b"})))
    assert report[0]["rewritten"] == 2
    after = {file.path for file in lake.place.ledger.data_files("src1")}
    assert before < after
    assert (rows(lake, "all"), rows(lake, "track_b")) == (["m1", "m2", "m3"], ["m2", "m3"])
    assert agrees(lake)
    for raw in (lake.root / "segment-logs").rglob("*.gz"):  # what only the lake has is carried over, there alone
        raw.unlink()
    report = lake.run(jobs.replay(lake.connection, None, None, frozenset({"track_b"})))
    assert (report[0]["carried_over"], report[0]["rewritten"]) == (2, 0)
    lake.run(jobs.replay(lake.connection, None, None))
    assert (rows(lake, "all"), rows(lake, "track_a"), rows(lake, "track_b")) == (
        ["m1", "m2", "m3"],
        ["m1"],
        ["m2", "m3"],
    )
    assert lake.rows("all") == whole


def test_a_message_that_is_new_to_a_replay_of_one_table_gets_all_its_rows(lake: Lake) -> None:
    lake.put(*EVENTS[:2], name="a.gz")
    lake.sync()
    lake.put(*EVENTS, name="a.gz")
    report = lake.run(jobs.replay(lake.connection, None, None, frozenset({"track_b"})))
    assert (report[0]["books"]["loaded"], report[0]["rewritten"]) == (1, 1)
    assert {table: rows(lake, table) for table in lake.tables()} == ROWS
    assert lake.sync()[0]["books"]["loaded"] == 0, "the file has changed since it was loaded"
    assert agrees(lake)


def test_a_column_of_one_table_gets_another_type_and_that_of_the_other_stays(lake: Lake) -> None:
    lake.sync_of(*EVENTS)
    lake.run(jobs.retype(lake.connection, "track_a", "properties_n", next(iter(lake_types(lake, "all")))))
    assert lake.types("track_a")["properties_n"] == lake.types("all")["properties_n"] == "string"
    assert agrees(lake)


def lake_types(lake: Lake, table: str) -> list[Any]:
    found = next(one for one in lake.place.catalog.tables() if one.name == table)
    return [column.type for column in found.schema.columns if column.name == "properties_n"]


def test_a_data_file_that_is_lost_is_brought_back(lake: Lake) -> None:
    lake.sync_of(*EVENTS)
    gone = next(file for file in lake.place.ledger.data_files("src1") if file.table_key == "all")
    lake.place.storage.delete(gone.path)
    findings = verify(lake.workspace, lake.connection, lake.runner)
    assert {finding.kind for finding in findings} == {"data_file_gone", "rows"}
    repair(lake.workspace, lake.connection, findings, lake.runner)
    assert agrees(lake)
    assert rows(lake, "all") == ["m1", "m2", "m3"]


def test_messages_of_a_table_that_is_dropped_stay_in_the_others(lake: Lake) -> None:
    lake.sync_of(*EVENTS)
    lake.run(jobs.drop(lake.connection, "track_b"))
    assert (lake.tables(), rows(lake, "all")) == (["all", "track_a"], ["m1", "m2", "m3"])
    assert agrees(lake)
    report = lake.sync_of(*EVENTS, track("B", "m4"))
    assert (report[0]["books"]["loaded"], report[0]["books"]["blocked"]) == (1, 0)
    assert rows(lake, "all") == ["m1", "m2", "m3", "m4"]
    assert agrees(lake)
    lake.run(jobs.drop(lake.connection, "all"))
    report = lake.sync_of(track("B", "m5"), track("A", "m6"))
    assert (report[0]["books"]["loaded"], report[0]["books"]["blocked"]) == (1, 1)
    assert (lake.tables(), rows(lake, "track_a")) == (["track_a"], ["m1", "m6"])
    assert agrees(lake)


def test_a_message_that_has_no_room_in_one_table_waits_for_it_in_quarantine(lake: Lake) -> None:
    lake.sync_of(track("A", "m1"))
    lake.workspace.connections.change("web", {"table_limit": "2"})
    report = lake.sync_of(track("A", "m2"), track("B", "m3"))
    assert (report[0]["books"]["loaded"], report[0]["books"]["quarantined"]) == (1, 1)
    assert rows(lake, "all") == ["m1", "m2"]
    lake.workspace.connections.change("web", {"table_limit": "3"})
    lake.run(jobs.allow(lake.connection, frozenset({"track_b"}), were_loaded=False))
    assert (rows(lake, "all"), rows(lake, "track_b")) == (["m1", "m2", "m3"], ["m3"])
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
    rows_of_all = {row["message_id"]: row for row in lake.rows("all")}
    assert sorted(rows_of_all) == sorted({f"m{number}" for events in syncs for _, number, _ in events})
    for table in lake.tables():
        for row in lake.rows(table) if table != "all" else ():
            assert row["message_id"] not in first
            first[row["message_id"]] = (table, row["properties_n"])
            whole = rows_of_all[row["message_id"]]
            assert f"track_{whole['event'].lower()}" == table
            assert json.dumps(whole["properties_n"]) == json.dumps(row["properties_n"])
    assert sorted(first) == sorted(rows_of_all)
    assert agrees(lake)
