"""Signing in and out, and becoming a user by a link."""

import re

from fastapi import APIRouter, Request
from fastapi.responses import Response

from eventlake.control.people import SESSION_LIVES
from eventlake.errors import EventLakeError
from eventlake.timetable import SECOND
from eventlake.web.access import COOKIE, TheWorkspace, address_of, limited, limited_to_sign_in, signed_in
from eventlake.web.pages.form import Fields, Sender, refuse_elsewhere
from eventlake.web.pages.render import go, page

router = APIRouter(include_in_schema=False)


@router.get("/sign-in")
def sign_in_page(request: Request, workspace: TheWorkspace) -> Response:
    if signed_in(request, workspace):
        return go("/")
    return page(request, "sign_in.html", None, next=_here(request.query_params.get("next", "/")))


@router.post("/sign-in")
def sign_in(request: Request, workspace: TheWorkspace, fields: Fields) -> Response:
    refuse_elsewhere(request)
    limited_to_sign_in(request)
    onward = _here(fields.get("next", "/"))
    try:
        secret = workspace.people.sign_in(fields.get("name", ""), fields.get("password", ""))
    except EventLakeError as error:
        return page(request, "sign_in.html", None, status=403, problem=error, next=onward)
    return _with_cookie(request, go(onward), secret)


@router.post("/sign-out")
def sign_out(request: Request, workspace: TheWorkspace, actor: Sender) -> Response:
    del actor  # who it is shows that the form is theirs
    workspace.people.sign_out(request.cookies.get(COOKIE, ""))
    answer = go("/sign-in")
    answer.delete_cookie(COOKIE)
    return answer


@router.get("/welcome/{secret}")
def welcome_page(secret: str, request: Request, workspace: TheWorkspace) -> Response:
    limited(request, f"welcome from {address_of(request)}")
    role = workspace.people.invited_as(secret)
    return page(request, "welcome.html", None, status=200 if role else 404, role=role, secret=secret, name="")


@router.post("/welcome/{secret}")
def welcome(secret: str, request: Request, workspace: TheWorkspace, fields: Fields) -> Response:
    refuse_elsewhere(request)
    limited_to_sign_in(request)
    name, password = fields.get("name", "").strip(), fields.get("password", "")
    try:
        user = workspace.people.join(secret, name, password)
    except EventLakeError as error:
        role = workspace.people.invited_as(secret)
        return page(request, "welcome.html", None, status=422, problem=error, role=role, secret=secret, name=name)
    workspace.audit_log.note(user.name, "become a user", user.name, after=user.role.value)
    return _with_cookie(request, go("/"), workspace.people.sign_in(name, password))


def _with_cookie(request: Request, answer: Response, secret: str) -> Response:
    answer.set_cookie(
        COOKIE,
        secret,
        max_age=SESSION_LIVES // SECOND,
        httponly=True,
        secure=request.app.state.is_encrypted,
        samesite="strict",
    )
    return answer


def _here(address: str) -> str:
    """A page of this console, and nothing else: whoever made a link must not choose where one ends up."""
    return address if re.fullmatch(r"/([^/\\\s][^\\\s]*)?", address) else "/"
