"""Tracking plans and transformations, from raw lines to rows: what gets in, what is changed, and what is told of it."""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import InProcess, Lake, SetClock, track
from eventlake.archive.reader import ReadSizes
from eventlake.audit.restore import restore
from eventlake.audit.verify import verify
from eventlake.errors import InvalidSettingsError, NotFoundError
from eventlake.library.plans import release
from eventlake.policies.plan import Rule, of_rules
from eventlake.sync import jobs
from eventlake.sync.work import Sizes
from eventlake.tasks.staged import StageSizes
from test_restore import lost


def schema(part: str = "properties", required: tuple[str, ...] = (), **types: Any) -> dict[str, Any]:
    told = {name: {"type": kind} if isinstance(kind, str) else kind for name, kind in types.items()}
    below = {"type": "object", "properties": told, "required": list(required)}
    return {"type": "object", "properties": {part: below}}


ORDER = schema(required=("total",), total="number", currency={"type": "string", "enum": ["EUR", "USD"]})


@pytest.fixture(params=[True, False], ids=["at once", "one by one"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    sizes = Sizes(stage=StageSizes(at_once=request.param))
    return Lake(tmp_path / "workspace", InProcess(), sizes=sizes, clock=SetClock())


def planned(lake: Lake, *rules: Rule, **enforcement: str) -> None:
    plans = lake.workspace.plans
    plans.save(of_rules("Shop", rules))
    plans.connect("Shop", lake.source.id)
    plans.enforce(lake.source.id, {name.replace("__", "."): value for name, value in enforcement.items()})


def agrees(lake: Lake) -> bool:
    return verify(lake.workspace, lake.connection, lake.runner) == []


def order(message_id: str, **properties: Any) -> dict[str, Any]:
    return track("Order Completed", message_id, properties=properties)


def violations(lake: Lake) -> list[dict[str, Any]]:
    return lake.query("select * from __segment_datalake.violations order by message_id, field")


def test_by_default_everything_gets_in_and_what_is_wrong_is_told(lake: Lake) -> None:
    planned(lake, Rule("TRACK", ORDER, "Order Completed"))
    report = lake.sync_of(
        order("m1", total=1.5, currency="EUR"),
        order("m2", total="much", currency="XXX"),
        track("Unplanned", "m3"),
        order("m4"),
    )
    assert report[0]["books"]["loaded"] == 4
    assert (report[0]["violated"], report[0]["changed"]) == (3, 2)
    rows = {row["message_id"]: row for row in lake.rows("track_order_completed")}
    assert rows["m1"]["context_protocols_violations"] is None
    told = json.loads(rows["m2"]["context_protocols_violations"])
    assert [(one["type"], one["field"]) for one in told] == [
        ("Enum", "properties.currency"),
        ("Invalid Type", "properties.total"),
    ]
    assert rows["m2"]["context_protocols_source_id"] == "src1"
    kept = [(row["message_id"], row["field"], row["violation_type"], row["action"]) for row in violations(lake)]
    assert kept == [
        ("m2", "properties.currency", "Enum", "allowed"),
        ("m2", "properties.total", "Invalid Type", "allowed"),
        ("m4", "properties.total", "Required", "allowed"),
    ]
    assert json.loads(violations(lake)[0]["content"])["messageId"] == "m2"
    assert agrees(lake)


def test_what_is_blocked_stays_in_the_archive_and_comes_when_the_plan_is_corrected(lake: Lake) -> None:
    settings = {"track__allowUnplannedEvents": "false", "track__allowEventOnViolations": "false"}
    planned(lake, Rule("TRACK", ORDER, "Order Completed"), **settings)
    report = lake.sync_of(order("m1", total=1), order("m2"), track("Order completed", "m3"), track("X", "m4"))
    assert report[0]["books"] | {"checksum": ""} == {
        "lines": 4, "loaded": 1, "duplicates": 0, "suppressed": 0, "blocked": 3, "quarantined": 0, "checksum": "",
    }  # fmt: skip
    assert report[0]["blocked_by"] == {"schema violation": 1, "unplanned event": 2}
    assert lake.tables() == ["track_order_completed"], "names match strictly"
    assert [(row["message_id"], row["reason"]) for row in violations(lake)] == [
        ("m2", "schema violation"),
        ("m3", "unplanned event"),
        ("m4", "unplanned event"),
    ]
    planned(lake, Rule("TRACK", schema(total="number"), "Order Completed"), Rule("TRACK", {}, "X"))
    report = lake.run(jobs.replay(lake.connection, None, None))
    assert (report[0]["books"]["loaded"], report[0]["books"]["blocked"]) == (2, 1)
    assert [row["message_id"] for row in lake.rows("track_order_completed")] == ["m1", "m2"]
    assert len(violations(lake)) == 3, "a replay tells nothing that was told"
    assert agrees(lake)


def test_a_stricter_plan_takes_rows_out_when_they_are_replayed(lake: Lake) -> None:
    lake.sync_of(order("m1", total=1), order("m2"), track("X", "m3"))
    planned(lake, Rule("TRACK", ORDER, "Order Completed"), track__allowEventOnViolations="false")
    report = lake.run(jobs.replay(lake.connection, None, None))
    assert report[0]["removed"] == 1
    assert [row["message_id"] for row in lake.rows("track_order_completed")] == ["m1"]
    assert agrees(lake)
    planned(lake, Rule("TRACK", schema(total="number"), "Order Completed"))
    report = lake.run(release(lake.workspace, lake.connection))
    assert report[0]["books"]["blocked"] == 0
    assert [row["message_id"] for row in lake.rows("track_order_completed")] == ["m1", "m2"]
    assert agrees(lake)


def test_what_is_not_planned_is_left_out_of_events_and_named(lake: Lake) -> None:
    nested = {"type": "object", "properties": {"city": {"type": "string"}}}
    rule = Rule("TRACK", schema(total="number", address=nested, any={"type": "object"}), "Order Completed")
    planned(lake, rule, track__allowUnplannedEventProperties="false")
    sent = {"total": 1, "extra": 2, "address": {"city": "x", "zip": "y"}, "any": {"thing": 1}}
    lake.sync_of(order("m1", **sent), order("m2", total=1))
    (row, clean) = lake.rows("track_order_completed")
    assert json.loads(row["context_protocols_omitted"]) == ["properties.extra", "properties.address.zip"]
    assert (row["properties_address_city"], row["properties_any_thing"]) == ("x", 1)
    assert not {"properties_extra", "properties_address_zip"} & row.keys()
    assert clean["context_protocols_omitted"] is None
    assert agrees(lake)


def test_values_that_violate_are_left_out_and_named(lake: Lake) -> None:
    tags = {"type": "array", "items": {"type": "string"}}
    rule = Rule("TRACK", schema(required=("id",), total="number", tags=tags), "Order Completed")
    planned(lake, rule, track__allowPropertiesOnViolations="false")
    lake.sync_of(order("m1", total="x", tags=["a", 1], keep="k"))
    row = lake.row("track_order_completed")
    assert json.loads(row["context_protocols_omitted_on_violation"]) == ["properties.tags.1", "properties.total"]
    assert len(json.loads(row["context_protocols_violations"])) == 3
    assert row["properties_keep"] == "k"
    assert not {"properties_total", "properties_tags"} & row.keys()
    assert {row["field"]: row["action"] for row in violations(lake)} == {
        "properties.id": "allowed",
        "properties.tags.1": "omitted",
        "properties.total": "omitted",
    }


@pytest.mark.parametrize("how", ["ALLOW", "BLOCK", "OMIT_PROPERTIES"])
def test_the_common_schema_is_looked_at_last(lake: Lake, how: str) -> None:
    common = {"type": "object", "properties": {"context": schema(part="app", required=("name",), name="string")}}
    rules = (Rule("COMMON", common), Rule("TRACK", ORDER, "Order Completed"))
    planned(lake, *rules, track__commonEventOnViolations=how, track__allowPropertiesOnViolations="false")
    bad = {**order("m1", total="x"), "context": {"app": {"name": 5, "build": 1}}}
    report = lake.sync_of(bad, order("m2", total=1))
    if how == "BLOCK":
        assert report[0]["blocked_by"] == {"common schema violation": 1}
        return
    row = lake.rows("track_order_completed")[0]
    fields = [one["field"] for one in json.loads(row["context_protocols_violations"])]
    assert fields == ["properties.total", "context.app.name"]
    lost = json.loads(row["context_protocols_omitted_on_violation"])
    assert lost == (["properties.total"] if how == "ALLOW" else ["properties.total", "context.app.name"])
    assert row.get("context_app_name") == (5 if how == "ALLOW" else None)
    assert row["context_app_build"] == 1


@pytest.mark.parametrize("version", [None, 2, 9, "2", True])
def test_an_event_says_which_version_it_is(lake: Lake, version: Any) -> None:
    rules = [Rule("TRACK", schema(required=(f"v{number}",)), "X", number) for number in (1, 2)]
    planned(lake, *rules, track__allowEventOnViolations="false")
    context = {} if version is None else {"context": {"protocols": {"event_version": version}}}
    lake.sync_of(
        {**track("X", "m1", properties={"v1": 1}), **context}, {**track("X", "m2", properties={"v2": 1}), **context}
    )
    assert lake.row("track_x")["message_id"] == ("m2" if version == 2 and version is not True else "m1")


def test_pages_are_validated_as_events_and_traits_as_traits(lake: Lake) -> None:
    rules = (
        Rule("TRACK", schema(required=("path",)), "Page Viewed"),
        Rule("SCREEN", schema(required=("size",)), "Home"),
        Rule("IDENTIFY", schema("traits", email="string")),
        Rule("GROUP", schema("traits", plan="string")),
    )
    off = {"identify__allowUnplannedTraits": "false", "group__allowTraitsOnViolations": "false"}
    planned(lake, *rules, track__allowEventOnViolations="false", track__allowUnplannedEvents="false", **off)
    page = {"type": "page", "receivedAt": "2026-11-15T10:00:00Z"}
    report = lake.sync_of(
        {**page, "messageId": "p1", "properties": {"path": "/"}},
        {**page, "messageId": "p2", "properties": {}},
        {**page, "type": "screen", "messageId": "s1", "name": "Home", "properties": {}},
        {**page, "type": "screen", "messageId": "s2", "name": "Other"},
        {**page, "type": "identify", "messageId": "i1", "traits": {"email": "a@b", "age": 5}},
        {**page, "type": "group", "messageId": "g1", "traits": {"plan": 5, "size": 3}},
        {**page, "type": "alias", "messageId": "a1", "userId": "u", "previousId": "v"},
    )
    assert report[0]["blocked_by"] == {"schema violation": 2}
    assert lake.row("page")["message_id"] == "p1"
    assert lake.row("screen")["message_id"] == "s2"
    assert (lake.row("identify")["traits_email"], "traits_age" in lake.row("identify")) == ("a@b", False)
    assert ("traits_plan" in lake.row("group"), lake.row("group")["traits_size"]) == (False, 3)
    assert lake.row("alias")["message_id"] == "a1"


# Transformations


def transformation(**told: Any) -> dict[str, Any]:
    return {"name": "t", "if": "event = 'A'", **told}


def test_an_event_is_in_the_lake_as_it_was_changed_and_comes_back_when_it_is_not(lake: Lake) -> None:
    lake.sync_of(track("A", "m1", properties={"x": 1}), track("C", "m2"))
    assert lake.tables() == ["track_a", "track_c"]
    change = transformation(newEventName="B", propertyRenames=[{"oldName": "x", "newName": "y"}])
    lake.workspace.plans.transformations.save(lake.source.id, change)
    report = lake.sync_of(track("A", "m3", properties={"x": 2}), track("C", "m4"))
    assert report[0]["changed"] == 1
    assert [(row["message_id"], row["event"], row["properties_y"]) for row in lake.rows("track_b")] == [("m3", "B", 2)]
    report = lake.run(jobs.replay(lake.connection, None, None))
    assert (report[0]["books"]["loaded"], report[0]["removed"], report[0]["rewritten"]) == (1, 1, 3)
    assert [(row["message_id"], row["properties_y"]) for row in lake.rows("track_b")] == [("m1", 1), ("m3", 2)]
    assert lake.rows("track_a") == []
    assert agrees(lake)
    lake.workspace.plans.transformations.remove(lake.source.id, "t")
    lake.run(jobs.replay(lake.connection, None, None))
    assert [(row["message_id"], row["properties_x"]) for row in lake.rows("track_a")] == [("m1", 1), ("m3", 2)]
    assert lake.rows("track_b") == []
    assert lake.sync_of(track("A", "m1"), track("A", "m3"))[0]["books"]["duplicates"] == 2
    assert agrees(lake)


def test_events_that_a_transformation_drops_are_counted_and_let_in_again(lake: Lake) -> None:
    lake.workspace.plans.transformations.save(lake.source.id, transformation(drop=True))
    report = lake.sync_of(track("A", "m1"), track("B", "m2"))
    assert report[0]["blocked_by"] == {"transformation": 1}
    assert "1 event blocked, 0 things in events are not as planned" in report[0]["notices"][0]
    assert [row["reason"] for row in violations(lake)] == ["transformation"]
    lake.workspace.plans.transformations.remove(lake.source.id, "t")
    lake.run(jobs.replay(lake.connection, None, None))
    assert lake.row("track_a")["message_id"] == "m1"


def test_the_plan_has_its_say_before_transformations(lake: Lake) -> None:
    planned(lake, Rule("TRACK", schema(required=("x",)), "A"), track__allowUnplannedEvents="false")
    lake.workspace.plans.transformations.save(lake.source.id, transformation(newEventName="Unplanned"))
    lake.sync_of(track("A", "m1", properties={"x": 1}), track("Unplanned", "m2"))
    assert lake.row("track_unplanned")["message_id"] == "m1"


def test_blocked_events_make_no_tables_and_take_nobodys_room(lake: Lake) -> None:
    lake.workspace.connections.change("web", {"table_limit": "2"})
    planned(lake, Rule("TRACK", {}, "A"), Rule("TRACK", {}, "B"), track__allowUnplannedEvents="false")
    junk = [track(f"junk {number}", f"j{number}") for number in range(20)]
    report = lake.sync_of(*junk, track("A", "m1"), track("B", "m2"))
    assert lake.tables() == ["track_a", "track_b"]
    assert (report[0]["books"]["loaded"], report[0]["books"]["blocked"]) == (2, 20)


def test_two_transformations_with_one_condition_are_refused(lake: Lake) -> None:
    changes = lake.workspace.plans.transformations
    changes.save(lake.source.id, transformation(newEventName="B"))
    with pytest.raises(InvalidSettingsError, match="the same condition"):
        changes.save(lake.source.id, transformation(name="u", newEventName="C"))
    changes.save(lake.source.id, transformation(newEventName="D"))
    assert [one.new_event_name for one in changes.of_source(lake.source.id)] == ["D"]
    for wrong in ({"name": "x"}, {"name": "x", "if": "event ="}, {"name": " ", "if": "true"}, {"unknown": 1}):
        with pytest.raises(InvalidSettingsError):
            changes.save(lake.source.id, wrong)


# Forwarding


def test_another_source_hears_of_violations_and_gets_what_was_blocked(lake: Lake) -> None:
    for slug in ("violations", "blocked"):
        lake.workspace.connections.add_source(slug, source_id=f"of-{slug}")
    to = {"forwardingViolationsTo": "of-violations", "forwardingBlockedEventsTo": "of-blocked"}
    planned(lake, Rule("TRACK", ORDER, "Order Completed"), track__allowEventOnViolations="false", **to)
    plans = lake.workspace.plans
    plans.connect("Shop", "of-blocked")
    plans.enforce("of-blocked", {"track.allowEventOnViolations": "false"})
    app = {"app": {"version": "1.2"}, "library": {"name": "x"}, "ip": "1.2.3.4"}
    lake.sync_of({**order("m1", total="x"), "context": app, "sentAt": "2026-11-15T09:59:59Z"}, order("m2", total=1))
    for slug in ("violations", "blocked"):
        lake.run(jobs.sync(lake.workspace.connections.get(slug)))
    (told,) = lake.query("select * from violations.track_violation_generated")
    assert told["message_id"].startswith("sch-")
    assert (told["user_id"], told["forwarded_from_project"]) == ("schema-violations", "src1")
    assert (told["context_app_version"], told.get("context_ip")) == ("1.2", None)
    expected = {
        "app_version": "1.2",
        "event_message_id": "m1",
        "event_name": "Order Completed",
        "event_sent_at": "2026-11-15 09:59:59+00:00",
        "event_type": "track",
        "source_id": "src1",
        "source_name": "web",
        "source_slug": "web",
        "tracking_plan_id": plans.get("Shop").id,
        "tracking_plan_name": "Shop",
        "violation_field": "properties.total",
        "violation_type": "Invalid Type",
    }
    assert {name: str(told[f"properties_{name}"]) for name in expected} == expected
    assert "number" in told["properties_violation_description"]
    (sent,) = lake.query("select * from blocked.track_order_completed")
    assert sent["message_id"] == "m1", "what was blocked once is not blocked again"
    assert sent["context_protocols_source_id"] == "src1"
    lake.run(jobs.replay(lake.connection, None, None))
    for slug in ("violations", "blocked"):
        report = lake.run(jobs.sync(lake.workspace.connections.get(slug)))
        assert report[0]["books"]["lines"] == 0, "a replay tells nobody again"


def forwarding(lake: Lake, **enforcement: str) -> None:
    """Let another source get what is blocked, and hear of what is wrong."""
    lake.workspace.connections.add_source("other", source_id="src2")
    to = {"forwardingViolationsTo": "src2", "forwardingBlockedEventsTo": "src2"}
    planned(lake, Rule("TRACK", ORDER, "Order Completed"), **to, track__allowEventOnViolations="false", **enforcement)


def test_what_is_forwarded_is_transformed_where_it_comes(lake: Lake) -> None:
    forwarding(lake)
    hashed = transformation(hashPropertiesConfiguration={"paths": ["mail"]})
    lake.workspace.plans.transformations.save("src2", {**hashed, "if": "type = 'track'"})
    lake.sync_of(order("m1", mail="ann@example.com"))
    lake.run(jobs.sync(lake.workspace.connections.get("other")))
    (row,) = lake.query("select properties_mail from other.track_order_completed")
    assert len(row["properties_mail"]) == 64
    with pytest.raises(InvalidSettingsError, match="cannot forward to itself"):
        lake.workspace.plans.enforce("src1", {"forwardingBlockedEventsTo": "src1"})


def test_a_rebuild_tells_nobody_again(lake: Lake) -> None:
    forwarding(lake)
    lake.sync_of(order("m1"), order("m2", total=1))
    before = violations(lake)
    lake.run(jobs.sync(lake.workspace.connections.get("other")))
    lake.run(jobs.rebuild(lake.workspace.connections.preview("web", {"date_partition": "day"})))
    assert violations(lake) == before
    assert lake.run(jobs.sync(lake.workspace.connections.get("other")))[0]["books"]["lines"] == 0


TINY = StageSizes(read=ReadSizes(block=4096), bytes_at_once=4096)  # so that lines are read before a file breaks off


@pytest.mark.parametrize("sizes", [StageSizes(), TINY], ids=["large", "tiny"])
def test_a_file_that_breaks_off_forwards_nothing_and_counts_for_nothing(lake: Lake, sizes: StageSizes) -> None:
    lake.sizes = Sizes(stage=replace(sizes, at_once=lake.sizes.stage.at_once))
    forwarding(lake)
    lines = [json.dumps(order(f"m{n}", pad=f"{n * 7919:x}" * 9)).encode() + b"\n" for n in range(5000)]
    content = gzip.compress(b"".join(lines))
    lake.put(order("whole"), name="a.json")
    path = lake.put_bytes(content[:-2000], name="broken.gz")
    for _ in range(2):
        report = lake.sync()
        assert sum(report[0].get("blocked_by", {}).values()) == report[0]["books"]["blocked"]
    got = lake.run(jobs.sync(lake.workspace.connections.get("other")))
    assert got[0]["books"]["lines"] == 2, "of the whole file: the event, and what is wrong with it"
    assert [row["message_id"] for row in violations(lake)] == ["whole"]
    path.write_bytes(content)
    assert lake.sync()[0]["books"]["blocked"] == 5000
    assert lake.run(jobs.sync(lake.workspace.connections.get("other")))[0]["books"]["lines"] == 10_000


def test_of_every_blocked_event_the_line_is_kept_once(lake: Lake) -> None:
    planned(lake, Rule("TRACK", ORDER, "Order Completed"), track__allowEventOnViolations="false")
    lake.sync_of(*(order(f"m{number}", currency="XXX") for number in range(8)))  # of which two things are wrong
    kept = [row["message_id"] for row in violations(lake) if row["content"]]
    assert set(kept) == {f"m{number}" for number in range(8)}
    assert len(violations(lake)) == 16
    assert len(kept) < 16


def test_made_up_names_do_not_fill_the_memory(lake: Lake) -> None:
    """Whoever has a write key can send as many unplanned properties as they like; each was kept with three lines."""
    lake.sizes = Sizes(stage=replace(lake.sizes.stage, things_shown=20))
    strict = schema(total="number")
    strict["properties"]["properties"]["additionalProperties"] = False
    planned(lake, Rule("TRACK", strict, "Order Completed"))
    lake.sync_of(*(order(f"m{n}", **{f"p{n}_{k}": 1 for k in range(5)}) for n in range(30)))
    rows = violations(lake)
    assert len(rows) == 150
    assert sum(row["content"] is not None for row in rows) == 20


def test_what_is_wrong_is_told_of_tables_that_are_not_there(lake: Lake) -> None:
    forwarding(lake)
    lake.workspace.connections.change("web", {"select": "-track_order_*"})
    report = lake.sync_of(order("m1"))
    assert report[0]["blocked_by"] == {"schema violation": 1}
    assert len(violations(lake)) == 1
    lake.workspace.connections.change("web", {"select": ""})
    lake.workspace.plans.enforce("src1", {"track.allowEventOnViolations": "true"})
    lake.sync_of(order("m2"))
    lake.run(jobs.drop(lake.connection, "track_order_completed"))
    report = lake.sync_of(order("m3"))
    assert report[0]["blocked_by"] == {"dropped table": 1}
    assert [row["message_id"] for row in violations(lake)] == ["m1", "m2", "m3"]


def test_a_second_value_of_a_key_is_hidden_like_the_first(lake: Lake) -> None:
    told = transformation(hashPropertiesConfiguration={"paths": ["mail"]})
    lake.workspace.plans.transformations.save("src1", {**told, "if": "type = 'track'"})
    line = json.dumps(order("m1", mail="ann@example.com", other=1))
    lake.sync_of(line.replace('"other": 1', '"mail": "b@c.de", "o": 1, "o": 2').encode())
    (row,) = lake.rows("track_order_completed")
    assert "ann@" not in str(row)
    assert "b@c.de" not in str(row)
    assert json.loads(row["_rescued_data"]).keys() == {"/properties/o"}


@pytest.mark.parametrize(
    "parts",
    [
        {
            "propertyRenames": [{"oldName": "mail", "newName": "email"}],
            "hashPropertiesConfiguration": {"paths": ["email"]},
        },
        {
            "propertyRenames": [{"oldName": "mail", "newName": "email"}],
            "propertyValueTransformations": [{"propertyPaths": ["email"], "propertyValue": "redacted"}],
        },
        {"propertyRenames": [{"oldName": "mail", "newName": "email"}], "allowProperties": ["other"]},
        {"propertyValueTransformations": [{"propertyPaths": ["mail"], "propertyValue": "redacted"}]},
        {"fqlDefinedProperties": [{"fql": "'redacted'", "propertyName": "mail"}]},
    ],
)
def test_a_second_value_of_a_key_is_hidden_where_the_first_is_replaced_or_goes(
    lake: Lake, parts: dict[str, Any]
) -> None:
    lake.workspace.plans.transformations.save("src1", {**transformation(**parts), "if": "type = 'track'"})
    line = json.dumps(order("m1", mail="ann@example.com", other=1))
    lake.sync_of(line.replace('"other": 1', '"mail": "b@c.de", "other": 1').encode())
    (row,) = lake.rows("track_order_completed")
    assert "ann@" not in str(row)
    assert "b@c.de" not in str(row)


@pytest.mark.timeout(20)
def test_a_value_that_is_none_of_thousands_is_told_without_naming_them(lake: Lake) -> None:
    """Else one event of a few kilobytes would hold up a run for seconds, or minutes."""
    many = {"type": "array", "items": {"enum": [f"value {number}" for number in range(5000)]}}
    planned(lake, Rule("TRACK", schema(x=many), "A"))
    lake.sync_of(track("A", "m1", properties={"x": ["value 7", *("none" for _ in range(5000))]}))
    lake.sync_of(track("A", "m2", properties={"x": ["value 1", "value 4999"]}))
    found = violations(lake)
    assert {row["message_id"] for row in found} == {"m1"}
    assert {(row["violation_type"], row["description"]) for row in found} == {
        ("Enum", "the value is none of the 5,000 that are allowed")
    }


def test_one_odd_event_does_not_stop_the_others(lake: Lake) -> None:
    planned(lake, Rule("TRACK", schema(x="string"), "A"))
    odd = ["1e9999999999999999999999", "[NaN]", '["\\ud800"]', '[{"a":1,"a":2}]', "[" * 400 + "]" * 400]
    lines = [json.dumps(track("A", f"m{n}", properties={"x": "X"})).replace('"X"', text) for n, text in enumerate(odd)]
    report = lake.sync_of(*(line.encode() for line in lines), track("A", "good", properties={"x": "y"}))
    assert report[0]["books"]["loaded"] == len(odd) + 1
    assert len({row["message_id"] for row in violations(lake)}) == len(odd)
    assert agrees(lake)


# What is kept, and for how long


def test_violations_are_kept_for_thirty_days(lake: Lake) -> None:
    planned(lake, Rule("TRACK", ORDER, "Order Completed"))
    lake.sync_of(order("m1"))
    (path,) = lake.place.ledger.violation_files()
    clock = lake.workspace.clock
    assert isinstance(clock, SetClock)
    clock.forward(hours=29 * 24)
    lake.sync_of(order("m2"))
    assert [row["message_id"] for row in violations(lake)] == ["m1", "m2"]
    clock.forward(hours=48)
    lake.sync_of(order("m3"))
    assert [row["message_id"] for row in violations(lake)] == ["m2", "m3"]
    assert not (lake.root / path).exists()
    assert agrees(lake)


def test_plans_and_transformations_come_back_with_a_restored_database(lake: Lake) -> None:
    planned(lake, Rule("TRACK", ORDER, "Order Completed"), track__allowEventOnViolations="false")
    keyed = {"paths": ["x"], "key": "s3cr3t"}
    changes = lake.workspace.plans.transformations
    changes.save(lake.source.id, transformation(newEventName="B"))
    changes.save(lake.source.id, transformation(name="u", **{"if": "true"}, hashPropertiesConfiguration=keyed))
    lake.sync_of(order("m1"), order("m2", total=1))
    before = lake.workspace.plans.rules_of(lake.source)
    for file in lake.root.rglob("*"):
        assert not file.is_file() or b"s3cr3t" not in file.read_bytes(), file
    lake.workspace = lost(lake.workspace)
    restore(lake.workspace, "default")
    after = lake.workspace.plans.rules_of(lake.source)
    assert (after.plan and after.plan.rules, after.enforcement) == (
        before.plan and before.plan.rules,
        before.enforcement,
    )
    assert [(one.name, one.enabled) for one in after.transformations] == [("t", True), ("u", True)]
    lake.put(order("m3", total=1, x="secret"))
    with pytest.raises(InvalidSettingsError, match="'u' of web hashes by a key that was lost"):
        lake.sync()
    changes = lake.workspace.plans.transformations
    again = transformation(name="u", **{"if": "true"}, hashPropertiesConfiguration=keyed)
    with pytest.raises(InvalidSettingsError, match="a key is missing"):
        changes.save(lake.source.id, {**again, "hashPropertiesConfiguration": {**keyed, "key": "…"}})
    changes.save(lake.source.id, again)
    lake.sync()
    assert "secret" not in str(lake.rows("track_order_completed"))
    assert [row["message_id"] for row in violations(lake)] == ["m1"]
    assert agrees(lake)


def test_what_was_blocked_is_released_when_the_plan_was_corrected(lake: Lake) -> None:
    planned(lake, Rule("TRACK", ORDER, "Order Completed"), track__allowUnplannedEvents="false")
    with pytest.raises(NotFoundError, match="nothing of web was blocked"):
        release(lake.workspace, lake.connection)
    lake.sync_of(track("X", "m1"), track("Y", "m2"), order("m3"))
    planned(lake, Rule("TRACK", ORDER, "Order Completed"), Rule("TRACK", {}, "X"))
    report = lake.run(release(lake.workspace, lake.connection))
    assert report[0]["books"]["loaded"] == 1
    assert lake.row("track_x")["message_id"] == "m1"
    assert "track_y" not in lake.tables()


def test_a_plan_has_versions_and_is_not_forgotten_while_a_source_has_it(lake: Lake) -> None:
    plans = lake.workspace.plans
    planned(lake, Rule("TRACK", {}, "A"))
    assert plans.save(of_rules("Shop", [Rule("TRACK", {}, "A")])).version == 1, "nothing changed"
    assert plans.save(of_rules("Shop", [Rule("TRACK", {}, "B")]), "ann").version == 2
    assert [(one.version, one.saved_by) for one in plans.versions("Shop")] == [(2, "ann"), (1, "")]
    assert plans.get("Shop", 1).rules[0].key == "A"
    (known,) = plans.all()
    assert (known.name, known.version, known.rules, known.source_ids) == ("Shop", 2, 1, ("src1",))
    with pytest.raises(InvalidSettingsError, match="is connected to sources"):
        plans.delete("Shop")
    plans.disconnect("src1")
    plans.delete(known.id)
    for asked in (lambda: plans.get("Shop"), lambda: plans.versions("Shop"), lambda: plans.get("Shop", 1)):
        with pytest.raises(NotFoundError):
            asked()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"track": "false"}, "there is no setting 'track'"),
        ({"track.allowUnplaned": "false"}, "there is no setting 'track.allowUnplaned'"),
        ({"track.allowUnplannedEvents": "maybe"}, "Expected `bool`"),
        ({"track.commonEventOnViolations": "DROP"}, "Invalid enum value 'DROP'"),
    ],
)
def test_settings_of_enforcement_that_cannot_be_right_are_named(
    lake: Lake, changes: dict[str, str], problem: str
) -> None:
    with pytest.raises(InvalidSettingsError, match=problem):
        lake.workspace.plans.enforce("src1", changes)
