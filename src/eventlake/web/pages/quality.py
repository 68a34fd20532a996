"""Data quality: lines in quarantine, values that did not fit, events that were blocked, refused, or not as planned."""

from typing import Any, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from eventlake.lake.violations import DAYS_KEPT
from eventlake.library.workspace import Workspace
from eventlake.policies.rules import REASONS
from eventlake.status import quality, violations
from eventlake.timetable import DAY
from eventlake.web.access import TheWorkspace
from eventlake.web.pages.form import Viewer
from eventlake.web.pages.render import day_of, page
from eventlake.web.turns import turn

router = APIRouter(include_in_schema=False)
_DAYS = 7
_VIEWS = ("quarantine", "rescued", "blocked", "violations", "refused")


@router.get("/quality")
def quality_page(
    request: Request,
    workspace: TheWorkspace,
    actor: Viewer,
    view: str = "quarantine",
    source: str = "",
    lake: str = "",
    day: str = "",
    run: str = "",
    reason: str = "",
    days: int = _DAYS,
) -> HTMLResponse:
    view = view if view in _VIEWS else "quarantine"
    source_id = workspace.sources.get(source).id if source else None
    days = min(max(1, days), DAYS_KEPT)
    begun, now = day_of(day), workspace.clock.now()
    wanted = quality.Wanted(source_id, lake or None, (begun, begun + DAY) if begun is not None else None)
    lately = wanted if wanted.begun else wanted._replace(begun=(now - _DAYS * DAY, now + DAY))
    shown: dict[str, Any] = {}
    if view == "violations":
        shown = _violations(request, workspace, wanted, days)
    elif view == "refused":
        shown = {"refused": quality.refused(workspace, source_id)}
    elif view == "rescued":
        shown = {"kept": quality.rescued(workspace, lately)}
    elif view == "blocked":
        shown = {"kept": quality.blocked(workspace, lately), "planned": REASONS}
    else:
        shown = {"bad": quality.quarantined(workspace, wanted, run_id=run or None, reason=reason or None)}
    chosen: dict[str, Any] = {"source": source, "lake": lake, "day": day if begun is not None else ""}
    return page(
        request,
        "quality.html",
        actor,
        "Data quality",
        view=view,
        **chosen,
        sources=workspace.sources.all(),
        lakes=list(workspace.settings.all_lakes),
        slugs=workspace.sources.slugs(),
        run=run,
        reason=reason,
        days=days,
        chosen=urlencode({key: value for key, value in chosen.items() if value}),
        **shown,
    )


class _InLake(NamedTuple):
    lake: str
    one: Any  # what was found there


def _violations(request: Request, workspace: Workspace, wanted: quality.Wanted, days: int) -> dict[str, Any]:
    """What was not as planned; with samples, if it is told of which kind."""
    told = {name: request.query_params.get(name, "")[:2000] for name in ("event", "violation_type", "field", "action")}
    kind, now = violations.Kind(wanted.source_id or "", **told), workspace.clock.now()
    found, samples = [], []
    with turn():
        for lake in wanted.lakes(workspace):
            found += [_InLake(lake.name, one) for one in violations.violations(lake, now, kind, days)]
            if any(told.values()):
                samples += [_InLake(lake.name, one) for one in violations.samples(lake, now, kind, days)]
    return {
        "kind": kind,
        "violations": sorted(found, key=lambda found: -found.one.events)[: violations.MOST],
        "samples": samples if any(told.values()) else None,
        "most": violations.MOST,
    }
