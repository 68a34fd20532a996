"""Tables as lists show them: with how much is in them, a page at a time, whatever the number of tables and columns."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from eventlake.catalog.embedded import COLUMNS, PARTITIONS, TABLES
from eventlake.control.database import data_files

Rows = Sequence[sa.Row[Any]]

_NAMED_TABLE = re.compile(r'\b(\w+)"?\."?(\w+)')
_NAMED = 1000  # tables that a query names; of more, it is about all of a lake


class ListedTable(NamedTuple):
    lake: str
    database: str
    name: str
    source_id: str
    table_key: str
    location: str
    created_at: int
    columns: int
    partitions: int
    files: int
    rows: int
    bytes: int
    first_received: int | None
    last_received: int | None

    @property
    def full_name(self) -> str:
        return f"{self.database}.{self.name}"


class TablePage(NamedTuple):
    tables: list[ListedTable]
    total: int  # of all that were asked for


class FoundColumn(NamedTuple):
    lake: str
    database: str
    table: str
    name: str
    type: str


def listed(
    engine: sa.Engine,
    *,
    lake: str | None = None,
    source_id: str | None = None,
    name: str | None = None,
    text: str = "",
    limit: int | None = 100,
    offset: int = 0,
) -> TablePage:
    """Tables in order of their names: all, or those of a lake or source, or with a name, or a text in their names.

    How much is in them is asked for all together: a lake may have thousands of tables and a million files.
    """
    wanted = [TABLES.c.lake == lake] if lake else []
    wanted += [TABLES.c.source_id == source_id] if source_id else []
    full_name = TABLES.c.database + "." + TABLES.c.name
    wanted += [full_name == name] if name is not None else []
    wanted += [full_name.contains(text.lower(), autoescape=True)] if text else []
    query = sa.select(TABLES).where(*wanted).order_by(TABLES.c.database, TABLES.c.name, TABLES.c.lake)
    with engine.connect() as connection:
        count = connection.execute(sa.select(sa.func.count()).select_from(TABLES).where(*wanted)).scalar_one()
        rows = connection.execute(query.limit(limit).offset(offset)).all()
        columns = _count(connection, COLUMNS, rows)
        partitions = _count(connection, PARTITIONS, rows)
        sums = _sum_files(connection, rows)
    return TablePage(
        [
            ListedTable(
                *(row.lake, row.database, row.name, row.source_id, row.table_key, row.location, row.created_at),
                columns.get((row.lake, row.database, row.name), 0),
                partitions.get((row.lake, row.database, row.name), 0),
                *sums.get((row.lake, row.source_id, row.table_key), (0, 0, 0, None, None)),
            )
            for row in rows
        ],
        int(count),
    )


def found_columns(engine: sa.Engine, text: str, limit: int = 20) -> list[FoundColumn]:
    """Columns with a text in their names."""
    table = COLUMNS.c
    query = sa.select(table.lake, table.database, table.table, table.name, table.type)
    query = query.where(table.name.contains(text.lower(), autoescape=True)).order_by(table.name, table.table)
    with engine.connect() as connection:
        return [FoundColumn(*row) for row in connection.execute(query.limit(limit))]


def proposed(engine: sa.Engine, lake: str, word: str, sql: str, limit: int = 12) -> list[tuple[str, str]]:
    """What a word of a query may become: tables, and columns of those that the query names; each with what it is.

    Those that begin like the word come first.
    """
    named = [(database.lower(), table.lower()) for database, table in _NAMED_TABLE.findall(sql)][:_NAMED]
    full_name = TABLES.c.database + "." + TABLES.c.name
    begins = sa.case((full_name.startswith(word.lower(), autoescape=True), 0), else_=1)
    tables = sa.select(full_name).where(TABLES.c.lake == lake, full_name.contains(word.lower(), autoescape=True))
    of = COLUMNS.c
    ours = sa.tuple_(of.database, of.table).in_(named)
    columns = sa.select(of.name, sa.func.min(of.type)).where(of.lake == lake, ours).group_by(of.name)
    columns = columns.where(of.name.contains(word.lower(), autoescape=True))
    first = sa.case((of.name.startswith(word.lower(), autoescape=True), 0), else_=1)
    with engine.connect() as connection:
        found = (
            [tuple(row) for row in connection.execute(columns.order_by(first, of.name).limit(limit))] if named else []
        )
        names = connection.scalars(tables.order_by(begins, full_name).limit(limit)).all()
    return [*found, *((name, "table") for name in names)][:limit]


def _count(connection: sa.Connection, of_tables: sa.Table, rows: Rows) -> dict[tuple[str, ...], int]:
    """How many rows a table of the catalog has about each of these tables."""
    key = (of_tables.c.lake, of_tables.c.database, of_tables.c.table)
    wanted = _among(key, {(row.lake, row.database, row.name) for row in rows})
    found = connection.execute(sa.select(*key, sa.func.count()).where(*wanted).group_by(*key))
    return {(row[0], row[1], row[2]): int(row[3]) for row in found}


def _sum_files(connection: sa.Connection, rows: Rows) -> dict[tuple[str, ...], tuple[int, ...]]:
    table = data_files.c
    key = (table.source_id, table.table_key, table.lake)  # in the order of the index that has all of this
    wanted = _among(key, {(row.source_id, row.table_key, row.lake) for row in rows})
    sums = [sa.func.count(), sa.func.sum(table.rows), sa.func.sum(table.size)]
    times = [sa.func.min(table.first_received), sa.func.max(table.last_received)]
    found = connection.execute(sa.select(*key, *sums, *times).where(*wanted).group_by(*key))
    return {(row[2], row[0], row[1]): tuple(map(int, row[3:])) for row in found}


def _among(key: Sequence[sa.ColumnElement[str]], wanted: set[tuple[str, ...]]) -> list[sa.ColumnElement[bool]]:
    """What rows have to meet to be about some tables, or about few others beside."""
    values = [set(of_column) for of_column in zip(*wanted, strict=True)] or [set() for _ in key]
    return [column.in_(some) for column, some in zip(key, values, strict=True) if len(some) <= _NAMED]
