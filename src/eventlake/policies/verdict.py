"""What becomes of an event under a plan: the rule over one event, and a quick look that finds those it leaves alone.

The order is Segment's. First the standard controls: is the event planned, are its properties, does it fit the schema of
its event? Then the advanced one: does what is left fit the schema that all events have in common? Whatever was found or
left out is told in `context.protocols` of the event.
"""

from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import cached_property, partial
from typing import Any, NamedTuple, TypedDict

import msgspec

from eventlake.policies import trees
from eventlake.policies.enforcement import Enforcement
from eventlake.policies.plan import Plan, Rule
from eventlake.policies.schemas import MOST_FOUND, Found, Schema, Violation, joined
from eventlake.policies.transformations import part_of
from eventlake.policies.trees import Path

UNPLANNED = "unplanned event"
VIOLATION = "schema violation"
COMMON_VIOLATION = "common schema violation"

_VERSION = ("context", "protocols", "event_version")
_NAMES = {"page": "Page Viewed", "screen": "Screen Viewed"}  # what they are validated as
_MAY_LOSE = ("properties", "traits", "context")  # nothing else of an event is ever left out
_MOST_TOLD = 50  # violations of one event; who sends a thousand wrong things has made one mistake
_UNREADABLE = (msgspec.MsgspecError, UnicodeError, RecursionError, ArithmeticError)


class Verdict(NamedTuple):
    event: dict[str, Any]  # the one that was given, if nothing was found
    blocked: str | None = None  # why it must not get in
    violations: tuple[Violation, ...] = ()
    omitted: tuple[str, ...] = ()
    omitted_on_violation: tuple[str, ...] = ()
    lost: tuple[Path, ...] = ()  # the places of both

    @property
    def is_clean(self) -> bool:
        """Whether there is nothing to say about the event."""
        return not (self.blocked or self.violations or self.omitted or self.omitted_on_violation)


def never(_: bytes) -> bool:
    """Tells of no line that it is left alone."""
    return False


class _Versions:
    """The rules for one event, from the oldest to the newest."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        found = sorted(rules, key=lambda rule: rule.version)
        self._schemas = {rule.version: Schema(rule.json_schema) for rule in found}
        self._oldest = self._schemas[found[0].version]

    def schema_for(self, version: Any) -> Schema:
        """Which of them an event means; the oldest, if that is not to be known."""
        known = type(version) is int and version in self._schemas
        return self._schemas[version] if known else self._oldest

    @property
    def schemas(self) -> list[Schema]:
        return list(self._schemas.values())


class Enforced:
    """A plan as a source enforces it."""

    def __init__(self, plan: Plan, enforcement: Enforcement, source_id: str) -> None:
        self._enforcement = enforcement
        self._source_id = source_id
        of_one: dict[tuple[str, str], list[Rule]] = {}
        for rule in plan.rules:
            of_one.setdefault((rule.type, rule.key), []).append(rule)
        self._rules = {which: _Versions(rules) for which, rules in of_one.items()}
        common = self._rules.pop(("COMMON", ""), None)
        self._common = common.schemas[0] if common else None

    def judged(self, event: dict[str, Any]) -> Verdict:
        """What becomes of an event."""
        call, part, sent = str(event.get("type")), part_of(event), event
        allowed = self._enforcement.of(call)
        rules = self._rules_for(call, event.get("event"), event.get("name"))
        found: list[Found] = []
        omitted: list[Path] = []
        omitted_on_violation: list[Path] = []
        if rules is None and not allowed.unplanned:
            return self._verdict(sent, UNPLANNED, [], [], [])
        if rules is not None:
            schema = rules.schema_for(trees.get(event, _VERSION))
            if not allowed.unplanned_members:
                omitted = schema.unplanned(event, part)
                event = _without(event, omitted)
            found = schema.violations(event)
            if found and not allowed.violations:
                return self._verdict(sent, VIOLATION, found, [], [])
            if found and not allowed.values_that_violate:
                omitted_on_violation = _to_lose(found)
                event = _without(event, omitted_on_violation)
        if self._common is not None:
            of_all = self._common.violations(event)
            found += of_all
            if of_all and allowed.on_common_violation == "BLOCK":
                return self._verdict(sent, COMMON_VIOLATION, found, [], [])
            if of_all and allowed.on_common_violation == "OMIT_PROPERTIES":
                lost = _to_lose(of_all)
                omitted_on_violation += lost
                event = _without(event, lost)
        return self._verdict(event, None, found, omitted, omitted_on_violation)

    def looking(self, call: str, event: str) -> Callable[[bytes], bool] | None:
        """A function that tells whether a line of such events is left alone; None if all of them are.

        It may say no of one that is, and never yes of one that is not.
        """
        allowed = self._enforcement.of(call)
        if call in _NAMES:  # whose rules depend on their names as well
            has_rules = any(kind in (call.upper(), "TRACK") for kind, _ in self._rules)
            return partial(self._is_clean, call, {}) if has_rules or self._common else None
        rules = self._rules_for(call, event, None)
        if rules is None and not allowed.unplanned:
            return never
        return self._look(call, rules)

    def _look(self, call: str, rules: _Versions | None) -> Callable[[bytes], bool] | None:
        if rules is None and self._common is None:
            return None
        part = "traits" if call in ("identify", "group") else "properties"
        return _Look(rules, self._common, None if self._enforcement.of(call).unplanned_members else part).is_clean

    def _is_clean(self, call: str, looks: dict[int, Callable[[bytes], bool] | None], line: bytes) -> bool:
        """A look at a page or a screen, by the rules that its name has; `looks` are those that were made before."""
        try:
            name = _name_of(line).get("name")
        except _UNREADABLE:
            return False
        rules = self._rules_for(call, None, name)
        if id(rules) not in looks:
            looks[id(rules)] = self._look(call, rules)
        look = looks[id(rules)]
        return look is None or look(line)

    def _rules_for(self, call: str, event: Any, name: Any) -> _Versions | None:
        if call == "track":
            return self._rules.get(("TRACK", event)) if isinstance(event, str) else None
        if call in _NAMES:
            by_name = self._rules.get((call.upper(), name)) if isinstance(name, str) else None
            places = ((call.upper(), _NAMES[call]), (call.upper(), ""), ("TRACK", _NAMES[call]))
            return by_name or next((self._rules[place] for place in places if place in self._rules), None)
        return self._rules.get((call.upper(), ""))

    def _verdict(
        self,
        event: dict[str, Any],
        blocked: str | None,
        found: list[Found],
        omitted: list[Path],
        on_violation: list[Path],
    ) -> Verdict:
        if not (blocked or found or omitted or on_violation):
            return Verdict(event)
        violations = tuple(dict.fromkeys(one.violation for one in found))[:_MOST_TOLD]
        lost, lost_on_violation = tuple(map(".".join, omitted)), tuple(map(".".join, on_violation))
        told = {
            "sourceId": self._source_id,
            **({"violations": [msgspec.to_builtins(one) for one in violations]} if violations else {}),
            **({"omitted": list(lost)} if lost else {}),
            **({"omitted_on_violation": list(lost_on_violation)} if lost_on_violation else {}),
        }
        for key, value in told.items():
            event = trees.put(event, ("context", "protocols", key), value)
        return Verdict(event, blocked, violations, lost, lost_on_violation, (*omitted, *on_violation))


def _to_lose(found: list[Found]) -> list[Path]:
    """The values that are in the way, as far as an event may lose them."""
    paths = []
    for violation, path in found:
        if violation.type != "Required" and len(path) > 1 and path[0] in _MAY_LOSE:
            # Of so many not all are known: what they are in goes with them.
            paths.append(path if len(found) < MOST_FOUND else path[:1])
    return list(dict.fromkeys(paths))


def _without(event: dict[str, Any], paths: list[Path]) -> dict[str, Any]:
    """Without what is at some places; a place in an array is lost with the array."""
    ends = [[path[:end] for end in range(len(path), 0, -1)] for path in paths]
    for place in [next((place for place in some if trees.has(event, place)), None) for some in ends]:
        event = trees.without(event, place) if place else event
    return event


_decode = msgspec.json.Decoder(float_hook=Decimal).decode


class _Named(TypedDict, total=False):
    name: Any


_name_of = msgspec.json.Decoder(_Named).decode


class _Look:
    """A quick look at lines: reads no more of them than the schemas look at."""

    def __init__(self, rules: _Versions | None, common: Schema | None, closed: str | None) -> None:
        self._rules = rules
        self._common = common
        self._closed = closed  # the part that must have nothing that is not planned
        self._has_versions = rules is not None and len(rules.schemas) > 1
        self._whole = self._joined()

    def _joined(self) -> Schema | None:
        """Both schemas as one, which takes half the time; None if there are not two that go together."""
        if self._has_versions:
            return None
        return joined([*(self._rules.schemas if self._rules else ()), *([self._common] if self._common else ())])

    @cached_property
    def _read(self) -> Callable[[bytes], dict[str, Any]]:
        schemas = [*(self._rules.schemas if self._rules else ()), *([self._common] if self._common else ())]
        members: set[str] = {"context"} if self._has_versions else set()
        for schema in schemas:
            if schema.members is None:
                return _decode
            members |= schema.members
        if self._closed:
            members.add(self._closed)
        read = TypedDict("_Members", dict.fromkeys(members, Any), total=False)  # type: ignore[misc]
        return msgspec.json.Decoder(read, float_hook=Decimal).decode  # type: ignore[return-value]

    def is_clean(self, line: bytes) -> bool:
        try:
            event = self._read(line)
        except _UNREADABLE:
            return False
        if not self._closed and self._whole:
            return self._whole.is_valid(event)
        if self._rules is not None:
            schema = self._rules.schema_for(trees.get(event, _VERSION) if self._has_versions else None)
            if not schema.is_valid(event) or (self._closed and schema.unplanned(event, self._closed)):
                return False
        return self._common is None or self._common.is_valid(event)
