"""Policies as laws: whatever is suppressed, selected, planned and transformed, all ways of reading lines agree.

A lake whose lines are read at once, one whose lines are read one by one, and the rules over one event.
"""

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from conftest import InProcess, Lake
from eventlake.audit.verify import verify
from eventlake.policies.rules import REASONS, Rules, RulesDocument
from eventlake.policies.transformations import Transformation, TransformationError, Transformations
from eventlake.reading import exact_json
from eventlake.reading.exact_json import NotJsonError
from eventlake.reading.named import names
from eventlake.sync.work import Sizes
from eventlake.tasks.staged import StageSizes
from strategies import events, json_lines
from test_laws import balanced, with_id
from test_policies import KEYS, LEAVES, documents, objects

PEOPLE = ["ann", "bob", "7", "ünü", "8.50"]
PATHS = ["userId", "anonymousId", "traits.a", "properties.a", r"context.traits.e\.mail"]
SELECTIONS = ["", "-track_y", "page, track_*", "-*:properties.a", "-page:context.y.z, -group", "-track_*", "track_x"]
NASTY = [
    b"",
    b"no json, of ann",
    b'["bob"]',
    b'"bob"',
    b"\xff\xfe",
    b'{"userId":"bob"}',
    b'{"type":"track","event":"X","userId":"ann","userId":"bob"}',
    b'{"type":"track","event":"X","properties":{"a":1},"properties":{"a":"x"}}',
    b'{"type":"track","event":"X","userId":8.50,"properties":{"a":1e999,"b":NaN}}',
    b'{"type":"page","userId":"\\u0062ob","properties":{"a":"x"}}',
    b'{"type":"page","name":"X","traits":1,"traits":{"a":"bob","a":"eve"}}',
    b'{"type":"track","event":"X","properties":' + b'{"a":' * 300 + b"1" + b"}" * 300 + b"}",
    b'{"type":"track","event":"Y","integrations":{"default":false},"properties":"ann"}',
    b'{"type":"track","type":"page","event":"X","properties":{"\\ud800":1,"a":"\\ud800"}}',
]


@st.composite
def conditions(draw: st.DrawFn, depth: int = 2) -> str:
    if depth and draw(st.booleans()):
        left, right = draw(conditions(depth - 1)), draw(conditions(depth - 1))
        return draw(st.sampled_from([f"{left} and {right}", f"{left} or {right}", f"!({left})", f"({left})"]))
    what = draw(st.sampled_from(["type", "event", "userId", "properties.a", "traits.b", "context.a.b"]))
    value = draw(st.sampled_from(["'X'", "'page'", "'x'", "1", "-3.5", "true", "null"]))
    return draw(
        st.sampled_from(
            [
                f"{what} {draw(st.sampled_from(['=', '!=', '>', '<=']))} {value}",
                f"{what} in ['X', 1, {value}]",
                f"contains({what}, 'a')",
                f"match(lowercase({what}), '*x')",
                f"typeof({what}) = 'number'",
                f"length({what}) > 1",
            ]
        )
    )


@st.composite
def transformations(draw: st.DrawFn) -> Transformation:
    place = st.sampled_from(["a", "b", "c.d", "traits.a", "context.n"])
    value = st.sampled_from(["bob", 1, -2.5, True, None])
    parts: dict[str, st.SearchStrategy[Any]] = {
        "drop": st.just(True),
        "newEventName": st.sampled_from(["X", "Z"]),
        "propertyRenames": place.map(lambda old: [{"oldName": old, "newName": "n"}]),
        "propertyValueTransformations": st.tuples(place, value).map(
            lambda both: [{"propertyPaths": [both[0]], "propertyValue": both[1]}]
        ),
        "fqlDefinedProperties": place.map(lambda name: [{"fql": "properties.a", "propertyName": name}]),
        "allowProperties": st.lists(place, max_size=2),
        "hashPropertiesConfiguration": place.map(lambda path: {"algorithm": "md5", "paths": [path]}),
    }
    chosen = draw(st.lists(st.sampled_from(sorted(parts)), min_size=1, max_size=2, unique=True))
    told = {"name": "t", "if": draw(conditions()), **{part: draw(parts[part]) for part in chosen}}
    made = msgspec.convert(told, Transformation)
    try:
        Transformations([made])
    except TransformationError:
        assume(False)
    return made


@st.composite
def rules(draw: st.DrawFn) -> RulesDocument:
    """A plan and how it is enforced; transformations, each with a condition of its own."""
    some = draw(st.lists(transformations(), max_size=3, unique_by=lambda one: one.if_))
    named = [msgspec.structs.replace(one, name=str(number)) for number, one in enumerate(some)]
    return msgspec.structs.replace(draw(documents()), transformations=tuple(named))


@st.composite
def sent(draw: st.DrawFn) -> dict[str, Any]:
    call = draw(st.sampled_from(["track", "identify", "group", "page", "screen", "alias"]))
    event: dict[str, Any] = {"type": call, "userId": draw(st.sampled_from(["ann", "bob", "eve", 7, None]))}
    if call == "track":
        event["event"] = draw(st.sampled_from(["X", "Y", "Z"]))
    if call in ("page", "screen"):
        event["name"] = draw(st.sampled_from(["X", "", None]))
    values = LEAVES | st.sampled_from(PEOPLE)
    for part in ("properties", "traits", "context"):
        if draw(st.booleans()):
            event[part] = draw(st.dictionaries(KEYS, objects(values), max_size=3) | values)
    if draw(st.booleans()):
        event["integrations"] = draw(st.sampled_from([{"default": False}, {"default": True}, {}, False]))
    return event


def lines() -> st.SearchStrategy[list[bytes]]:
    one = sent().map(lambda event: json.dumps(event).encode()) | json_lines(sent()) | json_lines(events())
    return st.lists(one | st.sampled_from(NASTY), min_size=10, max_size=40)


@contextmanager
def a_lake(at_once: bool) -> Iterator[Lake]:
    folder = Path(tempfile.mkdtemp(prefix="eventlake-policy-"))
    try:
        yield Lake(folder / "workspace", InProcess(), sizes=Sizes(stage=StageSizes(at_once=at_once)))
    finally:
        shutil.rmtree(folder)


def outcome(
    at_once: bool,
    document: RulesDocument,
    suppressed: list[tuple[str, str]],
    selected: dict[str, str],
    sent: list[bytes],
) -> tuple[dict[str, Any], Any]:
    """What the report says of the source, and what is in the lake."""
    with a_lake(at_once) as lake:
        lake.workspace.plans.restore(document)
        for path, subject in suppressed:
            lake.workspace.suppressions.add([subject], path)
        lake.workspace.connections.change("web", selected)
        head, *_ = report = lake.sync_of(*sent)
        assert balanced(report)
        assert verify(lake.workspace, lake.connection, InProcess()) == []
        told = {
            key: head.get(key) for key in ("books", "blocked_by", "blocked_between", "violated", "changed", "rescued")
        }
        found = lake.query("select * exclude (run_id) from __segment_datalake.violations order by all")
        bad = lake.query("select * exclude (run_id) from __segment_datalake.quarantine order by all")
        return told, (lake.all_rows(), found, bad)


# Each example is three workspaces: making a failed one smaller would take longer than looking at it.
@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(
    rules(),
    st.lists(st.tuples(st.sampled_from(PATHS), st.sampled_from(PEOPLE)), max_size=4),
    st.sampled_from(SELECTIONS),
    st.booleans(),
    lines(),
)
def test_all_ways_of_reading_agree_on_what_gets_in(
    document: RulesDocument, suppressed: list[tuple[str, str]], select: str, honours: bool, some: list[bytes]
) -> None:
    numbered = [
        with_id(line, f"m{number}") if line.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else line
        for number, line in enumerate(some)
    ]
    selected = {"select": select, "honour_integrations": str(honours).lower()}
    told, there = outcome(True, document, suppressed, selected, numbered)
    again = outcome(False, document, suppressed, selected, numbered)
    assert (told, there) == again

    expected = by_the_rules(document, suppressed, honours, [line for line in numbered if line.strip()])
    assert told["books"]["suppressed"] == expected.pop("suppressed", 0)
    reasons = {*REASONS, "integrations"}
    blocked = {reason: number for reason, number in (told["blocked_by"] or {}).items() if reason in reasons}
    assert (told["violated"] or 0) == expected.pop("violated", 0)
    assert blocked == expected


def by_the_rules(
    document: RulesDocument, suppressed: list[tuple[str, str]], honours: bool, sent: list[bytes]
) -> dict[str, int]:
    """How many events are kept out for what reason, and how many violations there are, event by event."""
    with a_lake(True) as lake:
        for path, subject in suppressed:
            lake.workspace.suppressions.add([subject], path)
        hidden = lake.workspace.suppressions.of_source("src1")
        is_no_event = lake.connection.dialect.sent
    ready, found = Rules(document), Counter[str]()
    for line in sent:
        try:
            event, set_aside = exact_json.parse(line)
        except NotJsonError:
            continue
        if names(hidden.hides, event, set_aside):
            found["suppressed"] += 1
            continue
        integrations = event.get("integrations") if honours and isinstance(event, dict) else None
        if isinstance(integrations, dict) and integrations.get("default") is False:
            found["integrations"] += not isinstance(is_no_event(event), str)
            continue
        if isinstance(is_no_event(event), str):
            continue
        decision = ready.decided(event)
        found["violated"] += len(decision.verdict.violations)
        if decision.blocked:
            found[decision.blocked] += 1
    return {key: number for key, number in found.items() if number}
