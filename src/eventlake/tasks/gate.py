"""Which tables a stage task may fill: all that are there, new ones as far as there is room, none that was dropped."""

from collections import Counter

from eventlake.lake.routes import Route
from eventlake.tasks.staged import StageContext

NAMES_COUNTED = 10_000  # refused tables that a task can name; anybody with a write key can make up more


class DroppedError(Exception):
    """All tables of a message were dropped."""


class NotSelectedError(Exception):
    """The lake is to have no table of a message."""

    def __init__(self, route: Route) -> None:
        super().__init__("not selected")
        self.route = route


class RefusedError(Exception):
    """There is no room for a table of a message."""

    def __init__(self, table_key: str) -> None:
        super().__init__(table_key)
        self.table_key = table_key


class Gate:
    def __init__(self, context: StageContext) -> None:
        self.refused: Counter[str] = Counter()  # lines of tables for which there was no room
        self._context = context
        self._new_tables: set[str] = set()

    def opened(self, route: Route) -> Route:
        """The route without tables that were dropped or are not selected. Raises an error if none is left, or no room.

        A message that has no room in one of its tables goes to none: it is quarantined, and can be let in whole.
        """
        there = tuple(key for key in route if key not in self._context.dropped_tables)
        if not there:
            raise DroppedError
        rest = tuple(filter(self._context.selection.has_table, there))
        if not rest:
            raise NotSelectedError(there)
        for key in rest:
            if not self._admits(key):
                raise RefusedError(key)
        return rest

    def _admits(self, table_key: str) -> bool:
        context = self._context
        if table_key in context.known_columns or table_key in self._new_tables:
            return True
        if context.only_tables is not None:
            return table_key in context.only_tables
        if len(self._new_tables) >= context.table_limit and table_key not in context.preferred_tables:
            return False
        self._new_tables.add(table_key)
        return True

    def count(self, error: RefusedError) -> None:
        """Count a line that was refused."""
        if error.table_key in self.refused or len(self.refused) < NAMES_COUNTED:
            self.refused[error.table_key] += 1
