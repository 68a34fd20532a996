"""Taking over tables that somebody else made: their columns and types are what a connection's tables begin with.

A lake of Segment's or RudderStack's own making is described by its tables in Glue or in a Hive metastore, or by its
Parquet files. From then on files are written beside theirs, columns are appended, and no type changes. Nothing of
theirs is moved or deleted, and `eventlake query` shows only what eventlake has loaded.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from eventlake.catalog.base import CatalogTable, TableChange
from eventlake.commit.manifest import Manifest, Noted
from eventlake.control.connections import Connection
from eventlake.control.ledger import Entry
from eventlake.errors import InvalidSettingsError, NotFoundError
from eventlake.lake import discards
from eventlake.reports import report
from eventlake.reports.words import count
from eventlake.schema.evolve import Column
from eventlake.schema.names import RESCUED_COLUMN
from eventlake.schema.types import ColumnType
from eventlake.sync.books import Books
from eventlake.sync.state import LakeState
from eventlake.sync.work import Work
from eventlake.tasks.scope import Mode
from eventlake.workspace import Lake

FILES_LOOKED_AT = 1000  # of a table, the newest: their columns only grow


def tables_to_adopt(lake: Lake, connection: Connection) -> tuple[TableChange, ...]:
    """The tables that are where a connection would make its own."""
    if lake.ledger.has_data(connection.source.id):
        raise InvalidSettingsError(
            f"{connection.name} has tables of its own already",
            fix="adopt before the first sync: what was loaded since then has its own types",
        )
    catalog = lake.shown_in
    found = catalog.described(connection.database) if catalog else _in_folders(lake, connection)
    changes = tuple(_changes(connection, found))
    if not changes:
        place = (
            f"the database {connection.database} of {catalog.title}"
            if catalog
            else lake.storage.full(connection.dialect.data_folder)
        )
        raise NotFoundError(
            f"there is no table in {place} that {connection.name} would write to",
            fix=f"see the settings of {connection.name}: `eventlake connection list --json`",
        )
    return changes


def _in_folders(lake: Lake, connection: Connection) -> dict[str, tuple[tuple[str, ...], dict[str, str]]]:
    """The tables that files tell of: by location, their partition keys and the types of their columns."""
    dialect = connection.dialect
    found = {}
    for folder in lake.storage.folders(dialect.data_folder):
        location = f"{dialect.data_folder}/{folder}"
        files = [file.path for file in lake.storage.files(location) if file.path.endswith(".parquet")]
        columns: dict[str, str] = {}
        for path in files[-FILES_LOOKED_AT:]:
            with lake.storage.open_input(path) as source:
                columns |= {field.name: _type_name(field.type) for field in pq.read_schema(source)}
        if files:
            inner = files[-1].removeprefix(f"{location}/").split("/")[:-1]
            is_alike = _shape(inner) == _shape(dialect.date_partition.folder(0).split("/"))
            keys = dialect.date_partition.keys if is_alike else tuple(_shape(inner))
            found[location] = (keys, columns)
    return found


def _shape(folders: Sequence[str]) -> list[str]:
    """Folders by time, by their keys, or by what they are like where they have none."""
    return [part.partition("=")[0] if "=" in part else re.sub(r"\d", "0", part) for part in folders]


def _type_name(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind):
        return "bigint"
    if pa.types.is_floating(kind):
        return "double"
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_timestamp(kind):
        return "timestamp"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "string"
    return "decimal(38,6)" if kind == ColumnType.DECIMAL.arrow else str(kind)


def _changes(
    connection: Connection, found: Mapping[str, tuple[tuple[str, ...], dict[str, str]]]
) -> Iterator[TableChange]:
    dialect = connection.dialect
    for location, (keys, columns) in sorted(found.items()):
        table_key = dialect.key_at(location)
        if table_key is None or not _is_wanted(connection, table_key):
            continue
        name = f"{dialect.database}.{dialect.table_name(table_key)}"
        if keys != dialect.date_partition.keys:
            raise InvalidSettingsError(
                f"{name} is laid out by {'/'.join(keys) or 'no keys'}, and {connection.name} by "
                f"{connection.settings.layout}",
                fix=f"`eventlake connection set {connection.name} {connection.settings.names_layout}=…`; or let the "
                f"connection do without this table: {leaving_out(connection, table_key)}",
            )
        is_of_values = table_key == dialect.discards
        known = list(discards.COLUMNS) if is_of_values else _typed(connection, table_key, name, columns)
        yield TableChange(
            database=dialect.database,
            table=dialect.table_name(table_key),
            source_id=connection.source.id,
            table_key=table_key,
            location=location,
            partition_keys=keys,
            added=tuple(known),
            adopted=True,
        )


def _is_wanted(connection: Connection, table_key: str) -> bool:
    return table_key == connection.dialect.discards or connection.settings.selection.has_table(table_key)


def leaving_out(connection: Connection, *parts: str) -> str:
    """The command by which tables or columns are left out as well."""
    selected = ",".join([*filter(None, [connection.settings.select]), *(f"-{part}" for part in parts)])
    return f"`eventlake connection set {connection.name} select={selected.replace(' ', '')}`"


def _typed(connection: Connection, table_key: str, table: str, columns: Mapping[str, str]) -> list[Column]:
    allowed = {kind.value: kind for kind in connection.settings.declarations.types}
    named = {name: "string" if kind.startswith("varchar") else kind for name, kind in columns.items()}
    foreign = {name: kind for name, kind in named.items() if kind not in allowed and name != RESCUED_COLUMN}
    named = {name: kind for name, kind in named.items() if name not in foreign}
    has_column = connection.settings.selection.has_column
    foreign = {name: kind for name, kind in foreign.items() if has_column(table_key, name)}
    if foreign:
        some = ", ".join(f"{name} ({kind})" for name, kind in sorted(foreign.items())[:5])
        raise InvalidSettingsError(
            f"{table} has columns of types that the dialect {connection.settings.dialect_name} does not write: {some}",
            fix="let the connection do without those columns, "
            + leaving_out(connection, *(f"{table_key}:{name}" for name in sorted(foreign)))
            + ", give them one of the types "
            + ", ".join(allowed)
            + ", or choose another database",
        )
    rules = connection.dialect.columns(table_key)
    for name in (rules.message_column, "received_at"):
        if name in named and allowed[named[name]] is not rules.fixed[name]:
            raise InvalidSettingsError(
                f"{table}.{name} is {named[name]}, and must be {rules.fixed[name].value}: rows are known by it",
                fix="choose another database",
            )
    return [Column(name, allowed[kind], "") for name, kind in named.items() if name != RESCUED_COLUMN]


def taken_over(lake: Lake, table: CatalogTable) -> frozenset[str]:
    """The columns of a table that its makers' files have: no type of theirs can change, and the table cannot go."""
    adoptions = lake.runs.adoptions(table.source_id)
    events = lake.catalog.history(table.database, table.name) if adoptions else []
    return frozenset(event.column for event in events if event.run_id in adoptions)


def refuse_moved(work: Work, state: LakeState) -> None:
    """Tables that were taken over stay where their makers' files are, or get another name."""
    dialect, layout = work.job.connection.dialect, work.job.connection.settings.names_layout
    for table in state.tables.values() if work.job.mode is Mode.REBUILD else ():
        is_same = (table.database, table.name) == (dialect.database, dialect.table_name(table.table_key))
        place = (dialect.location(table.table_key), dialect.date_partition.keys)
        if is_same and place != (table.location, table.partition_keys) and taken_over(work.lake, table):
            raise InvalidSettingsError(
                f"{table.database}.{table.name} was taken over, and the files that were there would not be found in "
                "another layout",
                fix=f"keep {layout} as it is, or give the tables another database as well",
            )


def manifest_of_adoption(work: Work, state: LakeState, tables: Sequence[TableChange], head: report.RunHead) -> Manifest:
    """All that taking tables over does to the lake."""
    finish_ns = work.lake.clock.now_ns()
    columns = sum(len(table.added) for table in tables)
    extra = {
        "kind": "adopt",
        "books": Books().as_report(),
        "files_read": 0,
        "rescued": 0,
        "data_files": 0,
        "bytes": 0,
        "notices": [f"{count(len(tables), 'table')} with {count(columns, 'column')} taken over"],
    }
    entry = Entry(
        run_id=head.run_id,
        source_id=work.job.connection.source.id,
        at=finish_ns // 1000,
        report=report.finished(head, finish_ns, [], extra),
        base=state.last_run,
    )
    return Manifest(entry, [], list(tables), connection=Noted.of(work.job.connection))
