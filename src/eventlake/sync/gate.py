"""Which tables a stage task may fill: all that are there, new ones as far as there is room, none that was dropped."""

from collections import Counter

from eventlake.sync.staged import StageContext

NAMES_COUNTED = 10_000  # refused tables that a task can name; anybody with a write key can make up more


class Gate:
    def __init__(self, context: StageContext) -> None:
        self.refused: Counter[str] = Counter()  # lines of tables for which there was no room
        self._context = context
        self._new_tables = 0

    def admits(self, segment_type: str) -> bool:
        """Whether a table that this task did not have so far may be filled."""
        context = self._context
        if segment_type in context.dropped_tables:
            return False
        if segment_type in context.known_columns:
            return True
        if context.only_tables is not None:
            return segment_type in context.only_tables
        self._new_tables += 1
        return self._new_tables <= context.table_limit or segment_type in context.preferred_tables

    def was_dropped(self, segment_type: str) -> bool:
        """Why a line is left out: because its table was dropped, or else because it was refused, which is counted."""
        if segment_type in self._context.dropped_tables:
            return True
        if segment_type in self.refused or len(self.refused) < NAMES_COUNTED:
            self.refused[segment_type] += 1
        return False
