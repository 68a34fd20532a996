"""How each connection is: its last syncs, the next one, and what is going on."""

from typing import NamedTuple

from eventlake.control.connections import Connection
from eventlake.control.due import next_begin
from eventlake.control.orders import Order
from eventlake.control.run_lines import STOPPED, RunLine
from eventlake.timetable import DAY
from eventlake.workspace import Workspace


class ConnectionStatus(NamedTuple):
    connection: Connection
    last: RunLine | None  # the sync that was begun last
    last_finished: RunLine | None
    last_failed: RunLine | None  # if it fails now
    failures: int  # in a row, until now
    running: tuple[RunLine, ...]
    orders: tuple[Order, ...]  # that wait or are being carried out
    next_at: int | None
    failed_orders: tuple[Order, ...] = ()  # of the last day; not syncs, which the schedule makes up for

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


def statuses(workspace: Workspace) -> list[ConnectionStatus]:
    """Of all connections, in the order of their names."""
    return _statuses(workspace, workspace.connections.all(), None)


def status_of(workspace: Workspace, connection: Connection) -> ConnectionStatus:
    (found,) = _statuses(workspace, [connection], [(connection.source.id, connection.lake)])
    return found


def _statuses(
    workspace: Workspace, connections: list[Connection], among: list[tuple[str, str]] | None
) -> list[ConnectionStatus]:
    last = workspace.runs.last_of_each(among=among)
    finished = workspace.runs.last_of_each(status="finished", among=among)
    failures = workspace.runs.failures_of_each(among=among)
    failing = [key for key, number in failures.items() if number]
    failed = workspace.runs.last_of_each(status="failed", among=failing) if failing else {}
    running, orders = workspace.runs.lines(None, status="running"), workspace.orders.open()
    now = workspace.clock.now()
    failed_orders = [one for one in workspace.orders.failed(now - DAY) if one.kind != "sync"]
    found = []
    for connection in connections:
        key = (connection.source.id, connection.lake)
        newest, in_a_row = last.get(key), failures.get(key, 0)
        found.append(
            ConnectionStatus(
                connection,
                newest,
                finished.get(key),
                failed.get(key),
                in_a_row,
                tuple(run for run in running if (run.source_id, run.lake) == key),
                tuple(order for order in orders if (order.source_id, order.lake) == key),
                next_begin(connection.settings.timetable, now, newest, failures=in_a_row)
                if connection.enabled
                else None,
                tuple(order for order in failed_orders if (order.source_id, order.lake) == key),
            )
        )
    return found
