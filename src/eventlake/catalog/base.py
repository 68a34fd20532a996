"""Where query engines learn which tables exist."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from eventlake.schema.evolve import Column, TableSchema
from eventlake.schema.types import ColumnType

SYSTEM_DATABASE = "__segment_datalake"

Among = Collection[tuple[str, ...]] | None


@dataclass(frozen=True)
class CatalogTable:
    """A table as the catalog has it."""

    database: str
    name: str
    source_id: str
    table_key: str
    location: str
    partition_keys: tuple[str, ...]
    schema: TableSchema


@dataclass(frozen=True)
class TableChange:
    """What one run does to one table."""

    database: str
    table: str
    source_id: str
    table_key: str
    location: str
    partition_keys: tuple[str, ...]
    added: tuple[Column, ...] = ()
    retyped: tuple[tuple[str, ColumnType], ...] = ()
    partitions: tuple[tuple[str, ...], ...] = ()
    forgotten: tuple[tuple[str, ...], ...] = ()  # partitions that have no files of ours any more
    adopted: bool = False  # somebody else made it: it is taken over as it is


def unchanged(table: CatalogTable) -> TableChange:
    """The table as it is."""
    return TableChange(
        table.database, table.name, table.source_id, table.table_key, table.location, table.partition_keys
    )


class SchemaEvent(NamedTuple):
    """One entry of a table's history."""

    column: str
    change: str  # added, retyped
    type: str
    old_type: str | None
    run_id: str
    at: int


class Catalog(Protocol):
    """All methods that change something may be called again without further effect."""

    def prepare(self, database: str) -> frozenset[str]:
        """See that a database is there; returns the names in it that are taken by tables which are not ours."""

    def tables(self, source_id: str | None = None) -> list[CatalogTable]:
        """All tables, or those of one source, in order of their names."""

    def partitions(self, database: str, table: str, among: Among = None) -> list[tuple[str, ...]]:
        """The values of a table's partitions, in order: of all, or of those among some."""

    def history(self, database: str, table: str) -> list[SchemaEvent]:
        """When each column came or changed its type, and in which run; oldest first."""

    def apply(self, changes: Sequence[TableChange], *, run_id: str, at: int) -> list[str]:
        """Create tables or append their columns, set types, and add and forget partitions.

        A table that gets other keys has only the partitions of the change from then on.

        Returns what the catalog did not take, in words; it is tried again with the next changes.
        """

    def drop(self, database: str, table: str) -> None:
        """Forget a table; its files stay."""

    def not_shown(self, source_id: str) -> list[tuple[str, str]]:
        """Tables of a source that are not shown elsewhere as they should be, and what is wrong with them."""

    def register_report(self, source_id: str, day: str, run_id: str) -> None:
        """The report of a run of this source was written that day."""
