"""How often a schema looks at one place of an event: what decides how long an event can take.

A schema is looked at as often as there are ways to it, and references make that a number that doubles with every line:
`a` means `b` twice, `b` means `c` twice. So the ways are counted, and not walked, before a schema is used. Without
references there are no more of them than the schema is long.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from urllib.parse import unquote

MOST = 100_000  # looks at one place: milliseconds
_DEEPEST = 256  # levels of an event; what is nested deeper is not looked at
_MOST_STEPS = 300_000  # of counting: a second

_HERE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependencies")  # about the same place
_GONE_THROUGH = ("properties", "patternProperties", "required")  # with each look


class UnboundedError(ValueError):
    """Why nobody knows how long a schema takes."""


class _Below(NamedTuple):
    """How often each schema looks at what is directly below a place, by key, and at what has none of these keys."""

    named: dict[str | int, Counter[int]]
    others: Counter[int]


class _Look(NamedTuple):
    """One schema: how much there is of it, which hold for the same place, and what it has for members and items."""

    weight: int
    here: list[int]
    below: tuple[_Below, _Below]


def check(told: Any) -> None:
    """Raise UnboundedError for a schema that may look at one place of an event more often than is good for anybody."""
    looks = _looks(told)
    weights: dict[int, int] = {}
    below: dict[int, tuple[_Below, _Below]] = {}
    steps = 0
    for one in _in_order(looks):
        own = looks[one]
        weights[one] = own.weight + sum(weights[other] for other in own.here)
        parts = [own.below, *(below[other] for other in own.here)]
        if weights[one] > MOST:
            raise _too_often()
        members, items = ([part[place] for part in parts] for place in (0, 1))
        steps = _stepped(steps, _effort(members) + _effort(items))
        below[one] = _merged(members), _merged(items)
    _check_depths(weights, below, steps)


def referred(told: Any, reference: Any) -> Any:
    """What a schema says at another place of it; None if that is not to be found."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        return None
    for key in reference[1:].split("/")[1:]:
        name = unquote(key).replace("~1", "/").replace("~0", "~")
        if isinstance(told, list):
            told = told[int(name)] if name.isdecimal() and int(name) < len(told) else None
        else:
            told = told.get(name) if isinstance(told, dict) else None
    return told


def _looks(told: Any) -> dict[int, _Look]:
    """All schemas that may look at an event, the innermost first, by their identity."""
    found: dict[int, _Look] = {}
    left, refers, begins_anew = [told], False, False
    while left:
        schema = left.pop()
        refers |= isinstance(schema, dict) and "$ref" in schema
        schema = _meant(told, schema)
        if not isinstance(schema, dict) or id(schema) in found:
            continue
        begins_anew |= schema is not told and isinstance(schema.get("$id"), str)
        here, members, items = list(_here(schema)), _members(schema), _items(schema)
        inner = [*here, *(one for below in (members, items) for some in (*below[0].values(), below[1]) for one in some)]
        left += inner
        known = {id(one): id(other) for one in inner if isinstance(other := _meant(told, one), dict)}
        found[id(schema)] = _Look(
            1 + sum(len(schema[word]) for word in _GONE_THROUGH if isinstance(schema.get(word), dict | list)),
            [known[id(one)] for one in here if id(one) in known],
            (_ways(members, known), _ways(items, known)),
        )
    if refers and begins_anew:
        raise UnboundedError("a part of it has an $id of its own, which changes where references lead: leave it out")
    return dict(reversed(found.items()))


def _meant(told: Any, schema: Any) -> Any:
    """The schema that one stands for: beside a reference nothing counts."""
    seen = set()
    while isinstance(schema, dict) and "$ref" in schema:
        if id(schema) in seen:
            raise _in_a_circle()
        seen.add(id(schema))
        reference = schema["$ref"]
        schema = referred(told, reference)
        if schema is None:
            raise UnboundedError(
                f"{reference!r} is no place in it: schemas of other places are not fetched; put it into definitions "
                "and refer to it as #/definitions/NAME"
            )
    return schema


def _here(schema: dict[str, Any]) -> Iterator[Any]:
    """What else holds for the same place."""
    for word in _HERE:
        value = schema.get(word)
        if isinstance(value, list):
            yield from value
        elif word == "dependencies" and isinstance(value, dict):
            yield from value.values()
        elif isinstance(value, dict):
            yield value


def _members(schema: dict[str, Any]) -> tuple[dict[str | int, list[Any]], list[Any]]:
    """What a schema has for members of an object, by key, and for others."""
    of_all = [*_values(schema.get("patternProperties")), schema.get("propertyNames")]
    planned = schema.get("properties")
    named = planned if isinstance(planned, dict) else {}
    return {key: [one, *of_all] for key, one in named.items()}, [schema.get("additionalProperties"), *of_all]


def _items(schema: dict[str, Any]) -> tuple[dict[str | int, list[Any]], list[Any]]:
    """What a schema has for items of an array, by place, and for others."""
    contained, items = schema.get("contains"), schema.get("items")
    if isinstance(items, list):
        return {place: [one, contained] for place, one in enumerate(items)}, [schema.get("additionalItems"), contained]
    return {}, [items, contained]


def _values(schemas: Any) -> Iterable[Any]:
    return schemas.values() if isinstance(schemas, dict) else ()


def _ways(below: tuple[dict[str | int, list[Any]], list[Any]], known: dict[int, int]) -> _Below:
    named, others = below
    return _Below({key: _counted(some, known) for key, some in named.items()}, _counted(others, known))


def _counted(schemas: list[Any], known: dict[int, int]) -> Counter[int]:
    return Counter(known[id(one)] for one in schemas if id(one) in known)


def _in_order(looks: dict[int, _Look]) -> Iterator[int]:
    """Each after all that hold for the same place."""
    done: set[int] = set()
    for first, look in looks.items():
        open_, left = {first}, [(first, iter(look.here))]
        while left and first not in done:
            one, inner = left[-1]
            other = next((other for other in inner if other not in done), None)
            if other is None:
                left.pop()
                open_.discard(one)
                done.add(one)
                yield one
            elif other in open_:
                raise _in_a_circle()
            else:
                open_.add(other)
                left.append((other, iter(looks[other].here)))


def _merged(some: list[_Below]) -> _Below:
    """Several for the same place."""
    if len(some) == 1:
        return some[0]
    others = _sum(part.others for part in some)
    named: dict[str | int, Counter[int]] = {}
    for part in some:
        for key, count in part.named.items():
            whole = named.setdefault(key, Counter(others))
            whole.subtract(part.others)
            whole.update(count)
    return _Below(named, others)


def _effort(some: list[_Below]) -> int:
    """How long that takes."""
    return sum(len(part.named) + 1 for part in some) * (1 + sum(len(part.others) for part in some))


def _sum(counts: Iterable[Counter[int]]) -> Counter[int]:
    total: Counter[int] = Counter()
    for count in counts:
        total.update(count)
    return total


def _check_depths(weights: dict[int, int], below: dict[int, tuple[_Below, _Below]], steps: int) -> None:
    """How often places are looked at that are deeper and deeper below each schema, until that is the same."""
    most = dict(weights)
    ways = {
        one: [some for part in parts for some in (*part.named.values(), part.others) if some]
        for one, parts in below.items()
    }
    ways = {one: some for one, some in ways.items() if some}
    of_a_round = sum(len(count) for some in ways.values() for count in some)
    for _ in range(_DEEPEST):
        before = dict(most)
        for one, some in ways.items():
            most[one] = max(weights[one], *(sum(n * most[other] for other, n in count.items()) for count in some))
        if max(most.values(), default=0) > MOST:
            raise _too_often()
        steps = _stepped(steps, of_a_round)
        if most == before:
            return


def _stepped(steps: int, more: int) -> int:
    if steps + more > _MOST_STEPS:
        raise UnboundedError("its references are too entangled to tell how often it looks at one place of an event")
    return steps + more


def _too_often() -> UnboundedError:
    return UnboundedError(
        f"it may look at one place of an event more than {MOST:,} times: schemas that are referred to several times, "
        "or alternatives within alternatives, multiply"
    )


def _in_a_circle() -> UnboundedError:
    return UnboundedError("it refers to itself without going deeper into the event: nothing can be meant by that")
