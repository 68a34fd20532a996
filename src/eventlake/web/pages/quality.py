"""Lines in quarantine, values that did not fit, events that were refused; and alerts."""

from collections import Counter
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from eventlake.control.alerts import Kind
from eventlake.errors import EventLakeError, InvalidSettingsError
from eventlake.library.workspace import Workspace
from eventlake.settings import DEFAULT_LAKE
from eventlake.status import quality
from eventlake.timetable import DAY
from eventlake.web.access import Actor, Place
from eventlake.web.pages.form import Admin, Fields, Sender, Viewer
from eventlake.web.pages.render import go, page

router = APIRouter(include_in_schema=False)
_DAYS = 7
_MOST = 200
_MOST_REPORTS = 200


@router.get("/quality")
def quality_page(
    request: Request,
    place: Place,
    actor: Viewer,
    view: str = "quarantine",
    source: str = "",
    lake: str = DEFAULT_LAKE,
    run: str = "",
    reason: str = "",
) -> HTMLResponse:
    source_id = place.sources.get(source).id if source else None
    shown: dict[str, Any] = {"bad": None, "refused": [], "rescued": []}
    if view == "refused":
        shown["refused"] = quality.refused(place, source_id)
    elif view == "rescued":
        shown["rescued"] = _rescued(place, source_id)
    else:
        view = "quarantine"
        shown["bad"] = quality.quarantined(
            place.lake(lake), source_id=source_id, run_id=run or None, reason=reason or None
        )
    return page(
        request,
        "quality.html",
        actor,
        "Data quality",
        view=view,
        source=source,
        sources=place.sources.all(),
        slugs=place.sources.slugs(),
        lake=lake,
        run=run,
        reason=reason,
        **shown,
    )


def _rescued(place: Workspace, source_id: str | None) -> list[dict[str, Any]]:
    """How many values did not fit, by column, as the reports of the last days tell."""
    counts: Counter[tuple[str, str, str]] = Counter()
    since = place.clock.now() - _DAYS * DAY
    runs = [run for run in place.runs.lines(_MOST_REPORTS, source_id, kinds=("sync",)) if run.started_at > since]
    for run in place.runs.with_ids([run.run_id for run in runs if run.rescued]):
        for line in (run.report or [])[1:]:
            for column, number in line.get("rescued", {}).items():
                counts[run.lake, f"{line['database']}.{line['table_name']}", column] += number
    return [
        {"lake": lake, "table": table, "column": column, "number": number}
        for (lake, table, column), number in counts.most_common(_MOST)
    ]


@router.get("/alerts")
def alerts_page(request: Request, place: Place, actor: Viewer) -> HTMLResponse:
    return _alerts(request, place, actor)


@router.post("/alerts/subscribe")
def subscribe(request: Request, place: Place, actor: Sender, changes: Admin, fields: Fields) -> Response:
    try:
        threshold = _number(fields.get("threshold", ""))
        kind = _kind(fields.get("kind", ""))
        changes.subscribe(kind, fields.get("channel", ""), source=fields.get("source") or None, threshold=threshold)
    except EventLakeError as error:
        return _alerts(request, place, actor, error)
    return go("/alerts", "Added.")


@router.post("/alerts/unsubscribe")
def unsubscribe(changes: Admin, fields: Fields) -> RedirectResponse:
    changes.unsubscribe(fields.get("id", ""))
    return go("/alerts", "Removed.")


@router.post("/alerts/test")
def send_sample(request: Request, place: Place, actor: Sender, changes: Admin, fields: Fields) -> Response:
    try:
        changes.send_sample(fields.get("channel", ""))
    except EventLakeError as error:
        return _alerts(request, place, actor, error)
    return go("/alerts", f"A sample was sent to {fields['channel']}.")


def _alerts(request: Request, place: Workspace, actor: Actor, problem: EventLakeError | None = None) -> HTMLResponse:
    found = place.alerts.latest()
    deliveries: dict[str, list[Any]] = {}
    for one in place.alerts.deliveries(alert.id for alert in found):
        deliveries.setdefault(one.alert_id, []).append(one)
    return page(
        request,
        "alerts.html",
        actor,
        "Alerts",
        status=422 if problem else 200,
        problem=problem,
        alerts=found,
        deliveries=deliveries,
        subscriptions=place.alerts.subscriptions(),
        channels=place.settings.channels,
        kinds=list(Kind),
        sources=place.sources.all(),
        slugs=place.sources.slugs(),
    )


def _number(text: str) -> float | None:
    try:
        return float(text) if text.strip() else None
    except ValueError:
        raise InvalidSettingsError(f"{text[:20]!r} is not a number", fix="for example 24, or leave it out") from None


def _kind(text: str) -> Kind:
    try:
        return Kind(text)
    except ValueError:
        raise InvalidSettingsError(f"there is no alert {text[:50]!r}", fix="choose one of the list") from None
