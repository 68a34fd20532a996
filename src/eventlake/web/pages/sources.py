"""Sources: their write keys, how to send to them, and their last events."""

import json
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from eventlake.control.sources import Source
from eventlake.errors import EventLakeError
from eventlake.library.workspace import Workspace
from eventlake.settings import DEFAULT_LAKE
from eventlake.status.funnel import EXPLAINED, funnels, total
from eventlake.timetable import DAY
from eventlake.web.access import Actor, TheWorkspace, last_events_of
from eventlake.web.pages import counted
from eventlake.web.pages.form import Admin, Fields, Sender, Viewer
from eventlake.web.pages.render import go, page
from eventlake.web.shown_once import shown_once_of

router = APIRouter(include_in_schema=False)


@router.get("/sources")
def list_page(request: Request, workspace: TheWorkspace, actor: Viewer) -> HTMLResponse:
    return _list(request, workspace, actor)


@router.post("/sources")
def add(request: Request, workspace: TheWorkspace, actor: Sender, changes: Admin, fields: Fields) -> Response:
    slug = fields.get("slug", "").strip()
    try:
        made, key = changes.add_source(
            slug, name=fields.get("name", "").strip() or None, lake=fields.get("lake", DEFAULT_LAKE)
        )
    except EventLakeError as error:
        return _list(request, workspace, actor, error, fields)
    return _with_key(request, actor, made.source.slug, key)


@router.get("/sources/{slug}")
def one_page(slug: str, request: Request, workspace: TheWorkspace, actor: Viewer) -> HTMLResponse:
    return _one(request, workspace, actor, slug, shown_once_of(request).take(actor, f"/sources/{slug}"))


@router.get("/sources/{slug}/_events")
def live_events(slug: str, request: Request, workspace: TheWorkspace, actor: Viewer) -> HTMLResponse:
    return page(request, "_events.html", actor, **_events(request, workspace, slug))


@router.get("/sources/{slug}/_today")
def live_today(slug: str, request: Request, workspace: TheWorkspace, actor: Viewer) -> HTMLResponse:
    return page(request, "_today.html", actor, **_today(workspace, workspace.sources.get(slug)))


@router.post("/sources/{slug}/enable")
def enable(slug: str, changes: Admin, fields: Fields) -> RedirectResponse:
    found = changes.enable_source(slug, fields.get("enabled") == "true")
    return go(f"/sources/{found.slug}", f"{found.slug} is switched {'on' if found.enabled else 'off'}.")


@router.post("/sources/{slug}/keys")
def add_key(slug: str, request: Request, actor: Sender, changes: Admin) -> RedirectResponse:
    return _with_key(request, actor, slug, changes.add_key(slug))


def _with_key(request: Request, actor: Actor, slug: str, write_key: str) -> RedirectResponse:
    """On to the page of a source, which shows a new key once."""
    shown_once_of(request).keep(actor, f"/sources/{slug}", write_key)
    return go(f"/sources/{slug}")


@router.post("/sources/{slug}/keys/revoke")
def revoke_key(slug: str, changes: Admin, fields: Fields) -> RedirectResponse:
    changes.revoke_key(slug, fields.get("hash", ""))
    return go(f"/sources/{slug}", "The key is revoked.")


def _list(
    request: Request,
    workspace: Workspace,
    actor: Actor,
    problem: EventLakeError | None = None,
    given: dict[str, str] | None = None,
) -> HTMLResponse:
    text = request.query_params.get("q", "")[:100]
    low = text.strip().lower()
    today = workspace.clock.now() // DAY * DAY
    lakes_of: dict[str, list[str]] = {}
    for one in workspace.connections.all():
        lakes_of.setdefault(one.source.id, []).append(one.lake)
    return page(
        request,
        "sources.html",
        actor,
        "Sources",
        status=422 if problem else 200,
        problem=problem,
        given={"slug": "", "name": "", **(given or {})},
        sources=[one for one in workspace.sources.all() if low in f"{one.slug}\n{one.name.lower()}\n{one.id.lower()}"],
        filter=text,
        lakes_of=lakes_of,
        lakes=list(workspace.settings.all_lakes),
        funnels=funnels(workspace, today, today + DAY),
    )


def _one(request: Request, workspace: Workspace, actor: Actor, slug: str, write_key: str) -> HTMLResponse:
    source = workspace.sources.get(slug)
    return page(
        request,
        "source.html",
        actor,
        "Sources",
        connections=[one for one in workspace.connections.all() if one.source.id == source.id],
        keys=workspace.sources.keys(source.slug),
        write_key=write_key,
        snippets=_snippets(write_key or "WRITE_KEY", request.app.state.collector_url),
        **_today(workspace, source),
        **_events(request, workspace, slug),
    )


def _today(workspace: Workspace, source: Source) -> dict[str, Any]:
    """What became of the source's events since midnight, in all its lakes."""
    today = workspace.clock.now() // DAY * DAY
    found = funnels(workspace, today, today + DAY, source.id)
    links = counted.links(today, source=source.slug)
    return {"source": source, "whole": total(found), "links": links, "explained": EXPLAINED}


def _events(request: Request, workspace: Workspace, slug: str) -> dict[str, Any]:
    source = workspace.sources.get(slug)
    connections = [one for one in workspace.connections.all() if one.source.id == source.id]
    return {"events": last_events_of(request).of(source, connections)}


def _snippets(key: str, url: str) -> list[tuple[str, str]]:
    """How to send to the collector, by SDK."""
    host = url.partition("://")[2]
    event = json.dumps({"userId": "u1", "event": "Signed Up", "properties": {"plan": "free"}})
    return [
        ("curl", f"curl -u {key}: {url}/v1/track -d '{event}'"),
        (
            "Browser: Analytics.js 2.0 (@segment/analytics-next)",
            f"""import {{ AnalyticsBrowser }} from "@segment/analytics-next";

const analytics = AnalyticsBrowser.load(
  {{ writeKey: "{key}", cdnURL: "{url}" }},
  {{ integrations: {{ "Segment.io": {{ apiHost: "{host}/v1", protocol: "{url.partition(":")[0]}" }} }} }},
);
analytics.track("Signed Up", {{ plan: "free" }});""",
        ),
        (
            "Node.js (@segment/analytics-node)",
            f"""import {{ Analytics }} from "@segment/analytics-node";

const analytics = new Analytics({{ writeKey: "{key}", host: "{url}" }});
analytics.track({{ userId: "u1", event: "Signed Up", properties: {{ plan: "free" }} }});""",
        ),
        (
            "Python (segment-analytics-python)",
            f"""import segment.analytics as analytics

analytics.write_key = "{key}"
analytics.host = "{url}"
analytics.track("u1", "Signed Up", {{"plan": "free"}})
analytics.flush()""",
        ),
        (
            "Python (rudder-sdk-python)",
            f"""import rudderstack.analytics as analytics

analytics.write_key = "{key}"
analytics.dataPlaneUrl = "{url}"
analytics.track("u1", "Signed Up", {{"plan": "free"}})
analytics.flush()""",
        ),
    ]
