"""One run per source at a time, on however many machines: leases in the workspace database.

Whoever runs a source holds its lease and renews it as long as it lives. A holder that died or froze loses the lease
when its time is over, or at once if the process was one of this machine and is gone. Each holder gets a number higher
than the last one's. What a run makes the truth is checked against that number in the same transaction, so a holder that
froze for longer than its lease, and wakes up after another took over, cannot change anything any more.
"""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import sqlalchemy as sa

from eventlake.control import database as db
from eventlake.errors import BusyError, EventLakeError, LeaseLostError
from eventlake.events import instants

SECONDS = 60.0  # after which a machine that no longer answers counts as dead


class Holder(NamedTuple):
    """The process that holds a lease."""

    host: str
    pid: int

    @classmethod
    def myself(cls) -> "Holder":
        return cls(_machine(), os.getpid())

    @property
    def is_gone(self) -> bool:
        """Whether it was a process of this machine and is no more; False if nobody here can know."""
        if self.host != _machine():
            return False
        try:
            os.kill(self.pid, 0)
        except OSError as error:
            return isinstance(error, ProcessLookupError)  # else it is somebody else's, and lives
        return False

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host.partition(' ')[0]}"


def _machine() -> str:
    """The name of this machine, and what sets containers with the same name apart: their process numbers differ."""
    space = Path("/proc/self/ns/pid")
    return f"{socket.gethostname()} {space.readlink() if space.is_symlink() else ''}".strip()


class Lease:
    """A lease that is held, and renewed until the end."""

    def __init__(self, engine: sa.Engine, name: str, fence: int, seconds: float) -> None:
        self._engine = engine
        self._name = name
        self._seconds = seconds
        self.fence = fence

    def confirm(self) -> None:
        """Raise LeaseLostError unless it is still held."""
        with self._engine.begin() as connection:
            self.confirm_in(connection)

    def confirm_in(self, connection: sa.Connection) -> None:
        """The same as part of a transaction: nobody else gets the lease before that ends."""
        until = db.now(connection) + int(self._seconds * 1_000_000)
        if connection.execute(self._mine().values(expires_at=until)).rowcount != 1:
            raise LeaseLostError(
                "this run stood still for so long that another took its place; it changed nothing since",
                fix="see `eventlake runs` for what the other did, then run it again",
            )

    def release(self) -> None:
        with self._engine.begin() as connection:
            connection.execute(self._mine().values(expires_at=0))

    def _mine(self) -> sa.Update:
        return db.leases.update().where(db.leases.c.name == self._name, db.leases.c.fence == self.fence)


class Leases:
    """The leases of a lake."""

    def __init__(self, engine: sa.Engine, lake: str, seconds: float = SECONDS) -> None:
        self._engine = engine
        self._lake = lake
        self._seconds = seconds

    @contextmanager
    def held(self, source_id: str) -> Iterator[Lease]:
        """Hold a source in this lake; raises BusyError that tells who else holds it."""
        lease = self._taken(f"{source_id}/{self._lake}")
        ended = threading.Event()
        renewal = threading.Thread(target=self._renew, args=(lease, ended), daemon=True)
        renewal.start()
        try:
            yield lease
        finally:
            ended.set()
            renewal.join()
            with suppress(EventLakeError):  # it ends by itself
                lease.release()

    def _renew(self, lease: Lease, ended: threading.Event) -> None:
        while not ended.wait(self._seconds / 3):
            with suppress(EventLakeError):  # a database that is away comes back; whether it was in time shows then
                lease.confirm()

    def _taken(self, name: str) -> Lease:
        me = Holder.myself()
        while True:
            with self._engine.connect() as connection:
                now = db.now(connection)
                found = connection.execute(sa.select(db.leases).where(db.leases.c.name == name)).first()
            if found and found.expires_at > now and not Holder(found.host, found.pid).is_gone:
                raise BusyError(
                    f"another sync or replay of this source is running: {Holder(found.host, found.pid)}, since "
                    f"{instants.to_text(found.since)}",
                    fix="wait until it ends; see `eventlake runs`",
                )
            fence = found.fence if found else 0
            row = {**me._asdict(), "fence": fence + 1, "since": now, "expires_at": now + int(self._seconds * 1_000_000)}
            if self._put(name, fence, row):
                return Lease(self._engine, name, fence + 1, self._seconds)

    def _put(self, name: str, fence: int, row: dict[str, object]) -> bool:
        """Whether the row is now this one; False if somebody was quicker."""
        with suppress(sa.exc.IntegrityError), self._engine.begin() as connection:
            if not fence:
                connection.execute(db.leases.insert().values(name=name, **row))
                return True
            here = sa.and_(db.leases.c.name == name, db.leases.c.fence == fence)
            return connection.execute(db.leases.update().where(here).values(**row)).rowcount == 1
        return False
