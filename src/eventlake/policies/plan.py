"""Tracking plans: what events a source is to send, and what each is to look like.

A plan is written as in Segment's public API: rules, each with a type, the name of its event, a version and a schema.
"""

from collections.abc import Iterable
from typing import Any, Literal

import msgspec
from msgspec import Struct

from eventlake.policies.schemas import Schema, SchemaError, unknown_keywords

RuleType = Literal["COMMON", "TRACK", "IDENTIFY", "GROUP", "PAGE", "SCREEN"]

MAX_RULES = 10_000
MAX_NAME = 1000  # characters
MAX_VERSION = 1_000_000_000


class PlanError(ValueError):
    """Why a plan cannot be right; one line for each rule that is not."""


class Rule(Struct, frozen=True, rename="camel", omit_defaults=True):
    type: RuleType
    json_schema: Any
    key: str = ""  # the event, for those of tracks
    version: int = 1
    created_at: str | None = None
    updated_at: str | None = None
    deprecated_at: str | None = None

    @property
    def name(self) -> str:
        """What it is called in messages."""
        what = f"{self.type} {self.key!r}" if self.key else self.type
        return f"{what} version {self.version}" if self.version != 1 else what


class Plan(Struct, frozen=True, rename="camel", omit_defaults=True):
    name: str
    rules: tuple[Rule, ...] = ()
    description: str = ""
    id: str = ""


def rule(told: Any) -> Rule:
    """A rule in the form of the public API. Raises PlanError."""
    try:
        return msgspec.convert(told, Rule)
    except msgspec.ValidationError as error:
        raise PlanError(f"a rule cannot be read: {error}") from error


def of_rules(name: str, rules: Iterable[Rule], description: str = "") -> Plan:
    """A plan whose rules can all be used, in one order. Raises PlanError with all that is wrong with them."""
    ordered = sorted(rules, key=lambda rule: (rule.type, rule.key, rule.version))
    problems = list(_problems(name, ordered))
    if problems:
        raise PlanError("\n".join(problems[:20] + ([f"and {len(problems) - 20} more"] if len(problems) > 20 else [])))
    return Plan(name, tuple(ordered), description)


def _problems(name: str, rules: list[Rule]) -> Iterable[str]:
    if not name.strip() or len(name) > MAX_NAME:
        yield "a plan has a name"
    if len(rules) > MAX_RULES:
        yield f"{len(rules):,} rules; a plan has at most {MAX_RULES:,}"
        return
    seen = set()
    for rule in rules:
        which = (rule.type, rule.key, rule.version)
        if which in seen:
            yield f"{rule.name} is there twice"
        seen.add(which)
        if rule.type == "TRACK" and not rule.key:
            yield "a rule of type TRACK has the name of its event as its key"
        if rule.type in ("COMMON", "IDENTIFY", "GROUP") and rule.key:
            yield f"{rule.name}: a rule of this type is for all such calls, and has no key"
        if rule.type == "COMMON" and rule.version != 1:
            yield f"{rule.name}: the common rule has one version"
        if not 1 <= rule.version <= MAX_VERSION:
            yield f"{rule.name}: versions are 1, 2, 3… up to {MAX_VERSION:,}"
        try:
            Schema(rule.json_schema)
        except SchemaError as error:
            yield f"{rule.name}: {error}"


def doubts(plan: Plan) -> list[str]:
    """What of a plan is probably a mistake, though it can be used."""
    found = [(rule, sorted(unknown_keywords(rule.json_schema))) for rule in plan.rules]
    return [f"{rule.name}: {', '.join(words)} has no meaning in a schema" for rule, words in found if words]


def decoded(content: bytes) -> Plan:
    """A plan from Segment's forms in JSON: of the public API, or of the older Config API. Raises PlanError."""
    try:
        told = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise PlanError(f"not JSON: {error}") from error
    if not isinstance(told, dict):
        raise PlanError("a plan is an object with a name and rules")
    for wrapper in ("data", "trackingPlan", "tracking_plan"):
        if isinstance(told.get(wrapper), dict) and "rules" not in told:
            told = told[wrapper]
    if isinstance(told.get("rules"), dict):
        told = {"name": told.get("display_name") or told.get("name"), "rules": _of_config_api(told["rules"])}
    try:
        plan = msgspec.convert(told, Plan)
    except msgspec.ValidationError as error:
        raise PlanError(str(error)) from error
    return of_rules(plan.name, plan.rules, plan.description)


def _of_config_api(rules: dict[str, Any]) -> list[dict[str, Any]]:
    found = [
        {"type": "TRACK", "key": one.get("name", ""), "version": one.get("version", 1), "jsonSchema": one.get("rules")}
        for one in rules.get("events") or ()
        if isinstance(one, dict)
    ]
    parts = {"global": "COMMON", "identify": "IDENTIFY", "group": "GROUP", "page": "PAGE", "screen": "SCREEN"}
    return found + [{"type": kind, "jsonSchema": rules[name]} for name, kind in parts.items() if rules.get(name)]


def encoded(plan: Plan) -> bytes:
    """A plan in the form of the public API."""
    return msgspec.json.format(msgspec.json.encode(plan), indent=2) + b"\n"
