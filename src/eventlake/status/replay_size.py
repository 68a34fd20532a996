"""How much a replay would read, before anybody begins it."""

from typing import NamedTuple

import sqlalchemy as sa

from eventlake.control import database as db
from eventlake.control.connections import Connection
from eventlake.sync import jobs
from eventlake.workspace import Workspace


class Size(NamedTuple):
    raw_files: int
    bytes: int
    lines: int


def size(workspace: Workspace, connection: Connection, start: int | None, stop: int | None) -> Size:
    """The raw files whose events can lie in a period: whole partitions are written again."""
    scope = jobs.replay(connection, start, stop).scope
    table = db.raw_files.c
    here = [table.lake == connection.lake, table.source_id == connection.source.id]
    if scope is not None:
        here += [table.first_received < scope.stop, table.last_received >= scope.start]
    sums = [sa.func.count(), sa.func.sum(table.size), sa.func.sum(table.lines)]
    with workspace.engine.connect() as connected:
        row = connected.execute(sa.select(*sums).where(*here)).one()
    return Size(*(int(value or 0) for value in row))
