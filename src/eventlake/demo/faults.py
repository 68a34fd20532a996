"""What goes wrong in real archives: values of the wrong kind in good events, and lines that are no events."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

    from eventlake.demo.dice import Dice

Event = dict[str, object]

_encode = msgspec.json.Encoder().encode

# A key that normally holds a number, and what some client sends in its place.
_WRONG_KINDS: tuple[tuple[str, object], ...] = (
    ("price", "n/a"),
    ("price", {"amount": 19.9, "currency": "EUR"}),
    ("revenue", "12.50"),
    ("value", {"net": 10, "gross": 11.9}),
    ("quantity", 1.5),
    ("age", "unknown"),
    ("employees", "11-50"),
    ("step", "payment"),
)


def with_conflict(event: Event, dice: Dice) -> Event:
    """Copy the event with one value that will not fit its column; everything else stays as it is."""
    part = "traits" if "traits" in event else "properties"
    if part not in event or dice.chance(0.15):
        return event | {"context": _with_fine_position(_plain(event["context"]), dice)}
    body = _plain(event[part])
    changes: list[tuple[str, object]] = [kind for kind in _WRONG_KINDS if kind[0] in body]
    changes += _second_spellings(body)
    changes.append((_id_key(body), msgspec.Raw(dice.number(30).encode())))
    key, value = dice.pick(changes)
    return event | {part: body | {key: value}}


def broken_line(event: Event, dice: Dice) -> bytes:
    """Make of the event a line that is not an event."""
    return dice.pick(_BREAKERS)(event, dice)


def _plain(value: object) -> Event:
    """Open what was encoded ahead of time; only the few events with a conflict pay for it."""
    if isinstance(value, msgspec.Raw):
        return msgspec.json.decode(value, type=Event)
    return msgspec.convert(value, Event)


def _with_fine_position(context: Event, dice: Dice) -> Event:
    """Add a latitude with nine decimals: more than the six that a column keeps."""
    latitude = (52_000_000_001 + 10 * dice.below(10**7)) / 1e9
    return context | {"location": {"latitude": latitude, "longitude": 13.404953999}}


def _second_spellings(body: Event) -> list[tuple[str, object]]:
    """Name each key a second time: camelCase for snake_case and the other way round."""
    spellings: list[tuple[str, object]] = []
    for key, value in body.items():
        other = re.sub(r"_([a-z])", lambda match: match[1].upper(), key)
        if other == key:
            other = re.sub(r"([A-Z])", lambda match: f"_{match[1].lower()}", key)
        if other not in body and isinstance(value, str):
            spellings.append((other, f"{value}-2"))
    return spellings[:2]


def _id_key(body: Event) -> str:
    return next((key for key in body if key.endswith("_id")), "external_id")


def _truncated(event: Event, dice: Dice) -> bytes:
    line = _encode(event)
    return line[: dice.between(1, len(line) - 1)]


def _without_type(event: Event, _dice: Dice) -> bytes:
    return _encode({key: value for key, value in event.items() if key != "type"})


def _in_array(event: Event, _dice: Dice) -> bytes:
    return _encode([event])


def _not_utf8(event: Event, _dice: Dice) -> bytes:
    return _encode(event).replace(b'"type":"', b'"type":"\xff\xfe', 1)


_BREAKERS: tuple[Callable[[Event, Dice], bytes], ...] = (_truncated, _without_type, _in_array, _not_utf8)
