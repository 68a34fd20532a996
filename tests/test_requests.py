"""What people ask for, by the names that they use, becomes the job that they mean, or is refused in a sentence."""

from pathlib import Path
from typing import Any

import pytest

from conftest import InProcess, Lake, SetClock, track
from eventlake.errors import EventLakeError, InvalidSettingsError, NotFoundError
from eventlake.schema.types import SEGMENT_TYPES, ColumnType
from eventlake.sync import jobs, requests

HOUR = 3_600_000_000


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path / "workspace", InProcess(), clock=SetClock())
    lake.workspace.connections.change("web", {"table_limit": "3", "table_prefix": "x"})
    page = {"type": "page", "messageId": "m3", "receivedAt": "2026-11-15T10:00:00Z"}
    lake.sync_of(track("Order Completed", "m1", properties={"total": 1}), track("Seen", "m2"), page)
    lake.sync_of(track("Too Many", "m4"), track("Also Too Many", "m5"))
    lake.run(jobs.drop(lake.connection, "track_seen"))
    return lake


def refused(call: Any, *args: Any) -> tuple[type[EventLakeError], str, str]:
    with pytest.raises(EventLakeError) as error:
        call(*args)
    return type(error.value), error.value.problem, error.value.fix


def test_a_table_is_known_by_its_database_and_name(lake: Lake) -> None:
    assert requests.table_named(lake.place, "web.x_page").table_key == "page"
    for name in ("web.page", "x_page", "other.x_page"):
        expected = (NotFoundError, f"there is no table {name!r}", "see `eventlake tables`")
        assert refused(requests.table_named, lake.place, name) == expected


def test_a_replay_of_some_events_is_one_of_their_tables(lake: Lake) -> None:
    place, connection = lake.place, lake.connection
    assert requests.replay(place, connection, None, None) == jobs.replay(connection, None, None)
    assert requests.replay(place, connection, HOUR, 2 * HOUR, []) == jobs.replay(connection, HOUR, 2 * HOUR)
    keys = frozenset({"track_order_completed", "page"})
    asked = requests.replay(place, connection, 1, 2, ["order completed", "page"])
    assert asked == jobs.replay(connection, 1, 2, keys)
    for event in ("Never", "identify", "Seen"):
        problem = f"web has no table for the event {event!r}"
        expected = (NotFoundError, problem, "see `eventlake tables`")
        assert refused(requests.replay, place, connection, 1, 2, ["page", event]) == expected


def test_a_type_is_changed_to_another_that_there_is(lake: Lake) -> None:
    table, column = "web.x_track_order_completed", "properties_total"
    job = requests.retype(lake.place, table, column, "string")
    assert job == jobs.retype(lake.connection, "track_order_completed", column, ColumnType.STRING)
    assert requests.retype(lake.place, table, column, "bigint") is None
    kind, problem, fix = refused(requests.retype, lake.place, table, column, "integer")
    assert (kind, problem) == (InvalidSettingsError, "'integer' is not a column type")
    assert fix == "use one of " + ", ".join(kind.value for kind in SEGMENT_TYPES)
    for name in ("never", "_rescued_data"):
        problem = f"{table} has no column {name!r} whose type could change"
        expected = (NotFoundError, problem, f"see `eventlake describe {table}`")
        assert refused(requests.retype, lake.place, table, name, "string") == expected
    for name in ("message_id", "received_at"):
        problem = f"{name} must keep its type: deduplication and partitions need it"
        found = refused(requests.retype, lake.place, table, name, "boolean")
        assert found == (InvalidSettingsError, problem, "choose another column")


def test_a_table_is_dropped_by_its_name(lake: Lake) -> None:
    assert requests.drop(lake.place, "web.x_page") == jobs.drop(lake.connection, "page")


def test_what_was_left_out_is_let_in_by_any_name_or_all_for_which_there_was_no_room(lake: Lake) -> None:
    place, connection = lake.place, lake.connection

    def allowed(*names: str) -> jobs.Job:
        return requests.allow(place, connection, names or None)

    refused_ones = frozenset({"track_too_many", "track_also_too_many"})
    assert allowed() == jobs.allow(connection, refused_ones, were_loaded=False)
    one = jobs.allow(connection, frozenset({"track_too_many"}), were_loaded=False)
    for name in ("Too Many", "too many", "track_too_many", "x_track_too_many", "web.x_track_too_many"):
        assert allowed(name) == one
    both = frozenset({"track_seen", "track_too_many"})
    assert allowed("Seen", "Too Many") == jobs.allow(connection, both, were_loaded=True)
    problem, fix = "no table 'page' of web was dropped or refused", "see `eventlake drop --list`"
    assert refused(requests.allow, place, connection, ["page"]) == (NotFoundError, problem, fix)
    lake.workspace.connections.change("web", {"table_limit": "9"})
    lake.run(allowed())
    expected = (NotFoundError, "no table of web was refused", fix)
    assert refused(requests.allow, place, lake.connection, None) == expected
    assert refused(requests.allow, place, lake.connection, []) == expected


def test_syncs_are_of_what_is_named_and_enabled(lake: Lake) -> None:
    connections = lake.workspace.connections
    connections.add_source("ios")
    assert [job.connection.name for job in requests.syncs(connections, [])] == ["ios", "web"]
    assert requests.syncs(connections, ["web"]) == [jobs.sync(lake.connection)]
    connections.enable("web", False)
    assert [job.connection.name for job in requests.syncs(connections, [])] == ["ios"]
    expected = (InvalidSettingsError, "web/default is disabled", "`eventlake connection enable web/default`")
    assert refused(requests.syncs, connections, ["ios", "web"]) == expected
