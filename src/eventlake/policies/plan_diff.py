"""What changed between two plans."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from eventlake.policies.plan import Plan


class Difference(NamedTuple):
    change: str  # added, removed or changed
    rule: str
    where: str  # in its schema
    before: str | None = None
    after: str | None = None


def differences(old: Plan, new: Plan) -> list[Difference]:
    """Rule by rule, and place by place in their schemas."""
    before = {(rule.type, rule.key, rule.version): rule for rule in old.rules}
    after = {(rule.type, rule.key, rule.version): rule for rule in new.rules}
    found = []
    for which in sorted(before.keys() | after.keys()):
        was, now = before.get(which), after.get(which)
        rule = now or was
        assert rule is not None  # noqa: S101 - it is in one of them
        if was is None or now is None:
            found.append(Difference("added" if was is None else "removed", rule.name, ""))
        else:
            found += [
                Difference("changed", rule.name, where, one, other)
                for where, one, other in _changes(was.json_schema, now.json_schema, "")
            ]
    return found


def _changes(old: Any, new: Any, where: str) -> Iterator[tuple[str, str | None, str | None]]:
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            place = f"{where}.{key}" if where else key
            if key not in old:
                yield place, None, _text(new[key])
            elif key not in new:
                yield place, _text(old[key]), None
            else:
                yield from _changes(old[key], new[key], place)
    else:
        yield where, _text(old), _text(new)


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()
