"""Who asks, and what they may do: users by a session cookie, programs by a token."""

from typing import Annotated, NamedTuple

from fastapi import Depends, Request

from eventlake.collector.rate import RateLimit
from eventlake.control.people import Scope
from eventlake.errors import EventLakeError
from eventlake.library.changes import Changes
from eventlake.library.workspace import Workspace
from eventlake.status.events import LastEvents
from eventlake.status.health import Days

COOKIE = "eventlake_session"
CSRF_FIELD = "csrf"


class Actor(NamedTuple):
    """Who asks."""

    name: str  # as the audit log has it
    scope: Scope
    user: str  # who they are, or whose token it is
    key: str  # by which requests are counted: a name is not that of one token only
    csrf: str = ""  # what a form of this session must bring back


class AnonymousError(EventLakeError):
    """Nobody that is known."""

    code = "unauthenticated"


class ForbiddenError(EventLakeError):
    """Somebody who may not do this."""

    code = "forbidden"


class TooManyError(EventLakeError):
    """Somebody asks too often."""

    code = "too_many_requests"

    def __init__(self, seconds: int, problem: str = "too many requests", *, fix: str = "ask less often") -> None:
        super().__init__(f"{problem}: come again in {seconds} s", fix=fix)
        self.seconds = seconds


def workspace_of(request: Request) -> Workspace:
    workspace: Workspace = request.app.state.workspace
    return workspace


TheWorkspace = Annotated[Workspace, Depends(workspace_of)]


def last_events_of(request: Request) -> LastEvents:
    seen: LastEvents = request.app.state.last_events
    return seen


Seen = Annotated[LastEvents, Depends(last_events_of)]


def days_of(request: Request) -> Days:
    found: Days = request.app.state.days
    return found


Counted = Annotated[Days, Depends(days_of)]


def address_of(request: Request) -> str:
    """Where a request came from, as the proxy that is trusted saw it, if there is one."""
    seen: str | None = request.app.state.addresses.client(request.scope)
    return seen or ""


def limited(request: Request, who: str) -> None:
    """Raise TooManyError if somebody asks too often."""
    if seconds := _limit_of(request).wait(who):
        raise TooManyError(seconds)


def limited_to_sign_in(request: Request) -> None:
    """Raise TooManyError if somebody tries to sign in too often: each attempt costs memory and time."""
    limit = request.app.state.sign_in_limit
    if seconds := limit.wait(address_of(request)):
        raise TooManyError(seconds)


def _limit_of(request: Request) -> RateLimit:
    limit: RateLimit = request.app.state.limit
    return limit


def bearer(request: Request, workspace: TheWorkspace) -> Actor:
    """A program with a token; or, to look at something, a user who is signed in."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and secret:
        token = workspace.people.token(secret.strip())
        if token is not None:
            key = f"token {token.id}"
            limited(request, key)
            return Actor(f"token {token.name}", token.scope, token.made_by, key)
    elif request.method == "GET" and (found := signed_in(request, workspace)):
        limited(request, found.key)
        return found._replace(scope=Scope.READ)
    limited(request, f"address {address_of(request)}")
    raise AnonymousError("no token, or one that is not known", fix="send Authorization: Bearer TOKEN")


def signed_in(request: Request, workspace: Workspace) -> Actor | None:
    """The user of a session, if there is one."""
    secret = request.cookies.get(COOKIE)
    session = workspace.people.session(secret) if secret else None
    if session is None:
        return None
    name = session.user.name
    return Actor(name, session.user.role, name, f"user {name}", session.csrf)


Bearer = Annotated[Actor, Depends(bearer)]


def _refuse_unless(actor: Actor, wanted: Scope) -> Actor:
    if not actor.scope.allows(wanted):
        raise ForbiddenError(
            f"{actor.name} may {actor.scope.value}, and this needs {wanted.value}", fix="ask an administrator"
        )
    return actor


def reader(actor: Bearer) -> Actor:
    return _refuse_unless(actor, Scope.READ)


def changes_of(actor: Actor, workspace: Workspace, needed: Scope) -> Changes:
    """What somebody changes, who may change it."""
    _refuse_unless(actor, needed)
    return Changes(workspace, actor.name, owner=actor.user)


def operator(actor: Bearer, workspace: TheWorkspace) -> Changes:
    return changes_of(actor, workspace, Scope.OPERATE)


def admin(actor: Bearer, workspace: TheWorkspace) -> Changes:
    return changes_of(actor, workspace, Scope.ADMIN)


def admin_looks(actor: Bearer) -> Actor:
    return _refuse_unless(actor, Scope.ADMIN)


Reader = Annotated[Actor, Depends(reader)]
Operator = Annotated[Changes, Depends(operator)]
Admin = Annotated[Changes, Depends(admin)]
