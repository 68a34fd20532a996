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


def register(session: Any, lake: str, tables: Sequence[SparkTable]) -> None:
    """Make tables in the session's catalog, in place of those that were made so before."""
    before = session.conf.get(_BY_PATHS)
    session.conf.set(_BY_PATHS, "false")
    try:
        for table in tables:
            _register(session, lake, table)
    finally:
        session.conf.set(_BY_PATHS, before)


def _register(session: Any, lake: str, table: SparkTable) -> None:
    name = f"{_quoted(table.database)}.{_quoted(table.name)}"
    session.sql(f"CREATE DATABASE IF NOT EXISTS {_quoted(table.database)}")
    if session.catalog.tableExists(name):
        properties = {row.key: row.value for row in session.sql(f"SHOW TBLPROPERTIES {name}").collect()}
        if properties.get(_OURS) != lake:
            of = f"of the lake {properties[_OURS]!r}" if _OURS in properties else "not of a lake"
            raise InvalidSettingsError(
                f"this Spark has a table {name} that is {of}", fix="drop or rename it there, or use another session"
            )
        session.sql(f"DROP TABLE {name}")
    columns = [*table.columns, *((key, "string") for key in table.partition_keys)]
    path = f"{_literal(table.location)}/{{{','.join(map(_literal, table.files))}}}"
    session.sql(
        f"CREATE TABLE {name} ({', '.join(f'{_quoted(column)} {kind}' for column, kind in columns)}) USING parquet "
        f"OPTIONS (path {_text(path)}, basePath {_text(table.location)}) "
        f"PARTITIONED BY ({', '.join(map(_quoted, table.partition_keys))}) "
        f"TBLPROPERTIES ({_text(_OURS)} = {_text(lake)})"
    )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _text(value: str) -> str:
    """A text as Spark's SQL writes it."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _literal(path: str) -> str:
    """A path in which no character is a pattern."""
    return re.sub(r"([\\*?{}\[\],])", r"\\\1", path)
