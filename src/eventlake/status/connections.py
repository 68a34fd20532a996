"""How each connection is: its last syncs, the next one, and what is going on."""

from typing import NamedTuple

from eventlake.control.connections import Connection
from eventlake.control.orders import Order
from eventlake.control.run_lines import STOPPED, RunLine
from eventlake.schedule.due import next_begin
from eventlake.workspace import Workspace


class ConnectionStatus(NamedTuple):
    connection: Connection
    last: RunLine | None  # the sync that was begun last
    last_finished: RunLine | None
    last_failed: RunLine | None
    failures: int  # in a row, until now
    running: tuple[RunLine, ...]
    orders: tuple[Order, ...]  # that wait or are being carried out
    next_at: int | None

    @property
    def state(self) -> str:
        """In a word."""
        if not self.connection.enabled:
            return "disabled"
        if self.running:
            return "running"
        if self.last is None:
            return "waiting"
        if self.last.error_code in STOPPED:
            return "stopped"
        if self.last.status == "failed":
            return "failed"
        return "partial" if self.last.partial else "well"


def statuses(place: Workspace) -> list[ConnectionStatus]:
    """Of all connections, in the order of their names."""
    last, finished = place.runs.last_of_each(), place.runs.last_of_each(status="finished")
    last_failed, failed = place.runs.last_of_each(status="failed"), place.runs.failures_of_each()
    running, orders = place.runs.lines(None, status="running"), place.orders.open()
    now = place.clock.now()
    found = []
    for connection in place.connections.all():
        key = (connection.source.id, connection.lake)
        newest = last.get(key)
        failures = failed.get(key, 0)
        found.append(
            ConnectionStatus(
                connection,
                newest,
                finished.get(key),
                last_failed.get(key),
                failures,
                tuple(run for run in running if (run.source_id, run.lake) == key),
                tuple(order for order in orders if (order.source_id, order.lake) == key),
                next_begin(connection.settings.timetable, now, newest, failures=failures)
                if connection.enabled
                else None,
            )
        )
    return found


def status_of(place: Workspace, connection: Connection) -> ConnectionStatus:
    key = (connection.source.id, connection.lake)
    return next(one for one in statuses(place) if (one.connection.source.id, one.connection.lake) == key)
