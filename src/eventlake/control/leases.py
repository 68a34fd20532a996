"""Who runs a source, on however many machines: leases in the workspace database.

One sync of a source in a lake at a time, one replay beside it, one commit at a time.

Whoever runs a source holds a lease and renews it as long as it lives. A holder that died or froze loses the lease
when its time is over, or at once if the process was one of this machine and is gone. Each holder gets a number higher
than the last one's. What a run makes the truth is checked against that number in the same transaction, so a holder that
froze for longer than its lease, and wakes up after another took over, cannot change anything any more.
"""

import functools
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import sqlalchemy as sa

from eventlake.control import database as db
from eventlake.errors import BusyError, EventLakeError, LeaseLostError
from eventlake.events import instants

SECONDS = 60.0  # after which a machine that no longer answers counts as dead
COMMIT_PATIENCE = 30.0  # seconds that a sync waits for the commit of a replay
_LOOK_EVERY = 0.1  # seconds
_WAIT = "wait until it ends, or give `--wait SECONDS`; see `eventlake runs`"


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


@functools.cache
def _machine() -> str:
    """The name of this machine, and what sets others with the same name apart: their process numbers are others."""
    space, boot = Path("/proc/self/ns/pid"), Path("/proc/sys/kernel/random/boot_id")
    namespace = space.readlink() if space.is_symlink() else ""
    booted = boot.read_text().strip() if boot.is_file() else f"{uuid.getnode():x}"
    return f"{socket.gethostname()} {namespace} {booted}"


class Lease:
    """A lease that is held, and renewed until the end."""

    def __init__(self, engine: sa.Engine, name: str, fence: int, seconds: float) -> None:
        self._engine = engine
        self._seconds = seconds
        self.name = name
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

    def is_of(self, name: str, fence: int) -> bool:
        return (self.name, self.fence) == (name, fence)

    def release(self) -> None:
        with self._engine.begin() as connection:
            connection.execute(self._mine().values(expires_at=0))

    def _mine(self) -> sa.Update:
        return db.leases.update().where(db.leases.c.name == self.name, db.leases.c.fence == self.fence)


class Lane(Enum):
    """What of a connection is held."""

    SYNC = ""  # by a sync, from its beginning to its end, and by everything else that commits
    REPLAY = "/replay"  # by a replay, which commits nothing before it has the other as well
    COMMIT = "/commit"  # by a replay that waits for a sync to end: no other sync begins meanwhile


class Hold(Protocol):
    """One lease or several."""

    def confirm(self) -> None: ...

    def confirm_in(self, connection: sa.Connection) -> None: ...


class Together(NamedTuple):
    """Leases that a run needs together."""

    leases: tuple[Lease, ...]

    def confirm(self) -> None:
        for lease in self.leases:
            lease.confirm()

    def confirm_in(self, connection: sa.Connection) -> None:
        for lease in self.leases:
            lease.confirm_in(connection)


class Leases:
    """The leases of a lake."""

    def __init__(self, engine: sa.Engine, lake: str, seconds: float = SECONDS) -> None:
        self._engine = engine
        self._lake = lake
        self._seconds = seconds
        self._let_go: set[tuple[str, int]] = set()  # leases of this process that the database could not be told to end

    @contextmanager
    def held(self, source_id: str, lane: Lane = Lane.SYNC) -> Iterator[Lease]:
        """Hold a lane of a source in this lake; raises BusyError that tells who else holds it.

        A sync that meets a replay which is about to commit waits for that, some seconds at most.
        """
        with self._kept(self._for_sync(source_id) if lane is Lane.SYNC else self._taken(source_id, lane)) as lease:
            yield lease

    @contextmanager
    def committing(
        self, source_id: str, replay: Lease, waiting: Callable[[], None] | None = None
    ) -> Iterator[Together]:
        """Let a replay commit: no sync is running, and none begins.

        If one is running, it is waited for, and `waiting` is called meanwhile; without that, BusyError is raised.
        """
        with (
            self._kept(self._patiently(source_id, Lane.COMMIT, waiting)) as commit,
            self._kept(self._patiently(source_id, Lane.SYNC, waiting)) as sync,
        ):
            yield Together((replay, commit, sync))

    def other_holder(self, source_id: str, lane: Lane, mine: Collection[Lease] = ()) -> Holder | None:
        """Who else holds a lane now."""
        name = self._name(source_id, lane)
        with self._engine.connect() as connection:
            now = db.now(connection)
            found = connection.execute(sa.select(db.leases).where(db.leases.c.name == name)).first()
        if found is None or self._is_free(found, now) or any(lease.is_of(name, found.fence) for lease in mine):
            return None
        return Holder(found.host, found.pid)

    def _is_free(self, found: sa.Row[Any], now: int) -> bool:
        """Whether a lease is held no more."""
        is_over = found.expires_at <= now or (found.name, found.fence) in self._let_go
        return is_over or Holder(found.host, found.pid).is_gone

    def _name(self, source_id: str, lane: Lane) -> str:
        return f"{source_id}/{self._lake}{lane.value}"

    def _for_sync(self, source_id: str) -> Lease:
        """The lane of syncs, after a replay that commits."""
        deadline = time.monotonic() + COMMIT_PATIENCE
        while True:
            committing = self.other_holder(source_id, Lane.COMMIT)
            if committing is None:
                try:
                    return self._taken(source_id, Lane.SYNC)
                except BusyError:
                    if not self.other_holder(source_id, Lane.COMMIT):  # it did not come in between
                        raise
            elif time.monotonic() >= deadline:
                raise BusyError(f"a replay of this connection is being committed: {committing}", fix=_WAIT)
            time.sleep(_LOOK_EVERY)

    def _patiently(self, source_id: str, lane: Lane, waiting: Callable[[], None] | None) -> Lease:
        while True:
            try:
                return self._taken(source_id, lane)
            except BusyError:
                if waiting is None:
                    raise
                waiting()
                time.sleep(_LOOK_EVERY)

    @contextmanager
    def _kept(self, lease: Lease) -> Iterator[Lease]:
        ended = threading.Event()
        renewal = threading.Thread(target=self._renew, args=(lease, ended), daemon=True)
        renewal.start()
        try:
            yield lease
        finally:
            ended.set()
            renewal.join()
            try:
                lease.release()
            except EventLakeError:  # it ends by itself, but this process need not wait for that
                self._let_go.add((lease.name, lease.fence))

    def _renew(self, lease: Lease, ended: threading.Event) -> None:
        while not ended.wait(self._seconds / 3):
            with suppress(EventLakeError):  # a database that is away comes back; whether it was in time shows then
                lease.confirm()

    def _taken(self, source_id: str, lane: Lane) -> Lease:
        me, name = Holder.myself(), self._name(source_id, lane)
        while True:
            with self._engine.connect() as connection:
                now = db.now(connection)
                found = connection.execute(sa.select(db.leases).where(db.leases.c.name == name)).first()
            if found and not self._is_free(found, now):
                what = "another run" if lane is Lane.SYNC else "a replay, or what excludes one,"
                raise BusyError(
                    f"{what} of this connection is going on: {Holder(found.host, found.pid)}, since "
                    f"{instants.to_text(found.since)}",
                    fix=_WAIT,
                )
            fence = found.fence if found else 0
            row = {**me._asdict(), "fence": fence + 1, "since": now, "expires_at": now + int(self._seconds * 1_000_000)}
            if self._put(name, fence, found.expires_at if found else 0, row):
                return Lease(self._engine, name, fence + 1, self._seconds)

    def _put(self, name: str, fence: int, expires_at: int, row: dict[str, object]) -> bool:
        """Whether the row is now this one; False if somebody was quicker, perhaps its holder who renewed it."""
        with suppress(sa.exc.IntegrityError), self._engine.begin() as connection:
            if not fence:
                connection.execute(db.leases.insert().values(name=name, **row))
                return True
            leases = db.leases.c
            here = sa.and_(leases.name == name, leases.fence == fence, leases.expires_at == expires_at)
            return connection.execute(db.leases.update().where(here).values(**row)).rowcount == 1
        return False
