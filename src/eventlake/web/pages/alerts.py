"""Alerts: who is told of what, and what was told."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from eventlake.control.alerts import Kind
from eventlake.errors import EventLakeError, InvalidSettingsError
from eventlake.library.workspace import Workspace
from eventlake.web.access import Actor, TheWorkspace
from eventlake.web.pages.form import Admin, Fields, Sender, Viewer
from eventlake.web.pages.render import go, page

router = APIRouter(include_in_schema=False)
_LOOKED_AT, _SHOWN = 1000, 100


@router.get("/alerts")
def alerts_page(request: Request, workspace: TheWorkspace, actor: Viewer) -> HTMLResponse:
    return _alerts(request, workspace, actor)


@router.post("/alerts/subscribe")
def subscribe(request: Request, workspace: TheWorkspace, actor: Sender, changes: Admin, fields: Fields) -> Response:
    try:
        threshold = _number(fields.get("threshold", ""))
        kind = _kind(fields.get("kind", ""))
        changes.subscribe(kind, fields.get("channel", ""), source=fields.get("source") or None, threshold=threshold)
    except EventLakeError as error:
        return _alerts(request, workspace, actor, error)
    return go("/alerts", "Added.")


@router.post("/alerts/unsubscribe")
def unsubscribe(changes: Admin, fields: Fields) -> RedirectResponse:
    changes.unsubscribe(fields.get("id", ""))
    return go("/alerts", "Removed.")


@router.post("/alerts/test")
def send_sample(request: Request, workspace: TheWorkspace, actor: Sender, changes: Admin, fields: Fields) -> Response:
    try:
        changes.send_sample(fields.get("channel", ""))
    except EventLakeError as error:
        return _alerts(request, workspace, actor, error)
    return go("/alerts", f"A sample was sent to {fields['channel']}.")


def _alerts(
    request: Request, workspace: Workspace, actor: Actor, problem: EventLakeError | None = None
) -> HTMLResponse:
    kind, source = (request.query_params.get(name, "")[:100] for name in ("kind", "source"))
    source_id = workspace.sources.get(source).id if source else None
    known = workspace.alerts.latest(_LOOKED_AT, source_id=source_id)
    found = [one for one in known if kind in ("", one.kind.value)][:_SHOWN]
    deliveries: dict[str, list[Any]] = {}
    for one in workspace.alerts.deliveries(alert.id for alert in found):
        deliveries.setdefault(one.alert_id, []).append(one)
    return page(
        request,
        "alerts.html",
        actor,
        "Alerts",
        status=422 if problem else 200,
        problem=problem,
        alerts=found,
        kind=kind,
        source=source,
        deliveries=deliveries,
        subscriptions=workspace.alerts.subscriptions(),
        channels=workspace.settings.channels,
        kinds=list(Kind),
        sources=workspace.sources.all(),
        slugs=workspace.sources.slugs(),
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
