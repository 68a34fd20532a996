"""The overview, and the search."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from eventlake.control.collected import HOUR
from eventlake.control.connections import Connection
from eventlake.library.workspace import Workspace
from eventlake.status import attention, funnel
from eventlake.status.connections import statuses
from eventlake.status.listing import found_columns, listed
from eventlake.timetable import DAY, SECOND
from eventlake.web.access import Actor, TheWorkspace
from eventlake.web.pages import counted, setting_fields
from eventlake.web.pages.form import Viewer
from eventlake.web.pages.render import NAVIGATION, date_of, page

router = APIRouter(include_in_schema=False)
_MOST_CONNECTIONS = 50
_MOST_HITS = 10  # of each kind


@router.get("/")
def overview(request: Request, workspace: TheWorkspace, actor: Viewer) -> HTMLResponse:
    return _overview(request, "overview.html", workspace, actor)


@router.get("/_overview")
def live(request: Request, workspace: TheWorkspace, actor: Viewer) -> HTMLResponse:
    return _overview(request, "_overview.html", workspace, actor)


def _overview(request: Request, template: str, workspace: Workspace, actor: Actor) -> HTMLResponse:
    now = workspace.clock.now()
    today = now // DAY * DAY
    found = statuses(workspace)
    funnels = funnel.funnels(workspace, today, today + DAY)
    hours = funnel.rows_by_hour(workspace, (now // HOUR - 23) * HOUR, now)
    worst_first = sorted(found, key=lambda one: (one.state not in ("failed", "partial"), one.connection.full_name))
    return page(
        request,
        template,
        actor,
        "Overview",
        has_sources=bool(workspace.sources.all()),
        matters=attention.matters(workspace, found),
        whole=funnel.total(funnels),
        funnels=funnels,
        books=funnel.books_of_connections(workspace, today, today + DAY),
        links=counted.links(today),
        links_of={
            one.connection.full_name: counted.links(today, source=one.connection.source.slug, lake=one.connection.lake)
            for one in found
        },
        explained=funnel.EXPLAINED,
        hours=[
            (f"{datetime.fromtimestamp(hour / SECOND, UTC):%H}:00", rows, f"/runs?having=loaded&day={date_of(hour)}")
            for hour, rows in hours
        ],
        connections=worst_first[:_MOST_CONNECTIONS],
        more=len(found) if len(found) > _MOST_CONNECTIONS else 0,
    )


@router.get("/_well")
def well(request: Request, workspace: TheWorkspace, actor: Viewer) -> HTMLResponse:
    """Whether all is well, for the head of every page."""
    levels = [one.level for one in attention.matters(workspace, statuses(workspace))]
    return page(request, "_well.html", actor, errors=levels.count("error"), warnings=levels.count("warning"))


@router.get("/search")
def search(request: Request, workspace: TheWorkspace, actor: Viewer, q: str = "") -> HTMLResponse:
    words = q.strip()[:200]
    hits: list[tuple[str, str, str]] = []
    if words:
        low = words.lower()
        sources = [
            one for one in workspace.sources.all() if low in one.slug or low in one.name.lower() or low == one.id
        ]
        hits += [("source", one.slug, f"/sources/{one.slug}") for one in sources[:_MOST_HITS]]
        connections = workspace.connections.all()
        named = [one.full_name for one in connections if low in one.full_name]
        hits += [("connection", name, f"/connections/{name}") for name in named[:_MOST_HITS]]
        hits += [("page", name, link) for link, name in (*NAVIGATION, *_PAGES) if low in name.lower()]
        hits += islice(_settings(connections, low), _MOST_HITS)
        tables = listed(workspace.engine, text=words, limit=_MOST_HITS).tables
        hits += [("table", one.full_name, f"/tables/{one.lake}/{one.full_name}") for one in tables]
        hits += [
            ("column", f"{one.database}.{one.table}.{one.name}", f"/tables/{one.lake}/{one.database}.{one.table}")
            for one in found_columns(workspace.engine, words, _MOST_HITS)
        ]
        if words.isdigit():
            hits += [("run", run.run_id, f"/runs/{run.run_id}") for run in workspace.runs.with_id(words)]
    return page(request, "search.html", actor, "", hits=hits, search=words)


def _settings(connections: list[Connection], text: str) -> Iterator[tuple[str, str, str]]:
    """Settings of connections by their names, as the form and as the command line have them."""
    for connection in connections:
        for name in type(connection.settings).model_fields:
            title = setting_fields.title_of(name)
            if text in name or text in title.lower() or text in name.replace("_", " "):
                where = "danger" if name in connection.settings.fixed_once_loaded else "settings"
                found = f"{title} of {connection.full_name}"
                yield "setting", found, f"/connections/{connection.full_name}#{where}"


_PAGES = (
    ("/alerts", "alerts and channels"),
    ("/settings", "users, tokens, password, audit log"),
    ("/health", "health: rows by day"),
    ("/quality", "quarantine, rescued values, refused events"),
    ("/sql", "sql query"),
)
