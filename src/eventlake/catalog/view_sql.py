"""Views in the SQL of the engines that show them. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

from eventlake.catalog.warehouse import Cell, Part, View
from eventlake.schema.types import ColumnType


class Engine(NamedTuple):
    """What engines write differently."""

    quote: str
    row: str  # makes one value of several
    types: Mapping[ColumnType, str]

    def name(self, text: str) -> str:
        return self.quote + text.replace(self.quote, 2 * self.quote) + self.quote


_COMMON = {
    ColumnType.BIGINT: "bigint",
    ColumnType.BOOLEAN: "boolean",
    ColumnType.DECIMAL: "decimal(38,6)",
    ColumnType.TIMESTAMP: "timestamp",
}
ATHENA = Engine('"', "row", {**_COMMON, ColumnType.STRING: "varchar"})
DUCKDB = Engine('"', "row", {**ATHENA.types, ColumnType.TIMESTAMP: "timestamptz", ColumnType.DOUBLE: "double"})
SPARK = Engine("`", "struct", {**_COMMON, ColumnType.STRING: "string"})


def select(view: View, engine: Engine) -> str:
    """The query that gives the rows of a view."""
    if view.latest_of:
        return _latest(view, engine)
    return " UNION ALL ".join(_rows(view, part, engine) for part in view.parts)


def _rows(view: View, part: Part, engine: Engine) -> str:
    cells = [f"{_cell(view, part, name, engine)} AS {engine.name(name)}" for name in view.columns]
    return f"SELECT {', '.join(cells)} FROM {_table(part, engine)}"  # noqa: S608 - names are quoted


def _cell(view: View, part: Part, name: str, engine: Engine) -> str:
    cell, kind = part.cells.get(name, Cell()), engine.types[view.columns[name]]
    if cell.text is not None:
        return "'" + cell.text.replace("'", "''") + "'"  # of letters, digits and underscores: a name of a table
    if cell.column is None:
        return f"CAST(NULL AS {kind})"
    known = {column.name: column.type for column in part.table.schema.columns}
    column = engine.name(cell.column)
    same = known.get(cell.column, ColumnType.STRING) is view.columns[name]
    return column if same else f"CAST({column} AS {kind})"


def _latest(view: View, engine: Engine) -> str:
    """As rows that are written over: of each column the last value that there was."""
    (part,) = view.parts
    subject = engine.name(view.latest_of)
    order = f"{engine.row}({engine.name('received_at')}, {engine.name('message_id')})"
    cells = []
    for name in view.columns:
        column = engine.name(part.cells[name].column or "")
        last = f"max_by({column}, {order}) FILTER (WHERE {column} IS NOT NULL)"
        cells.append(f"{column if column == subject else last} AS {engine.name(name)}")
    return (
        f"SELECT {', '.join(cells)} FROM {_table(part, engine)} "  # noqa: S608
        f"WHERE {subject} IS NOT NULL GROUP BY {subject}"
    )


def _table(part: Part, engine: Engine) -> str:
    return f"{engine.name(part.table.database)}.{engine.name(part.table.name)}"
