"""What people ask for, as jobs: the names that they use are looked up here, whichever way they ask."""

from collections.abc import Sequence

from eventlake.catalog.base import CatalogTable
from eventlake.control.connections import Connection, Connections
from eventlake.control.leases import Lane
from eventlake.errors import InvalidSettingsError, NotFoundError
from eventlake.events import instants
from eventlake.reports.words import count
from eventlake.schema.names import RESCUED_COLUMN
from eventlake.schema.types import ColumnType
from eventlake.sync import jobs
from eventlake.sync.adopt import leaving_out, tables_to_adopt, taken_over
from eventlake.sync.jobs import Job
from eventlake.workspace import Lake


def table_named(lake: Lake, name: str) -> CatalogTable:
    """The table that is called `<database>.<table>`."""
    for table in lake.catalog.tables():
        if f"{table.database}.{table.name}" == name:
            return table
    raise NotFoundError(f"there is no table {name!r}", fix="see `eventlake tables`")


def syncs(connections: Connections, names: Sequence[str]) -> list[Job]:
    """Load what is new: of these sources or connections, or of all.

    What is disabled is passed over. A name that means nothing else is refused.
    """
    for name in names:
        found = connections.find(name)
        if not any(one.enabled for one in found):
            disabled = " and ".join(one.full_name for one in found)
            raise InvalidSettingsError(
                f"{disabled} {'is' if len(found) == 1 else 'are'} disabled",
                fix=f"`eventlake connection enable {found[0].full_name}`",
            )
    return [jobs.sync(one) for one in connections.meant(names) if one.enabled]


def replay(
    lake: Lake, connection: Connection, start: int | None, stop: int | None, events: Sequence[str] | None = None
) -> Job:
    """Load what was received in [start, stop) again, or only some events or calls of it; None is no bound."""
    if start is not None and stop is not None and start >= stop:
        raise InvalidSettingsError(
            f"the period ends before it begins: from {instants.to_text(start)} to {instants.to_text(stop)}",
            fix="give a later end, which is not included in the period",
        )
    return jobs.replay(connection, start, stop, _tables_of(lake, connection, events) if events else None)


def rest_of_replay(lake: Lake, connection: Connection) -> Job:
    """What is left of a replay that was interrupted."""
    pending = lake.replays.pending(connection.source.id)
    if pending is None:
        raise NotFoundError(
            f"no replay of {connection.name} was interrupted", fix="`eventlake replay` begins one; see its --help"
        )
    keys = frozenset(pending.table_keys) if pending.table_keys is not None else None
    return jobs.replay(connection, pending.start if pending.done else pending.asked_from, pending.asked_to, keys)


def unfinished_replay(lake: Lake, connection: Connection) -> str | None:
    """What to say of a replay that was interrupted; None if there is none, or if it is going on."""
    pending = lake.replays.pending(connection.source.id)
    if pending is None or lake.leases.other_holder(connection.source.id, Lane.REPLAY):
        return None
    return (
        f"a replay was interrupted after {pending.done} of {count(pending.parts, 'part')}; `eventlake replay "
        f"{connection.name} --resume` continues it"
    )


def _tables_of(lake: Lake, connection: Connection, events: Sequence[str]) -> frozenset[str]:
    known = {table.table_key for table in lake.catalog.tables(connection.source.id)}
    wanted: set[str] = set()
    for event in events:
        names = {key for key in known if _is_meant(connection, key, event)}
        names |= connection.dialect.tables_of_call(event) & known
        if not names:
            raise NotFoundError(f"{connection.name} has no table for the event {event!r}", fix="see `eventlake tables`")
        wanted |= names
    return frozenset(wanted)


def _is_meant(connection: Connection, table_key: str, name: str) -> bool:
    """Whether a table is meant by its own name, or by that of an event. An event may ask for a name of its own."""
    dialect = connection.dialect
    table = dialect.table_name(table_key)
    return name in (table_key, table, f"{dialect.database}.{table}") or table_key == dialect.event_table(name)


def retype(lake: Lake, name: str, column: str, new_type: str) -> Job | None:
    """Give a column another type; None if it has that type already."""
    table, kind = table_named(lake, name), ColumnType.named(new_type)
    connection = _owner(lake, table)
    types = connection.settings.declarations.types
    if kind is None or kind not in types:
        raise InvalidSettingsError(
            f"{new_type!r} is not a column type", fix=f"use one of {', '.join(k.value for k in types)}"
        )
    _refuse_discards(connection, table)
    if column not in table.schema.names or column == RESCUED_COLUMN:
        raise NotFoundError(
            f"{name} has no column {column!r} whose type could change",
            fix=f"see `eventlake describe {name}`",
        )
    if column in connection.dialect.columns(table.table_key).always:
        raise InvalidSettingsError(
            f"{column} must keep its type: deduplication and partitions need it", fix="choose another column"
        )
    if _type_of(table, column) is kind:
        return None
    if column in taken_over(lake, table):
        raise InvalidSettingsError(
            f"{name}.{column} was taken over, and the files that were there have it as {_type_of(table, column).value}",
            fix=f"leave its type: values that do not fit are kept in {RESCUED_COLUMN}. Or write all tables of "
            f"{connection.name} into another database: `eventlake replay {connection.name} --all --set "
            f"{connection.settings.names_database}=…`, and change it there",
        )
    return jobs.retype(connection, table.table_key, column, kind)


def _type_of(table: CatalogTable, name: str) -> ColumnType:
    return next(column.type for column in table.schema.columns if column.name == name)


def drop(lake: Lake, name: str) -> Job:
    """Take a table out of the lake, and keep its events out."""
    table = table_named(lake, name)
    connection = _owner(lake, table)
    _refuse_discards(connection, table)
    if taken_over(lake, table):
        raise InvalidSettingsError(
            f"{name} was taken over: files that eventlake did not write belong to it",
            fix=f"keep its events out from now on: {leaving_out(connection, table.table_key)}",
        )
    return jobs.drop(connection, table.table_key)


def _refuse_discards(connection: Connection, table: CatalogTable) -> None:
    if table.table_key == connection.dialect.discards:
        raise InvalidSettingsError(
            f"{table.name} is made from the other tables: it is as they are", fix="name the table that they are from"
        )


def adopt(lake: Lake, connection: Connection) -> Job:
    """Take over the tables that are where a connection would make its own."""
    return jobs.adopt(connection, tables_to_adopt(lake, connection))


def allow(lake: Lake, connection: Connection, names: Sequence[str] | None) -> Job:
    """Let events in that were left out, by names of events or tables; None: all for which there was no room."""
    dropped = {table.table_key for table in lake.admission.dropped(connection.source.id)}
    refused = {table.table_key for table in lake.admission.refused(connection.source.id)}
    named = {_left_out(connection, name, dropped | refused) for name in names or ()}
    wanted = named if names is not None else refused - dropped
    if not wanted:
        raise NotFoundError(f"no table of {connection.name} was refused", fix="see `eventlake drop --list`")
    return jobs.allow(connection, frozenset(wanted), were_loaded=bool(wanted & dropped))


def _left_out(connection: Connection, name: str, left_out: set[str]) -> str:
    """The key of the table that is meant by the name of an event, of a call or of a table."""
    for table_key in sorted(left_out):
        if _is_meant(connection, table_key, name):
            return table_key
    raise NotFoundError(
        f"no table {name!r} of {connection.name} was dropped or refused", fix="see `eventlake drop --list`"
    )


def _owner(lake: Lake, table: CatalogTable) -> Connection:
    return lake.workspace.connections.of_table(lake.name, table.source_id)
