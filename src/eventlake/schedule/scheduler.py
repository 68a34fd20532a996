"""Begins the syncs that are due and what people ordered, a few at a time, until it is told to stop.

Several may run, on as many machines: whether a sync is still due is looked at again when its connection is held, and an
order is taken by one of them.
"""

import threading
import time
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import NamedTuple

from eventlake.archive import annexes
from eventlake.archive import layout as archive
from eventlake.collector.backlog import Backlog
from eventlake.collector.options import Spool
from eventlake.control.connections import Connection
from eventlake.control.due import due_since
from eventlake.control.leases import Lane, Leases
from eventlake.control.orders import Order
from eventlake.control.run_lines import RunLine
from eventlake.errors import (
    BusyError,
    CancelledError,
    EventLakeError,
    GivenUpError,
    InternalError,
    NotDueError,
    of_system,
)
from eventlake.library import Report, Workspace
from eventlake.runners.base import Progress
from eventlake.schedule.ordered import carried_out
from eventlake.timetable import SECOND

TICK = 1.0  # seconds
_FIRST_DATA_EVERY = 15 * SECOND  # how often a new connection is looked at for its first events
_AGAIN_AFTER = 10 * SECOND  # for what cannot be begun now
_ALIVE_EVERY = 5 * SECOND
_LOOK_EVERY = 0.1  # seconds, at the end
GRACE = 30.0  # seconds that runs have to end, when the scheduler is told to stop

Tell = Callable[[str], None]
Key = tuple[str, str, str]
"""Source id, lake, and what is done there: `sync`, anything else that has a lane of its own, or one order."""


class _Going(NamedTuple):
    what: str
    stop: threading.Event
    order_id: str | None


class Scheduler:
    """`parallel` runs go on at a time, so one that is slow or fails does not hold up the others."""

    def __init__(self, workspace: Workspace, *, parallel: int = 2, tell: Tell = lambda _text: None) -> None:
        self._workspace = workspace
        self._tell = tell
        self._parallel = parallel
        self._me = uuid.uuid4().hex
        self._threads = ThreadPoolExecutor(parallel, "run")
        self._going: dict[Key, _Going] = {}
        self._lock = threading.Lock()
        self._not_before: dict[Key, int] = {}  # when something is looked at again that cannot be begun now
        self._said: dict[str, str] = {}  # the last trouble with each connection: it is told once
        self._alive_at = 0
        self._closing = threading.Event()

    def run(self, stop: threading.Event, *, grace: float = GRACE) -> None:
        """Go on until `stop` is set; then let runs end, and give up those that take too long."""
        try:
            while not stop.wait(TICK):
                try:
                    self.tick()
                    self._say_once("", "")
                except Exception as error:  # whatever it is: a database that is away comes back
                    self._say_once("", f"cannot look for what is due: {_words(error)}; trying again")
        finally:
            self.close(grace)

    def close(self, grace: float = GRACE) -> None:
        """Begin nothing more. A run that is given up has published nothing, and is made up for by the next start."""
        self._closing.set()
        self._threads.shutdown(wait=False, cancel_futures=True)
        deadline = time.monotonic() + grace
        if going := self._now_going():
            self._tell(f"waiting for {len(going)} to end: {', '.join(one.what for one in going)}")
        while going := self._now_going():
            if time.monotonic() >= deadline:
                for one in going:
                    one.stop.set()
            with suppress(EventLakeError):
                self._say_alive()
            time.sleep(_LOOK_EVERY)
        with suppress(EventLakeError):
            self._workspace.presence.gone("scheduler")

    def _now_going(self) -> list[_Going]:
        with self._lock:
            return list(self._going.values())

    def tick(self) -> None:
        """Look once at what is to be done."""
        now = self._workspace.clock.now()
        self._say_alive()
        connections = {(one.source.id, one.lake): one for one in self._workspace.connections.all()}
        for order in self._workspace.orders.to_do():
            if self._has_room:
                self._begin_order(order, connections.get((order.source_id, order.lake)), now)
        if self._has_room:
            for connection, since in self._due(connections.values(), now):
                if self._has_room:
                    self._begin_sync(connection, since)

    @property
    def _has_room(self) -> bool:
        return len(self._now_going()) < self._parallel

    def _say_alive(self) -> None:
        now = self._workspace.clock.now()
        if 0 <= now - self._alive_at < _ALIVE_EVERY:
            return
        self._alive_at = now
        self._workspace.presence.here("scheduler")
        going = {one.order_id: one for one in self._now_going() if one.order_id}
        for order_id in self._workspace.orders.still_alive(going.keys(), self._me):
            going[order_id].stop.set()

    def _put_off(self, key: Key, pause: int = _AGAIN_AFTER) -> None:
        self._not_before[key] = self._workspace.clock.now() + pause

    def _say_once(self, about: str, words: str) -> None:
        if words and self._said.get(about) != words:
            self._tell(words)
        self._said[about] = words

    # Syncs that are due

    def _due(self, connections: Iterable[Connection], now: int) -> list[tuple[Connection, int]]:
        """Whose sync is due, and since when; the one that has waited longest first, so that each has its turn."""
        last, found = self._workspace.runs.last_of_each(), []
        for connection in connections:
            key = (connection.source.id, connection.lake, "sync")
            if not connection.enabled or self._is_going(key) or now < self._not_before.get(key, 0):
                continue
            try:
                since = self._due_since(connection, last.get(key[:2]), now)
                if since is not None and self._is_held(connection):  # the collector would be asked for events in vain
                    since = None
                    self._put_off(key)
            except EventLakeError as error:  # of this one: the others go on
                since = None
                self._put_off(key)
                self._say_once(connection.name, f"{connection.name}: {error.problem}")
            if since is not None:
                found.append((connection, since))
        return sorted(found, key=lambda one: one[1])

    def _begin_sync(self, connection: Connection, since: int) -> None:
        key = (connection.source.id, connection.lake, "sync")
        self._begin(key, connection.name, None, lambda stop: self._sync(connection, since, stop))

    def _due_since(self, connection: Connection, last: RunLine | None, now: int) -> int | None:
        source_id = connection.source.id
        if last is None:
            self._put_off((source_id, connection.lake, "sync"), _FIRST_DATA_EVERY)
        return due_since(
            connection.settings.timetable,
            now,
            last,
            failures=self._workspace.runs.failures_until(last) + 1 if last and last.status == "failed" else 0,
            is_going_on=last is None or last.status != "running" or self._is_held(connection),
            has_data=lambda: self._has_data(source_id),
        )

    def _is_held(self, connection: Connection) -> bool:
        lake = self._workspace.lakes.get(connection.lake)  # which cannot be used if its settings are wrong
        leases = lake.leases if lake else Leases(self._workspace.engine, connection.lake)
        return leases.other_holder(connection.source.id, Lane.SYNC) is not None

    def _has_data(self, source_id: str) -> bool:
        with suppress(EventLakeError):
            if next(archive.raw_files(self._workspace.archive, source_id), None) is not None:
                return True
            if annexes.notes(self._workspace.archive, source_id):
                return True
        with suppress(OSError):
            return source_id in Backlog(Spool(self._workspace.folder).logs).look()
        return False

    def _sync(self, connection: Connection, since: int, stop: threading.Event) -> None:
        try:
            self._told(self._workspace.sync_due(connection, since, progress=self._heeding(stop)))
            self._say_once(connection.name, "")
        except NotDueError:
            return  # somebody else was quicker
        except Exception as error:
            # Most failures are runs, from which the next look sees when to try again. Of the others nothing is left.
            self._put_off((connection.source.id, connection.lake, "sync"))
            if not isinstance(error, BusyError | CancelledError):
                self._say_once(connection.name, f"{connection.name}: {_words(error)}")

    def _heeding(self, stop: threading.Event) -> Progress:
        """Progress that ends a run, before its commit, when somebody wants that or when the scheduler must end."""

        def heed(_step: str, _done: int, _tasks: int) -> None:
            if stop.is_set() and self._closing.is_set():
                raise GivenUpError(
                    "the scheduler had to end", fix="nothing is to be done: the next start makes up for it"
                )
            if stop.is_set():
                raise CancelledError(
                    "somebody asked this run to stop", fix="nothing was published; sync again any time"
                )

        return heed

    # Orders

    def _begin_order(self, order: Order, connection: Connection | None, now: int) -> None:
        key = (order.source_id, order.lake, "sync" if order.kind == "sync" else "order")
        if self._is_going(key) or now < self._not_before.get((*key[:2], order.id), 0):
            return
        if connection is not None and order.kind == "sync" and self._is_held(connection):
            self._put_off((*key[:2], order.id))
            return
        if not self._workspace.orders.take(order, self._me):
            return
        if connection is None:
            gone = InternalError("its connection is not there any more", fix="connect the source again, then repeat it")
            self._workspace.orders.ended(order.id, self._me, error=gone)
            return
        self._begin(
            key, f"{order.kind} of {connection.name}", order.id, lambda s: self._carry_out(order, connection, s)
        )

    def _carry_out(self, order: Order, connection: Connection, stop: threading.Event) -> None:
        orders = self._workspace.orders
        try:
            reports = carried_out(self._workspace, order, connection, self._heeding(stop))
        except (BusyError, GivenUpError):
            self._put_off((order.source_id, order.lake, order.id))
            orders.give_back(order.id, self._me)
        except Exception as error:
            shown = (
                error
                if isinstance(error, EventLakeError)
                else InternalError(_words(error), fix="see what is said there")
            )
            orders.ended(order.id, self._me, run_id=shown.run_id, error=shown)
            if not isinstance(error, CancelledError):
                self._tell(f"{connection.name}: {_words(error)}")
        else:
            orders.ended(order.id, self._me, run_id=reports[-1].run_id if reports else None)
            self._told(reports)

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


def _words(error: Exception) -> str:
    """What happened; of an error that nobody foresaw, also its kind."""
    if isinstance(error, OSError):
        error = of_system(error)
    return error.problem if isinstance(error, EventLakeError) else f"{type(error).__name__}: {error}"
