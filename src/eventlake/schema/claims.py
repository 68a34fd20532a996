"""Which columns the values of an event have: what a dialect says of each place of the events, table by table.

A place is a path of keys. Its values may have a column, several (RudderStack's `context_ip` and `context_passed_ip`),
or none in this table; or there is a reason why they cannot have the one they would.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from eventlake.schema import names
from eventlake.schema.types import ENVELOPE_TYPES, ColumnType

Path = tuple[str, ...]


class Claim(NamedTuple):
    """A column for the values of a place."""

    column: str
    rank: int = 0  # of several values of one event, the column gets the one with the lowest


Claims = tuple[Claim, ...]
NOWHERE: Claims = ()  # not in this table


class ColumnRules(Protocol):
    """What a dialect says of one table."""

    @property
    def message_column(self) -> str:
        """The column that holds the ids of messages."""

    @property
    def always(self) -> Mapping[str, str]:
        """The columns that the table has whatever comes, and the places (JSON pointers) of their values."""

    @property
    def fixed(self) -> Mapping[str, ColumnType]:
        """The columns whose types do not depend on values, in the order in which they come before all others."""

    def claims(self, path: Path) -> Claims | str:
        """The columns for values at a place, or the reason why there is none."""

    def column_of(self, path: Path) -> str:
        """What the column of a place is, or would be, called."""


class SegmentColumns:
    """Every place has one column, in every table."""

    message_column = "message_id"
    always: Mapping[str, str] = names.OWNED_COLUMNS
    fixed: Mapping[str, ColumnType] = ENVELOPE_TYPES

    def claims(self, path: Path) -> Claims | str:
        name = names.column_name(*path)
        owner = names.OWNED_COLUMNS.get(name)
        if owner is not None and path != names.OWNED_PLACES[name]:
            return f"the column {name} is for {owner}"
        if name in names.PARTITION_KEYS:
            return f"{name} is the name of a partition"
        return (Claim(name),)

    def column_of(self, path: Path) -> str:
        return names.column_name(*path)


SEGMENT = SegmentColumns()
