"""Runs: their history, their reports, how far they are, and what was ordered."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import StreamingResponse

from eventlake.errors import EventLakeError, NotFoundError
from eventlake.library.workspace import Workspace
from eventlake.web.access import Operator, Reader, TheWorkspace, TooManyError, reader
from eventlake.web.api.models import OrderOut, RunOut

router = APIRouter(tags=["runs"])
looking = [Depends(reader)]

LOOK_EVERY = 0.5  # seconds
_MOST_STREAMS = 200
MOST_STREAMS_OF_ONE = 20  # user or token
_STREAM_SECONDS = 3600


@router.get("/runs", dependencies=looking)
def list_runs(
    workspace: TheWorkspace,
    source: Annotated[str | None, Query(max_length=100)] = None,
    lake: Annotated[str | None, Query(max_length=50)] = None,
    status: Literal["running", "finished", "failed"] | None = None,
    before: Annotated[str | None, Query(pattern=r"^\d{1,30}$", description="Only those before this run.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> list[RunOut]:
    """Runs, newest first."""
    slugs = _slugs(workspace)
    history = workspace.history(lake or "")
    source_id = workspace.sources.get(source).id if source else None
    found = history.lines(limit, source_id, before=before, status=status)
    return [RunOut.of(run, slugs) for run in found]


@router.get("/runs/{run_id}", dependencies=looking)
def get_run(run_id: str, workspace: TheWorkspace) -> RunOut:
    """One run, also while it goes on."""
    return RunOut.of(workspace.runs.line(run_id), _slugs(workspace))


@router.get("/runs/{run_id}/report", dependencies=looking)
def get_report(run_id: str, workspace: TheWorkspace) -> list[dict[str, Any]]:
    """The lines of its report.json: first the whole run, then a line for each table."""
    report = workspace.runs.get(run_id).report
    if report is None:
        raise NotFoundError(f"run {run_id} has no report yet", fix="wait until it ends")
    return report


@router.post("/runs/{run_id}/stop", status_code=202)
def stop_run(run_id: str, changes: Operator, workspace: TheWorkspace) -> RunOut:
    """Let a run end before its commit: nothing of it is published."""
    changes.stop_run(run_id)
    return RunOut.of(workspace.runs.line(run_id), _slugs(workspace))


@router.get(
    "/runs/{run_id}/progress",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
async def follow_run(run_id: str, workspace: TheWorkspace, request: Request, actor: Reader) -> StreamingResponse:
    """Server-sent events with the run as it goes on, until it has ended."""
    slugs = await asyncio.to_thread(_slugs, workspace)
    await asyncio.to_thread(workspace.runs.line, run_id)  # one that is not there is told as such
    streams: Counter[str] = request.app.state.streams  # which are open, by whose they are
    if streams[actor.key] >= MOST_STREAMS_OF_ONE or streams.total() >= _MOST_STREAMS:
        raise TooManyError(10, "too many runs are followed at once")
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    told = _progress(workspace, run_id, slugs, streams, actor.key)
    return StreamingResponse(told, media_type="text/event-stream", headers=headers)


async def _progress(
    workspace: Workspace, run_id: str, slugs: dict[str, str], streams: Counter[str], whose: str
) -> AsyncIterator[str]:
    streams[whose] += 1
    try:
        last = ""
        for _ in range(round(_STREAM_SECONDS / LOOK_EVERY)):
            try:
                run = await asyncio.to_thread(workspace.runs.line, run_id)
            except EventLakeError:
                return
            told = json.dumps(RunOut.of(run, slugs).model_dump(mode="json"))
            if told != last:
                yield f"event: run\ndata: {told}\n\n"
                last = told
            if run.status != "running":
                return
            await asyncio.sleep(LOOK_EVERY)
    finally:
        streams[whose] -= 1
        if not streams[whose]:
            del streams[whose]


@router.get("/orders", dependencies=looking)
def list_orders(workspace: TheWorkspace) -> list[OrderOut]:
    """What people ordered, newest first."""
    slugs = _slugs(workspace)
    return [OrderOut.of(order, slugs) for order in workspace.orders.latest()]


@router.get("/orders/{order_id}", dependencies=looking)
def get_order(order_id: str, workspace: TheWorkspace) -> OrderOut:
    """One order, and what came of it."""
    return OrderOut.of(workspace.orders.get(order_id), _slugs(workspace))


@router.post("/orders/{order_id}/stop", status_code=202)
def stop_order(order_id: str, changes: Operator, workspace: TheWorkspace) -> OrderOut:
    """Take an order back, or let what it led to end before its commit."""
    changes.stop_order(order_id)
    return OrderOut.of(workspace.orders.get(order_id), _slugs(workspace))


def _slugs(workspace: Workspace) -> dict[str, str]:
    return workspace.sources.slugs()
