"""The Glue Data Catalog: tables for Athena, Redshift Spectrum, EMR and whoever reads a Hive metastore on AWS.

Nothing here needs a lock. A table is read, changed and written under its version: if somebody else was quicker, it is
read again. Partitions that are there already stay as they are.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from eventlake.aws.refusals import code_of
from eventlake.aws.service import Service
from eventlake.aws.session import AwsOptions
from eventlake.catalog import athena_views, described, glue_tables
from eventlake.catalog.base import SYSTEM_DATABASE, Among, CatalogTable, SchemaEvent, TableChange
from eventlake.catalog.described import Described
from eventlake.catalog.glue_tables import GONE, THERE, Values
from eventlake.catalog.spread import in_parts, within_limits
from eventlake.catalog.warehouse import View
from eventlake.errors import CatalogLimitError, InvalidSettingsError, TransientError
from eventlake.lake.layout import RUDDERSTACK, SEGMENT, Folders

_AT_ONCE = 8  # tables; Glue allows some ten calls a second
_ATTEMPTS = 10  # to change a table that others change as well

_OVERTAKEN = "ConcurrentModificationException"


class GlueCatalog:
    """A `Catalog` in Glue; `databases` tells which of the account's are ours to look at, by source."""

    title = "Glue"
    longest_table = longest_column = 255

    def __init__(
        self,
        options: AwsOptions,
        root: str,
        databases: Callable[[], Mapping[str, str]],
        *,
        catalog_id: str | None = None,
        folders: Folders = SEGMENT,
    ) -> None:
        self._glue = Service(
            "glue",
            options,
            for_the_caller=(GONE, THERE, _OVERTAKEN),
            no_such_thing=(),
            max_pool_connections=2 * _AT_ONCE,
        )
        self._root = root.rstrip("/")
        self._databases = databases
        self._folders = folders
        self._is_rudderstack = folders is RUDDERSTACK
        self._account = {"CatalogId": catalog_id} if catalog_id else {}

    def ask(self, method: str, **asked: Any) -> Any:
        """Carry out one call. An answer that says that a thing is or is not there is for the caller."""
        place = ".".join(str(asked[key]) for key in ("DatabaseName", "TableName", "Name") if key in asked)
        return self._glue.ask(method, f"{method} {place}".strip() + " in Glue", **self._account, **asked)

    def _pages(self, method: str, key: str, **asked: Any) -> Iterator[Described]:
        token: dict[str, str] = {}
        while True:
            page = self.ask(method, **asked, **token)
            yield from page[key]
            if not page.get("NextToken"):
                return
            token = {"NextToken": page["NextToken"]}

    def prepare(self, database: str) -> frozenset[str]:
        try:
            found = list(self._pages("get_tables", "TableList", DatabaseName=database))
        except Exception as error:
            if code_of(error) != GONE:
                raise
            self.make_database(database)
            return frozenset()
        return frozenset(table["Name"] for table in found if not described.is_ours(table, self._root))

    def make_database(self, database: str) -> bool:
        """Make a database, without asking for it first: not everybody may ask. Whether there was none before."""
        # Lake Formation wants the location that the tables have in common.
        wanted = {"Name": database, "LocationUri": f"{self._root}/{self._folders.data.partition('/')[0]}/"}
        try:
            self.ask("create_database", DatabaseInput=wanted)
        except Exception as error:
            if code_of(error) != THERE:
                raise
            return False
        return True

    def drop_database(self, database: str) -> None:
        """Remove a database that has no tables."""
        self.ask("delete_database", Name=database)

    def _tables(self, database: str, name: str | None = None) -> list[Described]:
        """The tables of a database, or at least one of them: Glue takes a pattern, in which `$` is not what it says."""
        like = {"Expression": name} if name and re.fullmatch(r"\w+", name) else {}
        try:
            return list(self._pages("get_tables", "TableList", DatabaseName=database, **like))
        except Exception as error:
            if code_of(error) != GONE:
                raise
            return []

    def tables(self, source_id: str | None = None) -> list[CatalogTable]:
        wanted = {name for source, name in self._databases().items() if source_id in (None, source)}
        found = (table for database in sorted(wanted) for table in self._tables(database))
        return described.ours(found, self._root, source_id)

    def partitions(self, database: str, table: str, among: Among = None) -> list[Values]:
        try:
            place = {"DatabaseName": database, "TableName": table}
            pages = self._pages("get_partitions", "Partitions", **place, ExcludeColumnSchema=True)
            found = [tuple(partition["Values"]) for partition in pages]
        except Exception as error:
            if code_of(error) != GONE:
                raise
            return []
        return sorted(found if among is None else set(found).intersection(among))

    def history(self, database: str, table: str) -> list[SchemaEvent]:
        found = self._table(database, table)
        return described.history(found) if found else []

    def _table(self, database: str, table: str) -> Described | None:
        if self._is_rudderstack:  # whose rights are to list tables, not to ask for one
            return next((found for found in self._tables(database, table) if found["Name"] == table), None)
        try:
            found: Described = self.ask("get_table", DatabaseName=database, Name=table)["Table"]
        except Exception as error:
            if code_of(error) != GONE:
                raise
            return None
        return found

    def apply(self, changes: Sequence[TableChange], *, run_id: str, at: int) -> list[str]:
        return within_limits(changes, lambda change: self._apply(change, run_id, at), "Glue", threads=_AT_ONCE)

    def _apply(self, change: TableChange, run_id: str, at: int) -> None:
        def changed(table: Described | None) -> Described:
            location = f"{self._root}/{change.location}"
            types = described.RUDDERSTACK_TYPES if self._is_rudderstack else described.SEGMENT_TYPES
            now = glue_tables.as_input(table) if table else None
            return described.changed(now, change, location, run_id=run_id, at=at, types=types, marks=glue_tables.MARKS)

        place = {"DatabaseName": change.database, "TableName": change.table}
        table = before = self._table(change.database, change.table)
        described.refuse_foreign(before, change, self._root, "Glue")
        try:
            # Partitions come first: the table still shows that this was not finished, should it end here.
            if before:
                self._change_partitions(place, before, changed(before), change)
            table = self._write(change.database, change.table, changed)
            for part in in_parts(change.partitions, glue_tables.partitions_at_once(table)):
                inputs = [described.partition(table, values) for values in part]
                glue_tables.refuse_errors(self.ask("batch_create_partition", **place, PartitionInputList=inputs))
        except CatalogLimitError:
            if table:
                self._mark(change, described.begun)  # so that the next change brings all partitions again
            raise
        if not described.is_complete(table):
            self._mark(change, described.completed)

    def _mark(self, change: TableChange, mark: Callable[[Described], Described]) -> None:
        self._write(change.database, change.table, lambda found: mark(glue_tables.as_input(found or {})))

    def described(self, database: str) -> dict[str, tuple[tuple[str, ...], dict[str, str]]]:
        """The tables of a database in this lake: by location, their partition keys and the types of their columns."""
        return described.by_location(self._tables(database), self._root)

    def _change_partitions(
        self, place: dict[str, str], before: Described, table: Described, change: TableChange
    ) -> None:
        """Give partitions the table's new types, which Athena compares, and its place; delete the forgotten ones."""
        looks = glue_tables.changes_partitions(before, table)
        there = self.partitions(place["DatabaseName"], place["TableName"]) if looks else []
        changed, gone = glue_tables.partition_changes(before, table, change, there)
        for part in in_parts(changed, glue_tables.partitions_at_once(table)):
            entries = [
                {"PartitionValueList": list(values), "PartitionInput": described.partition(table, values)}
                for values in part
            ]
            glue_tables.refuse_errors(self.ask("batch_update_partition", **place, Entries=entries))
        for part in in_parts(gone, glue_tables.DELETED_AT_ONCE):
            values = [{"Values": list(values)} for values in part]
            glue_tables.refuse_errors(self.ask("batch_delete_partition", **place, PartitionsToDelete=values))

    def _write(self, database: str, table: str, change: Callable[[Described | None], Described]) -> Described:
        """Make or change a table; what it is now, as Glue takes it."""
        for _ in range(_ATTEMPTS):
            found = self._table(database, table)
            new = change(found)
            place = {"DatabaseName": database, "TableInput": new}
            try:
                if found is None:
                    self._create_table(database, place)
                elif new != glue_tables.as_input(found):
                    # Glue keeps the old version if more than new columns came.
                    is_larger = not described.is_retyped(found, new)
                    self.ask("update_table", **place, VersionId=found["VersionId"], SkipArchive=is_larger)
            except Exception as error:
                if code_of(error) not in (_OVERTAKEN, THERE):
                    raise
                continue
            return new
        raise TransientError(
            f"{database}.{table} is changed by others all the time", fix="see who writes to it in Glue; run it again"
        )

    def _create_table(self, database: str, place: dict[str, Any]) -> None:
        try:
            self.ask("create_table", **place)
        except Exception as error:
            if code_of(error) != GONE:
                raise
            self.make_database(database)
            self.ask("create_table", **place)

    def drop(self, database: str, table: str) -> None:
        found = self._table(database, table)
        if not found or not described.is_ours(found, self._root):
            return  # it is somebody else's
        if described.is_adopted(found):
            self._write(database, table, lambda found: described.released(glue_tables.as_input(found or {})))
        else:
            self._delete(database, table)

    def _delete(self, database: str, table: str) -> None:
        try:
            self.ask("delete_table", DatabaseName=database, Name=table)
        except Exception as error:
            if code_of(error) != GONE:
                raise

    def not_shown(self, source_id: str) -> list[tuple[str, str]]:
        del source_id  # what this catalog has is shown by itself
        return []

    def show_views(self, source_id: str, database: str, views: Sequence[View]) -> list[str]:
        """As Athena's own views. Those that nobody asks for any more are deleted; others' are left alone."""
        there = {table["Name"]: table for table in self._tables(database)}
        refused, wanted = [], set()
        for view in views:
            new, old = athena_views.table_input(view, database, source_id, self._root), there.get(view.name)
            if new is None:
                refused.append(f"{database}.{view.name}: its query is too long for Athena")
            elif old and not athena_views.is_ours(old, source_id, self._root):
                refused.append(f"{database}.{view.name}: there is one in Glue that eventlake did not make")
            else:
                wanted.add(view.name)
                if not (old and athena_views.is_same(old, new)):
                    self._write(database, view.name, partial(athena_views.changed, new))
        for name, table in there.items():
            if name not in wanted and athena_views.is_ours(table, source_id, self._root):
                self._delete(database, name)
        return refused

    def register_report(self, source_id: str, day: str, run_id: str) -> None:
        del run_id  # all reports of a day are one partition
        if self._is_rudderstack:
            return  # nobody looks for it there, and it would take further rights
        reports = self._folders.reports
        storage = glue_tables.REPORTS["StorageDescriptor"] | {"Location": f"{self._root}/{reports}"}
        table = self._write(
            SYSTEM_DATABASE,
            "sync_reports",
            lambda found: (
                glue_tables.as_input(found) if found else {**glue_tables.REPORTS, "StorageDescriptor": storage}
            ),
        )
        if described.keys_of(table) != described.keys_of(glue_tables.REPORTS) or (
            table["StorageDescriptor"].get("Location") != storage["Location"]
        ):
            return  # it is Segment's own, or another lake's: reports are files, and one of them can be shown here
        entry = described.partition(table, (source_id, day))
        # Segment's folders are in another order, and called otherwise, than the keys of the table.
        entry["StorageDescriptor"]["Location"] = f"{self._root}/{reports}/day={day}/source={source_id}"
        place = {"DatabaseName": SYSTEM_DATABASE, "TableName": "sync_reports"}
        glue_tables.refuse_errors(self.ask("batch_create_partition", **place, PartitionInputList=[entry]))

    def trim_versions(self, database: str, table: str, *, keep: int) -> int:
        """Delete all versions of a table but the newest; how many those were."""
        if keep < 1:
            raise InvalidSettingsError("the version that is in use must stay", fix="keep at least one")
        place = {"DatabaseName": database, "TableName": table}
        if self._table(database, table) is None:
            return 0
        found = [version["VersionId"] for version in self._pages("get_table_versions", "TableVersions", **place)]
        old = sorted(found, key=int, reverse=True)[keep:]
        for version in old:
            self.ask("delete_table_version", **place, VersionId=version)
        return len(old)
