"""What writing all tables of a connection anew with another setting would change, before anybody begins it."""

from typing import NamedTuple

from eventlake.control.connections import Connection
from eventlake.errors import InvalidSettingsError
from eventlake.lake.segment import SegmentDialect
from eventlake.status import replay_size
from eventlake.status.listing import ListedTable, listed
from eventlake.status.replay_size import Size
from eventlake.timetable import SECOND
from eventlake.workspace import Workspace

_RUNS = 50  # the latest, of which the largest tells how fast this connection is loaded
_TELLING = 100_000  # lines, from which on most of a run is not the start of Spark
_PER_LINE = 30e-6  # seconds, where no run was that large


class Rebuild(NamedTuple):
    """What is read and written; and of what people or programs may rely on, what is before and after, if it changes."""

    read: Size
    tables: int
    bytes: int  # of their files, which are written anew
    seconds: float | None  # about; None if nothing was loaded yet by which to tell
    names: list[tuple[str, str]]
    may_be_renamed: bool  # tables whose new names the events will tell
    has_new_tables: bool  # for track calls: types are found anew, also where people had set them
    keys: tuple[str, str] | None  # partition columns
    folders: tuple[str, str] | None  # where rows lie that are received now


def rebuild(workspace: Workspace, connection: Connection, key: str, value: str) -> Rebuild:
    """Raises InvalidSettingsError for a setting that no table depends on, or whose value is wrong or as it is."""
    wanted = workspace.connections.preview(connection.full_name, {key: value})
    if key not in connection.settings.fixed_once_loaded:
        raise InvalidSettingsError(f"no table depends on {key}", fix="save it with the other settings")
    if wanted.settings == connection.settings:
        raise InvalidSettingsError("that is how it is: nothing would change", fix="give another value")
    tables = listed(workspace.engine, lake=connection.lake, source_id=connection.source.id, limit=None).tables
    is_of_keys = key in connection.settings.of_table_keys
    keys = {one.table_key: _key_then(connection, wanted, one.table_key) for one in tables}
    read = replay_size.size(workspace, connection, None, None)
    names = [(one.full_name, f"{wanted.database}.{wanted.dialect.table_name(keys[one.table_key])}") for one in tables]
    before, after = connection.dialect.date_partition.keys, wanted.dialect.date_partition.keys
    return Rebuild(
        read,
        len(tables),
        sum(one.bytes for one in tables),
        _seconds(workspace, connection, read.lines),
        [(old, new) for old, new in names if old != new],
        may_be_renamed=is_of_keys and not isinstance(connection.dialect, SegmentDialect),
        has_new_tables=any(old != new for old, new in keys.items()),
        keys=(", ".join(before), ", ".join(after)) if before != after else None,
        folders=_folders(workspace, connection, wanted, tables, keys),
    )


def _key_then(connection: Connection, wanted: Connection, table_key: str) -> str:
    """The key of a table that will have the rows of this one, as far as it can be told without the events."""
    now, then = connection.dialect, wanted.dialect
    if not (isinstance(now, SegmentDialect) and isinstance(then, SegmentDialect)):
        return table_key
    event = now.event_of(table_key)
    return table_key if event is None else then.event_table(event)


def _folders(
    workspace: Workspace, connection: Connection, wanted: Connection, tables: list[ListedTable], keys: dict[str, str]
) -> tuple[str, str] | None:
    """Those of the first table that moves."""
    now = workspace.clock.now()
    for one in tables:
        before, after = _folder(connection, one.table_key, now), _folder(wanted, keys[one.table_key], now)
        if before != after:
            return before, after
    return None


def _folder(connection: Connection, table_key: str, now: int) -> str:
    dates = connection.dialect.date_partition
    return f"{connection.dialect.location(table_key)}/{dates.folder(now // dates.width)}"


def _seconds(workspace: Workspace, connection: Connection, lines: int) -> float | None:
    """As long as the largest run of late, and for each line more as long as one of its own."""
    history = workspace.lake(connection.lake).runs
    runs = history.lines(_RUNS, connection.source.id, status="finished", kinds=("sync", "replay", "rebuild"))
    largest = max(runs, key=lambda run: run.lines or 0, default=None)
    if largest is None or not largest.lines or largest.finished_at is None:
        return None
    took = (largest.finished_at - largest.started_at) / SECOND
    per_line = took / largest.lines if largest.lines >= _TELLING else _PER_LINE
    return max(1.0, took + max(0, lines - largest.lines) * per_line)
