"""`eventlake tables`, `describe`, `runs` and `report`: what looks at the lake, and asks the database only."""

from typing import Annotated, Any

import typer

from eventlake.catalog.base import SYSTEM_DATABASE
from eventlake.cli import output, state
from eventlake.cli.declare import declarations_for, declare, type_reasons
from eventlake.cli.report_view import show_report
from eventlake.cli.state import JsonFlag, LakeOption
from eventlake.control.runs import Run
from eventlake.errors import NotFoundError
from eventlake.lake.report_columns import REPORT_COLUMNS
from eventlake.reports.words import count, size
from eventlake.settings import DEFAULT_LAKE
from eventlake.status.listing import ListedTable, listed
from eventlake.workspace import Lake, Workspace


def tables(name: LakeOption = DEFAULT_LAKE, as_json: JsonFlag = False) -> None:
    """Show the tables of the lake."""
    lake = state.lake(name)
    shown = [_summary(lake, table) for table in listed(lake.workspace.engine, lake=name, limit=None).tables]
    if as_json:
        output.print_json(shown)
        return
    if not shown:
        output.talk.print("There are no tables yet: eventlake sync makes them.")
        return
    columns = ("table", "rows", "columns", "partitions", "files", "size", "received until")
    rows = [
        (
            f"{t['database']}.{t['table']}",
            t["rows"],
            t["columns"],
            t["partitions"],
            t["files"],
            size(t["bytes"]),
            output.moment(t["last_received"]),
        )
        for t in shown
    ]
    output.table(None, columns, rows, numbers=columns[1:6], spare=("partitions", "files", "columns"))
    output.say((f"also: {SYSTEM_DATABASE}.sync_reports, {SYSTEM_DATABASE}.quarantine", "dim"))


def _summary(lake: Lake, table: ListedTable) -> dict[str, Any]:
    return {
        "database": table.database,
        "table": table.name,
        "source_id": table.source_id,
        "location": lake.storage.full(table.location),
        "rows": table.rows,
        "columns": table.columns,
        "partitions": table.partitions,
        "files": table.files,
        "bytes": table.bytes,
        "first_received": table.first_received,
        "last_received": table.last_received,
    }


def describe(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The table, as <database>.<table>.")],
    types: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="COLUMN=TYPE", help="Declare the type of a column to come; may be repeated."),
    ] = None,
    name: LakeOption = DEFAULT_LAKE,
    as_json: JsonFlag = False,
) -> None:
    """Show the columns of a table: their types, where in the event they come from, and since when."""
    lake = state.lake(name)
    found = next((t for t in lake.catalog.tables() if f"{t.database}.{t.name}" == table), None)
    if types:
        declare(lake, found, types)
    if table == f"{SYSTEM_DATABASE}.sync_reports":
        _show_columns(
            [{"name": column.name, "type": column.duckdb} for column in REPORT_COLUMNS], as_json, {"table": table}
        )
        return
    if table == f"{SYSTEM_DATABASE}.quarantine":
        known = [{"name": "source_id", "type": "string"}, {"name": "run_id", "type": "string"}]
        known += [{"name": column.name, "type": str(column.type)} for column in _quarantine_columns()]
        _show_columns(known, as_json, {"table": table})
        return
    if found is None:
        raise NotFoundError(f"there is no table {table!r}", fix="see `eventlake tables`")
    history = lake.catalog.history(found.database, found.name)
    reasons = type_reasons(lake, found, {event.run_id for event in history if event.change == "added"})
    added = {event.column: event for event in history if event.change == "added"}
    retyped = {event.column: event for event in history if event.change == "retyped"}
    columns = []
    for column in found.schema.columns:
        entry: dict[str, Any] = {"name": column.name, "type": column.type.value, "pointer": column.pointer}
        if column.name in added:
            entry |= {
                "added_at": output.moment(added[column.name].at),
                "added_run": added[column.name].run_id,
            }
        if column.name in retyped:
            event = retyped[column.name]
            entry |= {
                "retyped_at": output.moment(event.at),
                "retyped_run": event.run_id,
                "old_type": event.old_type,
            }
        elif column.name in reasons:
            entry["reason"] = reasons[column.name]
        columns.append(entry)
    columns += [{"name": key, "type": "string", "partition": True} for key in found.partition_keys]
    (summary,) = listed(lake.workspace.engine, lake=name, name=table).tables
    _show_columns(
        columns,
        as_json,
        _summary(lake, summary) | {"table": table, "declared": declarations_for(lake, found)},
    )


def _quarantine_columns() -> Any:
    from eventlake.lake.quarantine import SCHEMA  # noqa: PLC0415 - the other commands here do without Arrow

    return SCHEMA


def _show_columns(columns: list[dict[str, Any]], as_json: bool, summary: dict[str, Any]) -> None:
    if as_json:
        output.print_json({**summary, "columns": columns})
        return
    rows = [
        (
            column["name"],
            column["type"],
            "partition" if column.get("partition") else column.get("pointer"),
            column.get("added_at"),
            f"was {column['old_type']} until {column['retyped_at']}"
            if "retyped_at" in column
            else column.get("reason"),
        )
        for column in columns
    ]
    output.table(summary["table"], ("column", "type", "from", "since", ""), rows)
    if "location" in summary:
        output.say(
            (f"{count(summary['rows'], 'row')} in {count(summary['files'], 'file')}, {summary['location']}", "dim")
        )
    if summary.get("declared"):
        output.say((f"declared for new columns: {', '.join(summary['declared'])}", "dim"))


def runs(
    name: Annotated[
        str | None, typer.Argument(metavar="[SOURCE[/LAKE]]", help="Only this source, or this connection.")
    ] = None,
    limit: Annotated[int, typer.Option(help="How many, newest first.")] = 100,
    as_json: JsonFlag = False,
) -> None:
    """Show the history of runs, also those under way."""
    workspace = state.workspace()
    names = _connection_names(workspace)
    found = _runs_of(workspace, name, limit)
    shown = []
    for run in found:
        head = run.report[0] if run.report else {}
        ended = run.finished_at or workspace.clock.now()
        shown.append(
            {
                "run_id": run.run_id,
                "source": names.get((run.source_id, run.lake), run.source_id),
                "kind": run.kind,
                "status": run.outcome,
                "start_time": output.moment(run.started_at),
                "duration_seconds": round((ended - run.started_at) / 1e6, 1),
                "rows": head.get("row_count"),
                "notices": head.get("notices", []) + ([head["error"]] if "error" in head else []),
                "fix": head.get("fix"),
            }
        )
    if as_json:
        output.print_json(shown)
        return
    if not shown:
        output.talk.print("There was no run yet: eventlake sync starts one.")
        return
    columns = ("run", "source", "kind", "status", "started", "seconds", "rows")
    rows = [
        (r["run_id"], r["source"], r["kind"], r["status"], r["start_time"], r["duration_seconds"], r["rows"])
        for r in shown
    ]
    output.lines(columns, rows, numbers=("seconds", "rows"), below=[_below(r) for r in shown])


def _below(run: dict[str, Any]) -> list[str]:
    return [*run["notices"], *([f"Fix: {run['fix']}"] if run["fix"] else [])]


def report(
    which: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN|SOURCE[/LAKE]]",
            help="A run, or the latest of a source or connection, or of all.",
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show the report of a run; of one that is under way, how far it is."""
    workspace = state.workspace()
    run = workspace.runs.get(which if which is None or which.isdigit() else _latest_of(workspace, which))
    name = _connection_names(workspace).get((run.source_id, run.lake), run.source_id)
    if run.report is None:
        if as_json:
            output.print_json(
                {
                    "type": "source",
                    "run_id": run.run_id,
                    "source_id": run.source_id,
                    "status": "running",
                    "step": run.step,
                }
            )
        else:
            since = output.moment(run.started_at)
            output.say(f"{name}: run {run.run_id} is at the step ", (run.step, "bold"), f" since {since}")
        return
    if as_json:
        for line in run.report:
            output.print_json(line)
    else:
        show_report(name, run.report)


def _connection_names(workspace: Workspace) -> dict[tuple[str, str], str]:
    """What people call connections, by source id and lake; also of those that are no more."""
    lakes = workspace.named_lakes
    return {(one.source.id, one.lake): one.name for name in lakes for one in workspace.connections.of_lake(name)}


def _runs_of(workspace: Workspace, name: str | None, limit: int) -> list[Run]:
    """The runs of a source, or of a connection; also of one that is no more."""
    if name is None:
        return workspace.runs.latest(limit)
    slug, _, lake = name.partition("/")
    return workspace.history(lake).latest(limit, workspace.sources.get(slug).id)


def _latest_of(workspace: Workspace, name: str) -> str:
    found = _runs_of(workspace, name, 1)
    if not found:
        raise NotFoundError(f"there was no run of {name} yet", fix=f"start one with `eventlake sync {name}`")
    return found[0].run_id
