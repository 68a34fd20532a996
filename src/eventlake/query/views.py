"""Every table of the catalog as a view: partitions and evolved columns included."""

from collections.abc import Callable, Iterable, Sequence

import duckdb

from eventlake.catalog import view_sql
from eventlake.catalog.base import SYSTEM_DATABASE, CatalogTable
from eventlake.catalog.view_sql import DUCKDB
from eventlake.control.ledger import LakeFile
from eventlake.errors import InvalidSettingsError
from eventlake.lake.quarantine import SCHEMA as QUARANTINE_SCHEMA
from eventlake.lake.report_columns import REPORT_COLUMNS
from eventlake.lake.violations import SCHEMA as VIOLATIONS_SCHEMA
from eventlake.query.named import asks_in_general, named
from eventlake.reports import report
from eventlake.schema.names import RESERVED_DATABASES
from eventlake.storage.duck import LakeFiles
from eventlake.workspace import Lake

_LINE_TYPES = {"string": "VARCHAR", "int64": "BIGINT", "binary": "BLOB", "timestamp[us, tz=UTC]": "TIMESTAMPTZ"}
_REPORTS, _QUARANTINE, _VIOLATIONS = ((SYSTEM_DATABASE, name) for name in ("sync_reports", "quarantine", "violations"))
_SYSTEM = (_REPORTS, _QUARANTINE, _VIOLATIONS)
_OF_LINES = {_QUARANTINE: QUARANTINE_SCHEMA, _VIOLATIONS: VIOLATIONS_SCHEMA}  # what is told of lines of the archive

Columns = Sequence[tuple[str, str]]
"""Names and DuckDB's types."""

Only = Callable[[list[LakeFile]], list[LakeFile]]
"""Which files of a table are read."""


def all_files(files: list[LakeFile]) -> list[LakeFile]:
    return files


def newest_files(count: int) -> Only:
    """Those with the rows that came last."""
    return lambda files: sorted(files, key=lambda file: file.last_received)[-count:]


class Views:
    """The tables that a query names, in a connection of its own."""

    def __init__(
        self, lake: Lake, connection: duckdb.DuckDBPyConnection, opened: LakeFiles, only: Only = all_files
    ) -> None:
        self.lake = lake
        self.files: dict[str, str] = {}  # that the views read: path → digest, empty where none is known
        self.names: list[str] = []  # of all tables, as queries write them
        self._connection = connection
        self._opened = opened
        self._only = only

    def make(self, sql: str) -> None:
        """Make the views that a query needs. Making one opens its files, so tables that are only listed get none."""
        tables = {(table.database, table.name): table for table in self.lake.catalog.tables()}
        over = {
            (one.settings.warehouse, view.name): view
            for one in self.lake.connections
            for view in self.lake.warehouse_views(one)
        }
        self.names = [".".join(key) for key in (*tables, *over, *_SYSTEM)]
        asked = named(sql, [*tables, *over, *_SYSTEM])
        below = {(part.table.database, part.table.name) for key in asked & over.keys() for part in over[key].parts}
        wanted = below | (asked - over.keys())
        for database, name in sorted(wanted):
            if database in RESERVED_DATABASES:
                raise self._reserved(tables[database, name])
        for database in sorted({database for database, _ in (*tables, *over, _REPORTS)} - RESERVED_DATABASES):
            self._connection.execute(f"CREATE SCHEMA IF NOT EXISTS {DUCKDB.name(database)}")
        for key in wanted:
            self._create(key, self._select(key, tables))
        for key in asked & over.keys():
            self._create(key, view_sql.select(over[key], DUCKDB))
        if asks_in_general(sql):
            for key in {*tables, *_SYSTEM} - wanted:
                if key[0] not in RESERVED_DATABASES:
                    self._create(key, _placeholder(_columns(key, tables), key))
            for key in over.keys() - asked:
                columns = [(name, DUCKDB.types[kind]) for name, kind in over[key].columns.items()]
                self._create(key, _placeholder(columns, key))

    def _create(self, key: tuple[str, str], select: str) -> None:
        self._connection.execute(f"CREATE VIEW {DUCKDB.name(key[0])}.{DUCKDB.name(key[1])} AS {select}")

    def _reserved(self, table: CatalogTable) -> InvalidSettingsError:
        slug = next((one.name for one in self.lake.connections if one.source.id == table.source_id), "SOURCE")
        return InvalidSettingsError(
            f"DuckDB keeps the name {table.database!r} for itself, so a database of that name cannot be asked",
            fix=f"give it another: `eventlake replay {slug} --all --set database=NAME`",
        )

    def _select(self, key: tuple[str, str], tables: dict[tuple[str, str], CatalogTable]) -> str:
        columns = _columns(key, tables)
        if key == _REPORTS:
            return self._reports(columns)
        if key == _QUARANTINE:
            return self._of_lines((path for path, _, _ in self.lake.ledger.quarantine_files()), columns)
        if key == _VIOLATIONS:
            return self._of_lines(self.lake.ledger.violation_files(), columns)
        return self._data(tables[key], columns)

    def _data(self, table: CatalogTable, columns: Columns) -> str:
        """The columns in the catalog's order and types, also those that no file has."""
        found = self._only(self.lake.ledger.data_files(table.source_id, table.table_key))
        if not found:
            return _empty(columns)
        files = self._addresses((file.path, file.size, file.digest) for file in found)
        hive = ", ".join(f"{DUCKDB.name(key)}: VARCHAR" for key in table.partition_keys)
        by_folders = f"true, hive_types_autocast=false, hive_types={{{hive}}}" if hive else "false"
        read = f"read_parquet([{files}], union_by_name=true, hive_partitioning={by_folders})"
        return f"SELECT {_names(columns)} FROM ({_empty(columns)} UNION ALL BY NAME SELECT * FROM {read})"  # noqa: S608

    def _reports(self, columns: Columns) -> str:
        files = self._addresses(
            (path, found.size, "")
            for run in self.lake.runs.latest(None)
            # A full disk may have kept one from being written.
            if run.report and (found := self.lake.storage.stat(path := report.path(self.lake.folders, run.report[0])))
        )
        if not files:
            return _empty(columns)
        spec = ", ".join(f"{quoted(name)}: {quoted(kind)}" for name, kind in columns if name != "day")
        return (
            f"SELECT {_names(columns)} FROM (SELECT *, regexp_extract(filename, '/day=([0-9-]+)/', 1) AS day FROM "  # noqa: S608
            f"read_json([{files}], format='newline_delimited', columns={{{spec}}}, filename=true, "
            "hive_partitioning=false))"
        )

    def _of_lines(self, paths: Iterable[str], columns: Columns) -> str:
        files = self._addresses((path, self._size(path), "") for path in paths)
        if not files:
            return _empty(columns)
        return (
            f"SELECT source AS source_id, {_names(columns[1:])} FROM "  # noqa: S608
            f"read_parquet([{files}], hive_partitioning=true, hive_types={{source: VARCHAR, run_id: VARCHAR}})"
        )

    def _size(self, path: str) -> int:
        found = self.lake.storage.stat(path)
        return found.size if found else 0

    def _addresses(self, files: Iterable[tuple[str, int, str]]) -> str:
        """Files as a list in SQL, from path, size and digest of each; from here on DuckDB may read them."""
        addresses = []
        for path, size, digest in files:
            self.files[path] = digest
            addresses.append(quoted(self._opened.address(path, size)))
        return ", ".join(addresses)


def _columns(key: tuple[str, str], tables: dict[tuple[str, str], CatalogTable]) -> Columns:
    if key == _REPORTS:
        return [(column.name, column.duckdb) for column in REPORT_COLUMNS]
    if key in _OF_LINES:
        kept = [(field.name, _LINE_TYPES[str(field.type)]) for field in _OF_LINES[key]]
        return [("source_id", "VARCHAR"), ("run_id", "VARCHAR"), *kept]
    table = tables[key]
    columns = [(column.name, DUCKDB.types[column.type]) for column in table.schema.columns]
    return [*columns, *((key, "VARCHAR") for key in table.partition_keys)]


def _empty(columns: Columns) -> str:
    return f"SELECT {_nulls(columns)} WHERE false"


def _placeholder(columns: Columns, key: tuple[str, str]) -> str:
    """A view that can be listed and described. If a query gets to it nevertheless, that must not look like no rows."""
    why = quoted(f"the query does not name {'.'.join(key)}, so its files were not opened")
    return f"SELECT {_nulls(columns)} WHERE error({why})::BOOLEAN"


def _nulls(columns: Columns) -> str:
    return ", ".join(f"CAST(NULL AS {kind}) AS {DUCKDB.name(name)}" for name, kind in columns)


def _names(columns: Columns) -> str:
    return ", ".join(DUCKDB.name(name) for name, _ in columns)


def quoted(text: str) -> str:
    """A text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"
