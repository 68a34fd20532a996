"""Tables: their columns, their history, what is in them, what did not fit; and SQL over them."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from eventlake.events import instants
from eventlake.status import quality, tables
from eventlake.status.listing import listed
from eventlake.status.quality import Wanted
from eventlake.web import rows
from eventlake.web.access import Operator, TheWorkspace, reader
from eventlake.web.api.models import OrderOut, moment
from eventlake.web.api.table_models import (
    BadLineOut,
    ColumnOut,
    MisfitOut,
    PreviewOut,
    QueryOut,
    QueryRequest,
    RetypeRequest,
    SchemaChangeOut,
    TableDetails,
    TableOut,
    TablePage,
)
from eventlake.web.turns import turn

router = APIRouter(tags=["tables"])
looking = [Depends(reader)]
Text = Annotated[str | None, Query(max_length=200)]


@router.get("/tables", dependencies=looking)
def list_tables(
    workspace: TheWorkspace,
    lake: Text = None,
    source: Text = None,
    text: Annotated[str, Query(max_length=200, description="Only those with this in their names.")] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
) -> TablePage:
    """Tables in order of their names."""
    source_id = workspace.sources.get(source).id if source else None
    found = listed(workspace.engine, lake=lake, source_id=source_id, text=text, limit=limit, offset=offset)
    return TablePage(total=found.total, tables=[TableOut.of(one) for one in found.tables])


@router.get("/tables/{lake}/{name}", dependencies=looking)
def get_table(lake: str, name: str, workspace: TheWorkspace) -> TableDetails:
    """The columns of a table, and since when it has them."""
    found = tables.opened(workspace.lake(lake), name)
    added = {event.column: event for event in found.history if event.change == "added"}
    return TableDetails(
        lake=lake,
        name=found.name,
        source=found.connection.source.slug,
        partition_keys=list(found.table.partition_keys),
        location=found.lake.storage.full(found.table.location),
        columns=[
            ColumnOut(
                name=column.name,
                type=column.type.value,
                pointer=column.pointer,
                added_at=moment(added[column.name].at) if column.name in added else None,
                added_run=added[column.name].run_id if column.name in added else None,
            )
            for column in found.table.schema.columns
        ],
    )


@router.get("/tables/{lake}/{name}/history", dependencies=looking)
def get_history(lake: str, name: str, workspace: TheWorkspace) -> list[SchemaChangeOut]:
    """When each column came or changed its type, oldest first."""
    return [
        SchemaChangeOut(**{**event._asdict(), "at": instants.to_text(event.at)})
        for event in tables.opened(workspace.lake(lake), name).history
    ]


@router.get("/tables/{lake}/{name}/rescued", dependencies=looking)
def get_rescued(lake: str, name: str, workspace: TheWorkspace) -> list[MisfitOut]:
    """Values that did not fit their columns, by column and reason, among the newest rows."""
    found = tables.opened(workspace.lake(lake), name)
    with turn():
        return [MisfitOut(**one._asdict()) for one in tables.misfits(found)]


@router.post("/tables/{lake}/{name}/retype-preview", dependencies=looking)
def preview_retype(lake: str, name: str, wanted: RetypeRequest, workspace: TheWorkspace) -> PreviewOut:
    """What another type would bring in, and what would lose its cell."""
    found = tables.opened(workspace.lake(lake), name)
    with turn():
        return PreviewOut(**tables.preview(found, wanted.column, wanted.type)._asdict())


@router.post("/tables/{lake}/{name}/retypes", status_code=202)
def order_retype(lake: str, name: str, wanted: RetypeRequest, changes: Operator, workspace: TheWorkspace) -> OrderOut:
    """Give a column another type, over its whole history."""
    order = changes.order_retype(lake, name, wanted.column, wanted.type)
    return OrderOut.of(order, workspace.sources.slugs())


@router.post("/query", dependencies=looking)
def run_query(wanted: QueryRequest, workspace: TheWorkspace) -> QueryOut:
    """Ask a lake in SQL: it reads tables and nothing else, for 30 seconds at most."""
    found, is_cut = rows.ask(workspace, wanted.sql, wanted.lake, wanted.limit)
    return QueryOut(
        columns=found.column_names,
        types=[str(field.type) for field in found.schema],
        rows=rows.as_json(found),
        is_cut=is_cut,
    )


@router.get("/quarantine", dependencies=looking)
def list_quarantine(
    workspace: TheWorkspace,
    lake: Annotated[str, Query(max_length=50)] = "default",
    source: Text = None,
    run: Annotated[str | None, Query(pattern=r"^\d{1,30}$")] = None,
    reason: Text = None,
) -> list[BadLineOut]:
    """Lines that are not events, of the last runs or of one."""
    slugs = workspace.sources.slugs()
    source_id = workspace.sources.get(source).id if source else None
    found = quality.quarantined(workspace, Wanted(source_id, lake), run_id=run, reason=reason)
    return [
        BadLineOut(
            **{key: value for key, value in one._asdict().items() if key != "source_id"},
            source=slugs.get(one.source_id, one.source_id),
        )
        for one in found.lines
    ]
