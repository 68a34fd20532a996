"""SQL over the lake with DuckDB: every table of the catalog as a view, partitions and evolved columns included."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import duckdb
import pyarrow as pa

from eventlake.catalog.base import SYSTEM_DATABASE
from eventlake.errors import InvalidSettingsError
from eventlake.lake.quarantine import SCHEMA as QUARANTINE_SCHEMA
from eventlake.reports import report
from eventlake.reports.columns import REPORT_COLUMNS
from eventlake.storage.base import Storage
from eventlake.storage.local import LocalStorage
from eventlake.workspace import Workspace

_DUCK_TYPES = {
    "bigint": "BIGINT",
    "boolean": "BOOLEAN",
    "decimal(38,6)": "DECIMAL(38,6)",
    "string": "VARCHAR",
    "timestamp": "TIMESTAMPTZ",
}
_PART_OF_NAME = re.compile(r'"((?:[^"]|"")*)"|([^."\s]+)')


def query(workspace: Workspace, sql: str) -> pa.Table:
    """The rows that a query gives. Tables are called `<database>.<table>`."""
    if not sql.strip():
        raise InvalidSettingsError("there is no query", fix='for example `eventlake query "select 1"`')
    connection = duckdb.connect(":memory:")
    try:
        connection.execute("SET TimeZone = 'UTC'")
        lake = _Lake(workspace, _addresses(connection, workspace.storage))
        _make_views(lake, connection, _wanted(connection, sql))
        found = connection.sql(sql)
        return _named_apart(found.to_arrow_table()) if found else pa.table({})
    except duckdb.Error as error:
        raise InvalidSettingsError(
            f"the query failed: {error}",
            fix="see `eventlake tables` and `eventlake describe TABLE` for the names",
        ) from error
    finally:
        connection.close()


class _Lake(NamedTuple):
    workspace: Workspace
    address: Callable[[str], str]

    def texts(self, paths: Iterable[str]) -> str:
        """The files as a list in SQL."""
        return ", ".join(_text(self.address(path)) for path in paths)


def _addresses(connection: duckdb.DuckDBPyConnection, storage: Storage) -> Callable[[str], str]:
    """How DuckDB reaches the files of the lake; it has no way of its own to a bucket."""
    if isinstance(storage, LocalStorage):
        return storage.full
    from eventlake.storage.duck import PROTOCOL, LakeFiles  # noqa: PLC0415 - only lakes in a bucket need it

    connection.register_filesystem(LakeFiles(storage))
    return lambda path: f"{PROTOCOL}://{path}"


def _named_apart(rows: pa.Table) -> pa.Table:
    """A join may give two columns one name; the second is called `name_1`, as DuckDB does in a subquery."""
    names: list[str] = []
    for name in rows.column_names:
        count, unique = 0, name
        while unique in names:
            count += 1
            unique = f"{name}_{count}"
        names.append(unique)
    return rows.rename_columns(names)


def _wanted(connection: duckdb.DuckDBPyConnection, sql: str) -> set[tuple[str, str]] | None:
    """The tables that a query names; None when it is about tables in general (SHOW, information_schema)."""
    if re.match(r"\s*(show|desc|describe|summarize|pragma)\b", sql, re.IGNORECASE):
        return None
    try:
        found = connection.get_table_names(sql, qualified=True)
    except duckdb.Error:  # DuckDB will say what is wrong with it when it runs
        return set()
    wanted = set()
    for text in found:
        parts = [(a.replace('""', '"') or b).lower() for a, b in _PART_OF_NAME.findall(text.split(" AS ")[0])]
        if len(parts) < 2 or parts[-2] in ("information_schema", "pg_catalog"):
            return None
        wanted.add((parts[-2], parts[-1]))
    return wanted


def _make_views(lake: _Lake, connection: duckdb.DuckDBPyConnection, wanted: set[tuple[str, str]] | None) -> None:
    views = {}
    workspace = lake.workspace
    tables = workspace.catalog.tables()
    for table in tables:
        if wanted is None or (table.database, table.name) in wanted:
            files = [f.path for f in workspace.ledger.data_files(table.source_id, table.segment_type)]
            columns = [(c.name, _DUCK_TYPES[c.type.value]) for c in table.schema.columns]
            columns += [(key, "VARCHAR") for key in table.partition_keys]
            hive = ", ".join(f"{_name(key)}: VARCHAR" for key in table.partition_keys)
            options = f"union_by_name=true, hive_partitioning=true, hive_types_autocast=false, hive_types={{{hive}}}"
            views[table.database, table.name] = _view(lake, columns, files, f"read_parquet($files, {options})")
    if wanted is None or (SYSTEM_DATABASE, "sync_reports") in wanted:
        views[SYSTEM_DATABASE, "sync_reports"] = _reports_view(lake)
    if wanted is None or (SYSTEM_DATABASE, "quarantine") in wanted:
        views[SYSTEM_DATABASE, "quarantine"] = _quarantine_view(lake)
    for database in sorted({SYSTEM_DATABASE, *(table.database for table in tables)}):
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {_name(database)}")
    for (database, name), select in views.items():
        connection.execute(f"CREATE VIEW {_name(database)}.{_name(name)} AS {select}")


def _view(lake: _Lake, columns: Sequence[tuple[str, str]], files: list[str], source: str) -> str:
    """The columns in the catalog's order and types, also those that no file has."""
    typed = ", ".join(f"CAST(NULL AS {kind}) AS {_name(name)}" for name, kind in columns)
    empty = f"SELECT {typed} WHERE false"
    if not files:
        return empty
    names = lake.texts(files)
    order = ", ".join(_name(name) for name, _ in columns)
    found = source.replace("$files", f"[{names}]")
    return f"SELECT {order} FROM ({empty} UNION ALL BY NAME SELECT * FROM {found})"  # noqa: S608 - names are quoted


def _reports_view(lake: _Lake) -> str:
    told = (report.path(run.report[0]) for run in lake.workspace.runs.latest(1_000_000) if run.report)
    # A full disk may have kept one from being written.
    files = [path for path in told if lake.workspace.storage.stat(path)]
    columns = list(REPORT_COLUMNS.items())
    spec = ", ".join(f"{_text(name)}: {_text(kind)}" for name, kind in columns if name != "day")
    typed = ", ".join(f"CAST(NULL AS {kind}) AS {_name(name)}" for name, kind in columns)
    if not files:
        return f"SELECT {typed} WHERE false"
    names = lake.texts(files)
    order = ", ".join(_name(name) for name, _ in columns)
    return (
        f"SELECT {order} FROM (SELECT *, regexp_extract(filename, '/day=([0-9-]+)/', 1) AS day FROM "  # noqa: S608
        f"read_json([{names}], format='newline_delimited', columns={{{spec}}}, filename=true, hive_partitioning=false))"
    )


def _quarantine_view(lake: _Lake) -> str:
    files = lake.workspace.ledger.quarantine_files()
    names = lake.texts(path for path, _, _ in files)
    columns = ", ".join(QUARANTINE_SCHEMA.names)
    if not files:
        kinds = {"string": "VARCHAR", "int64": "BIGINT", "binary": "BLOB"}
        typed = ", ".join(f"CAST(NULL AS {kinds[str(f.type)]}) AS {f.name}" for f in QUARANTINE_SCHEMA)
        return f"SELECT NULL::VARCHAR AS source_id, NULL::VARCHAR AS run_id, {typed} WHERE false"
    return (
        f"SELECT source AS source_id, run_id, {columns} FROM "  # noqa: S608
        f"read_parquet([{names}], hive_partitioning=true, hive_types={{source: VARCHAR, run_id: VARCHAR}})"
    )


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
