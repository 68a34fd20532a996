"""A table, seen closely: its columns, since when and from whom, what is in them, and what did not fit."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import sqlalchemy as sa

from eventlake.catalog.base import CatalogTable, SchemaEvent
from eventlake.catalog.embedded import TABLES
from eventlake.control.connections import Connection
from eventlake.control.ledger import LakeFile
from eventlake.errors import EventLakeError, InvalidSettingsError, NotFoundError
from eventlake.query.answer import query
from eventlake.query.views import Only, newest_files
from eventlake.reading import exact_json
from eventlake.reading.exact_json import NotJsonError, rescued_in
from eventlake.schema import rescue
from eventlake.schema.kinds import by_kind
from eventlake.schema.names import RESCUED_COLUMN
from eventlake.schema.types import ColumnType
from eventlake.workspace import Lake

SAMPLED_FILES = 20
SAMPLED_ROWS = 20_000
SECONDS = 10.0
_MEMORY = "1GB"
_COLUMNS_AT_ONCE = 300
_SHOWN = 60  # characters of a value
_RUNS_LOOKED_AT = 5  # for who sent a column first
_LIBRARY = ("context_library_name", "context_library_version")


class Opened(NamedTuple):
    """A table with its history and the connection whose it is."""

    lake: Lake
    table: CatalogTable
    connection: Connection
    history: list[SchemaEvent]

    @property
    def name(self) -> str:
        return f"{self.table.database}.{self.table.name}"

    @property
    def quoted(self) -> str:
        return f"{_quoted(self.table.database)}.{_quoted(self.table.name)}"


class Values(NamedTuple):
    """What the newest rows have in a column."""

    filled: float  # share of rows
    examples: list[str]


class Looked(NamedTuple):
    rows: int  # that were looked at
    columns: dict[str, Values]


class Misfits(NamedTuple):
    """Values of a column that are in `_rescued_data`, among the newest rows that have any."""

    column: str
    reason: str
    values: int
    examples: list[str]


class Preview(NamedTuple):
    """What another type would do to a column."""

    rescued: int  # values that did not fit so far, among those that were looked at
    would_fit: int  # of those
    values: int  # cells that were looked at
    would_not: int  # of those


def opened(lake: Lake, name: str) -> Opened:
    """The table that is called `<database>.<table>`."""
    database, _, table = name.partition(".")
    here = sa.and_(TABLES.c.lake == lake.name, TABLES.c.database == database, TABLES.c.name == table)
    with lake.workspace.engine.connect() as connection:
        source_id = connection.execute(sa.select(TABLES.c.source_id).where(here)).scalar()
    for one in lake.catalog.tables(source_id) if source_id is not None else ():
        if (one.database, one.name) == (database, table):
            owner = lake.workspace.connections.of_table(lake.name, one.source_id)
            return Opened(lake, one, owner, lake.catalog.history(database, table))
    raise NotFoundError(f"there is no table {name!r}", fix="see the list of tables")


def values(found: Opened) -> Looked:
    """How full columns are and what is in them, by the newest rows."""
    names = [column.name for column in found.table.schema.columns][:_COLUMNS_AT_ONCE]
    if not names:
        return Looked(0, {})
    parts = ["count(*) AS n"]
    for number, name in enumerate(names):
        cell = f"left({_quoted(name)}::VARCHAR, {_SHOWN})"
        parts += [f"count({_quoted(name)}) AS c{number}", f"list(DISTINCT {cell})[:3] AS e{number}"]
    rows = f"(SELECT * FROM {found.quoted} LIMIT {SAMPLED_ROWS})"  # noqa: S608 - names are quoted
    (row,) = _ask(found.lake, f"SELECT {', '.join(parts)} FROM {rows}", newest_files(SAMPLED_FILES))  # noqa: S608
    count = row["n"]
    return Looked(
        count,
        {
            name: Values(
                row[f"c{number}"] / count if count else 0.0, [text for text in row[f"e{number}"] or () if text]
            )
            for number, name in enumerate(names)
        },
    )


def senders(found: Opened) -> dict[str, str]:
    """Which library sent a column first, by the rows of the run that added it: column → name and version."""
    if not set(_LIBRARY) <= set(found.table.schema.names):
        return {}
    added: dict[str, list[str]] = {}
    for event in found.history:
        if event.change == "added":
            added.setdefault(event.run_id, []).append(event.column)
    known: dict[str, str] = {}
    library = f"concat_ws(' ', {_LIBRARY[0]}, {_LIBRARY[1]})"
    for run_id in sorted(added, reverse=True)[:_RUNS_LOOKED_AT]:
        names = [name for name in added[run_id] if name in found.table.schema.names][:_COLUMNS_AT_ONCE]
        parts = [
            f"arg_min({library}, received_at) FILTER ({_quoted(name)} IS NOT NULL) AS s{number}"
            for number, name in enumerate(names)
        ]
        if parts:
            sql = f"SELECT {', '.join(parts)} FROM {found.quoted}"  # noqa: S608
            (row,) = _ask(found.lake, sql, _of_run(run_id))
            known |= {name: row[f"s{number}"] for number, name in enumerate(names) if row[f"s{number}"]}
    return known


def misfits(found: Opened) -> list[Misfits]:
    """What did not fit, by column and reason, most first."""
    counts: Counter[tuple[str, str]] = Counter()
    examples: dict[tuple[str, str], list[str]] = {}
    column_of = {column.pointer: column.name for column in found.table.schema.columns}
    for entry in _rescued(found):
        key = (entry.column or column_of.get(entry.pointer) or entry.pointer, entry.reason)
        counts[key] += 1
        shown = examples.setdefault(key, [])
        if len(shown) < 3 and entry.json_text[:_SHOWN] not in shown:
            shown.append(entry.json_text[:_SHOWN])
    return [Misfits(*key, number, examples[key]) for key, number in counts.most_common()]


def preview(found: Opened, column: str, new_type: str) -> Preview:
    """What a retype would bring in, and what it would leave without a cell."""
    kind = ColumnType.named(new_type)
    known = {one.name: one for one in found.table.schema.columns}
    if kind is None or kind not in found.connection.settings.declarations.types or column not in known:
        raise InvalidSettingsError(f"{column} cannot be {new_type}", fix="choose a column and a type of this table")
    pointer = known[column].pointer
    rescued = [one.json_text for one in _rescued(found) if column == one.column or pointer == one.pointer]
    sql = f"SELECT {_quoted(column)} AS v FROM {found.quoted} WHERE {_quoted(column)} IS NOT NULL LIMIT {SAMPLED_ROWS}"  # noqa: S608
    cells = [_json(row["v"]) for row in _ask(found.lake, sql, newest_files(SAMPLED_FILES))]
    would_fit, still_fit = _fitting(found, kind, rescued), _fitting(found, kind, cells)
    return Preview(len(rescued), would_fit, len(cells), len(cells) - still_fit)


def _fitting(found: Opened, kind: ColumnType, texts: list[str]) -> int:
    """How many of some values, given as JSON, get a cell."""
    casts = found.connection.dialect.casts
    cells = [casts.cast(typed, kind).values for typed in by_kind([_parsed(text) for text in texts])]
    return sum(len(one) - one.null_count for one in cells)


def _parsed(text: str) -> Any:
    try:
        value = exact_json.parse(f'{{"v":{text}}}'.encode()).value
    except NotJsonError:
        return text
    found = value.get("v") if isinstance(value, dict) else None
    return exact_json.encode(found) if isinstance(found, list | dict) else found


def _json(value: Any) -> str:
    """A cell as JSON, as it may have been sent."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return exact_json.json_text(str(value)) if isinstance(value, str) or not isinstance(value, int) else str(value)


def _rescued(found: Opened) -> Iterable[rescue.Rescued]:
    if RESCUED_COLUMN not in found.table.schema.names:
        return
    sql = f"SELECT {RESCUED_COLUMN} AS r FROM {found.quoted} WHERE {RESCUED_COLUMN} IS NOT NULL LIMIT {SAMPLED_ROWS}"  # noqa: S608
    for row in _ask(found.lake, sql, newest_files(10 * SAMPLED_FILES)):
        yield from rescued_in(row["r"])


def _of_run(run_id: str) -> Only:
    def chosen(files: list[LakeFile]) -> list[LakeFile]:
        return [file for file in files if file.run_id == run_id][:SAMPLED_FILES]

    return chosen


def _ask(lake: Lake, sql: str, only: Only) -> list[dict[str, Any]]:
    return list(query(lake, sql, timeout=SECONDS, memory=_MEMORY, only=only).to_pylist())


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def safely(look: Callable[[Opened], Any], found: Opened) -> tuple[Any, str | None]:
    """What a look gives, or why it gives nothing: a page is shown either way."""
    try:
        return look(found), None
    except EventLakeError as error:
        return None, error.problem
