"""What orders mean: each kind of them, as a call of the library."""

from datetime import UTC, datetime
from typing import Any

from eventlake.control.connections import Connection
from eventlake.control.orders import Order
from eventlake.errors import InternalError
from eventlake.library import Report, Workspace
from eventlake.runners.base import Progress
from eventlake.timetable import SECOND


def carried_out(workspace: Workspace, order: Order, connection: Connection, progress: Progress) -> list[Report]:
    """The reports of what was done."""
    given: dict[str, Any] = order.arguments
    name = connection.full_name
    match order.kind:
        case "sync":
            return workspace.sync(name, progress=progress)
        case "replay":
            start, to = (_moment(given.get(bound)) for bound in ("from", "to"))
            return workspace.replay(name, start, to, given.get("events") or (), progress=progress)
        case "resume":
            return workspace.resume_replay(name, progress=progress)
        case "rebuild":
            return [workspace.rebuild(name, given["settings"], progress=progress)]
        case "retype":
            report = workspace.retype(
                given["table"], given["column"], given["type"], lake=order.lake, progress=progress
            )
            return [report] if report else []
        case other:
            raise InternalError(f"nobody knows how to {other}", fix="run the newest version of eventlake everywhere")


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else datetime.fromtimestamp(micros / SECOND, UTC)
