"""Tables as lists show them: with how much is in them, a page at a time, whatever the number of tables and columns."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from eventlake.catalog.embedded import COLUMNS, TABLES
from eventlake.control.database import data_files

Rows = Sequence[sa.Row[Any]]


class ListedTable(NamedTuple):
    lake: str
    database: str
    name: str
    source_id: str
    table_key: str
    created_at: int
    columns: int
    files: int
    rows: int
    bytes: int
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
    text: str = "",
    limit: int = 100,
    offset: int = 0,
) -> TablePage:
    """Tables in order of their names: all, or those of a lake or source, or with a text in their names."""
    wanted = [TABLES.c.lake == lake] if lake else []
    wanted += [TABLES.c.source_id == source_id] if source_id else []
    wanted += [(TABLES.c.database + "." + TABLES.c.name).contains(text.lower(), autoescape=True)] if text else []
    query = sa.select(TABLES).where(*wanted).order_by(TABLES.c.database, TABLES.c.name, TABLES.c.lake)
    with engine.connect() as connection:
        count = connection.execute(sa.select(sa.func.count()).select_from(TABLES).where(*wanted)).scalar_one()
        rows = connection.execute(query.limit(limit).offset(offset)).all()
        columns = _count_columns(connection, rows)
        sums = _sum_files(connection, rows)
    return TablePage(
        [
            ListedTable(
                *(row.lake, row.database, row.name, row.source_id, row.table_key, row.created_at),
                columns.get((row.lake, row.database, row.name), 0),
                *sums.get((row.lake, row.source_id, row.table_key), (0, 0, 0, None)),
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


def _count_columns(connection: sa.Connection, rows: Rows) -> dict[tuple[str, str, str], int]:
    table = COLUMNS.c
    names = {(row.lake, row.database, row.name) for row in rows}
    query = sa.select(table.lake, table.database, table.table, sa.func.count()).where(
        table.lake.in_({lake for lake, _, _ in names}),
        table.database.in_({database for _, database, _ in names}),
        table.table.in_({name for _, _, name in names}),
    )
    found = connection.execute(query.group_by(table.lake, table.database, table.table))
    return {(row[0], row[1], row[2]): int(row[3]) for row in found}


def _sum_files(connection: sa.Connection, rows: Rows) -> dict[tuple[str, str, str], tuple[int, int, int, int | None]]:
    table = data_files.c
    names = {(row.lake, row.source_id, row.table_key) for row in rows}
    sums = [sa.func.count(), sa.func.sum(table.rows), sa.func.sum(table.size), sa.func.max(table.last_received)]
    query = sa.select(table.lake, table.source_id, table.table_key, *sums).where(
        table.source_id.in_({source_id for _, source_id, _ in names}),
        table.lake.in_({lake for lake, _, _ in names}),
        table.table_key.in_({key for _, _, key in names}),
    )
    found = connection.execute(query.group_by(table.lake, table.source_id, table.table_key))
    return {(row[0], row[1], row[2]): (int(row[3]), int(row[4]), int(row[5]), row[6]) for row in found}
