"""What forms bring: fields, and proof that they come from a page of ours."""

import secrets
from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import Depends, Request

from eventlake.control.people import Scope
from eventlake.errors import InvalidSettingsError
from eventlake.library.changes import Changes
from eventlake.web.access import (
    CSRF_FIELD,
    Actor,
    AnonymousError,
    ForbiddenError,
    TheWorkspace,
    changes_of,
    limited,
    signed_in,
)


class NotSignedInError(AnonymousError):
    """Nobody is signed in: the page to do so is shown instead."""


async def fields_of(request: Request) -> dict[str, str]:
    """The fields of a form."""
    body = (await request.body()).decode("utf-8", "replace")
    try:
        return dict(parse_qsl(body, keep_blank_values=True, max_num_fields=200))
    except ValueError:
        raise InvalidSettingsError("this form has too many fields", fix="use the console itself") from None


Fields = Annotated[dict[str, str], Depends(fields_of)]


def viewer(request: Request, workspace: TheWorkspace) -> Actor:
    """The user who looks at a page."""
    actor = signed_in(request, workspace)
    if actor is None:
        raise NotSignedInError("nobody is signed in", fix="sign in")
    limited(request, actor.key)
    return actor


Viewer = Annotated[Actor, Depends(viewer)]


def refuse_elsewhere(request: Request) -> None:
    """A form of another site must not be sent here: browsers tell where it comes from."""
    origin = request.headers.get("origin")
    if origin is not None and origin.partition("://")[2] != request.headers.get("host"):
        raise ForbiddenError("this form comes from another site", fix="use the console itself")


def sender(request: Request, fields: Fields, actor: Viewer) -> Actor:
    """The user who sends a form that belongs to their session."""
    refuse_elsewhere(request)
    given = fields.get(CSRF_FIELD, "")
    if not secrets.compare_digest(given.encode(), actor.csrf.encode()):
        raise ForbiddenError("this form is from another session", fix="open the page again, then send it once more")
    return actor


Sender = Annotated[Actor, Depends(sender)]


def operator(actor: Sender, workspace: TheWorkspace) -> Changes:
    return changes_of(actor, workspace, Scope.OPERATE)


def admin(actor: Sender, workspace: TheWorkspace) -> Changes:
    return changes_of(actor, workspace, Scope.ADMIN)


Operator = Annotated[Changes, Depends(operator)]
Admin = Annotated[Changes, Depends(admin)]
