"""Tables of a lake in somebody's Spark session: native Parquet tables over exactly the files that are named.

A folder would also show files that a commit has moved there and the ledger does not know yet. So a table is made over a
pattern that names its files one by one; columns that a file lacks are null, and partitions come from the folders.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from eventlake.errors import InvalidSettingsError

_OURS = "eventlake.lake"
_BY_PATHS = "spark.sql.hive.manageFilesourcePartitions"  # if it is on, Spark asks its catalog for partitions, not paths


class SparkTable(NamedTuple):
    database: str
    name: str
    location: str  # the folder that has the date folders
    files: Sequence[str]  # below it
    columns: Sequence[tuple[str, str]]  # names and types, as Spark writes them
    partition_keys: Sequence[str]


class SparkView(NamedTuple):
    database: str
    name: str
    select: str


def register(session: Any, lake: str, tables: Sequence[SparkTable], views: Sequence[SparkView]) -> list[str]:
    """Make tables and views in the session's catalog, in place of those that were made so before; their names.

    What was made before and is no more in the lake goes: its files are gone, or will be.
    """
    _drop_what_is_no_more(session, lake, tables, views)
    before = session.conf.get(_BY_PATHS)
    session.conf.set(_BY_PATHS, "false")
    try:
        for table in tables:
            _make_table(session, lake, table)
    finally:
        session.conf.set(_BY_PATHS, before)
    for view in views:
        name = _cleared(session, lake, view, "VIEW")
        session.sql(f"CREATE VIEW {name} TBLPROPERTIES ({_text(_OURS)} = {_text(lake)}) AS {view.select}")
    return [f"{database}.{name}" for database, name, *_ in (*tables, *views)]


def _drop_what_is_no_more(session: Any, lake: str, tables: Sequence[SparkTable], views: Sequence[SparkView]) -> None:
    known = f"{_OURS}.{lake}.databases"
    wanted = {*((table.database, table.name) for table in tables), *((view.database, view.name) for view in views)}
    databases = {database for database, _ in wanted}
    for database in sorted(databases | set(filter(None, session.conf.get(known, "").split(",")))):
        if not session.catalog.databaseExists(database):
            continue
        for table in session.catalog.listTables(database):
            name = f"{_quoted(database)}.{_quoted(table.name)}"
            if (database, table.name) not in wanted and _properties(session, name).get(_OURS) == lake:
                session.sql(f"DROP {'VIEW' if table.tableType == 'VIEW' else 'TABLE'} {name}")
    session.conf.set(known, ",".join(sorted(databases)))


def _properties(session: Any, name: str) -> dict[str, str]:
    return {row.key: row.value for row in session.sql(f"SHOW TBLPROPERTIES {name}").collect()}


def _cleared(session: Any, lake: str, one: SparkTable | SparkView, kind: str) -> str:
    """A name under which there is nothing any more, if what was there was of this lake."""
    name = f"{_quoted(one.database)}.{_quoted(one.name)}"
    session.sql(f"CREATE DATABASE IF NOT EXISTS {_quoted(one.database)}")
    if session.catalog.tableExists(name):
        properties = _properties(session, name)
        if properties.get(_OURS) != lake:
            of = f"of the lake {properties[_OURS]!r}" if _OURS in properties else "not of a lake"
            raise InvalidSettingsError(
                f"this Spark has a table {name} that is {of}", fix="drop or rename it there, or use another session"
            )
        session.sql(f"DROP {kind} {name}")
    return name


def _make_table(session: Any, lake: str, table: SparkTable) -> None:
    name = _cleared(session, lake, table, "TABLE")
    columns = [*table.columns, *((key, "string") for key in table.partition_keys)]
    path = f"{_literal(table.location)}/{{{','.join(map(_literal, table.files))}}}"
    partitioned = f"PARTITIONED BY ({', '.join(map(_quoted, table.partition_keys))}) " if table.partition_keys else ""
    session.sql(
        f"CREATE TABLE {name} ({', '.join(f'{_quoted(column)} {kind}' for column, kind in columns)}) USING parquet "
        f"OPTIONS (path {_text(path)}, basePath {_text(table.location)}) "
        f"{partitioned}TBLPROPERTIES ({_text(_OURS)} = {_text(lake)})"
    )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _text(value: str) -> str:
    """A text as Spark's SQL writes it."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _literal(path: str) -> str:
    """A path in which no character is a pattern."""
    return re.sub(r"([\\*?{}\[\],])", r"\\\1", path)
