"""Users, tokens, one's own password, and who changed what."""

from typing import NamedTuple

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from eventlake.control.people import Scope
from eventlake.errors import EventLakeError, InvalidSettingsError
from eventlake.library.workspace import Workspace
from eventlake.web.access import Actor, Place
from eventlake.web.pages.form import Admin, Fields, Sender, Viewer
from eventlake.web.pages.render import go, page

router = APIRouter(include_in_schema=False)


class Secret(NamedTuple):
    """What is shown once."""

    words: str
    text: str


@router.get("/settings")
def settings_page(request: Request, place: Place, actor: Viewer) -> HTMLResponse:
    return _settings(request, place, actor)


@router.post("/settings/password")
def change_password(request: Request, place: Place, actor: Sender, fields: Fields) -> Response:
    try:
        place.people.change_password(actor.name, fields.get("old", ""), fields.get("new", ""))
    except EventLakeError as error:
        return _settings(request, place, actor, error)
    place.audit_log.note(actor.name, "change password", actor.name)
    return go("/sign-in")


@router.post("/settings/invite")
def invite(request: Request, place: Place, actor: Sender, changes: Admin, fields: Fields) -> HTMLResponse:
    link = f"{place.settings.console.url.rstrip('/')}/welcome/{changes.invite(_scope(fields.get('role', '')))}"
    return _settings(request, place, actor, secret=Secret("A link that makes somebody a user", link))


@router.post("/settings/role")
def set_role(request: Request, place: Place, actor: Sender, changes: Admin, fields: Fields) -> Response:
    try:
        changes.set_role(fields.get("name", ""), _scope(fields.get("role", "")))
    except EventLakeError as error:
        return _settings(request, place, actor, error)
    return go("/settings", "Changed.")


@router.post("/settings/remove-user")
def remove_user(request: Request, place: Place, actor: Sender, changes: Admin, fields: Fields) -> Response:
    try:
        changes.remove_user(fields.get("name", ""))
    except EventLakeError as error:
        return _settings(request, place, actor, error)
    return go("/settings", "Removed.")


@router.post("/settings/token")
def add_token(request: Request, place: Place, actor: Sender, changes: Admin, fields: Fields) -> HTMLResponse:
    try:
        token, secret = changes.add_token(fields.get("name", ""), _scope(fields.get("scope", "")))
    except EventLakeError as error:
        return _settings(request, place, actor, error)
    return _settings(request, place, actor, secret=Secret(f"The token {token.name}", secret))


@router.post("/settings/revoke-token")
def revoke_token(changes: Admin, fields: Fields) -> RedirectResponse:
    changes.revoke_token(fields.get("id", ""))
    return go("/settings", "Revoked.")


def _settings(
    request: Request,
    place: Workspace,
    actor: Actor,
    problem: EventLakeError | None = None,
    *,
    secret: Secret | None = None,
) -> HTMLResponse:
    is_admin = actor.scope.allows(Scope.ADMIN)
    return page(
        request,
        "settings.html",
        actor,
        "Settings",
        status=422 if problem else 200,
        problem=problem,
        secret=secret,
        parts=place.presence.parts(),
        lakes=place.settings.all_lakes,
        scopes=list(Scope),
        users=place.people.users() if is_admin else [],
        tokens=place.people.tokens() if is_admin else [],
        audit=place.audit_log.latest() if is_admin else [],
    )


def _scope(text: str) -> Scope:
    try:
        return Scope(text)
    except ValueError:
        raise InvalidSettingsError(f"there is no role {text[:50]!r}", fix="read, operate or admin") from None
