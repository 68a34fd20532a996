"""Routes: the tables in which a message has rows.

A message has one row in each table of its route. A dialect says which tables those are; everything else asks it, and
counts messages and rows apart.
"""

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import NamedTuple

Route = tuple[str, ...]
"""The keys of the tables in which a message has a row."""


class Sent(NamedTuple):
    """What an event says of where it goes."""

    call: str
    event: str = ""  # the name of a track call
    has_user: bool = True  # and whether it names a user
    options: frozenset[str] = frozenset()  # that the event itself sets


def all_routes(routes: Iterable[Route]) -> frozenset[Route]:
    """All routes that messages can have taken; some of a route's tables may have been dropped."""
    return frozenset(part for route in routes for part in _parts(route))


def _parts(route: Route) -> Iterator[Route]:
    for size in range(1, len(route) + 1):
        yield from combinations(route, size)
