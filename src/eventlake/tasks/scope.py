"""What a run takes of the archive, and what it does with messages that are in the lake."""

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from eventlake.lake.routes import Route

if TYPE_CHECKING:
    from eventlake.lake.ids import Array


class Mode(Enum):
    SYNC = "sync"  # load what is not in the lake
    REPLAY = "replay"  # and write again what is
    REBUILD = "rebuild"  # write everything again, as if the lake were empty


@dataclass(frozen=True)
class Scope:
    """What a replay takes: messages received in [start, stop), and of their rows those in some tables, or in all.

    A message that is new to the lake gets all its rows.
    """

    start: int
    stop: int
    table_keys: frozenset[str] | None = None

    def takes(self, route: Route, received: "Array") -> "Array":
        """Which messages of a route it takes, by when they were received."""
        if self.table_keys is not None and self.table_keys.isdisjoint(route):
            return np.zeros(len(received), bool)
        return np.asarray((received >= self.start) & (received < self.stop))

    def has_table(self, table_key: str) -> bool:
        return self.table_keys is None or table_key in self.table_keys
