"""Users, tokens, one's own password, and who changed what."""

import re
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from eventlake.control.people import Scope
from eventlake.errors import EventLakeError, InvalidSettingsError
from eventlake.library.workspace import Workspace
from eventlake.web.access import Actor, TheWorkspace
from eventlake.web.pages.form import Admin, Fields, Sender, Viewer
from eventlake.web.pages.render import go, page
from eventlake.web.shown_once import shown_once_of

router = APIRouter(include_in_schema=False)


_ENTRIES = 100
_LINK, _TOKEN = "link", "token"  # that wait to be shown


@router.get("/settings")
def settings_page(request: Request, workspace: TheWorkspace, actor: Viewer) -> HTMLResponse:
    waiting = shown_once_of(request)
    return _settings(request, workspace, actor, link=waiting.take(actor, _LINK), token=waiting.take(actor, _TOKEN))


@router.post("/settings/password")
def change_password(request: Request, workspace: TheWorkspace, actor: Sender, fields: Fields) -> Response:
    try:
        workspace.people.change_password(actor.name, fields.get("old", ""), fields.get("new", ""))
    except EventLakeError as error:
        return _settings(request, workspace, actor, error)
    workspace.audit_log.note(actor.name, "change password", actor.name)
    return go("/sign-in")


@router.post("/settings/invite")
def invite(
    request: Request, workspace: TheWorkspace, actor: Sender, changes: Admin, fields: Fields
) -> RedirectResponse:
    link = f"{workspace.settings.console.url.rstrip('/')}/welcome/{changes.invite(_scope(fields.get('role', '')))}"
    shown_once_of(request).keep(actor, _LINK, link)
    return go("/settings")


@router.post("/settings/role")
def set_role(request: Request, workspace: TheWorkspace, actor: Sender, changes: Admin, fields: Fields) -> Response:
    try:
        changes.set_role(fields.get("name", ""), _scope(fields.get("role", "")))
    except EventLakeError as error:
        return _settings(request, workspace, actor, error)
    return go("/settings", "Changed.")


@router.post("/settings/remove-user")
def remove_user(request: Request, workspace: TheWorkspace, actor: Sender, changes: Admin, fields: Fields) -> Response:
    try:
        changes.remove_user(fields.get("name", ""))
    except EventLakeError as error:
        return _settings(request, workspace, actor, error)
    return go("/settings", "Removed.")


@router.post("/settings/token")
def add_token(request: Request, workspace: TheWorkspace, actor: Sender, changes: Admin, fields: Fields) -> Response:
    try:
        _, secret = changes.add_token(fields.get("name", ""), _scope(fields.get("scope", "")))
    except EventLakeError as error:
        return _settings(request, workspace, actor, error)
    shown_once_of(request).keep(actor, _TOKEN, secret)
    return go("/settings")


@router.post("/settings/revoke-token")
def revoke_token(changes: Admin, fields: Fields) -> RedirectResponse:
    changes.revoke_token(fields.get("id", ""))
    return go("/settings", "Revoked.")


def _settings(
    request: Request,
    workspace: Workspace,
    actor: Actor,
    problem: EventLakeError | None = None,
    *,
    link: str = "",
    token: str = "",
) -> HTMLResponse:
    is_admin = actor.scope.allows(Scope.ADMIN)
    return page(
        request,
        "settings.html",
        actor,
        "Settings",
        status=422 if problem else 200,
        problem=problem,
        secrets=[("A link that makes somebody a user", link), ("The token", token)],
        parts=workspace.presence.parts(),
        lakes=workspace.settings.all_lakes,
        scopes=list(Scope),
        users=workspace.people.users() if is_admin else [],
        tokens=workspace.people.tokens() if is_admin else [],
        **_audited(request, workspace, is_shown=is_admin),
    )


def _audited(request: Request, workspace: Workspace, *, is_shown: bool) -> dict[str, Any]:
    """A page of the audit log, as the address asks for it."""
    text, before = (request.query_params.get(name, "")[:100] for name in ("q", "before"))
    start = int(before) if re.fullmatch(r"[1-9]\d{0,17}", before) else None
    found = workspace.audit_log.latest(_ENTRIES, before=start, text=text.strip()) if is_shown else []
    older = urlencode({"q": text, "before": found[-1].id}) if len(found) == _ENTRIES else ""
    return {"audit": found, "filter": text, "is_newest": start is None, "older": older}


def _scope(text: str) -> Scope:
    try:
        return Scope(text)
    except ValueError:
        raise InvalidSettingsError(f"there is no role {text[:50]!r}", fix="read, operate or admin") from None
