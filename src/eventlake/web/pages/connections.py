"""Connections: how each is, its settings, and what can be done with it."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from eventlake.control.connections import Connection
from eventlake.errors import EventLakeError, InvalidSettingsError
from eventlake.library.workspace import Workspace
from eventlake.settings import DEFAULT_LAKE
from eventlake.status import replay_size
from eventlake.status.connections import status_of, statuses
from eventlake.web.access import Actor, TheWorkspace, TooManyError
from eventlake.web.checks import checks_of
from eventlake.web.pages import setting_fields
from eventlake.web.pages.form import Admin, Fields, Operator, Sender, Viewer
from eventlake.web.pages.render import go, page

router = APIRouter(include_in_schema=False)
_RUNS = 5


@router.get("/connections")
def list_page(request: Request, workspace: TheWorkspace, actor: Viewer, q: str = "") -> HTMLResponse:
    return _list(request, workspace, actor, q[:100])


@router.post("/connections")
def connect(request: Request, workspace: TheWorkspace, actor: Sender, changes: Admin, fields: Fields) -> Response:
    try:
        lake = fields.get("lake", DEFAULT_LAKE)
        made = changes.connect(fields.get("source", ""), lake, {}, like=fields.get("like") or None)
    except EventLakeError as error:
        return _list(request, workspace, actor, "", error)
    return go(f"/connections/{made.full_name}", "Connected. The first sync begins by itself.")


@router.get("/connections/{source}")
def of_default_lake(source: str, workspace: TheWorkspace, actor: Viewer) -> RedirectResponse:
    del actor
    return go(f"/connections/{workspace.connections.get(source).full_name}")


@router.get("/connections/{source}/{lake}")
def one_page(source: str, lake: str, request: Request, workspace: TheWorkspace, actor: Viewer) -> HTMLResponse:
    return _one(request, workspace, actor, f"{source}/{lake}")


@router.get("/connections/{source}/{lake}/_state")
def live(source: str, lake: str, request: Request, workspace: TheWorkspace, actor: Viewer) -> HTMLResponse:
    connection = workspace.connections.get(f"{source}/{lake}")
    return page(request, "_connection.html", actor, **_state(workspace, connection))


@router.post("/connections/{source}/{lake}/settings")
def save(
    source: str, lake: str, request: Request, workspace: TheWorkspace, actor: Sender, changes: Admin, fields: Fields
) -> Response:
    name = f"{source}/{lake}"
    wanted = setting_fields.changed(workspace.connections.get(name).settings, fields)
    try:
        if wanted:
            changes.set_settings(name, wanted)
    except InvalidSettingsError as error:
        return _one(request, workspace, actor, name, problem=error, given=fields)
    told = f"Saved: {', '.join(sorted(wanted))}." if wanted else "Nothing was changed."
    return go(f"/connections/{name}", told)


@router.post("/connections/{source}/{lake}/copy")
def copy(source: str, lake: str, changes: Admin, fields: Fields) -> RedirectResponse:
    changes.copy_settings(fields.get("origin", ""), f"{source}/{lake}")
    return go(f"/connections/{source}/{lake}", f"The settings are those of {fields['origin']} now.")


@router.post("/connections/{source}/{lake}/enable")
def enable(source: str, lake: str, changes: Admin, fields: Fields) -> RedirectResponse:
    found = changes.enable_connection(f"{source}/{lake}", fields.get("enabled") == "true")
    return go(f"/connections/{found.full_name}", f"Switched {'on' if found.enabled else 'off'}.")


@router.post("/connections/{source}/{lake}/sync")
def sync(source: str, lake: str, changes: Operator) -> RedirectResponse:
    changes.order_sync(f"{source}/{lake}")
    return go(f"/connections/{source}/{lake}", "A sync was ordered: it begins in a moment.")


@router.post("/connections/{source}/{lake}/check")
def check(source: str, lake: str, request: Request, workspace: TheWorkspace, actor: Sender, _: Operator) -> Response:
    is_live = bool(request.headers.get("hx-request"))
    try:
        found = checks_of(request).begin(workspace.connections.get(f"{source}/{lake}"))
    except TooManyError as error:
        if not is_live:
            raise
        return page(request, "_check.html", actor, check=None, refusal=f"{error.problem}: {error.fix}")
    if is_live:
        return page(request, "_check.html", actor, check=found)
    return go(f"/connections/{source}/{lake}#test")


@router.get("/connections/{source}/{lake}/_check")
def live_check(source: str, lake: str, request: Request, workspace: TheWorkspace, actor: Viewer) -> HTMLResponse:
    found = checks_of(request).of(workspace.connections.get(f"{source}/{lake}"))
    return page(request, "_check.html", actor, check=found)


@router.post("/connections/{source}/{lake}/disconnect")
def disconnect(source: str, lake: str, changes: Admin) -> RedirectResponse:
    changes.disconnect(f"{source}/{lake}")
    return go("/connections", f"{source} is not connected to {lake} any more; its tables stay.")


@router.post("/orders/{order_id}/stop")
def stop_order(order_id: str, workspace: TheWorkspace, changes: Operator) -> RedirectResponse:
    order = changes.stop_order(order_id)
    names = {one.source.id: one.source.slug for one in workspace.connections.all()}
    return go(f"/connections/{names.get(order.source_id, order.source_id)}/{order.lake}", "It will stop in a moment.")


def _list(
    request: Request, workspace: Workspace, actor: Actor, text: str, problem: EventLakeError | None = None
) -> HTMLResponse:
    return page(
        request,
        "connections.html",
        actor,
        "Connections",
        status=422 if problem else 200,
        problem=problem,
        connections=[one for one in statuses(workspace) if text.lower() in one.connection.full_name],
        filter=text,
        sources=workspace.sources.all(),
        lakes=list(workspace.settings.all_lakes),
    )


def _state(workspace: Workspace, connection: Connection) -> dict[str, Any]:
    runs = workspace.lake(connection.lake).runs.lines(_RUNS, connection.source.id)
    names = {(connection.source.id, connection.lake): connection.name}
    return {"one": status_of(workspace, connection), "runs": runs, "names": names}


def _one(
    request: Request,
    workspace: Workspace,
    actor: Actor,
    name: str,
    *,
    problem: EventLakeError | None = None,
    given: dict[str, str] | None = None,
) -> HTMLResponse:
    connection = workspace.connections.get(name)
    lake = workspace.lake(connection.lake)
    is_loaded = lake.ledger.has_data(connection.source.id)
    wrong = problem.fields if isinstance(problem, InvalidSettingsError) else {}
    form = setting_fields.form(connection, is_loaded=is_loaded, given=given, wrong=wrong)
    return page(
        request,
        "connection.html",
        actor,
        "Connections",
        status=422 if problem else 200,
        problem=problem,
        groups=form.groups,
        fixed=form.fixed,
        others=[one.full_name for one in workspace.connections.all() if one.full_name != connection.full_name],
        whole=replay_size.size(workspace, connection, None, None),
        check=checks_of(request).of(connection),
        **_state(workspace, connection),
    )
