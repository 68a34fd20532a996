"""Runs: their history, and one of them from its first step to its last table."""

from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from eventlake.control.run_lines import Counts, RunLine, RunLines
from eventlake.errors import waits_for_somebody
from eventlake.library.workspace import Workspace
from eventlake.reports.report import encoded
from eventlake.status.funnel import EXPLAINED
from eventlake.timetable import DAY, SECOND
from eventlake.web.access import Actor, TheWorkspace
from eventlake.web.pages.form import Operator, Viewer
from eventlake.web.pages.render import day_of, go, page

router = APIRouter(include_in_schema=False)
LIMIT = 100
_WIDTH = 960
_SHADES = (0.45, 0.7, 1.0)


@router.get("/runs")
def list_page(request: Request, workspace: TheWorkspace, actor: Viewer) -> HTMLResponse:
    return page(request, "runs.html", actor, "Runs", **_listed(request, workspace))


@router.get("/_runs")
def live_list(request: Request, workspace: TheWorkspace, actor: Viewer) -> HTMLResponse:
    return page(request, "_runs.html", actor, **_listed(request, workspace))


@router.get("/runs/{run_id}")
def one_page(run_id: str, request: Request, workspace: TheWorkspace, actor: Viewer) -> HTMLResponse:
    return _one(request, workspace, actor, run_id, "run.html")


@router.get("/runs/{run_id}/_run")
def live(run_id: str, request: Request, workspace: TheWorkspace, actor: Viewer) -> HTMLResponse:
    return _one(request, workspace, actor, run_id, "_run_live.html")


@router.get("/runs/{run_id}/report.json")
def report(run_id: str, workspace: TheWorkspace, actor: Viewer) -> Response:
    del actor
    lines = workspace.runs.get(run_id).report or []
    return Response(encoded(lines), media_type="application/x-ndjson")


@router.post("/runs/{run_id}/stop")
def stop(run_id: str, changes: Operator) -> RedirectResponse:
    changes.stop_run(run_id)
    return go(f"/runs/{run_id}", "It will stop in a moment.")


def _listed(request: Request, workspace: Workspace) -> dict[str, Any]:
    names = ("connection", "lake", "status", "day", "having", "before")
    given = {key: request.query_params.get(key, "")[:200] for key in names}
    slug, _, lake = given["connection"].partition("/")
    lake = lake or given["lake"]
    history = workspace.history(lake)
    status = given["status"] if given["status"] in ("running", "finished", "failed") else None
    before = given["before"] if given["before"].isdigit() else None
    source_id = workspace.sources.get(slug).id if slug else None
    day = day_of(given["day"])
    begun = (day, day + DAY) if day is not None else None
    having = given["having"] if given["having"] in Counts._fields else ""
    lakes = workspace.named_lakes
    connections = [one for name in lakes for one in workspace.connections.of_lake(name)]
    return {
        "runs": history.lines(
            LIMIT,
            source_id,
            before=before,
            status=status,
            begun=begun,
            having=having or None,
            kinds=("sync",) if having else (),  # which is what funnels add up
        ),
        "names": {(one.source.id, one.lake): one.name for one in connections},
        "all_names": sorted({slug, *(one.full_name for one in connections)} - {""}),
        "connection": given["connection"],
        "lakes": list(workspace.settings.all_lakes),
        "lake": given["lake"],
        "of_status": given["status"],
        "day": given["day"] if begun else "",
        "having": having,
        "counted": _sum(history, begun, source_id, having) if begun and having else None,
        "older": bool(before),
        "limit": LIMIT,
        "query": urlencode({key: value for key, value in given.items() if key != "before" and value}),
        "waiting": workspace.orders.open(),
    }


def _sum(history: RunLines, begun: tuple[int, int], source_id: str | None, having: str) -> int:
    """How much of something the syncs of a day counted."""
    counts = history.counts(*begun, per=DAY, source_id=source_id)
    return sum(getattr(one, having) for one in counts.values())


def _one(request: Request, workspace: Workspace, actor: Actor, run_id: str, template: str) -> HTMLResponse:
    run = workspace.runs.line(run_id)
    lines = workspace.runs.get(run_id).report or [] if run.status != "running" else []
    connection = next((one for one in workspace.connections.of_lake(run.lake) if one.source.id == run.source_id), None)
    tables = sorted(lines[1:], key=lambda line: -line["row_count"])
    return page(
        request,
        template,
        actor,
        "Runs",
        run=run,
        name=connection.name if connection else run.source_id,
        full_name=connection.full_name if connection else "",
        steps=_steps(run, workspace.clock.now()),
        head=lines[0] if lines and run.status == "finished" and "files_read" in lines[0] else None,
        failed_files=lines[0].get("failed_files", []) if lines else [],
        tables=[{"rescued": {}, "partitions": [], "new_columns": [], "books": {"duplicates": 0}} | t for t in tables],
        most_rows=max((line["row_count"] for line in tables), default=1) or 1,
        explained=EXPLAINED,
        waits=waits_for_somebody(run.error_code),
        has_report=bool(lines),
        log=_log(run, lines[0] if lines else {}),
        is_local=run.lake in workspace.lakes and workspace.lake(run.lake).settings.runner.kind == "spark",
    )


def _log(run: RunLine, head: dict[str, Any]) -> list[tuple[int, str]]:
    """What happened in a run, with the time of each, oldest first."""
    told = [(at, f"{name} begins") for name, at in run.steps or []]
    if run.finished_at is None:
        return told
    told += [
        (run.finished_at, f"{one['file']} could not be read: {one['error']}") for one in head.get("failed_files", [])
    ]
    told += [(run.finished_at, notice) for notice in run.notices or []]
    return [*told, (run.finished_at, f"{run.status}: {run.outcome}")]


def _steps(run: RunLine, now: int) -> list[dict[str, Any]]:
    """The steps of a run side by side, each as wide as it took long."""
    begun = run.steps or []
    end = run.finished_at or now
    ends = [at for _, at in begun[1:]] + [end]
    whole = max(1, end - begun[0][1]) if begun else 1
    steps, x = [], 0.0
    for number, ((name, start), stop) in enumerate(zip(begun, ends, strict=True)):
        width = max(0, stop - start) / whole * _WIDTH
        words = f"{max(0, stop - start) / SECOND:.1f} s"
        shade = _SHADES[number % len(_SHADES)]
        steps.append({"name": name, "words": words, "x": round(x, 1), "width": round(width, 1), "shade": shade})
        x += width
    return steps
