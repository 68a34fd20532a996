"""People of whom nothing gets in. Pages tell how many they are, and whether one is among them, never who."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from eventlake.control.regulations import Regulations
from eventlake.control.suppressions import ALL_SOURCES
from eventlake.errors import EventLakeError, InvalidSettingsError
from eventlake.library.workspace import Workspace
from eventlake.reports.words import count
from eventlake.web.access import Actor, TheWorkspace
from eventlake.web.pages.form import Admin, Fields, Sender, Viewer
from eventlake.web.pages.render import go, page

router = APIRouter(include_in_schema=False)


@router.get("/privacy")
def privacy_page(request: Request, workspace: TheWorkspace, actor: Viewer) -> HTMLResponse:
    return _privacy(request, workspace, actor)


@router.post("/privacy/suppress")
def suppress(request: Request, workspace: TheWorkspace, actor: Sender, changes: Admin, fields: Fields) -> Response:
    try:
        added = changes.suppress(_subjects(fields), fields.get("path", ""), source=fields.get("source") or None)
    except EventLakeError as error:
        return _privacy(request, workspace, actor, error)
    return go("/privacy", f"{count(added, 'subject')} added. What the lake has of them goes with a replay.")


@router.post("/privacy/let-in")
def let_in(request: Request, workspace: TheWorkspace, actor: Sender, changes: Admin, fields: Fields) -> Response:
    try:
        removed = changes.unsuppress(_subjects(fields), fields.get("path", ""), source=fields.get("source") or None)
    except EventLakeError as error:
        return _privacy(request, workspace, actor, error)
    return go("/privacy", f"{count(removed, 'subject')} removed. A replay loads what the raw archive has of them.")


@router.post("/privacy/look-up")
def look_up(request: Request, workspace: TheWorkspace, actor: Sender, fields: Fields) -> HTMLResponse:
    """Whether somebody is on the list. It is a form: an id in an address would be in logs."""
    subject, path = fields.get("subject", "").strip(), fields.get("path", "")
    try:
        where = workspace.suppressions.sources_of(subject, path)
    except EventLakeError as error:
        return _privacy(request, workspace, actor, error)
    slugs = workspace.sources.slugs()
    names = ", ".join("all sources" if one == ALL_SOURCES else slugs.get(one, one) for one in where)
    return _privacy(request, workspace, actor, told=f"On the list, for {names}." if where else "Not on the list.")


def _subjects(fields: dict[str, str]) -> list[str]:
    found = [line.strip() for line in fields.get("subjects", "").splitlines() if line.strip()]
    if not found:
        raise InvalidSettingsError("nobody is named", fix="write one id a line")
    return found


def _privacy(
    request: Request, workspace: Workspace, actor: Actor, problem: EventLakeError | None = None, *, told: str = ""
) -> HTMLResponse:
    return page(
        request,
        "privacy.html",
        actor,
        "Privacy",
        status=422 if problem else 200,
        problem=problem,
        totals=workspace.suppressions.totals(),
        slugs=workspace.sources.slugs(),
        sources=workspace.sources.all(),
        regulations=Regulations(workspace.engine, workspace.clock.now).latest(50),
        **({"told": told} if told else {}),  # else what the form before had to tell is shown
    )
