"""What does not fit the columns of a row, kept beside it in `_rescued_data`.

The column holds a JSON object: JSON pointer into the event → the value as it was sent, and why it is here.

    {"/properties/price": {"value": "n/a", "reason": "not a bigint"}}

A second value at the same place (a key that came twice) gets `~#2`, a third `~#3`: no pointer ends so, because in
a pointer a `~` is always followed by 0 or 1.
"""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from eventlake.schema import numbers

_decode = json.JSONDecoder(parse_float=numbers.fraction, parse_int=numbers.whole).decode


class Rescued(NamedTuple):
    pointer: str
    json_text: str
    reason: str


def pointer(path: Iterable[str]) -> str:
    """A JSON pointer (RFC 6901).

    >>> pointer(["properties", "a/b", "~"])
    '/properties/a~1b/~0'
    """
    return "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in path)


def keys_of(place: str) -> list[str]:
    """The keys that a JSON pointer names; the mark of a repeated key is dropped.

    >>> keys_of("/properties/a~1b~#2")
    ['properties', 'a/b']
    """
    unmarked = place.partition("~#")[0]
    return [key.replace("~1", "/").replace("~0", "~") for key in unmarked.split("/")[1:]]


def to_json(entries: Iterable[Rescued]) -> str:
    """The text of `_rescued_data` for one row."""
    members: dict[str, str] = {}
    for entry in entries:
        place, count = entry.pointer, 1
        while place in members:
            count += 1
            place = f"{entry.pointer}~#{count}"
        members[place] = f'{{"value":{entry.json_text},"reason":{json.dumps(entry.reason)}}}'
    return "{" + ",".join(f"{json.dumps(place)}:{member}" for place, member in members.items()) + "}"


def merged(texts: Iterable[str]) -> str:
    """One `_rescued_data` of two or more; the entries of each stay as they are."""
    return "{" + ",".join(text[1:-1] for text in texts) + "}"


def from_json(text: str) -> dict[str, Any]:
    """The entries of `_rescued_data`: pointer → {"value", "reason"}, numbers as they were sent."""
    entries: dict[str, Any] = _decode(text)
    return entries
