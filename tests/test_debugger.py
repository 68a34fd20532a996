"""The last events of a source: what is said of each became of it, and where that is not known, nothing is said."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import SetClock, track, with_database
from consoles import Browser, order, put
from eventlake.library import Workspace
from eventlake.policies.plan import Rule, of_rules
from eventlake.status.events import LastEvents, SeenEvent
from eventlake.workspace import CONFIG
from runner_without_spark import InProcess


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Workspace]:
    folder = tmp_path / "place"
    folder.mkdir()
    (folder / CONFIG).write_text('workspace_id = "acme"\n[lakes.second]\nroot = "second"\n')
    with_database(folder)
    found = Workspace.open(folder, SetClock("2026-11-17T12:00:00Z"))
    found.connections.add_source("web", source_id="src1")
    found._given = InProcess()
    yield found
    found.close()


def sent(number: int, user: str = "u", **properties: Any) -> dict[str, Any]:
    return order(number, **properties) | {"userId": user}


def seen(place: Workspace) -> dict[str, SeenEvent]:
    """The last events, by their message ids, or by their text if it has none."""
    connections = [one for one in place.connections.all() if one.source.slug == "web"]
    return {one.message_id or one.text: one for one in LastEvents(place).of(place.sources.get("web"), connections)}


def outcomes(place: Workspace) -> dict[str, str]:
    return {name: one.outcome for name, one in seen(place).items()}


def in_lake(place: Workspace) -> set[str]:
    """The messages that have a row."""
    return set(place.query("select message_id as m from web.track_order_completed")["m"].to_pylist())


def test_lines_that_are_no_events_are_told_apart_from_rows(place: Workspace) -> None:
    put(place, "src1", "a", [sent(1), "not json", '{"type": "nonsense", "messageId": "n1"}', "", sent(2)])
    assert set(outcomes(place).values()) == {"archived"}
    place.sync("web")
    assert outcomes(place) == {"o1": "loaded", "o2": "loaded", "not json": "quarantined", "n1": "quarantined"}
    found = seen(place)
    assert found["not json"].detail == "not_json"
    (one,) = found["o1"].lakes
    run_id = place.runs.lines(1)[0].run_id
    assert (one.lake, one.table, one.fate.run_id) == ("default", "web.track_order_completed", run_id)


def test_who_is_suppressed_has_no_row(place: Workspace) -> None:
    place.suppressions.add(["hidden"])
    put(place, "src1", "a", [sent(1), sent(2, "hidden")])
    place.sync("web")
    assert outcomes(place) == {"o1": "loaded", "o2": "suppressed"}
    assert in_lake(place) == {"o1"}
    place.suppressions.remove(["hidden"])  # the list does not tell any more who it was
    assert outcomes(place) == {"o1": "read", "o2": "read"}
    place.suppressions.add(["hidden", "u"])  # and now it tells of one too many
    assert outcomes(place) == {"o1": "read", "o2": "read"}
    assert "of its file's 2 lines, 1 loaded, 1 suppressed" in seen(place)["o1"].detail


def test_what_a_plan_blocked_has_no_row(place: Workspace) -> None:
    inner = {"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}
    schema = {"type": "object", "properties": {"properties": inner}}
    place.plans.save(of_rules("Shop", [Rule("TRACK", schema, "Order Completed")]))
    place.plans.connect("Shop", "src1")
    place.plans.enforce("src1", {"track.allowEventOnViolations": "false"})
    put(place, "src1", "a", [sent(1, total=5), sent(2, total="a lot"), sent(3, total=7)])
    place.sync("web")
    assert outcomes(place) == {"o1": "loaded", "o2": "blocked", "o3": "loaded"}
    assert in_lake(place) == {"o1", "o3"}


def test_copies_of_what_was_loaded_before_are_told_apart_from_rows(place: Workspace) -> None:
    put(place, "src1", "a", [sent(1), sent(2)])
    place.sync("web")
    put(place, "src1", "b", [sent(1) | {"receivedAt": "2026-11-17T11:30:00.000Z"}, sent(3), sent(4), sent(4)])
    put(place, "src1", "c", [sent(5), sent(6) | {"receivedAt": "2026-11-17T11:00:00.000Z"}, sent(6)])
    place.sync("web")
    found = LastEvents(place).of(place.sources.get("web"), place.connections.all())
    assert sorted((one.message_id, one.outcome) for one in found) == [
        ("o1", "duplicate"),
        ("o1", "loaded"),
        ("o2", "loaded"),
        ("o3", "loaded"),
        ("o4", "read"),  # one of two that nothing tells apart is the row, the other its copy
        ("o5", "loaded"),
        ("o6", "duplicate"),
        ("o6", "loaded"),
    ]
    chosen = place.query("select received_at as at from web.track_order_completed where message_id = 'o6'")
    (loaded,) = [one for one in found if (one.message_id, one.outcome) == ("o6", "loaded")]
    assert loaded.received == chosen["at"].cast("int64")[0].as_py()


def test_what_is_left_out_without_a_note_makes_the_rest_uncertain(place: Workspace) -> None:
    place.connections.change("web", {"select": "-track_opened"})
    put(place, "src1", "a", [sent(1), track("Opened", "t1"), "not json"])
    place.sync("web")
    assert outcomes(place) == {"o1": "read", "t1": "read", "not json": "quarantined"}


def test_each_lake_has_its_own_word(place: Workspace) -> None:
    place.connections.connect("web", "second")
    put(place, "src1", "a", [sent(1), "not json"])
    place.sync("web/default")
    assert outcomes(place) == {"o1": "archived", "not json": "archived"}
    assert [one.fate.outcome for one in seen(place)["o1"].lakes] == ["loaded", "waiting"]
    text = Browser(place, requests_per_second=0).sign_in().words("/sources/web")
    assert "loaded it into web.track_order_completed" in text
    assert "second : waits for the next sync of web/second ; meant for web.track_order_completed" in text
    place.sync("web/second")
    assert outcomes(place) == {"o1": "loaded", "not json": "quarantined"}


def test_no_table_is_named_where_a_transformation_decides(place: Workspace) -> None:
    place.plans.transformations.save("src1", {"name": "n", "if": "type = 'track'", "newEventName": "Other"})
    put(place, "src1", "a", [sent(1)])
    place.sync("web")
    (one,) = seen(place)["o1"].lakes
    assert (one.fate.outcome, one.table) == ("loaded", "")
