"""How the whole is: health, the funnel, rows by day."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from eventlake import __version__
from eventlake.events import instants
from eventlake.status import attention, funnel, health
from eventlake.status.connections import statuses
from eventlake.timetable import DAY
from eventlake.web.access import Counted, TheWorkspace, reader
from eventlake.web.api.models import DayOut, FunnelOut, HealthOut, PartOut

router = APIRouter(tags=["overview"])
looking = [Depends(reader)]
Source = Annotated[str | None, Query(max_length=100)]


@router.get("/health", dependencies=looking)
def get_health(workspace: TheWorkspace) -> HealthOut:
    """Which parts are running, and what somebody should look at."""
    matters = attention.matters(workspace, statuses(workspace))
    return HealthOut(
        status="needs attention" if any(one.level == "error" for one in matters) else "well",
        version=__version__,
        parts=[
            PartOut(**{**part._asdict(), "since": instants.to_text(part.since)}) for part in workspace.presence.parts()
        ],
        matters=[one.what for one in matters],
    )


@router.get("/funnel", dependencies=looking)
def get_funnel(
    workspace: TheWorkspace, source: Source = None, days: Annotated[int, Query(ge=1, le=365)] = 1
) -> FunnelOut:
    """What came in the last days (UTC, today included), and what became of the lines that syncs read."""
    today = workspace.clock.now() // DAY * DAY
    source_id = workspace.sources.get(source).id if source else None
    whole = funnel.total(funnel.funnels(workspace, today - (days - 1) * DAY, today + DAY, source_id))
    return FunnelOut(received=whole.received, **whole.collected._asdict(), **whole.books._asdict())


@router.get("/rows-by-day", dependencies=looking)
def get_days(
    workspace: TheWorkspace,
    counted: Counted,
    source: Source = None,
    days: Annotated[int, Query(ge=1, le=365)] = health.DAYS,
) -> list[DayOut]:
    """Rows that syncs loaded on each of the last days."""
    source_id = workspace.sources.get(source).id if source else None
    found = counted.of(source_id, count=days)
    return [DayOut(day=instants.to_text(day)[:10], rows=number) for day, number in found]
