"""Tables, seen from afar and closely; SQL over them; rows by day."""

import time
from typing import Any
from urllib.parse import urlencode

import pyarrow as pa
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response

from eventlake.catalog.base import SchemaEvent
from eventlake.errors import EventLakeError
from eventlake.library.workspace import Workspace
from eventlake.reports.words import count
from eventlake.settings import DEFAULT_LAKE
from eventlake.status import health, tables
from eventlake.status.connections import statuses
from eventlake.status.listing import listed, proposed
from eventlake.web import rows
from eventlake.web.access import Actor, Counted, TheWorkspace, TooManyError
from eventlake.web.pages.form import Fields, Operator, Sender, Viewer
from eventlake.web.pages.render import date_of, day_of, go, page
from eventlake.web.turns import turn

router = APIRouter(include_in_schema=False)
LIMIT = 100
ROWS = 1000
_CHARTED = 60  # bars, at most
_NAMES = 60
_NOT_LOOKED: dict[str, Any] = {"looked": None, "trouble": None, "waits": None, "senders": {}, "misfits": {}}


@router.get("/tables")
def list_page(
    request: Request, workspace: TheWorkspace, actor: Viewer, q: str = "", source: str = "", offset: int = 0
) -> HTMLResponse:
    source_id = workspace.sources.get(source).id if source else None
    offset = min(max(0, offset), 10**9)
    found = listed(workspace.engine, source_id=source_id, text=q[:200], limit=LIMIT, offset=offset)
    return page(
        request,
        "tables.html",
        actor,
        "Tables",
        page=found,
        filter=q[:200],
        source=source,
        sources=workspace.sources.all(),
        offset=offset,
        limit=LIMIT,
        query=urlencode({"q": q[:200], "source": source}),
    )


@router.get("/tables/{lake}/{name}")
def one_page(lake: str, name: str, request: Request, workspace: TheWorkspace, actor: Viewer) -> HTMLResponse:
    given = {key: request.query_params.get(key, "")[:300] for key in ("column", "type")}
    return _one(request, workspace, actor, lake, name, given)


@router.get("/tables/{lake}/{name}/_columns")
def columns_part(lake: str, name: str, request: Request, workspace: TheWorkspace, actor: Viewer) -> HTMLResponse:
    found = tables.opened(workspace.lake(lake), name)
    return page(request, "_columns.html", actor, found=found, columns=_columns(found), **_looked(found))


def _looked(found: tables.Opened) -> dict[str, Any]:
    """What is in the columns, from whom it came, and what did not fit."""
    try:
        with turn():
            looked, trouble = tables.safely(tables.values, found)
            senders, _ = tables.safely(tables.senders, found)
            misfits, _ = tables.safely(tables.misfits, found)
    except TooManyError as error:
        return _NOT_LOOKED | {"waits": error}
    by_column: dict[str, list[tables.Misfits]] = {}
    for one in misfits or ():
        by_column.setdefault(one.column, []).append(one)
    return _NOT_LOOKED | {"looked": looked, "trouble": trouble, "senders": senders, "misfits": by_column}


@router.post("/tables/{lake}/{name}/retype")
def retype(
    lake: str, name: str, request: Request, workspace: TheWorkspace, actor: Sender, changes: Operator, fields: Fields
) -> Response:
    try:
        order = changes.order_retype(lake, name, fields.get("column", ""), fields.get("type", ""))
    except EventLakeError as error:
        return _one(request, workspace, actor, lake, name, {"column": "", "type": ""}, error)
    owner = workspace.connections.of_table(lake, order.source_id)
    return go(f"/connections/{owner.full_name}", "The type is being changed: it begins in a moment.")


@router.get("/sql")
def sql_page(
    request: Request, workspace: TheWorkspace, actor: Viewer, q: str = "", lake: str = DEFAULT_LAKE
) -> HTMLResponse:
    found, is_cut, problem, took = None, False, None, ""
    if q.strip():
        begun = time.monotonic()
        try:
            found, is_cut = rows.ask(workspace, q[:20_000], lake, ROWS)
        except EventLakeError as error:
            problem = error
        took = f"{time.monotonic() - begun:.1f} s"
    numbers = _numbers(found) if found is not None else set()
    names = listed(workspace.engine, lake=lake, limit=_NAMES)
    return page(
        request,
        "sql.html",
        actor,
        "Tables",
        status=422 if problem else 200,
        problem=problem,
        sql=q,
        lake=lake,
        lakes=list(workspace.settings.all_lakes),
        columns=found.column_names if found is not None else [],
        rows=rows.as_json(found) if found is not None else None,
        numbers=numbers,
        chart=_chart(found, numbers) if found is not None else [],
        is_cut=is_cut,
        took=took,
        seconds=round(rows.SECONDS),
        limit=ROWS,
        names=[table.full_name for table in names.tables],
        more=max(0, names.total - _NAMES),
        query=urlencode({"q": q, "lake": lake}),
    )


@router.get("/sql/names")
def sql_names(
    workspace: TheWorkspace, actor: Viewer, word: str = "", q: str = "", lake: str = DEFAULT_LAKE
) -> JSONResponse:
    """What the word that somebody writes may become."""
    del actor
    return JSONResponse(proposed(workspace.engine, lake, word[:200].replace('"', ""), q[:20_000]))


@router.get("/sql.csv")
def sql_csv(workspace: TheWorkspace, actor: Viewer, q: str = "", lake: str = DEFAULT_LAKE) -> Response:
    del actor
    found, _ = rows.ask(workspace, q[:20_000], lake, 10 * ROWS)
    headers = {"content-disposition": 'attachment; filename="rows.csv"'}
    return Response(rows.as_csv(found), media_type="text/csv; charset=utf-8", headers=headers)


@router.get("/health")
def health_page(
    request: Request, workspace: TheWorkspace, actor: Viewer, counted: Counted, source: str = "", day: str = ""
) -> HTMLResponse:
    source_id = workspace.sources.get(source).id if source else None
    days = counted.of(source_id)
    begun = day_of(day)
    chosen = begun if begun is not None else days[-1][0]
    link = urlencode({"source": source})
    return page(
        request,
        "health.html",
        actor,
        "Health",
        days=[(date_of(one)[5:], number, f"/health?{link}&day={date_of(one)}") for one, number in days],
        source=source,
        sources=workspace.sources.all(),
        slugs=workspace.sources.slugs(),
        day_text=date_of(chosen),
        **_of_day(workspace, source_id, chosen),
        connections=[one for one in statuses(workspace) if source_id in (None, one.connection.source.id)],
    )


def _of_day(workspace: Workspace, source_id: str | None, day: int) -> dict[str, Any]:
    if source_id is None:
        found = health.sources_of_day(workspace, day)
        return {"of_sources": found, "of_tables": None, "total": sum(one.rows for one in found)}
    shares = health.tables_of_day(workspace, source_id, day)
    return {"of_sources": [], "of_tables": shares, "total": sum(one.rows for one in shares)}


def _one(
    request: Request,
    workspace: Workspace,
    actor: Actor,
    lake: str,
    name: str,
    given: dict[str, str],
    problem: EventLakeError | None = None,
) -> HTMLResponse:
    found = tables.opened(workspace.lake(lake), name)
    preview = None
    if given["column"] and given["type"]:
        try:
            with turn():
                preview = tables.preview(found, given["column"], given["type"])
        except EventLakeError as error:
            problem = error
    source_id, full = found.table.source_id, found.name
    summary = next(
        one
        for one in listed(workspace.engine, lake=lake, source_id=source_id, text=full).tables
        if one.full_name == full
    )
    return page(
        request,
        "table.html",
        actor,
        "Tables",
        status=422 if problem else 200,
        problem=problem,
        found=found,
        listed=summary,
        location=found.table.location,
        columns=_columns(found),
        **(_looked(found) if "values" in request.query_params else _NOT_LOOKED),
        timeline=_timeline(found.history),
        types=[kind.value for kind in found.connection.settings.declarations.types],
        given=given,
        preview=preview,
    )


def _columns(found: tables.Opened) -> list[dict[str, Any]]:
    added = {event.column: event for event in found.history if event.change == "added"}
    retyped = {event.column: event for event in found.history if event.change == "retyped"}
    always = found.connection.dialect.columns(found.table.table_key).always
    return [
        {
            "name": column.name,
            "type": column.type.value,
            "pointer": column.pointer,
            "added": added.get(column.name),
            "old_type": retyped[column.name].old_type if column.name in retyped else None,
            "may_change": column.name not in always and column.pointer != "",
        }
        for column in found.table.schema.columns
    ]


def _timeline(history: list[SchemaEvent]) -> list[dict[str, Any]]:
    """What each run changed, newest first."""
    runs: dict[str, list[SchemaEvent]] = {}
    for event in history:
        runs.setdefault(event.run_id, []).append(event)
    told = []
    for run_id, events in sorted(runs.items(), reverse=True):
        words = [f"{event.column} became {event.type}, was {event.old_type}" for event in events if event.old_type]
        new = [event.column for event in events if event.change == "added"]
        if new:
            more = f" and {len(new) - 5:,} more" if len(new) > 5 else ""
            words.append(f"{count(len(new), 'new column')}: {', '.join(new[:5])}{more}")
        told.append({"run_id": run_id, "at": events[0].at, "words": "; ".join(words)})
    return told


def _numbers(found: pa.Table) -> set[int]:
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return {number for number, field in enumerate(found.schema) if any(kind(field.type) for kind in kinds)}


def _chart(found: pa.Table, numbers: set[int]) -> list[tuple[str, float, None]]:
    """Bars, if there is one number for each of a few names."""
    last = found.num_columns - 1
    if found.num_columns < 2 or last not in numbers or 0 in numbers or not 1 < found.num_rows <= _CHARTED:
        return []
    names, values = found.column(0).to_pylist(), found.column(last).to_pylist()
    if any(value is None or value < 0 for value in values):
        return []
    return [(rows.text(name)[:30], float(value), None) for name, value in zip(names, values, strict=True)]
