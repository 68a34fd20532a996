"""A Hive metastore: tables for Spark, Trino, Hive, HDInsight, Databricks and whoever else reads one."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pymetastore.hive_metastore import ttypes as hive

from eventlake.catalog import described, hive_tables
from eventlake.catalog.base import SYSTEM_DATABASE, Among, CatalogTable, SchemaEvent, TableChange
from eventlake.catalog.described import Described
from eventlake.catalog.hive_client import Metastore
from eventlake.catalog.hive_writer import GONE, TITLE, UNCOUNTED, HiveWriter, TableName
from eventlake.catalog.spread import at_once, in_parts, within_limits
from eventlake.errors import CatalogLimitError, InvalidSettingsError
from eventlake.lake.layout import RUDDERSTACK, SEGMENT, Folders

_AT_ONCE = 4  # tables, and parts of the partitions of each
_TABLES_READ_AT_ONCE = 50
# A metastore gives each partition that is changed columns of its own, one row each: for many of a wide table, hours.
# Dropped and added again they take a hundredth of a second each, but for a moment they are not there.
_CHANGED_IN_PLACE = 50

Values = tuple[str, ...]


class HiveCatalog:
    """A `Catalog` in a Hive metastore; `databases` tells which of its databases are ours to look at, by source."""

    title = TITLE
    longest_table, longest_column = hive_tables.LONGEST_TABLE, hive_tables.LONGEST_COLUMN

    def __init__(
        self,
        metastore: Metastore,
        root: str,
        databases: Callable[[], Mapping[str, str]],
        *,
        folders: Folders = SEGMENT,
        scheme: str = "s3",
    ) -> None:
        self._writer = HiveWriter(metastore, scheme)
        self._root = root.rstrip("/")
        self._databases = databases
        self._folders = folders

    def database_count(self) -> int:
        return len(self._writer.ask("get_all_databases", of="them"))

    def prepare(self, database: str) -> frozenset[str]:
        if len(database) > hive_tables.LONGEST_DATABASE:
            raise InvalidSettingsError(
                f"{TITLE} has names of databases up to {hive_tables.LONGEST_DATABASE} characters, and {database} has "
                f"{len(database)}",
                fix="give the connection another database: `eventlake connection set NAME database=…`",
            )
        try:
            self._writer.ask("get_database", database, of=database, expecting=(GONE,))
        except GONE:
            self.make_database(database)
            return frozenset()
        return frozenset(table["Name"] for table in self._tables(database) if not described.is_ours(table, self._root))

    def make_database(self, database: str) -> bool:
        """Make a database; whether there was none before."""
        return self._writer.make_database(database)

    def drop_database(self, database: str) -> None:
        """Remove a database that has no tables, with the folder that the metastore made for it."""
        self._writer.ask("drop_database", database, True, False, of=database)

    def _tables(self, database: str) -> Iterable[Described]:
        """The tables of a database; none, if there is no such database."""
        names = self._writer.ask("get_all_tables", database, of=database)
        for part in in_parts(names, _TABLES_READ_AT_ONCE):
            request = hive.GetTablesRequest(dbName=database, tblNames=list(part))
            for table in self._writer.ask("get_table_objects_by_name_req", request, of=database).tables:
                yield hive_tables.as_told(table)

    def tables(self, source_id: str | None = None) -> list[CatalogTable]:
        wanted = {name for source, name in self._databases().items() if source_id in (None, source)}
        found = (table for database in sorted(wanted) for table in self._tables(database))
        return described.ours(found, self._root, source_id)

    def partitions(self, database: str, table: str, among: Among = None) -> list[Values]:
        if self._writer.table((database, table)) is None:
            return []
        found = self._partitions((database, table))
        return sorted(found if among is None else found.intersection(among))

    def _partitions(self, place: TableName) -> set[Values]:
        names = self._writer.ask("get_partition_names", *place, -1, of=place)
        return {hive_tables.values_of(name) for name in names}

    def history(self, database: str, table: str) -> list[SchemaEvent]:
        found = self._writer.table((database, table))
        return described.history(hive_tables.as_told(found)) if found else []

    def described(self, database: str) -> dict[str, tuple[tuple[str, ...], dict[str, str]]]:
        """The tables of a database in this lake: by location, their partition keys and the types of their columns."""
        return described.by_location(list(self._tables(database)), self._root)

    def apply(self, changes: Sequence[TableChange], *, run_id: str, at: int) -> list[str]:
        return within_limits(changes, lambda change: self._apply(change, run_id, at), TITLE, threads=_AT_ONCE)

    def _apply(self, change: TableChange, run_id: str, at: int) -> None:
        place, wanted = (change.database, change.table), set(change.partitions)
        found = self._writer.table(place)
        before = hive_tables.as_told(found) if found else None
        described.refuse_foreign(before, change, self._root, TITLE)
        there = self._partitions(place) if before and described.keys_of(before) else set()
        is_adopted = before is not None and described.is_adopted(before)
        is_laid_out_anew = before is not None and described.keys_of(before) != list(change.partition_keys)
        if is_laid_out_anew:  # which no table can be: it is made again, with all that people added to it
            self._drop(place)
            there = set()

        def changed(table: Described | None) -> Described:
            return described.changed(table, change, f"{self._root}/{change.location}", run_id=run_id, at=at)

        # Of a table that was taken over, those that we write to.
        is_about_all = bool(there) and not is_adopted and _is_otherwise(before or {}, changed(before))
        table = self._writer.write(
            place,
            # Should this end before all partitions are as the table is, the table shows it.
            lambda table: described.begun(changed(table)) if is_about_all else changed(table),
            instead_of=found if is_laid_out_anew else None,
        )
        gone = set() if is_adopted else there.intersection(change.forgotten)
        try:
            self._drop_partitions(place, table, sorted(gone))
            self._change_partitions(place, table, sorted(there - gone if is_about_all else there & wanted))
            self._add_partitions(place, table, sorted(wanted - there))
        except CatalogLimitError:
            # So that the next change brings all partitions again.
            self._writer.write(place, lambda table: described.begun(table or {}))
            raise
        if before is None or not described.is_complete(table):
            self._writer.write(place, lambda table: described.completed(table or {}))

    def _change_partitions(self, place: TableName, table: Described, values: Sequence[Values]) -> None:
        """Give partitions the table's columns and place.

        Who reads by the columns of a partition sees none that came to the table later. So the partitions that a run
        wrote to get them; all do, if a type changes.
        """

        def change(part: Sequence[Values]) -> None:
            names = hive_tables.partition_names(table, part)
            found = self._writer.ask("get_partitions_by_names", *place, names, of=place)
            pairs = [(old, self._partition(place, table, old.values, old)) for old in found]
            new = [new for old, new in pairs if new != old]
            if len(new) > _CHANGED_IN_PLACE:
                self._drop_partitions(place, table, [tuple(partition.values) for partition in new])
                self._add(place, new)
            elif new:
                context = hive.EnvironmentContext(UNCOUNTED)
                self._writer.ask("alter_partitions_with_environment_context", *place, new, context, of=place)

        at_once(change, in_parts(values, hive_tables.partitions_at_once(table)), _AT_ONCE)

    def _partition(self, place: TableName, table: Described, values: Sequence[str], found: Any | None = None) -> Any:
        return hive_tables.as_partition(table, place[0], values, found, scheme=self._writer.scheme)

    def _add_partitions(self, place: TableName, table: Described, wanted: Sequence[Values]) -> None:
        def add(part: Sequence[Values]) -> None:
            self._add(place, [self._partition(place, table, values) for values in part])

        at_once(add, in_parts(wanted, hive_tables.partitions_at_once(table)), _AT_ONCE)

    def _add(self, place: TableName, partitions: list[Any]) -> None:
        """Add partitions, but for those that are there."""
        request = hive.AddPartitionsRequest(*place, partitions, ifNotExists=True, needResult=False)
        self._writer.ask("add_partitions_req", request, of=place)

    def _drop_partitions(self, place: TableName, table: Described, values: Sequence[Values]) -> None:
        for part in in_parts(values, hive_tables.MOST_AT_ONCE):
            these = hive.RequestPartsSpec(names=hive_tables.partition_names(table, part))
            request = hive.DropPartitionsRequest(*place, these, deleteData=False, ifExists=True, needResult=False)
            self._writer.ask("drop_partitions_req", request, of=place)

    def compares(self, database: str, table: str) -> bool:
        """Whether the metastore notices that somebody else has changed a table."""
        return self._writer.compares((database, table))

    def drop(self, database: str, table: str) -> None:
        found = self._writer.table((database, table))
        told = hive_tables.as_told(found) if found else {}
        if not described.is_ours(told, self._root):
            return  # it is somebody else's
        if described.is_adopted(told):
            self._writer.write((database, table), lambda table: described.released(table or {}))
        else:
            self._drop((database, table))

    def _drop(self, place: TableName) -> None:
        try:
            self._writer.ask("drop_table", *place, False, of=place, expecting=(GONE,))
        except GONE:
            return

    def not_shown(self, source_id: str) -> list[tuple[str, str]]:
        del source_id  # what this catalog has is shown by itself
        return []

    def register_report(self, source_id: str, day: str, run_id: str) -> None:
        if self._folders is RUDDERSTACK:
            return  # nobody looks for it there
        place, location = (SYSTEM_DATABASE, "sync_reports"), f"{self._root}/{self._folders.reports}"
        storage = hive_tables.REPORTS["StorageDescriptor"] | {"Location": location}
        found = self._writer.table(place)
        table = (
            hive_tables.as_told(found)
            if found
            else self._writer.write(place, lambda table: table or {**hive_tables.REPORTS, "StorageDescriptor": storage})
        )
        if described.keys_of(table) != described.keys_of(hive_tables.REPORTS) or _location(table) != location:
            return  # it is another lake's: reports are files, and one of them can be shown here
        folder = f"day={day}/source={source_id}/run_id={run_id}"
        values = (source_id, day, run_id)
        entry = hive_tables.as_partition(table, place[0], values, folder=folder, scheme=self._writer.scheme)
        self._add(place, [entry])


def _location(table: Described) -> str:
    return str(table["StorageDescriptor"]["Location"])


def _is_otherwise(before: Described, table: Described) -> bool:
    """Whether no partition may stay as it is, or it is not known which may."""
    is_moved = described.is_moved(before, table)
    return is_moved or described.is_retyped(before, table) or not described.is_complete(before)
