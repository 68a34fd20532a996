"""Plans, enforcement, violations and transformations over HTTP, as Segment's API has them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from consoles import Program, full_place, order, put
from eventlake.schedule.scheduler import Scheduler

ORDER = {
    "type": "object",
    "properties": {
        "properties": {"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}
    },
}
RULE = {"type": "TRACK", "key": "Order Completed", "version": 1, "jsonSchema": ORDER}


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    place = full_place(tmp_path / "place")
    yield Program(place)
    place.close()


def audited(program: Program) -> list[str]:
    return [entry["action"] for entry in program.get("audit")]


def test_a_plan_is_made_changed_and_compared(program: Program) -> None:
    made = program.post("tracking-plans", {"name": "The Shop", "description": "sales", "rules": [RULE]})
    assert {**made, "createdAt": "", "updatedAt": ""} == {
        "id": made["id"],
        "name": "The Shop",
        "slug": "the-shop",
        "description": "sales",
        "type": "LIVE",
        "version": 1,
        "rules": 1,
        "sources": [],
        "createdAt": "",
        "updatedAt": "",
        "updatedBy": "token test",
    }
    path = f"tracking-plans/{made['id']}"
    assert program.get(path) == made
    assert program.get("tracking-plans") == [made]
    assert program.post("tracking-plans", {"name": "The Shop"}, 422)["problem"] == "there is a plan 'The Shop'"

    looser = {**ORDER, "properties": {"properties": {"type": "object"}}}
    page = {"type": "PAGE", "key": "Home", "jsonSchema": {"type": "object"}}
    rules = program.patch(f"{path}/rules", {"rules": [{**RULE, "jsonSchema": looser}, page]})
    assert [(rule["type"], rule["key"], rule["version"]) for rule in rules] == [
        ("PAGE", "Home", 1),
        ("TRACK", "Order Completed", 1),
    ]
    assert rules[1]["jsonSchema"] == looser
    assert program.get(f"{path}/rules", version=1)[0]["jsonSchema"] == ORDER
    changes = program.get(f"{path}/differences", old=1)
    assert [(one["change"], one["rule"], one["where"]) for one in changes] == [
        ("added", "PAGE 'Home'", ""),
        ("changed", "TRACK 'Order Completed'", "properties.properties.properties"),
        ("changed", "TRACK 'Order Completed'", "properties.properties.required"),
    ]
    moved = program.patch(f"{path}/rules", {"rules": [{**page, "newKey": "Start"}]})
    assert [rule["key"] for rule in moved] == ["Start", "Order Completed"]
    taken = {**page, "key": "Start", "newKey": "Order Completed"}
    assert len(program.patch(f"{path}/rules", {"rules": [taken]})) == 2  # one is of pages, one of tracks
    assert program.delete(f"{path}/rules", 200, {"rules": [{"type": "PAGE", "key": "Order Completed"}]}) == [rules[1]]
    gone = program.delete(f"{path}/rules", 422, {"rules": [{"type": "PAGE", "key": "Order Completed"}]})
    assert gone["problem"] == "there is no rule PAGE 'Order Completed' version 1"
    assert program.put(f"{path}/rules", {"rules": []}) == []
    assert [one["version"] for one in program.get(f"{path}/versions")] == [6, 5, 4, 3, 2, 1]

    renamed = program.patch(path, {"name": "Sales"})
    assert (renamed["id"], renamed["name"], renamed["description"]) == (made["id"], "Sales", "sales")
    other = program.post("tracking-plans", {"name": "Other"})
    assert program.patch(f"tracking-plans/{other['id']}", {"name": "Sales"}, 422)["problem"] == (
        "another plan is called 'Sales'"
    )
    program.delete(path)
    assert [one["name"] for one in program.get("tracking-plans")] == ["Other"]
    assert program.get(path, 404)["code"] == "not_found"
    assert audited(program)[0] == "delete plan"


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ({"type": "TRACK", "key": "", "jsonSchema": {}}, "a rule of type TRACK has the name of its event as its key"),
        ({"type": "PAGE", "jsonSchema": {"type": "nonsense"}}, "PAGE"),
        ({"type": "PAGE", "jsonSchema": {"pattern": "(?!x)"}}, "look-ahead"),
        ({"type": "TRACKS", "jsonSchema": {}}, "rules.0.type"),
        ({"type": "PAGE", "jsonSchema": []}, "rules.0.jsonSchema"),
    ],
)
def test_a_rule_that_cannot_be_used_is_refused_with_what_is_wrong(
    program: Program, rule: dict[str, Any], problem: str
) -> None:
    made = program.post("tracking-plans", {"name": "Shop", "rules": [RULE]})
    told = program.put(f"tracking-plans/{made['id']}/rules", {"rules": [rule]}, 422)
    assert problem in told["problem"]
    assert program.get(f"tracking-plans/{made['id']}")["version"] == 1


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("tracking-plans", {"name": "x", "rules": [{"type": "PAGE", "jsonSchema": {"title": "\ud800"}}]}),
        ("tracking-plans", {"name": "\ud800"}),
        ("tracking-plans", {"name": "a\0b"}),
        ("transformations", {"sourceId": "web", "name": "t", "if": "true", "newEventName": "\ud800"}),
        ("transformations", {"sourceId": "web", "name": "\ud800", "if": "true"}),
    ],
)
def test_what_is_no_text_is_refused(program: Program, path: str, body: dict[str, Any]) -> None:
    content = json.dumps(body).encode()
    answer = program.client.post(path, content=content, headers={"content-type": "application/json"})
    assert answer.status_code == 422, answer.text
    assert program.get("tracking-plans") == program.get("transformations") == []


def test_a_source_enforces_its_plan_and_lets_in_what_it_blocked(program: Program) -> None:
    made = program.post("tracking-plans", {"name": "Shop", "rules": [RULE]})
    path = f"tracking-plans/{made['id']}"
    assert program.post(f"{path}/sources", {"sourceId": "src1"})["slug"] == "web"
    assert [one["slug"] for one in program.get(f"{path}/sources")] == ["web"]
    assert program.delete(path, 422)["problem"] == f"the plan '{made['id']}' is connected to sources"
    settings = program.patch(
        "sources/web/settings", {"track": {"allowEventOnViolations": False}, "forwardingViolationsTo": "ios"}
    )
    assert settings["track"]["allowEventOnViolations"] is False
    assert settings["forwardingViolationsTo"] == "src2"
    assert program.get("sources/web/settings") == settings
    assert program.patch("sources/web/settings", {"forwardingViolationsTo": "nobody"}, 404)["code"] == "not_found"

    put(program.place, "src1", "d", [order(400, total="a lot"), order(401, total=4)])
    program.place.sync("web")
    (found,) = program.get("violations", source="web")
    assert {**found, "last": ""} == {
        "source": "web",
        "source_id": "src1",
        "event_type": "track",
        "event": "Order Completed",
        "violation_type": "Invalid Type",
        "field": "properties.total",
        "action": "blocked",
        "reason": "schema violation",
        "events": 1,
        "last": "",
    }
    assert program.get("violations", source="web", event="it's another") == []
    (sample,) = program.get("violations/samples", field="properties.total", action="blocked")
    assert '"a lot"' in sample["text"]
    assert sample["message_id"] == "o400"
    assert program.get("violations/samples", field="properties.total", action="omitted") == []

    counted = "select count(*) from web.track_order_completed where message_id = 'o400'"
    assert program.post("query", {"sql": counted}, 200)["rows"] == [[0]]
    program.delete(f"{path}/sources?sourceId=src1")
    assert program.get(f"{path}/sources") == []
    released = program.post("connections/web/default/releases", status=202)
    assert released["kind"] == "replay"
    scheduler = Scheduler(program.place)
    scheduler.tick()
    scheduler._threads.shutdown(wait=True)
    assert program.get(f"orders/{released['id']}")["status"] == "done"
    assert program.post("query", {"sql": counted}, 200)["rows"] == [[1]]
    assert program.post("connections/ios/default/releases", status=404)["problem"] == (
        "nothing of ios was blocked in the last 30 days"
    )
    assert audited(program)[:4] == ["order replay", "disconnect plan", "change enforcement", "connect plan"]


def test_transformations_are_made_previewed_and_changed(program: Program) -> None:
    told = {
        "sourceId": "web",
        "name": "hide coupons",
        "if": "event = 'Order Completed'",
        "newEventName": "Purchase",
        "hashPropertiesConfiguration": {"algorithm": "sha256", "key": "s3cr3t", "paths": ["coupon"]},
        "destinationMetadataId": "x",
    }
    preview = program.post("transformations/preview", told, 200)
    assert (preview["events"], preview["changed"], preview["dropped"]) == (205, 204, 0)
    assert {"where": "event", "before": '"Order Completed"', "after": '"Purchase"'} in preview["samples"]
    assert program.get("transformations") == []

    made = program.post("transformations", told)
    assert made["sourceId"] == "src1"
    assert made["hashPropertiesConfiguration"]["key"] == "…"
    path = f"transformations/{made['id']}"
    assert program.get(path) == made
    changed = program.patch(path, {"name": "hide them", "newEventName": "Bought", "enabled": False})
    assert (changed["name"], changed["newEventName"], changed["enabled"]) == ("hide them", "Bought", False)
    again = program.patch(path, {"hashPropertiesConfiguration": made["hashPropertiesConfiguration"]})
    assert again == changed
    _, kept = program.place.plans.transformations.find(made["id"])
    assert kept.hash_properties_configuration is not None
    assert kept.hash_properties_configuration.key == "s3cr3t"  # what is shown in its place does not replace it
    assert "s3cr3t" not in str(program.get("audit")) + str(program.get("transformations", source="web"))

    second = program.post("transformations", {"sourceId": "web", "name": "second", "if": "type = 'page'"})
    assert program.patch(f"transformations/{second['id']}", {"name": "hide them"}, 422)["problem"] == (
        "another transformation is called 'hide them'"
    )
    hidden = {"sourceId": "web", "name": "third", "if": "type = 'group'"}
    hidden_key = {**hidden, "hashPropertiesConfiguration": {"key": "…", "paths": ["a"]}}
    assert program.post("transformations", hidden_key, 422)["problem"] == "third: a key is missing"
    assert "at character" in program.post("transformations", {**hidden, "if": "event = "}, 422)["problem"]
    program.delete(path)
    assert [one["name"] for one in program.get("transformations")] == ["second"]
    assert program.get(path, 404)["code"] == "not_found"
