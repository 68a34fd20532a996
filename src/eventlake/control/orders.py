"""What people asked for in the console or over the HTTP API, to be carried out by a scheduler, wherever one runs.

An order is carried out by one scheduler at a time. One whose scheduler died is carried out again: whatever can be
ordered may be done twice without harm.
"""

import uuid
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import sqlalchemy as sa

from eventlake.control import database as db
from eventlake.control import service_tables as tables
from eventlake.errors import CancelledError, EventLakeError, NotFoundError
from eventlake.timetable import SECOND

ALIVE = 60 * SECOND  # after which a scheduler that does not say otherwise counts as dead
_KEPT = 90 * 24 * 3600 * SECOND


class Order(NamedTuple):
    id: str
    lake: str
    source_id: str
    kind: str  # sync, replay, retype, rebuild
    arguments: dict[str, Any]
    asked_by: str
    asked_at: int
    status: str  # waiting, running, done, failed, cancelled
    taken_by: str | None  # which scheduler carries it out
    alive_at: int | None
    finished_at: int | None
    run_id: str | None  # the last that it led to
    problem: str | None
    fix: str | None
    stop_asked: bool


class Orders:
    def __init__(self, engine: sa.Engine, now: Callable[[], int]) -> None:
        self._engine = engine
        self._now = now

    def place(self, lake: str, source_id: str, kind: str, arguments: dict[str, Any], asked_by: str) -> Order:
        """Ask for something. What is asked for and not begun yet is not asked for twice."""
        for one in self.open(source_id, lake):
            if (one.kind, one.arguments, one.status) == (kind, arguments, "waiting") and not one.stop_asked:
                return one
        order = Order(
            *(uuid.uuid4().hex, lake, source_id, kind, arguments, asked_by, self._now(), "waiting"),
            *(None, None, None, None, None, None, False),
        )
        with self._engine.begin() as connection:
            ended = sa.and_(tables.orders.c.finished_at.is_not(None), tables.orders.c.finished_at < self._now() - _KEPT)
            connection.execute(tables.orders.delete().where(ended))
            connection.execute(tables.orders.insert().values(order._asdict()))
        return order

    def get(self, order_id: str) -> Order:
        found = self._select(tables.orders.c.id == order_id)
        if not found:
            raise NotFoundError(f"there is no order {order_id!r}", fix="see the list of orders")
        return found[0]

    def open(self, source_id: str | None = None, lake: str | None = None) -> list[Order]:
        """Those that are not ended, oldest first."""
        wanted = [tables.orders.c.source_id == source_id] if source_id else []
        wanted += [tables.orders.c.lake == lake] if lake else []
        return self._select(tables.orders.c.status.in_(("waiting", "running")), *wanted)

    def failed(self, since: int) -> list[Order]:
        """Those that failed since then, oldest first."""
        table = tables.orders.c
        return self._select(table.status == "failed", table.finished_at >= since)

    def latest(self, limit: int = 100) -> list[Order]:
        """Newest first."""
        query = sa.select(tables.orders).order_by(tables.orders.c.asked_at.desc()).limit(limit)
        with self._engine.connect() as connection:
            return [Order(**row._mapping) for row in connection.execute(query)]

    def to_do(self) -> list[Order]:
        """Those that wait, and those whose scheduler is not heard of any more; oldest first."""
        with self._engine.connect() as connection:
            now = db.now(connection)
        left = [
            one
            for one in self.open()
            if one.status == "waiting" or (one.alive_at is not None and one.alive_at < now - ALIVE)
        ]
        for one in left:
            if one.stop_asked:  # nobody wants it any more, and nobody is at it
                self._end(one, "cancelled")
        return [one for one in left if not one.stop_asked]

    def take(self, order: Order, by: str) -> bool:
        """Begin to carry out an order; False if another was quicker, or if nobody wants it any more."""
        table = tables.orders.c
        last = table.alive_at.is_(None) if order.alive_at is None else table.alive_at == order.alive_at
        as_it_was = sa.and_(table.id == order.id, table.status == order.status, last, sa.not_(table.stop_asked))
        with self._engine.begin() as connection:
            values = {"status": "running", "taken_by": by, "alive_at": db.now(connection)}
            return connection.execute(tables.orders.update().where(as_it_was).values(values)).rowcount == 1

    def still_alive(self, order_ids: Collection[str], by: str) -> set[str]:
        """Say that these are still being carried out; those of them that somebody wants to stop."""
        if not order_ids:
            return set()
        mine = sa.and_(tables.orders.c.id.in_(order_ids), tables.orders.c.taken_by == by)
        with self._engine.begin() as connection:
            connection.execute(tables.orders.update().where(mine).values(alive_at=db.now(connection)))
            stopped = connection.execute(sa.select(tables.orders.c.id).where(mine, tables.orders.c.stop_asked))
            return set(stopped.scalars())

    def give_back(self, order_id: str, by: str) -> None:
        """Let an order wait that cannot be carried out now."""
        self._update(order_id, by, status="waiting", alive_at=None, taken_by=None)

    def ended(self, order_id: str, by: str, *, run_id: str | None = None, error: EventLakeError | None = None) -> None:
        status = "done" if error is None else "cancelled" if error.code == CancelledError.code else "failed"
        self._update(
            order_id,
            by,
            status=status,
            finished_at=self._now(),
            run_id=run_id,
            problem=error.problem if error else None,
            fix=error.fix if error else None,
        )

    def ask_to_stop(self, order_id: str) -> Order:
        """Stop what was ordered: at once if it has not begun, else as soon as it can be."""
        order = self.get(order_id)
        with self._engine.begin() as connection:
            here = tables.orders.c.id == order_id
            connection.execute(tables.orders.update().where(here).values(stop_asked=True))
            waiting = sa.and_(here, tables.orders.c.status == "waiting")
            ended = {"status": "cancelled", "finished_at": self._now()}
            connection.execute(tables.orders.update().where(waiting).values(ended))
        return order._replace(stop_asked=True)

    def _update(self, order_id: str, by: str, **values: Any) -> None:
        """Of an order that a scheduler still has: another may have taken it over."""
        mine = sa.and_(tables.orders.c.id == order_id, tables.orders.c.taken_by == by)
        with self._engine.begin() as connection:
            connection.execute(tables.orders.update().where(mine).values(**values))

    def _end(self, order: Order, status: str) -> None:
        here = sa.and_(tables.orders.c.id == order.id, tables.orders.c.status == order.status)
        with self._engine.begin() as connection:
            values = {"status": status, "finished_at": self._now()}
            connection.execute(tables.orders.update().where(here).values(values))

    def _select(self, *conditions: sa.ColumnElement[bool]) -> list[Order]:
        query = sa.select(tables.orders).where(*conditions).order_by(tables.orders.c.asked_at, tables.orders.c.id)
        with self._engine.connect() as connection:
            return [Order(**row._mapping) for row in connection.execute(query)]
