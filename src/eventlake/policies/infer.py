"""A plan from what a source has sent: what it would have to say for all of it to be as planned."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from msgspec import Raw

from eventlake.events import instants
from eventlake.policies.plan import Plan, Rule, of_rules
from eventlake.policies.schemas import Schema
from eventlake.policies.transformations import part_of

_MAX_MEMBERS = 500  # of one object; keys that are made up would make a plan of any size
_MAX_DEPTH = 10


class _Seen:
    """What was seen at one place."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self.members: dict[str, _Seen] = {}
        self.items: _Seen | None = None
        self.is_open = False  # there are too many keys to name them

    def add(self, value: Any, depth: int = 0) -> None:
        kind = _kind(value)
        self.kinds[kind] += 1
        if kind == "object" and depth < _MAX_DEPTH:
            for key, inner in value.items():
                if key not in self.members and len(self.members) >= _MAX_MEMBERS:
                    self.is_open = True
                else:
                    self.members.setdefault(key, _Seen()).add(inner, depth + 1)
        if kind == "array":
            self.items = self.items or _Seen()
            for inner in value:
                self.items.add(inner, depth + 1)

    @property
    def times(self) -> int:
        return sum(self.kinds.values())

    def schema(self) -> dict[str, Any]:
        kinds = set(self.kinds)
        told: dict[str, Any] = {}
        if kinds & {"date-time"} and not kinds & {"string"}:
            told["format"] = "date-time"
        kinds = {"string" if kind == "date-time" else kind for kind in kinds}
        if {"integer", "number"} <= kinds:
            kinds.discard("integer")
        if kinds:
            told["type"] = sorted(kinds) if len(kinds) > 1 else next(iter(kinds))
        if "object" in kinds and self.is_open:
            told["additionalProperties"] = True
        elif "object" in kinds:
            told["properties"] = {key: inner.schema() for key, inner in sorted(self.members.items())}
            always = sorted(key for key, inner in self.members.items() if inner.times == self.kinds["object"])
            if always and len(kinds) == 1:
                told["required"] = always
        if self.items and self.items.kinds:
            told["items"] = self.items.schema()
        return told


_DATE_TIME = Schema({"format": "date-time"})  # which takes less than a column of timestamps does


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, Raw):
        return "number"
    if isinstance(value, str):
        return "date-time" if instants.parse(value) and _DATE_TIME.is_valid(value) else "string"
    return {int: "integer", dict: "object", list: "array", type(None): "null"}.get(type(value), "string")


def inferred(name: str, events: Iterable[Any]) -> Plan:
    """The plan of these events, each as it was parsed."""
    seen: dict[tuple[str, str], _Seen] = {}
    for event in events:
        if not isinstance(event, dict):
            continue
        call, event_name = event.get("type"), event.get("event")
        key = event_name if call == "track" else ""
        if (
            call in ("track", "identify", "group", "page", "screen")
            and isinstance(key, str)
            and (key or call != "track")
        ):
            part = part_of(event)
            seen.setdefault((call, key), _Seen()).add({part: event[part]} if isinstance(event.get(part), dict) else {})
    rules = [Rule(call.upper(), one.schema(), key) for (call, key), one in seen.items()]  # type: ignore[arg-type]
    return of_rules(name, rules)
