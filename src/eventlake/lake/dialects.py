"""Dialects: how events become tables. A table has a key, which never changes, a name in the catalog, and a folder.

A message has one row in each table of its route. A dialect says which tables those are; everything else asks it, and
counts messages and rows apart.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import combinations

from eventlake.events.envelope import CALLS
from eventlake.lake.layout import DATA, DatePartition
from eventlake.schema import names

Route = tuple[str, ...]
"""The keys of the tables in which a message has a row."""


class TableNaming(Enum):
    PREFIXED = "prefixed"  # track_order_completed
    PLAIN = "plain"  # order_completed


@dataclass(frozen=True)
class SegmentDialect:
    """One table for each type of event, as Segment Data Lakes has them."""

    source_folder: str  # the source's id, or its slug
    database: str
    table_prefix: str = ""
    date_partition: DatePartition = DatePartition.DAY_HOUR
    naming: TableNaming = TableNaming.PREFIXED

    def route(self, call: str, event: str) -> Route:
        """The tables of a message: here always one, by the type of the event (`identify`, `track_order_completed`)."""
        return (call if call != "track" else self.event_table(event),)

    def event_table(self, event: str) -> str:
        """The key of the table that is for track calls with this name."""
        name = names.event_name(event)
        # In plain naming, a track event called "Page" must not land among the page calls.
        is_plain = self.naming is TableNaming.PLAIN and name not in CALLS - {"track"}
        return names.shortened(name if is_plain else f"track_{name}", names.MAX_TABLE_LENGTH)

    def routes(self, table_keys: frozenset[str]) -> frozenset[Route]:
        """All routes that messages can have taken, if these are the tables."""
        return frozenset((key,) for key in table_keys)

    def table_name(self, table_key: str) -> str:
        return f"{self.table_prefix}_{table_key}" if self.table_prefix else table_key

    def location(self, table_key: str) -> str:
        return f"{DATA}/{self.source_folder}/segment_type={table_key}"


Dialect = SegmentDialect
"""What everything that needs a dialect is given."""


def all_routes(dialect: Dialect, table_keys: frozenset[str]) -> frozenset[Route]:
    """All routes that messages can have taken to these tables; some of a route's tables may have been dropped."""
    return frozenset(part for route in dialect.routes(table_keys) for part in _parts(route))


def _parts(route: Route) -> Iterator[Route]:
    for size in range(1, len(route) + 1):
        yield from combinations(route, size)
