"""The tables of Segment's warehouses as views over those of a lake. Pure: what they are, whoever shows them.

A lake has all of an event, with the names of its containers (`properties_total`), a table for each type of event, and
every identify call. A warehouse has `total`; all track calls once more in `tracks`; and the last state of each user in
`users`. People who come from one have queries for that.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from eventlake.catalog.base import CatalogTable
from eventlake.lake.segment import PLURALS, SegmentDialect
from eventlake.schema.types import ColumnType

# By call: the part of the event that has no prefix in a warehouse, where a table is called by the plural of its call.
BARE = {
    **dict.fromkeys(("identify", "group", "alias"), "traits_"),
    **dict.fromkeys(("page", "screen", "track"), "properties_"),
}
# By view: the call whose last state it has, and of whom.
STATES = {"users": ("identify", "user_id"), "accounts": ("group", "group_id")}
# Columns of the lake that have another name in a warehouse.
RENAMED = {"message_id": "id", "event": "event_text"}
# Columns that warehouses have of the event itself: of all calls, and of some. Nothing else may have the names of the
# first; a property or trait with one of the others is left out only where a call has both.
ENVELOPE = (
    *("id", "anonymous_id", "user_id", "event", "event_text"),
    *("received_at", "sent_at", "timestamp", "original_timestamp"),
)
FURTHER = {
    "page": ("name", "category"),
    "screen": ("name", "category"),
    "group": ("group_id",),
    "alias": ("previous_id",),
}


class Cell(NamedTuple):
    """Where the values of a view's column come from: a column of the table, a text, or nowhere."""

    column: str | None = None
    text: str | None = None


class Part(NamedTuple):
    """The rows of one table."""

    table: CatalogTable
    cells: dict[str, Cell]  # by column of the view; null where there is none


class View(NamedTuple):
    name: str
    columns: dict[str, ColumnType]
    parts: tuple[Part, ...]
    latest_of: str = ""  # a column of the table: a row for each of its values, with the last value of all others


def views(tables: Sequence[CatalogTable], dialect: SegmentDialect) -> list[View]:
    """The views over the tables of one source, in order of their names."""
    by_call = {table.table_key: table for table in tables if dialect.event_of(table.table_key) is None}
    events = [table for table in tables if table.table_key not in by_call]
    found = [_of_call(call, table) for call, table in by_call.items()]
    for name, (call, subject) in STATES.items():
        if call in by_call and subject in by_call[call].schema.names:
            found.append(_state(name, by_call[call], subject))
    if events:
        found.append(_tracks(events, dialect))
    taken = {*(view.name for view in found), *PLURALS.values(), *STATES}
    for table in sorted(events, key=lambda table: (dialect.event_of(table.table_key) in taken, table.table_key)):
        name = dialect.event_of(table.table_key) or ""
        part = _whole(table, "track", name)
        while name in taken:  # an event called "Tracks" does not replace the table of all tracks
            name = f"track_{name}"
        taken.add(name)
        found.append(_view(name, (part,)))
    return sorted(found)


def _of_call(call: str, table: CatalogTable) -> View:
    return _view(PLURALS[call], (_whole(table, call),))


def _state(name: str, table: CatalogTable, subject: str) -> View:
    """The last state of each user or account, who is its id."""
    cells = _common(table, table.table_key)
    cells.pop("anonymous_id", None)
    whole = {**cells, "id": Cell(subject), **_own(table, table.table_key, cells)}
    return _view(name, (Part(table, whole),))._replace(latest_of=subject)


def _tracks(tables: Sequence[CatalogTable], dialect: SegmentDialect) -> View:
    """All tracks, with what they have in common."""
    parts = []
    for table in tables:
        cells = _common(table, "track", dialect.event_of(table.table_key))
        parts.append(Part(table, cells | _partitions(table, cells)))
    return _view(PLURALS["track"], tuple(parts))


def _whole(table: CatalogTable, call: str, event: str | None = None) -> Part:
    cells = _common(table, call, event)
    cells |= _own(table, call, cells)
    return Part(table, cells | _partitions(table, cells))


def _common(table: CatalogTable, call: str, event: str | None = None) -> dict[str, Cell]:
    """What all tables of a warehouse have."""
    told = {} if event is None else {"event": Cell(text=event)}  # there, what the event's table is called
    known = (*ENVELOPE, *FURTHER.get(call, ()))
    for column in table.schema.columns:
        name = RENAMED.get(column.name, column.name)
        if name in known or name.startswith("context_"):
            told[name] = Cell(column.name)
    return told


def _own(table: CatalogTable, call: str, taken: Collection[str]) -> dict[str, Cell]:
    """Properties or traits, by their own names."""
    prefix = BARE[call]
    names = {
        column.name.removeprefix(prefix): column.name
        for column in table.schema.columns
        if column.name.startswith(prefix)
    }
    return {name: Cell(column) for name, column in names.items() if name not in taken and name not in ENVELOPE}


def _partitions(table: CatalogTable, taken: Collection[str]) -> dict[str, Cell]:
    """For those who filter by them: reading a day is cheaper than looking for it."""
    return {key: Cell(key) for key in table.partition_keys if key not in taken}


def _view(name: str, parts: tuple[Part, ...]) -> View:
    columns: dict[str, ColumnType] = {}
    for part in parts:
        for column, kind in _types(part):
            known = columns.get(column)
            columns[column] = kind if known in (None, kind) else _wider(known, kind)
    return View(name, columns, parts)


def _types(part: Part) -> Iterator[tuple[str, ColumnType]]:
    known = {column.name: column.type for column in part.table.schema.columns}
    for name, cell in part.cells.items():
        yield name, known.get(cell.column or "", ColumnType.STRING)


def _wider(one: ColumnType | None, other: ColumnType) -> ColumnType:
    numbers = {ColumnType.BIGINT, ColumnType.DECIMAL}
    return ColumnType.DECIMAL if {one, other} <= numbers else ColumnType.STRING
