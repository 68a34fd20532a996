"""The rules over one event: conditions, transformations, plans in all their forms, and what becomes of an event."""

import json
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from msgspec import Raw

from eventlake.errors import InvalidSettingsError, NotFoundError
from eventlake.library.plans import read_plan, write_plan
from eventlake.policies import fql, globs, plan_csv
from eventlake.policies.enforcement import Enforcement, TrackControls, TraitControls
from eventlake.policies.fql import UNKNOWN, FqlError, values_of
from eventlake.policies.infer import inferred
from eventlake.policies.plan import PlanError, Rule, decoded, doubts, encoded, of_rules
from eventlake.policies.plan_diff import differences
from eventlake.policies.rules import Rules, RulesDocument, without_its_key, without_keys
from eventlake.policies.schemas import Schema, SchemaError, instance_of
from eventlake.policies.transformations import Transformation, TransformationError, Transformations, shown
from eventlake.policies.verdict import Enforced
from eventlake.reading import exact_json

EVENT = {
    "type": "track",
    "event": "Order Completed",
    "properties": {
        "total": Raw(b"20.50"),
        "items": 3,
        "tags": ["a", "b"],
        "a.b": {"c": 1},
        "paid": True,
        "plan": "pro",
    },
    "context": {"app": {"version": "1.2.0"}},
}

# Conditions


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ('event = "Order Completed"', True),
        ("event = 'order completed'", False),
        ('type = "track" and properties.total > 20', True),
        ('type = "page" or properties.total >= 20.5', True),
        ('type = "page" or properties.total < 20.5', False),
        ("!(properties.paid)", False),
        ("!!properties.paid", True),
        ("properties.paid = true and properties.none = null", True),
        ('properties.items = "3"', False),
        ('properties.plan in ["free", "pro"]', True),
        ('"a" in properties.tags', True),
        ("properties.items in properties.tags", False),
        (r"properties.a\.b.c = 1", True),
        ('contains(event, "Comp")', True),
        ('contains(properties.tags, "b")', True),
        ("length(properties.tags) = 2 and length(event) > 5", True),
        ("length(properties.items) = null", True),
        ('lowercase(event) = "order completed" and uppercase(properties.plan) = "PRO"', True),
        ('snakecase(event) = "order_completed" and kebabcase(event) = "order-completed"', True),
        ('titlecase("order completed") = event', True),
        ('typeof(properties.total) = "number" and typeof(properties.x) = "null"', True),
        ('match(event, "Order*") and match(context.app.version, "1.?.[0-9]")', True),
        (r'match("a*b", "a\\*b") and !match("axb", "a\\*b")', True),
        ('number("12.5") = 12.5 and string(3) = "3" and bool("TRUE") = true', True),
        ("properties.plan > 5", False),
        ("properties.total != 20.5", False),
        ('event = "Order Completed" and (type = "page" or type = "track")', True),
        ("-1 < properties.items and 1e3 > 999", True),
    ],
)
def test_conditions_mean_what_segments_language_says(text: str, holds: bool) -> None:
    assert fql.parse(text).holds(values_of(EVENT)) is holds


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "expected a value, and nothing comes after it, at character 1"),
        ("event =", "expected a value, and nothing comes after it, at character 8"),
        ("event = 'x", "the text that begins here has no ' at its end, at character 9"),
        ("event == 'x'", "expected a value, and = is not, at character 8"),
        ("event = 'x' type", "expected and, or, or the end, at character 13"),
        ("(event = 'x'", "expected ), at character 13"),
        ("lenght(event) = 3", "there is no function lenght; there are contains, length"),
        ("length(event, 3) = 3", "length takes 1 values, and got 2, at character 8"),
        ("event ~ 'x'", "'~' has no meaning here, at character 7"),
        ("(" * 60 + "event" + ")" * 60, "more than 50 levels of brackets"),
        ("event = '" + "x" * 5000 + "'", "more than 5,000 characters"),
    ],
)
def test_what_is_no_condition_is_told_with_its_place(text: str, problem: str) -> None:
    with pytest.raises(FqlError) as caught:
        fql.parse(text)
    assert str(caught.value).startswith(problem)


def test_a_condition_is_unknown_only_if_it_depends_on_what_is_unknown() -> None:
    def known(path: fql.Path) -> Any:
        sent: dict[fql.Path, str] = {("type",): "track", ("event",): "X"}
        return sent.get(path, UNKNOWN)

    def holds(text: str) -> bool | None:
        return fql.parse(text).holds(known)

    assert holds("event = 'X'") is True
    assert holds("event = 'Y' and properties.a = 1") is False
    assert holds("event = 'X' and properties.a = 1") is None
    assert holds("event = 'X' or properties.a = 1") is True
    assert holds("!(properties.a = 1)") is None
    assert holds("event in ['Y', properties.a]") is None


@given(st.text("ab*?", max_size=12), st.text("ab", max_size=12))
def test_patterns_match_as_the_shell_has_them(glob: str, text: str) -> None:
    import fnmatch

    assert globs.matches(text, glob) == fnmatch.fnmatchcase(text, glob)


def test_a_pattern_cannot_hold_anybody_up() -> None:
    assert not globs.matches("a" * 5000, "*a" * 200 + "b")


# Transformations


def transformed(told: dict[str, Any], event: dict[str, Any]) -> dict[str, Any] | None:
    return Transformations([msgspec.convert({"name": "t", "if": "type = 'track'", **told}, Transformation)]).changed(
        event
    )


def test_properties_are_renamed_and_moved_all_at_once() -> None:
    renames = [
        {"oldName": "a", "newName": "b"},
        {"oldName": "b", "newName": "a"},
        {"oldName": "c.d", "newName": "e.f.g"},
    ]
    event = {"type": "track", "event": "X", "properties": {"a": 1, "b": 2, "c": {"d": 3, "x": 4}}}
    made = transformed({"propertyRenames": renames, "newEventName": "Y"}, event)
    assert made == {"type": "track", "event": "Y", "properties": {"a": 2, "b": 1, "c": {"x": 4}, "e": {"f": {"g": 3}}}}
    assert event["properties"] == {"a": 1, "b": 2, "c": {"d": 3, "x": 4}}, "what was sent stays as it was"


def test_traits_are_meant_where_there_are_traits() -> None:
    one = msgspec.convert(
        {"name": "t", "if": "type = 'identify'", "propertyRenames": [{"oldName": "mail", "newName": "email"}]},
        Transformation,
    )
    made = Transformations([one]).changed({"type": "identify", "traits": {"mail": "x"}, "context": {"mail": "y"}})
    assert made == {"type": "identify", "traits": {"email": "x"}, "context": {"mail": "y"}}


def test_values_are_given_defined_allowed_and_hashed_in_this_order() -> None:
    told = {
        "propertyValueTransformations": [
            {"propertyPaths": ["properties.source", "context.kind"], "propertyValue": "web"}
        ],
        "fqlDefinedProperties": [{"fql": "number(properties.total) ", "propertyName": "copy"}],
        "allowProperties": ["source", "copy", "mail", "deep.a"],
        "hashPropertiesConfiguration": {"paths": ["mail", "copy"], "algorithm": "md5"},
    }
    event = {
        "type": "track",
        "event": "X",
        "properties": {"total": Raw(b"1.50"), "mail": "m", "deep": {"a": 1, "b": 2}},
    }
    assert transformed(told, event) == {
        "type": "track",
        "event": "X",
        "context": {"kind": "web"},
        "properties": {
            "source": "web",
            "copy": made_of(b"1.50", "md5"),
            "mail": made_of(b"m", "md5"),
            "deep": {"a": 1},
        },
    }


def made_of(content: bytes, algorithm: str) -> str:
    import hashlib

    return hashlib.new(algorithm, content).hexdigest()


def test_a_hash_with_a_key_is_an_hmac_and_shows_its_key_to_nobody() -> None:
    import hmac

    told = {"paths": ["mail"], "algorithm": "sha256", "key": "s3cr3t", "encoding": "hex"}
    made = transformed(
        {"hashPropertiesConfiguration": told}, {"type": "track", "event": "X", "properties": {"mail": "m"}}
    )
    assert made
    assert made["properties"]["mail"] == hmac.new(b"s3cr3t", b"m", "sha256").hexdigest()
    one = msgspec.convert({"name": "t", "if": "true", "hashPropertiesConfiguration": told}, Transformation)
    assert "s3cr3t" not in repr(one) + str(shown(one))
    kept = without_keys(RulesDocument("src1", transformations=(one,)))
    assert b"s3cr3t" not in kept.packed()
    assert without_its_key(kept) == "t", "without its key nothing is hashed, and nothing may be loaded"
    assert without_its_key(RulesDocument("src1", transformations=(one,))) is None


def test_all_conditions_are_about_the_event_as_it_was_sent() -> None:
    """So that renames in a cycle end, and none is applied to what another has made."""
    told = [{"name": n, "if": f"event = '{a}'", "newEventName": b} for n, a, b in (("1", "A", "B"), ("2", "B", "A"))]
    both = Transformations([msgspec.convert(one, Transformation) for one in told])
    names = [both.changed({"type": "track", "event": name}) for name in "ABC"]
    assert [made and made["event"] for made in names] == ["B", "A", "C"]
    assert [both.may_change("track", name) for name in "ABC"] == [True, True, False]
    assert not both.may_change("page", "")


def test_an_event_may_be_dropped_and_a_transformation_switched_off() -> None:
    event = {"type": "track", "event": "X"}
    assert transformed({"drop": True}, event) is None
    assert transformed({"drop": True, "enabled": False}, event) is event
    assert transformed({"if": "event = 'Y'", "drop": True}, event) is event


@pytest.mark.parametrize(
    ("told", "problem"),
    [
        ({"if": "event ="}, "t: expected a value"),
        ({"fqlDefinedProperties": [{"fql": "(", "propertyName": "a"}]}, "t: expected a value"),
        ({"propertyRenames": [{"oldName": "a.$.b", "newName": "c"}]}, "is no place of properties"),
        ({"propertyRenames": [{"oldName": "a", "newName": ""}]}, "is no place of properties"),
        ({"propertyRenames": [{"oldName": "a", "newName": "a.b"}]}, "one is in the other"),
        ({"propertyRenames": [{"oldName": "a", "newName": "c"}, {"oldName": "b", "newName": "c"}]}, "in one place"),
        ({"propertyValueTransformations": [{"propertyPaths": [f"p{n}" for n in range(11)], "propertyValue": 1}]}, "10"),
    ],
)
def test_a_transformation_that_cannot_be_right_is_refused(told: dict[str, Any], problem: str) -> None:
    with pytest.raises(TransformationError, match=problem):
        transformed(told, {"type": "track"})


# Schemas

MULTIPLIES = "more than 100,000 times"
ALL_OF_THEM = [{"$ref": f"#/definitions/a{number}"} for number in range(9)]


def chain(links: int, link: str | Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """Definitions each of which means the next one twice."""

    def made(number: int) -> dict[str, Any]:
        inner = {"$ref": f"#/definitions/a{number + 1}"}
        return {link: [inner, inner]} if isinstance(link, str) else link(inner)

    return {"$ref": "#/definitions/a0", "definitions": {f"a{n}": made(n) for n in range(links)} | {f"a{links}": {}}}


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (5, "a schema is an object"),
        ({"type": "strin"}, "strin"),
        ({"pattern": "("}, "regex"),
        ({"pattern": "^(?!a)b"}, "look-ahead or look-behind are not supported; use not"),
        ({"$ref": "http://example.com/schema.json"}, "not fetched"),
        ({"$ref": "#/definitions/none"}, "is no place in it"),
        ({"enum": ["x" * 600_000]}, "more than 500,000 bytes"),
        (json.loads('{"not":' * 120 + "{}" + "}" * 120), "more than 100 levels"),
        *((chain(40, word), MULTIPLIES) for word in ("allOf", "anyOf", "oneOf")),
        (chain(40, lambda inner: {"if": inner, "then": inner, "else": inner}), MULTIPLIES),
        (chain(40, lambda inner: {"not": {"anyOf": [inner, {"not": inner}]}}), MULTIPLIES),
        (chain(40, lambda inner: {"dependencies": {"a": inner, "b": inner}}), MULTIPLIES),
        (chain(40, lambda inner: {"items": inner, "contains": inner}), MULTIPLIES),
        (chain(40, lambda inner: {"patternProperties": {"^a": inner, "b$": inner}}), MULTIPLIES),
        (
            chain(40, lambda inner: {"allOf": [{"properties": {"a": inner}}, {"additionalProperties": inner}]}),
            MULTIPLIES,
        ),
        ({"anyOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}]}, MULTIPLIES),  # with each level of an event
        ({"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}}, MULTIPLIES),
        (
            {"definitions": {f"a{n}": {"allOf": ALL_OF_THEM} for n in range(9)}, **ALL_OF_THEM[0]},
            "without going deeper",
        ),
        ({"$ref": "#"}, "without going deeper"),
        ({"allOf": [{"$ref": "#"}]}, "without going deeper"),
        (
            {"definitions": {"c": {"$id": "c.json", "type": "null"}}, "items": {"$ref": "#/definitions/c"}},
            "an \\$id of",
        ),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused(schema: Any, problem: str) -> None:
    with pytest.raises(SchemaError, match=problem):
        Schema(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {
            "properties": {key: {"$ref": "#"} for key in "ab"},
            "additionalProperties": {"$ref": "#"},
            "items": {"$ref": "#"},
        },
        {"definitions": {"a b": {"type": "number"}}, "items": {"allOf": [{"$ref": "#/definitions/a%20b"}] * 50}},
        {"items": [{"type": "number"}], "additionalItems": {"$ref": "#/items/0"}},
        {"properties": {f"p{n}": {"properties": {"a": {"type": "number"}}, "required": ["a"]} for n in range(5000)}},
        {"anyOf": [{"properties": {"k": {"const": n}, "v": {"type": "number"}}} for n in range(500)]},
    ],
)
def test_a_schema_that_repeats_itself_within_bounds_is_used(schema: Any) -> None:
    assert Schema(schema).is_valid("x")


def test_neither_a_pattern_nor_a_loop_nor_a_deep_event_holds_anybody_up() -> None:
    assert not Schema({"pattern": "^(a+)+$"}).is_valid("a" * 5000 + "b")
    deep: Any = {}
    for _ in range(600):
        deep = {"a": deep}
    assert Schema({"properties": {"a": {"$ref": "#"}}}).is_valid(deep)
    wrong = {"items": {"type": "string"}}
    assert len(Schema(wrong).violations([1] * 1000)) == 1000


# Plans and their forms

SCHEMA = {
    "type": "object",
    "description": "When an order is paid",
    "properties": {
        "properties": {
            "type": "object",
            "properties": {
                "total": {"type": "number", "description": "In euros"},
                "currency": {"type": "string", "enum": ["EUR", "USD"]},
                "at": {"type": "string", "format": "date-time"},
                "sku": {"type": ["string", "null"], "pattern": "^[A-Z]+$"},
                "anything": {},
                "address": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
                "lines": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"sku": {"type": "string"}}},
                },
            },
            "required": ["currency", "total"],
        }
    },
    "required": ["properties"],
}
PLAN = of_rules(
    "Shop",
    [
        Rule("TRACK", SCHEMA, "Order/Completed"),
        Rule(
            "TRACK", {"type": "object", "properties": {"properties": {"type": "object", "properties": {}}}}, "Empty", 3
        ),
        Rule(
            "IDENTIFY",
            {"type": "object", "properties": {"traits": {"type": "object", "properties": {"a": {"type": "null"}}}}},
        ),
        Rule(
            "GROUP",
            {
                "type": "object",
                "properties": {"traits": {"type": "object", "properties": {"a": {"type": "null"}}}},
                "required": ["traits"],
            },
        ),
    ],
)


@pytest.mark.parametrize("form", ["plan.json", "plan.csv", "plan"])
def test_a_plan_is_the_same_after_it_was_written_and_read(tmp_path: Path, form: str) -> None:
    write_plan(PLAN, tmp_path / form)
    assert read_plan(tmp_path / form, "Shop") == PLAN
    with pytest.raises(NotFoundError):
        read_plan(tmp_path / "not there")


def test_an_event_without_properties_lacks_what_a_spreadsheet_requires_of_it() -> None:
    header = "Event Type,Event Name,Property Name,Property Status,Property Data Type\n"
    plan = plan_csv.decoded("p", f"{header}track,A,id,optional,any\ntrack,A,total,required,number\n".encode())
    event = {"type": "track", "event": "A"}
    told = Enforced(plan, Enforcement(), "src1").judged(event).violations
    assert [(one.type, one.field) for one in told] == [("Required", "properties")]
    plan = plan_csv.decoded("p", f"{header}track,A,id,optional,any\n".encode())
    assert Enforced(plan, Enforcement(), "src1").judged(event).is_clean


def test_plans_of_segments_apis_are_read() -> None:
    rule = {"type": "TRACK", "key": "X", "version": 1, "jsonSchema": SCHEMA, "createdAt": "2026-01-01T00:00:00Z"}
    public = {"data": {"trackingPlan": {"id": "tp_1", "name": "P", "rules": [rule], "slug": "p", "type": "LIVE"}}}
    assert [one.key for one in decoded(json.dumps(public["data"]).encode()).rules] == ["X"]
    older = {
        "display_name": "P",
        "rules": {"events": [{"name": "X", "rules": SCHEMA}], "global": {}, "identify": {"type": "object"}},
    }
    found = decoded(json.dumps({"tracking_plan": older}).encode())
    assert [(one.type, one.key) for one in found.rules] == [("IDENTIFY", ""), ("TRACK", "X")]
    assert decoded(encoded(PLAN)) == PLAN


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"{", "not JSON"),
        (b"[]", "a plan is an object"),
        (b'{"name": "x", "rules": [{"type": "TRAK", "jsonSchema": {}}]}', "TRAK"),
        (b'{"name": "x", "rules": [{"type": "TRACK", "jsonSchema": {}}]}', "has the name of its event"),
        (b'{"name": "", "rules": []}', "a plan has a name"),
    ],
)
def test_what_is_no_plan_is_told(content: bytes, problem: str) -> None:
    with pytest.raises(PlanError, match=problem):
        decoded(content)


def test_all_that_is_wrong_with_a_plan_is_told_at_once() -> None:
    rules = [Rule("TRACK", {"type": "x"}, f"e{n}") for n in range(30)] + [Rule("PAGE", {}), Rule("PAGE", {}, version=0)]
    with pytest.raises(PlanError) as caught:
        of_rules("p", [*rules, Rule("PAGE", {})])
    lines = str(caught.value).splitlines()
    assert lines[0] == "PAGE version 0: versions are 1, 2, 3… up to 1,000,000,000"
    assert lines[1] == "PAGE is there twice"
    assert lines[-1] == "and 12 more"


def test_a_plan_of_two_thousand_rules_is_ready_at_once() -> None:
    begun = time.process_time()
    plan = of_rules("p", [Rule("TRACK", SCHEMA, f"e{n}") for n in range(2000)])
    assert Enforced(plan, Enforcement(), "s").judged({"type": "track", "event": "e1999"}).violations
    assert time.process_time() - begun < 15  # seconds; a tenth of it where nothing else runs


def test_words_that_mean_nothing_in_a_schema_are_told() -> None:
    plan = of_rules("p", [Rule("TRACK", {"properties": {"require": {"typo": 1}}, "requierd": ["a"]}, "X")])
    assert doubts(plan) == ["TRACK 'X': requierd, typo has no meaning in a schema"]


def test_each_row_of_a_spreadsheet_that_is_broken_is_told_with_its_line() -> None:
    content = (
        "event type,EVENT NAME,Property Name,Property Data Type,Property Status\n"
        "track,X,a,string,required\n"
        "trak,X,b,string,\n"
        ",,c,string,\n"
        "\n"
        'track,X,"multi\nline",strng,\n'
        "track,X,d,string,perhaps\n"
        "track,X,$.e,string,\n"
    )
    with pytest.raises(PlanError) as caught:
        plan_csv.decoded("p", content.encode())
    assert [line.partition(":")[0] for line in str(caught.value).splitlines()] == [
        "line 3",
        "line 4",
        "line 7",
        "line 8",
        "line 9",
    ]
    with pytest.raises(PlanError, match="no column Event Name"):
        plan_csv.decoded("p", b"a,Property Name\n")
    with pytest.raises(PlanError, match="not UTF-8"):
        plan_csv.decoded("p", b"\xff\xfe")


def test_a_plan_is_inferred_from_events() -> None:
    events = [
        {
            "type": "track",
            "event": "X",
            "properties": {"n": 1, "at": "2026-11-01T00:00:00Z", "o": {"a": "x"}, "l": [1, "x"]},
        },
        {"type": "track", "event": "X", "properties": {"n": Raw(b"1.5"), "at": "2026-11-01T00:00:00Z", "o": None}},
        {"type": "identify", "traits": {"email": "a"}},
        {"type": "alias"},
        {"type": "track"},
        [],
    ]
    plan = inferred("p", events)
    assert [rule.name for rule in plan.rules] == ["IDENTIFY", "TRACK 'X'"]
    assert plan.rules[1].json_schema == {
        "type": "object",
        "properties": {
            "properties": {
                "type": "object",
                "properties": {
                    "n": {"type": "number"},
                    "at": {"type": "string", "format": "date-time"},
                    "o": {"type": ["null", "object"], "properties": {"a": {"type": "string"}}},
                    "l": {"type": "array", "items": {"type": ["integer", "string"]}},
                },
                "required": ["at", "n", "o"],
            }
        },
        "required": ["properties"],
    }
    enforced = Enforced(plan, Enforcement(track=TrackControls(False, False, False)), "s")
    assert all(enforced.judged(event).is_clean for event in events[:3])  # type: ignore[arg-type]


def test_what_changed_between_versions_is_told_place_by_place() -> None:
    changed = json.loads(json.dumps(SCHEMA))
    changed["properties"]["properties"]["properties"]["total"]["type"] = "integer"
    del changed["description"]
    new = of_rules("Shop", [Rule("TRACK", changed, "Order/Completed"), Rule("PAGE", {})])
    assert [tuple(one) for one in differences(PLAN, new)] == [
        ("removed", "GROUP", "", None, None),
        ("removed", "IDENTIFY", "", None, None),
        ("added", "PAGE", "", None, None),
        ("removed", "TRACK 'Empty' version 3", "", None, None),
        ("changed", "TRACK 'Order/Completed'", "description", '"When an order is paid"', None),
        ("changed", "TRACK 'Order/Completed'", "properties.properties.properties.total.type", '"number"', '"integer"'),
    ]


# The quick look, the rule over one event, and another validator

KINDS = ["string", "integer", "number", "boolean", "null", "object", "array"]
LEAVES = st.sampled_from(
    ["x", "", "2026-11-01T00:00:00Z", 0, 1, -3, 2**70, 1.5, 1.0, True, None, [], [1], {}, {"a": 1}]
)
KEYS = st.sampled_from(["a", "b", "c"])


def objects(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves, lambda inner: st.dictionaries(KEYS, inner, max_size=3) | st.lists(inner, max_size=2), max_leaves=6
    )


@st.composite
def schemas(draw: st.DrawFn, depth: int = 2, *, refers: bool = False) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if refers and draw(st.integers(0, 4)) == 0:  # beside which nothing counts
        made["$ref"] = draw(st.sampled_from(["#", "#/definitions/d", "#/definitions/e", "#/definitions/f%20g"]))
    if draw(st.booleans()):
        made["type"] = draw(
            st.sampled_from(KINDS) | st.lists(st.sampled_from(KINDS), min_size=1, max_size=3, unique=True)
        )
    if draw(st.booleans()):
        keyword = draw(st.sampled_from(["enum", "pattern", "minimum", "maxLength", "minItems", "format", "const"]))
        value = {
            "enum": ["x", 1, None],
            "pattern": "^x",
            "minimum": 1,
            "maxLength": 1,
            "minItems": 1,
            "format": "date-time",
        }
        made[keyword] = value.get(keyword, 1)
    if depth and draw(st.booleans()):
        made["properties"] = draw(st.dictionaries(KEYS, schemas(depth=depth - 1, refers=refers), max_size=3))
    if draw(st.booleans()):
        made["required"] = draw(st.lists(KEYS, max_size=2, unique=True))
    if draw(st.integers(0, 4)) == 0:
        made["additionalProperties"] = draw(st.booleans())
    if depth and draw(st.integers(0, 4)) == 0:
        made["items"] = draw(schemas(depth=0, refers=refers))
    inner = schemas(depth=0, refers=refers)
    if depth and draw(st.integers(0, 5)) == 0:
        made[draw(st.sampled_from(["anyOf", "allOf", "oneOf"]))] = [draw(inner), draw(inner)]
    if depth and draw(st.integers(0, 5)) == 0:
        made["patternProperties"] = draw(st.dictionaries(st.sampled_from(["^a", "b$", "c|a", "."]), inner, max_size=2))
    for words in (("not",), ("if", "then"), ("if", "then", "else"), ("if", "else")):
        if depth and draw(st.integers(0, 9)) == 0:
            made |= {word: draw(inner) for word in words}
    return made


@st.composite
def whole_schemas(draw: st.DrawFn) -> dict[str, Any]:
    """Schemas that refer to parts of their own, and to themselves."""
    definitions = {name: draw(schemas(depth=1, refers=True)) for name in ("d", "e", "f g")}
    made = {**draw(schemas(refers=True)), "definitions": definitions}
    try:
        Schema(made)
    except SchemaError as error:
        assume("without going deeper" not in str(error) and MULTIPLIES not in str(error))
    return made


@st.composite
def documents(draw: st.DrawFn) -> RulesDocument:
    def of_event(part: str) -> Any:
        whole = {"properties": {part: draw(schemas())}}
        return draw(st.sampled_from([whole, whole | {"required": [part]}, whole | {"maxProperties": 4}]))

    rules = [Rule("TRACK", of_event("properties"), name, version) for name in ("X", "Y") for version in (1, 2)]
    rules += [Rule("IDENTIFY", of_event("traits")), Rule("PAGE", of_event("properties"))]
    rules += [Rule("COMMON", {"properties": {"context": draw(schemas(depth=1))}})] if draw(st.booleans()) else []
    chosen = draw(
        st.lists(st.sampled_from(rules), max_size=5, unique_by=lambda rule: (rule.type, rule.key, rule.version))
    )
    flags, on_common = st.booleans(), st.sampled_from(["ALLOW", "BLOCK", "OMIT_PROPERTIES"])
    enforcement = draw(
        st.builds(
            Enforcement,
            track=st.builds(TrackControls, flags, flags, flags, flags, on_common),
            identify=st.builds(TraitControls, flags, flags, on_common),
        )
    )
    changes = (
        Transformation("1", "event = 'X' and properties.a = 1", new_event_name="Z"),
        Transformation("2", "type = 'page'", drop=True),
    )
    return RulesDocument("src1", of_rules("p", chosen), enforcement, draw(st.sampled_from([(), changes])))


@st.composite
def sent_events(draw: st.DrawFn) -> dict[str, Any]:
    call = draw(st.sampled_from(["track", "identify", "page", "alias"]))
    event: dict[str, Any] = {"type": call, "messageId": "m"}
    if call == "track":
        event["event"] = draw(st.sampled_from(["X", "Y", "Z"]))
    for part in ("properties", "traits", "context"):
        if draw(st.booleans()):
            event[part] = draw(st.dictionaries(KEYS, objects(LEAVES), max_size=3) | LEAVES)
    if isinstance(event.get("context"), dict) and draw(st.booleans()):
        event["context"] = event["context"] | {"protocols": {"event_version": draw(st.sampled_from([1, 2, 7, "2"]))}}
    return event


@settings(max_examples=300)
@given(documents(), sent_events())
def test_a_line_that_a_quick_look_leaves_alone_is_left_alone_by_the_rule(
    document: RulesDocument, event: dict[str, Any]
) -> None:
    line = json.dumps(event).encode()
    parsed = exact_json.parse(line).value
    rules = Rules(document)
    decision = rules.decided(parsed)
    is_untouched = decision.event is parsed and not decision.blocked and decision.verdict.is_clean
    look = rules.looking(event["type"], event.get("event", ""))
    if look is None or look(line):
        assert is_untouched
    else:  # it may say no of one that is left alone; of those that only a plan looks at, it does not
        assert not is_untouched or document.transformations or event["type"] == "page"


@settings(max_examples=300)
@given(whole_schemas(), objects(LEAVES))
@example({"type": "integer"}, 1.0)
@example({"enum": ["x", 1, None]}, True)
def test_another_validator_agrees_on_what_is_a_violation(schema: dict[str, Any], value: Any) -> None:
    checker = jsonschema.FormatChecker()
    checker.checks("date-time")(lambda text: not isinstance(text, str) or text == "2026-11-01T00:00:00Z")
    other = jsonschema.Draft7Validator(schema, format_checker=checker)
    instance = instance_of(exact_json.parse(json.dumps(value).encode()).value)
    ours = Schema(schema)
    assert ours.is_valid(instance) == other.is_valid(value)
    assert bool(ours.violations(instance)) != ours.is_valid(instance)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3))
def test_numbers_are_compared_exactly(number: Decimal) -> None:
    parsed = exact_json.parse(f"{number:f}".encode()).value
    assert Schema({"minimum": 0.5}).is_valid(instance_of(parsed)) == (number >= Decimal("0.5"))


def test_a_plan_file_that_is_wrong_is_told_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text("{}")
    with pytest.raises(InvalidSettingsError, match=r"p\.json"):
        read_plan(tmp_path / "p.json")


# What hostile or careless events, plans and transformations must not do


def judged(schema: dict[str, Any], event: dict[str, Any] | bytes, **track: Any) -> Any:
    plan = of_rules("p", [Rule("TRACK", schema, "A")])
    parsed = exact_json.parse(event).value if isinstance(event, bytes) else event
    return Enforced(plan, Enforcement(track=TrackControls(**track)), "src1").judged(parsed)


def with_x(text: str) -> bytes:
    return f'{{"type":"track","event":"A","properties":{{"x":{text}}}}}'.encode()


@pytest.mark.parametrize(
    "text",
    [
        *("1e9999999999999999999999", "-1e9999999999999999999999", "1e-9999999999999999999999", "1e999"),
        *("[1e9999999999999999999999]", "[NaN]", '["\\ud800"]', '[{"a":1,"a":2}]'),
    ],
)
def test_odd_values_are_looked_at_and_not_stumbled_over(text: str) -> None:
    schema = {"properties": {"properties": {"properties": {"x": {"type": "boolean"}}}}}
    (found,) = judged(schema, with_x(text)).violations
    assert (found.type, found.field) == ("Invalid Type", "properties.x")
    assert judged({"properties": {"properties": {"properties": {"x": {}}}}}, with_x(text)).is_clean
    rules = Rules(RulesDocument("src1", plan=of_rules("p", [Rule("TRACK", schema, "A")])))
    look = rules.looking("track", "A")
    assert look
    assert not look(with_x(text))


@pytest.mark.parametrize(("begin", "end"), [("[", "]"), ('{"a":', "}")])
def test_what_is_nested_too_deeply_violates_its_plan_and_stops_nobody(begin: str, end: str) -> None:
    deep = with_x(begin * 400 + "1" + end * 400)
    schema = {"properties": {"properties": {"properties": {"x": {"type": "string"}}}}}
    assert [one.field in ("(root)", "properties.x") for one in judged(schema, deep).violations] == [True]
    look = Rules(RulesDocument("src1", plan=of_rules("p", [Rule("TRACK", schema, "A")]))).looking("track", "A")
    assert look
    assert not look(deep)


def test_a_number_with_many_zeros_takes_no_room() -> None:
    event = exact_json.parse(with_x("1e99999999999")).value
    made = transformed({"fqlDefinedProperties": [{"fql": "properties.x", "propertyName": "y"}]}, event)
    assert made
    assert bytes(made["properties"]["y"]) == b"1E+99999999999"
    told = {"fqlDefinedProperties": [{"fql": "string(properties.x)", "propertyName": "y"}]}
    assert (transformed(told, event) or {})["properties"]["y"] == "1E+99999999999"
    few = transformed(told, exact_json.parse(with_x("1.5e3")).value)
    assert (few or {})["properties"]["y"] == "1500"


def test_what_violates_is_left_out_and_nothing_beside_it() -> None:
    price = {"properties": {"price": {"type": "number"}}}
    order = {"properties": {"items": {"type": "array", "items": price}, "id": {"type": "string"}}}
    schema = {"properties": {"properties": {"properties": {"order": order}}}}
    items = [{"price": "x"}, {"price": "y"}, {"price": 1}]
    event = {"type": "track", "event": "A", "properties": {"order": {"id": "o1", "items": items}, "z": 1}}
    found = judged(schema, event, allow_properties_on_violations=False)
    assert found.event["properties"] == {"order": {"id": "o1"}, "z": 1}


@pytest.mark.parametrize("count", [80, 10_001])
def test_everything_that_violates_is_left_out_however_much_it_is(count: int) -> None:
    schema = {"properties": {"properties": {"additionalProperties": {"type": "number"}}}}
    bad = {f"k{number}": "x" for number in range(count)}
    event = {"type": "track", "event": "A", "properties": {**bad, "good": 1}}
    found = judged(schema, event, allow_properties_on_violations=False)
    assert found.event.get("properties", {}) == ({"good": 1} if count < 10_000 else {})
    assert len(found.violations) == 50


def test_descriptions_tell_no_values() -> None:
    schema = {"properties": {"properties": {"properties": {"card": {"type": "number"}, "mail": {"format": "email"}}}}}
    event = {"type": "track", "event": "A", "properties": {"card": "4111-1111", "mail": "ann example.com"}}
    told = [one.description for one in judged(schema, event).violations]
    assert told == ['the value is not of type "number"', 'the value is not a "email"']


@pytest.mark.parametrize(
    "below",
    [
        {"$ref": "#/definitions/p", "properties": {"ignored": {}}},
        {"allOf": [{"properties": {"a": {}}}, {"$ref": "#/definitions/p"}]},
        {"anyOf": [{"properties": {"a": {}}}, {"properties": {"b": {"properties": {"c": {}}}}}]},
        {"if": {"properties": {"a": {}}}, "then": {"properties": {"b": {"$ref": "#/definitions/b"}}}},
        {"oneOf": [{"properties": {"a": {}, "b": {"properties": {"c": {}}}}}, False]},
    ],
)
def test_what_is_planned_anywhere_in_a_schema_is_planned(below: dict[str, Any]) -> None:
    definitions = {"p": {"properties": {"a": {}, "b": {"$ref": "#/definitions/b"}}}, "b": {"properties": {"c": {}}}}
    event = {"a": 1, "b": {"c": 1, "d": 1}, "ignored": 1}
    for schema in (
        {"definitions": definitions, "properties": {"properties": below}},
        {"definitions": {**definitions, "all": {"properties": {"properties": below}}}, "$ref": "#/definitions/all"},
    ):
        assert Schema(schema).unplanned({"properties": event}, "properties") == [
            ("properties", "b", "d"),
            ("properties", "ignored"),
        ]
    loop = Schema({"properties": {"properties": {"properties": {"a": {"$ref": "#/properties/properties"}}}}})
    assert loop.unplanned({"properties": {"a": {"a": {}, "x": 1}}}, "properties") == [("properties", "a", "x")]
    anything = Schema({"properties": {"properties": {"additionalProperties": {}}}})
    assert anything.unplanned({"properties": {"x": 1}}, "properties") == []


def test_values_of_transformations_get_in_whatever_they_are() -> None:
    event = {"type": "track", "event": "A", "properties": {"order": "text", "sum": 5, "d": 1}}
    values = [{"propertyPaths": ["rate"], "propertyValue": 1.5}]
    made = transformed({"propertyValueTransformations": values}, event)
    assert made
    assert bytes(made["properties"]["rate"]) == b"1.5"
    listed = transformed({"fqlDefinedProperties": [{"fql": "[1.5, 2]", "propertyName": "l"}]}, event)
    assert listed
    assert msgspec.json.encode(listed["properties"]["l"]) == b"[1.5,2]"
    renames = [{"oldName": "sum", "newName": "order.total"}, {"oldName": "d", "newName": "e"}]
    moved = transformed({"propertyRenames": renames}, event)
    assert moved
    assert moved["properties"] == {"order": "text", "sum": 5, "e": 1}, "it stays where something is in its way"
    with pytest.raises(TransformationError, match="newEventName is empty"):
        transformed({"newEventName": " "}, event)


def test_rules_that_would_never_apply_are_refused() -> None:
    for kind in ("COMMON", "IDENTIFY", "GROUP"):
        with pytest.raises(PlanError, match="has no key"):
            of_rules("p", [Rule(kind, {}, "x")])
    with pytest.raises(PlanError, match="versions are"):
        of_rules("p", [Rule("TRACK", {}, "A", 10**10)])
    assert of_rules("p", [Rule("TRACK", True, "A")]).rules
    with pytest.raises(PlanError, match="cannot be written"):
        of_rules("p", [Rule("TRACK", {"title": "\ud800"}, "A")])


def test_a_folder_keeps_every_rule(tmp_path: Path) -> None:
    names = ("Order", "Order.v2", "a/b", "50%", "100%.v3", "x.v2.v3")
    rules = [Rule("TRACK", {"title": f"{name}{n}"}, name, n) for name in names for n in (1, 2)]
    rules += [Rule(kind, {"title": str(n)}, "", n) for kind in ("IDENTIFY", "GROUP", "PAGE", "SCREEN") for n in (1, 2)]
    plan = of_rules("p", [*rules, Rule("COMMON", {})])
    write_plan(plan, tmp_path / "p")
    assert read_plan(tmp_path / "p") == plan


@pytest.mark.parametrize("time", ["2026-11-15T10:00:00", "2026-11-15T10:00:00+0100", "2026-11-15T10:00Z"])
def test_an_inferred_plan_is_not_violated_by_what_it_was_inferred_from(time: str) -> None:
    event = {"type": "track", "event": "A", "properties": {"at": time}}
    plan = inferred("p", [event])
    assert Enforced(plan, Enforcement(), "src1").judged(event).is_clean


@pytest.mark.parametrize(("text", "low", "high"), [("1e99999999999999999999", 0, 1), ("-1e99999999999999999999", 1, 0)])
def test_numbers_beyond_all_bounds_are_numbers(text: str, low: int, high: int) -> None:
    number = instance_of(exact_json.parse(text.encode()).value)
    assert Schema({"type": "number"}).is_valid(number)
    assert (Schema({"maximum": 5}).is_valid(number), Schema({"minimum": 5}).is_valid(number)) == (bool(low), bool(high))
