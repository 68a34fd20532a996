"""Whom a line names: in its event, or in what the event has no place for, as the second value of a key."""

import json
from collections.abc import Iterable
from typing import Any, Protocol

from eventlake.events.suppression import LONGEST_PATH, Path
from eventlake.reading import exact_json
from eventlake.schema.rescue import Rescued, keys_of


class Hides(Protocol):
    """Whether a value, at a place of an event, names somebody who is suppressed."""

    def __call__(self, value: Any, above: Path = (), /) -> bool: ...


def names(hides: Hides, value: Any, set_aside: Iterable[Rescued], above: Path = ()) -> bool:
    """Whether a value that was read, or anything that was set aside of it, names somebody."""
    if hides(value, above):
        return True
    for entry in set_aside:
        place = (*above, *keys_of(entry.pointer))
        if len(place) > LONGEST_PATH:
            continue
        if entry.json_text.startswith('"'):
            found = hides(json.loads(entry.json_text), place)
        else:
            found = names(hides, *exact_json.parse(entry.json_text.encode()), place)
        if found:
            return True
    return False
