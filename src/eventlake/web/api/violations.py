"""Events that were not as planned, by what was wrong with them, with samples."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import Field

from eventlake.settings import DEFAULT_LAKE
from eventlake.status import violations
from eventlake.status.violations import Kind
from eventlake.web.access import TheWorkspace, reader
from eventlake.web.api.models import MOMENT, Model, moment
from eventlake.web.turns import turn

router = APIRouter(tags=["plans"])
looking = [Depends(reader)]
Text = Annotated[str, Query(max_length=2000)]
Days = Annotated[int, Query(ge=1, le=30)]


class ViolatedOut(Model):
    source_id: str
    source: str
    event_type: str
    event: str
    violation_type: str
    field: str
    action: str
    reason: str
    events: int
    last: MOMENT


class SampleOut(Model):
    received_at: MOMENT
    message_id: str
    run_id: str
    raw_file: str
    line: int
    description: str
    text: str = Field(description="The line as it was sent; empty if it was not kept.")


@router.get("/violations", dependencies=looking)
def list_violations(
    workspace: TheWorkspace,
    source: Text = "",
    event: Text = "",
    field: Text = "",
    days: Days = 7,
    lake: Text = DEFAULT_LAKE,
) -> list[ViolatedOut]:
    """What was wrong with events of the last days: by event, field and kind, the most frequent first."""
    slugs = workspace.sources.slugs()
    kind = Kind(workspace.sources.get(source).id if source else "", event, field=field)
    with turn():
        found = violations.violations(workspace.lake(lake), workspace.clock.now(), kind, days)
    return [
        ViolatedOut(**one._asdict() | {"last": moment(one.last)}, source=slugs.get(one.source_id, one.source_id))
        for one in found
    ]


@router.get("/violations/samples", dependencies=looking)
def list_samples(
    workspace: TheWorkspace,
    source: Text = "",
    event: Text = "",
    field: Text = "",
    violation_type: Text = "",
    action: Text = "",
    days: Days = 7,
    lake: Text = DEFAULT_LAKE,
) -> list[SampleOut]:
    """Some of these events, as they were sent."""
    kind = Kind(workspace.sources.get(source).id if source else "", event, violation_type, field, action)
    with turn():
        found = violations.samples(workspace.lake(lake), workspace.clock.now(), kind, days)
    return [SampleOut(**one._asdict() | {"received_at": moment(one.received_at)}) for one in found]
