"""Which parts of eventlake are running, on all machines that share the database."""

import os
import socket
from typing import NamedTuple

import sqlalchemy as sa

from eventlake.control import database as db
from eventlake.timetable import SECOND

ALIVE = 60 * SECOND  # after which a part that does not say otherwise counts as gone


class Part(NamedTuple):
    kind: str  # scheduler, console, collector
    host: str
    pid: int
    since: int


class Presence:
    """Kept beside the leases: they are as short-lived, and as little of the lake's truth."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def here(self, kind: str) -> None:
        """Say that this process is such a part; every few seconds, as long as it is."""
        name = f"part/{kind}/{socket.gethostname()}/{os.getpid()}"
        with self._engine.begin() as connection:
            now = db.now(connection)
            old = sa.and_(db.leases.c.name.like("part/%"), db.leases.c.expires_at < now)
            connection.execute(db.leases.delete().where(old))
            known = db.leases.update().where(db.leases.c.name == name).values(expires_at=now + ALIVE)
            if connection.execute(known).rowcount == 0:
                row = {"host": socket.gethostname(), "pid": os.getpid(), "since": now, "expires_at": now + ALIVE}
                connection.execute(db.leases.insert().values(name=name, fence=0, **row))

    def gone(self, kind: str) -> None:
        name = f"part/{kind}/{socket.gethostname()}/{os.getpid()}"
        with self._engine.begin() as connection:
            connection.execute(db.leases.delete().where(db.leases.c.name == name))

    def parts(self) -> list[Part]:
        with self._engine.connect() as connection:
            now = db.now(connection)
            alive = sa.and_(db.leases.c.name.like("part/%"), db.leases.c.expires_at >= now)
            rows = connection.execute(sa.select(db.leases).where(alive).order_by(db.leases.c.name)).all()
        return [Part(row.name.split("/")[1], row.host, row.pid, row.since) for row in rows]
