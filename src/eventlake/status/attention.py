"""What somebody should look at first, with what to do about it."""

from collections.abc import Iterator
from typing import NamedTuple

from eventlake.collector import condition
from eventlake.collector.options import Spool
from eventlake.reports.words import count
from eventlake.status.connections import ConnectionStatus
from eventlake.timetable import DAY
from eventlake.workspace import Workspace

_MOST_NOTICES = 10
_USUAL = ("No data found", "see __segment_datalake.quarantine", "see _rescued_data")  # counted elsewhere


class Matter(NamedTuple):
    level: str  # error, warning
    what: str
    means: str
    link: str  # to the page where it can be seen
    name: str = ""  # of the connection, if it can be tried again


def matters(workspace: Workspace, found: list[ConnectionStatus]) -> list[Matter]:
    """The worst first."""
    return [
        *_failing(found),
        *_parts(workspace, found),
        *_collector(workspace),
        *_orders(found),
        *_partial(found),
        *_notices(workspace, found),
    ]


def _failing(found: list[ConnectionStatus]) -> Iterator[Matter]:
    for one in sorted(found, key=lambda one: -one.failures):
        if one.failures and one.last_failed and one.connection.enabled:
            times = "failed" if one.failures == 1 else f"failed {one.failures} times in a row"
            problem = (one.last_failed.notices or ["it was interrupted"])[-1]
            fix = f"Fix: {one.last_failed.fix}. " if one.last_failed.fix else ""
            yield Matter(
                "error",
                f"{one.connection.name} {times}: {problem}",
                f"{fix}Nothing is lost: the raw archive has the events, and the next sync that works loads them.",
                f"/runs/{one.last_failed.run_id}",
                one.connection.full_name,
            )


def _parts(workspace: Workspace, found: list[ConnectionStatus]) -> Iterator[Matter]:
    scheduled = [one for one in found if one.connection.enabled and not one.connection.settings.timetable.is_manual]
    if scheduled and not any(part.kind == "scheduler" for part in workspace.presence.parts()):
        yield Matter(
            "error",
            "No scheduler is running",
            f"{count(len(scheduled), 'connection')} will not be synced by themselves. "
            "Start one: eventlake serve, or eventlake schedule.",
            "/connections",
        )


def _collector(workspace: Workspace) -> Iterator[Matter]:
    for problem in condition.problems(Spool(workspace.folder)):
        yield Matter("error", f"Collector: {problem}", "What was acknowledged is on its disk.", "/sources")


def _orders(found: list[ConnectionStatus]) -> Iterator[Matter]:
    for one in found:
        for order in one.failed_orders:
            fix = f"Fix: {order.fix}. " if order.fix else ""
            yield Matter(
                "warning",
                f"{one.connection.name}: a {order.kind} that {order.asked_by} ordered failed: {order.problem}",
                f"{fix}Nothing is lost, and it is not tried again by itself.",
                f"/runs/{order.run_id}" if order.run_id else f"/connections/{one.connection.full_name}",
            )


def _partial(found: list[ConnectionStatus]) -> Iterator[Matter]:
    for one in found:
        if one.last and one.last.partial:
            yield Matter(
                "warning",
                f"{one.connection.name}: some raw files could not be read",
                "The next sync tries them again.",
                f"/runs/{one.last.run_id}",
                one.connection.full_name,
            )


def _notices(workspace: Workspace, found: list[ConnectionStatus]) -> Iterator[Matter]:
    """What the last syncs of today told that people would not expect."""
    since, told = workspace.clock.now() - DAY, 0
    for one in found:
        run = one.last_finished
        for notice in (run.notices or ()) if run and run.started_at > since else ():
            if told < _MOST_NOTICES and run and not any(usual in notice for usual in _USUAL):
                told += 1
                yield Matter("warning", f"{one.connection.name}: {notice}", "", f"/runs/{run.run_id}")
