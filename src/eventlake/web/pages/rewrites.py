"""What is loaded or written again from the raw archive: first what that comes to, then the order."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from eventlake.errors import EventLakeError, InvalidSettingsError
from eventlake.events import instants
from eventlake.library.workspace import Workspace
from eventlake.status import replay_size
from eventlake.status.rebuild import rebuild as would_change
from eventlake.sync import requests
from eventlake.web.access import Actor, TheWorkspace
from eventlake.web.pages import setting_fields
from eventlake.web.pages.form import Admin, Fields, Operator, Sender, Viewer
from eventlake.web.pages.render import go, page

router = APIRouter(include_in_schema=False)


@router.get("/connections/{source}/{lake}/replay")
def replay_page(source: str, lake: str, request: Request, workspace: TheWorkspace, actor: Viewer) -> HTMLResponse:
    given = {key: request.query_params.get(key, "")[:1000] for key in ("start", "stop", "events")}
    return _replay(request, workspace, actor, f"{source}/{lake}", given, counted="start" in request.query_params)


@router.post("/connections/{source}/{lake}/replay")
def replay(
    source: str, lake: str, request: Request, workspace: TheWorkspace, actor: Sender, changes: Operator, fields: Fields
) -> Response:
    try:
        changes.order_replay(
            f"{source}/{lake}",
            _micros(fields.get("start")),
            _micros(fields.get("stop")),
            _names(fields.get("events")),
            resume=fields.get("resume") == "true",
        )
    except EventLakeError as error:
        return _replay(request, workspace, actor, f"{source}/{lake}", fields, problem=error)
    return go(f"/connections/{source}/{lake}", "A replay was ordered: it begins in a moment.")


@router.get("/connections/{source}/{lake}/rebuild")
def rebuild_page(
    source: str, lake: str, request: Request, workspace: TheWorkspace, actor: Viewer, key: str = "", value: str = ""
) -> HTMLResponse:
    return _rebuild(request, workspace, actor, f"{source}/{lake}", key[:100], value.strip()[:200])


@router.post("/connections/{source}/{lake}/rebuild")
def rebuild(
    source: str, lake: str, request: Request, workspace: TheWorkspace, actor: Sender, changes: Admin, fields: Fields
) -> Response:
    key, value = fields.get("key", ""), fields.get("value", "").strip()
    try:
        changes.order_rebuild(f"{source}/{lake}", {key: value})
    except EventLakeError as error:
        return _rebuild(request, workspace, actor, f"{source}/{lake}", key, value, error)
    return go(f"/connections/{source}/{lake}", "All tables are written anew: it begins in a moment.")


def _rebuild(
    request: Request,
    workspace: Workspace,
    actor: Actor,
    name: str,
    key: str,
    value: str,
    problem: EventLakeError | None = None,
) -> HTMLResponse:
    connection = workspace.connections.get(name)
    change = None
    if problem is None:
        try:
            change = would_change(workspace, connection, key, value)
        except EventLakeError as error:
            problem = error
    return page(
        request,
        "rebuild.html",
        actor,
        "Connections",
        status=422 if problem else 200,
        problem=problem,
        connection=connection,
        here=f"/connections/{connection.full_name}",
        key=key,
        value=value,
        now=setting_fields.text_of(connection.settings.model_dump(mode="json").get(key, "")),
        change=change,
        unfinished=requests.unfinished_replay(workspace.lake(connection.lake), connection),
    )


def _replay(
    request: Request,
    workspace: Workspace,
    actor: Actor,
    name: str,
    given: dict[str, str],
    *,
    counted: bool = False,
    problem: EventLakeError | None = None,
) -> HTMLResponse:
    connection = workspace.connections.get(name)
    size = None
    if counted:
        try:
            start, stop = _micros(given.get("start")), _micros(given.get("stop"))
            requests.replay(workspace.lake(connection.lake), connection, start, stop, _names(given.get("events")))
            size = replay_size.size(workspace, connection, start, stop)
        except EventLakeError as error:
            problem = error
    return page(
        request,
        "replay.html",
        actor,
        "Connections",
        status=422 if problem else 200,
        problem=problem,
        connection=connection,
        here=f"/connections/{connection.full_name}",
        given={"start": "", "stop": "", "events": "", **given},
        size=size,
        unfinished=requests.unfinished_replay(workspace.lake(connection.lake), connection),
    )


def _micros(text: str | None) -> int | None:
    """A time, or a day."""
    words = (text or "").strip()
    if not words:
        return None
    instant = instants.parse(words) or instants.parse(f"{words}T00:00:00Z")
    if instant is None:
        raise InvalidSettingsError(f"{words[:100]!r} is not a time", fix="write it as 2026-11-17T12:00:00Z")
    return instant.micros


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]
