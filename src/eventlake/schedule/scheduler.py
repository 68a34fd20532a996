"""Begins the syncs that are due and what people ordered, a few at a time, until it is told to stop.

Several may run, on as many machines: whether a sync is still due is looked at again when its connection is held, and an
order is taken by one of them.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple

from eventlake.archive import layout as archive
from eventlake.collector.backlog import Backlog
from eventlake.collector.options import Spool
from eventlake.control.connections import Connection
from eventlake.control.leases import Lane
from eventlake.control.orders import Order
from eventlake.control.run_lines import RunLine
from eventlake.errors import BusyError, CancelledError, EventLakeError, InternalError, NotDueError
from eventlake.library import Report, Workspace
from eventlake.schedule.due import due_since
from eventlake.timetable import SECOND

TICK = 1.0  # seconds
_FIRST_DATA_EVERY = 15 * SECOND  # how often a new connection is looked at for its first events
_ALIVE_EVERY = 5 * SECOND
GRACE = 30.0  # seconds that runs have to end, when the scheduler is told to stop

Tell = Callable[[str], None]
Key = tuple[str, str, str]
"""Source id, lake, and what is done there: `sync`, or anything else that has a lane of its own."""


class _Going(NamedTuple):
    what: str
    stop: threading.Event
    order_id: str | None


class Scheduler:
    """`parallel` runs go on at a time, so one that is slow or fails does not hold up the others."""

    def __init__(self, place: Workspace, *, parallel: int = 2, tell: Tell = lambda _text: None) -> None:
        self._place = place
        self._tell = tell
        self._parallel = parallel
        self._threads = ThreadPoolExecutor(parallel, "run")
        self._going: dict[Key, _Going] = {}
        self._lock = threading.Lock()
        self._not_before: dict[tuple[str, str], int] = {}  # when a connection without a run is looked at again
        self._alive_at = 0

    def run(self, stop: threading.Event, *, grace: float = GRACE) -> None:
        """Go on until `stop` is set; then let runs end, and give up those that take too long."""
        problem = None
        while not stop.wait(TICK):
            try:
                self.tick()
                problem = None
            except EventLakeError as error:  # a database that is away comes back
                if error.problem != problem:
                    self._tell(f"cannot look for what is due: {error.problem}; trying again")
                problem = error.problem
        self.close(grace)

    def close(self, grace: float = GRACE) -> None:
        """Begin nothing more. A run that is given up has published nothing, and is made up for by the next."""
        with self._lock:
            going = list(self._going.values())
        if going:
            self._tell(f"waiting for {len(going)} to end: {', '.join(one.what for one in going)}")
        impatient = threading.Timer(grace, _give_up, [going])
        impatient.start()
        self._threads.shutdown(wait=True, cancel_futures=True)
        impatient.cancel()
        with suppress(EventLakeError):
            self._place.presence.gone("scheduler")

    def tick(self) -> None:
        """Look once at what is to be done."""
        now = self._place.clock.now()
        if now - self._alive_at >= _ALIVE_EVERY or now < self._alive_at:
            self._alive_at = now
            self._say_alive()
        connections = {(one.source.id, one.lake): one for one in self._place.connections.all()}
        for order in self._place.orders.to_do():
            if self._has_room:
                self._begin_order(order, connections.get((order.source_id, order.lake)))
        for connection in connections.values():
            if self._has_room and connection.enabled:
                self._begin_if_due(connection, now)

    @property
    def _has_room(self) -> bool:
        with self._lock:
            return len(self._going) < self._parallel

    def _say_alive(self) -> None:
        self._place.presence.here("scheduler")
        with self._lock:
            going = {one.order_id: one for one in self._going.values() if one.order_id}
        for order_id in self._place.orders.still_alive(going.keys()):
            going[order_id].stop.set()

    # Syncs that are due

    def _begin_if_due(self, connection: Connection, now: int) -> None:
        key = (connection.source.id, connection.lake)
        if self._is_going((*key, "sync")) or now < self._not_before.get(key, 0):
            return
        since = self._due_since(connection, now)
        if since is not None:
            self._begin((*key, "sync"), connection.name, None, lambda stop: self._sync(connection, since, stop))

    def _due_since(self, connection: Connection, now: int) -> int | None:
        runs, source_id = self._place.runs, connection.source.id
        last = runs.last_sync(source_id, connection.lake)
        if last is None:
            self._not_before[source_id, connection.lake] = now + _FIRST_DATA_EVERY
        else:
            self._not_before.pop((source_id, connection.lake), None)
        return due_since(
            connection.settings.timetable,
            now,
            last,
            failures=runs.failures_until(last) + 1 if last and last.status == "failed" else 0,
            is_going_on=last is None or last.status != "running" or self._is_held(connection),
            has_data=lambda: self._has_data(source_id),
        )

    def _is_held(self, connection: Connection) -> bool:
        leases = self._place.lake(connection.lake).leases
        return leases.other_holder(connection.source.id, Lane.SYNC) is not None

    def _has_data(self, source_id: str) -> bool:
        with suppress(EventLakeError):
            if next(archive.raw_files(self._place.archive, source_id), None) is not None:
                return True
        with suppress(OSError):
            return source_id in Backlog(Spool(self._place.folder).logs).look()
        return False

    def _sync(self, connection: Connection, since: int, stop: threading.Event) -> None:
        try:
            self._told(self._place.sync_due(connection, since, cancel=stop))
        except (BusyError, NotDueError):
            return  # somebody else is at it, or was quicker
        except EventLakeError as error:
            self._tell(f"{connection.name}: {error.problem}")

    # Orders

    def _begin_order(self, order: Order, connection: Connection | None) -> None:
        lane = "sync" if order.kind == "sync" else "order"
        key = (order.source_id, order.lake, lane)
        if self._is_going(key) or not self._place.orders.take(order):
            return
        if connection is None:
            gone = InternalError("its connection is not there any more", fix="connect the source again, then repeat it")
            self._place.orders.ended(order.id, error=gone)
            return
        self._begin(
            key, f"{order.kind} of {connection.name}", order.id, lambda s: self._carry_out(order, connection, s)
        )

    def _carry_out(self, order: Order, connection: Connection, stop: threading.Event) -> None:
        orders = self._place.orders
        try:
            reports = _ordered(self._place, order, connection, stop)
        except BusyError:
            orders.give_back(order)
        except EventLakeError as error:
            last = self._last_run(connection)
            orders.ended(order.id, run_id=last.run_id if last else None, error=error)
            if not isinstance(error, CancelledError):
                self._tell(f"{connection.name}: {error.problem}")
        else:
            orders.ended(order.id, run_id=reports[-1].run_id if reports else None)
            self._told(reports)

    def _last_run(self, connection: Connection) -> RunLine | None:
        return next(iter(self._place.lake(connection.lake).runs.lines(1, connection.source.id)), None)

    # Both

    def _is_going(self, key: Key) -> bool:
        with self._lock:
            return key in self._going

    def _begin(self, key: Key, what: str, order_id: str | None, work: Callable[[threading.Event], None]) -> None:
        stop = threading.Event()
        with self._lock:
            self._going[key] = _Going(what, stop, order_id)

        def ended(future: Future[None]) -> None:
            with self._lock:
                self._going.pop(key, None)
            if not future.cancelled() and (error := future.exception()) is not None:  # a mistake of ours
                self._tell(f"{what} met a mistake of eventlake: {type(error).__name__}: {error}")

        self._threads.submit(work, stop).add_done_callback(ended)

    def _told(self, reports: list[Report]) -> None:
        for report in reports:
            if report.rows or report.notices != ["No data found"]:
                self._tell(f"{report.connection}: {report.kind} finished, {report.rows:,} rows loaded")


def _give_up(going: list[_Going]) -> None:
    for one in going:
        one.stop.set()


def _ordered(place: Workspace, order: Order, connection: Connection, stop: threading.Event) -> list[Report]:
    """Do what was ordered."""
    given: dict[str, Any] = order.arguments
    name = connection.full_name
    match order.kind:
        case "sync":
            return place.sync(name, cancel=stop)
        case "replay":
            start, to = (_moment(given.get(bound)) for bound in ("from", "to"))
            return place.replay(name, start, to, given.get("events") or (), cancel=stop)
        case "resume":
            return place.resume_replay(name, cancel=stop)
        case "rebuild":
            return [place.rebuild(name, given["settings"], cancel=stop)]
        case "retype":
            report = place.retype(given["table"], given["column"], given["type"], lake=order.lake, cancel=stop)
            return [report] if report else []
        case other:
            raise InternalError(f"nobody knows how to {other}", fix="run the newest version of eventlake everywhere")


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else datetime.fromtimestamp(micros / SECOND, UTC)
