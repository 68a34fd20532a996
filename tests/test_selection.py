"""Selective sync: what of its events a source's lake has, and what happens when that changes."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from conftest import InProcess, Lake, SetClock, track
from eventlake.audit.verify import verify
from eventlake.errors import InvalidSettingsError
from eventlake.schema import selection
from eventlake.sync import jobs
from eventlake.sync.work import Sizes
from eventlake.tasks.staged import StageSizes


@pytest.fixture(params=[True, False], ids=["at once", "one by one"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    sizes = Sizes(stage=StageSizes(at_once=request.param))
    return Lake(tmp_path / "workspace", InProcess(), sizes=sizes, clock=SetClock())


def select(lake: Lake, text: str) -> None:
    lake.workspace.connections.change("web", {"select": text})


def agrees(lake: Lake) -> bool:
    return verify(lake.workspace, lake.connection, InProcess()) == []


# What is selected


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ("", "page track_order_completed track_debug_x"),
        ("page", "page"),
        ("track_*", "track_order_completed track_debug_x"),
        ("-track_debug_*", "page track_order_completed"),
        ("track_*, -track_debug_*", "track_order_completed"),
        ("-*", ""),
        ("pag", ""),
        ("*order*, page", "page track_order_completed"),
    ],
)
def test_tables_are_selected_by_patterns(text: str, tables: str) -> None:
    found = selection.parse(text)
    assert [key for key in ["page", "track_order_completed", "track_debug_x"] if found.has_table(key)] == tables.split()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("properties.x", "columns can only be left out"),
        ("-Track:properties.x", "neither a table nor"),
        ("Order Completed", "columns can only be left out"),
        ("-page:", "neither a table nor"),
        ("-:x.y", None),
        ("-properties..x", "empty part"),
        ("-page:messageId", "every row has the column message_id"),
        ("-page:receivedAt", "every row has the column received_at"),
    ],
)
def test_what_selects_nothing_is_refused(lake: Lake, text: str, told: str | None) -> None:
    if told is None:
        select(lake, text)
        return
    with pytest.raises(InvalidSettingsError, match=told):
        select(lake, text)


PARTS = st.sampled_from(
    ["page", "track_*", "-track_a", "-*:properties.x", "-page:context.y.z", " ", "- b ", "-properties.aB"]
)


@given(st.lists(PARTS).map(",".join))
@example("-a:b.c ,x,- y")
def test_what_is_kept_of_a_selection_means_the_same(text: str) -> None:
    found = selection.parse(text)
    assert selection.parse(selection.written(found)) == found
    assert selection.written(selection.parse(selection.written(found))) == selection.written(found)


# Syncs


def test_what_is_not_selected_is_counted_and_comes_by_a_replay_when_it_is(lake: Lake) -> None:
    select(lake, "-track_debug_*")
    lines: list[Any] = [
        *(track(f"Debug {number % 3}", f"d{number}") for number in range(7)),
        track("A", "m1"),
        track("A", "m1"),
        {**track("Debug 1", "d8"), "receivedAt": "soon"},
        b"broken",
    ]
    head, *tables = lake.sync_of(*lines)
    books = head["books"]
    assert [books[name] for name in ("lines", "loaded", "duplicates", "blocked", "quarantined")] == [11, 1, 1, 8, 1]
    assert head["blocked_by"] == {"not selected": 8}
    assert [table["table_name"] for table in tables] == ["track_a"]
    assert lake.tables() == ["track_a"]
    assert agrees(lake)
    assert lake.sync()[0]["books"]["lines"] == 0

    select(lake, "")
    report = lake.run(jobs.replay(lake.connection, None, None))
    assert report[0]["row_count"] == 8
    assert lake.tables() == ["track_a", "track_debug_0", "track_debug_1", "track_debug_2"]
    assert agrees(lake)


def test_a_file_of_which_nothing_was_selected_is_found_by_a_replay_of_its_hour(lake: Lake) -> None:
    select(lake, "page")
    lake.sync_of(track("A", "m1", receivedAt="2026-11-15T10:20:30Z"))
    select(lake, "")
    ten = 1794736800_000_000
    assert lake.run(jobs.replay(lake.connection, ten - 7200_000_000, ten))[0]["row_count"] == 0
    assert lake.run(jobs.replay(lake.connection, ten, ten + 1))[0]["row_count"] == 1


def test_a_replay_takes_out_what_is_not_selected_any_more(lake: Lake) -> None:
    lake.sync_of(track("A", "m1"), track("B", "m2"), track("B", "m3"))
    select(lake, "-track_b")
    head = lake.run(jobs.replay(lake.connection, None, None))[0]
    assert (head["removed"], head["books"]["blocked"]) == (2, 2)
    assert lake.rows("track_b") == []
    assert [row["message_id"] for row in lake.rows("track_a")] == ["m1"]
    assert agrees(lake)
    assert lake.sync_of(track("B", "m2"))[0]["books"]["blocked"] == 1


def test_columns_that_are_left_out_are_nowhere(lake: Lake) -> None:
    odd = '{"type":"track","event":"A","messageId":"m3","properties":{"pin":1,"pin":2,"Pin":3,"card":{"no":4},"b":5}}'
    lake.sync_of(track("A", "m0", properties={"pin": 7, "a": 1}))
    select(lake, "-properties.pin, -track_a:properties.card.*, -context.*")
    lines: list[Any] = [
        track("A", "m1", properties={"pin": 1234, "a": 2}, context={"ip": "1.2.3.4"}),
        track("A", "m2", properties={"pin": {"x": 1}, "card": {"no": "4711", "cvc": 1}}),
        track("B", "m4", properties={"card": {"no": "4712"}, "pin": "9"}),
        odd.encode(),
    ]
    head = lake.sync_of(*lines)[0]
    assert head["books"]["loaded"] == 4
    rows = {row["message_id"]: row for row in lake.rows("track_a")}
    assert [rows[name]["properties_pin"] for name in ("m0", "m1", "m2", "m3")] == [7, None, None, None]
    assert rows["m1"]["properties_a"] == 2
    assert rows["m3"]["properties_b"] == 5
    assert rows["m2"]["properties_pin_x"] == 1  # another column, which nobody named
    assert not [name for name in lake.types("track_a") if "card" in name or name.startswith("context_")]
    assert "properties_card_no" in lake.types("track_b")
    kept = json.dumps([row.get("_rescued_data") for row in rows.values()])
    assert "1234" not in kept
    assert agrees(lake)

    lake.run(jobs.replay(lake.connection, None, None))
    assert [row["properties_pin"] for row in lake.rows("track_a")] == [None] * 4
    select(lake, "")
    lake.run(jobs.replay(lake.connection, None, None))
    assert [row["properties_pin"] for row in lake.rows("track_a")][:2] == [7, 1234]


# Routing by the events themselves


def test_events_may_say_that_they_do_not_want_to_be_in_a_lake(lake: Lake) -> None:
    lines = [
        track("A", "m1", integrations={"default": False}),
        track("A", "m2", integrations={"default": True}),
        track("A", "m3", integrations={"All": False}),
        track("A", "m4", integrations={"default": {"x": 1}}),
        track("A", "m5", integrations={"default": "false"}),
        track("A", "m6", integrations="default"),
        track("A", "m7"),
    ]
    assert lake.sync_of(*lines)[0]["books"]["loaded"] == 7
    lake.workspace.connections.change("web", {"honour_integrations": "true"})
    head = lake.run(jobs.replay(lake.connection, None, None))[0]
    assert (head["removed"], head["blocked_by"]) == (1, {"integrations": 1})
    assert [row["message_id"] for row in lake.rows("track_a")] == ["m2", "m3", "m4", "m5", "m6", "m7"]
    assert lake.sync_of(track("A", "m8", integrations={"default": False}))[0]["blocked_by"] == {"integrations": 1}
    assert agrees(lake)


def test_in_the_other_dialect_a_message_keeps_the_tables_that_are_selected(tmp_path: Path) -> None:
    lake = Lake(tmp_path, InProcess(), clock=SetClock(), settings='[lake]\nroot = "lake"\ndialect = "rudderstack"\n')
    select(lake, "-tracks")
    lake.sync_of(track("A", "m1", properties={"x": 1}))
    assert lake.tables() == ["a"]
    assert agrees(lake)
