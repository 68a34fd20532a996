"""The console and the HTTP API as one ASGI application. It holds no rules: what it shows and does is the library's."""

import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import quote, urlsplit

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from sqlalchemy.exc import DataError
from starlette.exceptions import HTTPException

from eventlake import __version__
from eventlake.collector.addresses import Addresses
from eventlake.collector.rate import RateLimit
from eventlake.control.people import SignInRefusedError
from eventlake.errors import (
    BusyError,
    CatalogLimitError,
    EventLakeError,
    InternalError,
    InvalidSettingsError,
    NotFoundError,
    PermissionMissingError,
    TransientError,
)
from eventlake.library.workspace import Workspace
from eventlake.status.events import LastEvents
from eventlake.status.health import Days
from eventlake.web.access import AnonymousError, ForbiddenError, TooManyError, signed_in
from eventlake.web.api import (
    connections,
    overview,
    people,
    plans,
    privacy,
    runs,
    sources,
    tables,
    transformations,
    violations,
)
from eventlake.web.api.models import Problem
from eventlake.web.checks import Checks
from eventlake.web.guard import Guard
from eventlake.web.pages import alerts, home, quality, rewrites, rules, session, settings
from eventlake.web.pages import connections as connection_pages
from eventlake.web.pages import plans as plan_pages
from eventlake.web.pages import privacy as privacy_pages
from eventlake.web.pages import runs as run_pages
from eventlake.web.pages import sources as source_pages
from eventlake.web.pages import tables as table_pages
from eventlake.web.pages.form import NotSignedInError
from eventlake.web.pages.render import page
from eventlake.web.shown_once import ShownOnce

_SIGN_INS_PER_SECOND = 2.0  # of one address
REQUESTS_PER_SECOND = 50.0  # of one user, token or address
_ALIVE_EVERY = 5.0  # seconds
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_STATUS: list[tuple[type[EventLakeError], int]] = [
    (AnonymousError, 401),
    (ForbiddenError, 403),
    (SignInRefusedError, 403),
    (TooManyError, 429),
    (NotFoundError, 404),
    (InvalidSettingsError, 422),
    (PermissionMissingError, 502),
    (CatalogLimitError, 502),
    (BusyError, 409),
    (TransientError, 503),
    (InternalError, 500),
]
_ANSWERS: dict[int | str, dict[str, Any]] = {
    number: {"model": Problem, "description": words}
    for number, words in (
        (401, "No token, or one that is not known."),
        (403, "The token may not do this."),
        (404, "There is no such thing."),
        (409, "Another run holds the connection."),
        (422, "Something that was given is not allowed."),
        (429, "Too many requests."),
        (503, "Something does not answer now."),
    )
}
API = (overview, sources, connections, runs, tables, plans, violations, transformations, privacy, people)
_PAGES = (
    *(session, home, source_pages, rules, connection_pages, rewrites, run_pages, table_pages),
    *(plan_pages, quality, privacy_pages, alerts, settings),
)


def create_app(
    workspace: Workspace,
    *,
    hosts: frozenset[str] = frozenset(),
    is_encrypted: bool = False,
    collector_url: str = "http://127.0.0.1:8020",
    requests_per_second: float = REQUESTS_PER_SECOND,
    trusted_proxies: int = 0,
) -> Guard:
    """The application for a workspace; `is_encrypted` if browsers reach it by https."""
    app = FastAPI(
        title="eventlake",
        version=__version__,
        description="Sources, lakes, connections, runs, tables and alerts of an eventlake workspace.",
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # these load scripts from elsewhere
        redoc_url=None,
        lifespan=_alive,
        swagger_ui_oauth2_redirect_url=None,
    )
    app.state.workspace = workspace
    app.state.limit = RateLimit(requests_per_second)
    app.state.sign_in_limit = RateLimit(min(requests_per_second, _SIGN_INS_PER_SECOND))
    app.state.last_events = LastEvents(workspace)
    app.state.days = Days(workspace)
    app.state.streams = Counter()
    app.state.shown_once = ShownOnce()
    app.state.checks = Checks(workspace)
    app.state.addresses = Addresses(trusted_proxies)
    app.state.is_encrypted = is_encrypted
    app.state.collector_url = collector_url
    for module in API:
        app.include_router(module.router, prefix="/api/v1", responses=_ANSWERS)
    for module in _PAGES:
        app.include_router(module.router)
    app.mount("/static", StaticFiles(packages=[("eventlake.web", "static")]))
    app.add_exception_handler(EventLakeError, _explained)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _no_such_page)
    app.add_exception_handler(UnicodeEncodeError, _not_text)
    app.add_exception_handler(DataError, _not_text)
    public = urlsplit(workspace.settings.console.url).hostname or ""
    return Guard(app, hosts=_LOOPBACK | hosts | {public.lower()}, is_encrypted=is_encrypted)


@asynccontextmanager
async def _alive(app: FastAPI) -> AsyncIterator[None]:
    """Say that a console is running, as long as it is; what it has begun ends with it."""
    workspace: Workspace = app.state.workspace
    ended = threading.Event()

    def say() -> None:
        while not ended.is_set():
            with suppress(EventLakeError):
                workspace.presence.here("console")
            ended.wait(_ALIVE_EVERY)
        with suppress(EventLakeError):
            workspace.presence.gone("console")

    thread = threading.Thread(target=say, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        app.state.checks.close()
        thread.join()


def _explained(request: Request, error: Exception) -> Response:
    assert isinstance(error, EventLakeError)  # noqa: S101 - it is registered for these only
    status = next((number for kind, number in _STATUS if isinstance(error, kind)), 500)
    if _is_api(request):
        headers = {"retry-after": str(error.seconds)} if isinstance(error, TooManyError) else {}
        fields = error.fields if isinstance(error, InvalidSettingsError) else {}
        told = Problem(code=error.code, problem=error.problem, fix=error.fix, fields=fields)
        return JSONResponse(told.model_dump(), status, headers=headers)
    if isinstance(error, NotSignedInError):
        if request.headers.get("hx-request"):
            return Response(status_code=401, headers={"hx-redirect": "/sign-in"})
        onward = request.url.path if request.method == "GET" else "/"
        return Response(status_code=303, headers={"location": f"/sign-in?next={quote(onward)}"})
    return page(request, "message.html", _viewer(request), status=status, problem=error, title="That did not work")


def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101
    fields = {".".join(str(part) for part in one["loc"][1:]): str(one["msg"]) for one in error.errors()}
    words = "; ".join(f"{name}: {what}" if name else what for name, what in fields.items())
    return _explained(request, InvalidSettingsError(words, fix="correct what was given", fields=fields))


def _not_text(request: Request, error: Exception) -> Response:
    """JSON can write half of a character, which nothing can store, and one that PostgreSQL does not."""
    half = "half of a character (a lone surrogate) is not text"
    what = half if isinstance(error, UnicodeEncodeError) else "the database does not take this text"
    return _explained(request, InvalidSettingsError(what, fix="send whole characters, and not the character NUL"))


def _no_such_page(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101
    if _is_api(request):
        what = f"{request.method} {request.url.path}: {str(error.detail).lower()}"
        code = "not_found" if error.status_code == 404 else "refused"
        told = Problem(code=code, problem=what, fix="see /api/v1/openapi.json for what there is")
        return JSONResponse(told.model_dump(), error.status_code, headers=error.headers)
    title = "There is no such page" if error.status_code == 404 else str(error.detail)
    return page(request, "message.html", _viewer(request), status=error.status_code, title=title)


def _viewer(request: Request) -> Any:
    with suppress(EventLakeError):
        return signed_in(request, request.app.state.workspace)
    return None


def _is_api(request: Request) -> bool:
    return request.url.path.startswith("/api/")
