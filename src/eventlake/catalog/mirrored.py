"""The embedded catalog, and another one that shows the same tables to the world.

Runs believe the embedded one. So whatever happens to the other, by accident or by hand, cannot change how events are
read, and a table that got lost there comes back with the next run of its source.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from eventlake.catalog.base import Among, Catalog, CatalogTable, SchemaEvent, TableChange, unchanged
from eventlake.errors import CatalogLimitError, PartitionMismatchError
from eventlake.schema.evolve import Column

_SHOWN = 60  # characters of a name that is too long


class Mirror(Catalog, Protocol):
    """A catalog that others look into."""

    title: str
    longest_table: int  # characters; a table whose name is longer is not shown
    longest_column: int


class MirroredCatalog:
    """A `Catalog` that tells what one knows, and lets two know of every change."""

    def __init__(self, truth: Catalog, mirror: Mirror) -> None:
        self._truth = truth
        self._mirror = mirror

    @property
    def title(self) -> str:
        """What the other one is called."""
        return self._mirror.title

    def prepare(self, database: str) -> frozenset[str]:
        taken = self._truth.prepare(database)
        with suppress(CatalogLimitError):  # no room for a database: `apply` tries again, and tells
            taken |= self._mirror.prepare(database)
        ours = [table for table in self._truth.tables() if table.database == database]
        sources = sorted({table.source_id for table in ours})
        shown = {table.name: table.partition_keys for source in sources for table in self._mirror.tables(source)}
        for table in ours:
            keys = shown.get(table.name, table.partition_keys)
            if keys != table.partition_keys:
                raise PartitionMismatchError(
                    f"{table.database}.{table.name} is partitioned by {', '.join(keys)} in the catalog, "
                    f"but its files by {', '.join(table.partition_keys)}",
                    fix="drop the table in the catalog (its files stay), then `eventlake catalog publish`",
                )
        return taken

    def tables(self, source_id: str | None = None) -> list[CatalogTable]:
        return self._truth.tables(source_id)

    def partitions(self, database: str, table: str, among: Among = None) -> list[tuple[str, ...]]:
        return self._truth.partitions(database, table, among)

    def history(self, database: str, table: str) -> list[SchemaEvent]:
        return self._truth.history(database, table)

    def apply(self, changes: Sequence[TableChange], *, run_id: str, at: int) -> list[str]:
        refused = self._truth.apply(changes, run_id=run_id, at=at)
        return [*refused, *self._shown(changes, sorted({change.source_id for change in changes}), run_id, at)]

    def catch_up(self, source_id: str, *, run_id: str, at: int) -> list[str]:
        """Show the tables of a source for which there was no room before, or which got lost; what was not taken."""
        return self._shown((), [source_id], run_id, at)

    def _shown(self, changes: Sequence[TableChange], sources: Sequence[str], run_id: str, at: int) -> list[str]:
        """Show changes, and whatever else of these sources is not shown yet; what was not taken, in words."""
        shown = {(table.database, table.name) for source in sources for table in self._mirror.tables(source)}
        known = {(table.database, table.name): table for table in self._truth.tables()}
        wanted = {(change.database, change.table): change for change in changes}
        for name, table in known.items():
            if table.source_id in sources and name not in shown and name not in wanted:
                wanted[name] = unchanged(table)  # for which there was no room before, or which got lost
        whole = [
            self._whole(change, known[name], all_partitions=name not in shown)
            for name, change in wanted.items()
            if self._takes(change)
        ]
        return [*self._too_long(changes), *self._mirror.apply(whole, run_id=run_id, at=at)]

    def _takes(self, table: CatalogTable | TableChange) -> bool:
        """Whether the other catalog can show a table."""
        name = table.name if isinstance(table, CatalogTable) else table.table
        return len(name) <= self._mirror.longest_table

    def _takes_column(self, column: Column) -> bool:
        return len(column.name) <= self._mirror.longest_column

    def _too_long(self, changes: Sequence[TableChange]) -> Iterator[str]:
        """What is not shown because of its name, in words. Its files are as they should be."""
        longest = self._mirror.longest_table, self._mirror.longest_column
        tables = [f"{change.database}.{change.table}" for change in changes if not self._takes(change)]
        columns = [
            f"{change.database}.{change.table}.{column.name}"
            for change in filter(self._takes, changes)
            for column in change.added
            if not self._takes_column(column)
        ]
        for names, most, what in zip((tables, columns), longest, ("table", "column"), strict=True):
            if names:
                kept_out = f"leaves out {len(names)}: {names[0][:_SHOWN]}…"
                yield f"{self.title} has names of {what}s of up to {most} characters, and {kept_out}"

    def publish(self, *, run_id: str, at: int) -> tuple[int, list[str]]:
        """Show every table with all its columns and partitions, as if the other catalog were empty.

        Returns how many are shown then, and what the other catalog did not take, in words.
        """
        tables = {(table.database, table.name): table for table in self._truth.tables()}
        changes = [replace(unchanged(table), added=table.schema.columns) for table in tables.values()]
        whole = [
            self._whole(change, tables[change.database, change.table], all_partitions=True)
            for change in filter(self._takes, changes)
        ]
        refused = [*self._too_long(changes), *self._mirror.apply(whole, run_id=run_id, at=at)]
        shown = {(table.database, table.name) for table in self._mirror.tables()}
        return len(shown & tables.keys()), refused

    def _whole(self, change: TableChange, table: CatalogTable, *, all_partitions: bool) -> TableChange:
        """A change that also brings what the other catalog lost."""
        partitions = tuple(self._truth.partitions(table.database, table.name)) if all_partitions else change.partitions
        columns = tuple(column for column in table.schema.columns if self._takes_column(column))
        types = tuple((column.name, column.type) for column in columns)
        return replace(change, added=columns, retyped=types, partitions=partitions)

    def drop(self, database: str, table: str) -> None:
        self._truth.drop(database, table)
        self._mirror.drop(database, table)

    def not_shown(self, source_id: str) -> list[tuple[str, str]]:
        shown = {(table.database, table.name): table for table in self._mirror.tables(source_id)}
        wrong = []
        for table in filter(self._takes, self._truth.tables(source_id)):
            name, there = f"{table.database}.{table.name}", shown.get((table.database, table.name))
            if there is None:
                wrong.append((name, "the table is missing"))
                continue
            wanted = {(column.name, column.type) for column in table.schema.columns if self._takes_column(column)}
            if wanted - {(column.name, column.type) for column in there.schema.columns}:
                wrong.append((name, "columns are missing, or have other types"))
            if not table.partition_keys:  # and nobody may have the right to ask
                continue
            known = set(self._mirror.partitions(table.database, table.name))
            missing = [values for values in self._truth.partitions(table.database, table.name) if values not in known]
            if missing:
                wrong.append((name, f"{len(missing)} partitions are missing: {'/'.join(missing[0])}, …"))
        return wrong

    def register_report(self, source_id: str, day: str, run_id: str) -> None:
        self._mirror.register_report(source_id, day, run_id)
