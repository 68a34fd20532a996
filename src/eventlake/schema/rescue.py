"""What does not fit the columns of a row, kept beside it in `_rescued_data`.

The column holds a JSON object: JSON pointer into the event → the value as it was sent, and why it is here.

    {"/properties/price": {"value": "n/a", "reason": "not a bigint"}}

A second value at the same place (a key that came twice) gets `~#2`, a third `~#3`: no pointer ends so, because in
a pointer a `~` is always followed by 0 or 1.
"""

import json
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple


class Rescued(NamedTuple):
    pointer: str
    json_text: str
    reason: str
    column: str = ""  # for which it was, if the place alone does not tell


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
    """The text of `_rescued_data` for one row; `exact_json.rescued_in` reads it back.

    In the order of their places, so that the way in which values were found does not show.
    """
    members = []
    times: Counter[str] = Counter()
    for entry in sorted(entries, key=lambda entry: (entry.pointer, entry.column)):
        times[entry.pointer] += 1
        mark = f"~#{times[entry.pointer]}" if times[entry.pointer] > 1 else ""
        column = f',"column":{json.dumps(entry.column)}' if entry.column else ""
        value = f'{{"value":{entry.json_text},"reason":{json.dumps(entry.reason)}{column}}}'
        members.append(f"{json.dumps(entry.pointer + mark)}:{value}")
    return "{" + ",".join(members) + "}"
