"""What writing all tables of a connection anew with another setting would change, before anybody begins it."""

from typing import NamedTuple

from eventlake.control.connections import Connection
from eventlake.errors import InvalidSettingsError
from eventlake.status import replay_size
from eventlake.status.listing import ListedTable, listed
from eventlake.status.replay_size import Size
from eventlake.timetable import SECOND
from eventlake.workspace import Workspace

_RUNS = 50  # the latest, of which the largest tells how fast this connection is loaded


class Rebuild(NamedTuple):
    """What is read and written; and of what people or programs may rely on, what is before and after, if it changes."""

    read: Size
    tables: int
    bytes: int  # of their files, which are written anew
    seconds: float | None  # about; None if nothing was loaded yet by which to tell
    names: list[tuple[str, str]]
    keys: tuple[str, str] | None  # partition columns
    folders: tuple[str, str] | None  # where rows lie that are received now


def rebuild(workspace: Workspace, connection: Connection, settings: dict[str, str]) -> Rebuild:
    """Raises InvalidSettingsError for settings that are wrong, or that are as they are."""
    wanted = workspace.connections.preview(connection.full_name, settings)
    if wanted.settings == connection.settings:
        raise InvalidSettingsError("that is how it is: nothing would change", fix="give another value")
    tables = listed(workspace.engine, lake=connection.lake, source_id=connection.source.id, limit=None).tables
    read = replay_size.size(workspace, connection, None, None)
    names = [(one.full_name, f"{wanted.dialect.database}.{wanted.dialect.table_name(one.table_key)}") for one in tables]
    before, after = connection.dialect.date_partition.keys, wanted.dialect.date_partition.keys
    return Rebuild(
        read,
        len(tables),
        sum(one.bytes for one in tables),
        _seconds(workspace, connection, read.lines),
        [(old, new) for old, new in names if old != new],
        (", ".join(before), ", ".join(after)) if before != after else None,
        _folders(workspace, connection, wanted, tables),
    )


def _folders(
    workspace: Workspace, connection: Connection, wanted: Connection, tables: list[ListedTable]
) -> tuple[str, str] | None:
    if not tables:
        return None
    before, after = (_folder(one, tables[0].table_key, workspace.clock.now()) for one in (connection, wanted))
    return (before, after) if before != after else None


def _folder(connection: Connection, table_key: str, now: int) -> str:
    dates = connection.dialect.date_partition
    return f"{connection.dialect.location(table_key)}/{dates.folder(now // dates.width)}"


def _seconds(workspace: Workspace, connection: Connection, lines: int) -> float | None:
    """As long as these lines take, if they take as long as those of the largest run of late."""
    history = workspace.lake(connection.lake).runs
    runs = history.lines(_RUNS, connection.source.id, status="finished", kinds=("sync", "replay", "rebuild"))
    largest = max(runs, key=lambda run: run.lines or 0, default=None)
    if largest is None or not largest.lines or largest.finished_at is None:
        return None
    return max(1.0, (largest.finished_at - largest.started_at) / SECOND * max(1.0, lines / largest.lines))
