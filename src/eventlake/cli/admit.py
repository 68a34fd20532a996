"""`eventlake drop`, `allow` and `adopt`: which tables a source has."""

from typing import Annotated, Any

import typer

from eventlake.cli import output, state
from eventlake.cli.connections import Name
from eventlake.cli.load import run_all
from eventlake.cli.state import JsonFlag, LakeOption
from eventlake.errors import InvalidSettingsError
from eventlake.settings import DEFAULT_LAKE
from eventlake.sync import requests
from eventlake.workspace import Workspace


def drop(
    table: Annotated[str | None, typer.Argument(metavar="[TABLE]", help="The table, as <database>.<table>.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    name: LakeOption = DEFAULT_LAKE,
    show: Annotated[bool, typer.Option("--list", help="Show what was dropped, and what was refused.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Take a table out of the lake and keep its events out; the raw archive is not touched.

    The table's files, its place in the catalog and its message ids go, in one commit. Its events are counted as blocked
    from then on, until `eventlake allow` lets them in again.

    Example: eventlake drop web.track_asdf
    """
    workspace = state.workspace()
    if show == (table is not None):
        raise InvalidSettingsError("drop needs a table, or --list", fix="for example `eventlake drop web.track_asdf`")
    if table is None:
        _show(workspace, as_json)
        return
    lake = workspace.lake(name)
    job, found = requests.drop(lake, table), requests.table_named(lake, table)
    rows = sum(file.rows for file in lake.ledger.data_files(found.source_id, found.table_key))
    if not yes:
        output.talk.print(
            f"{table} has {rows:,} rows. They leave the lake, and events for them are left out from now on. The raw "
            f"archive keeps them: `eventlake allow {job.connection.name} {found.name}` loads them again."
        )
        typer.confirm(f"Drop {table}?", abort=True, err=True)
    run_all(workspace, [job], as_json)


def allow(
    name: Name,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME…]", help="Events or tables that were dropped or refused.")
    ] = None,
    refused: Annotated[
        bool, typer.Option("--refused", help="All for which there was no room, see `drop --list`.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Let events in that were left out: those of dropped tables, and those for whose tables there was no room.

    They are loaded from the raw archive, and from then on like all others. `table_limit` holds here too.

    Example: eventlake allow web "Order Refunded"
    """
    workspace = state.workspace()
    connection = workspace.connections.get(name)
    if refused == bool(names):
        raise InvalidSettingsError(
            "allow needs names, or --refused", fix=f"`eventlake allow {name} NAME…`; see `eventlake drop --list`"
        )
    run_all(workspace, [requests.allow(workspace.lake(connection.lake), connection, names or None)], as_json)


def adopt(
    name: Name,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be taken over.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Begin with the tables of a lake that Segment or RudderStack made: their columns and types stay as they are.

    Reads the tables of the connection's database in Glue or a Hive metastore or, without one, the Parquet files where
    its tables would be. From then on syncs write beside those files, and append columns. Nothing of theirs is moved or
    deleted. What they hold is seen by Athena and whoever lists folders; `eventlake query` shows what eventlake has
    loaded.

    Example: eventlake adopt web/aws
    """
    workspace = state.workspace()
    connection = workspace.connections.get(name)
    job = requests.adopt(workspace.lake(connection.lake), connection)
    if not dry_run:
        run_all(workspace, [job], as_json)
        return
    found = {change.table: {column.name: column.type.value for column in change.added} for change in job.adopted}
    if as_json:
        output.print_json(found)
        return
    rows = [(table, len(columns), ", ".join(columns)) for table, columns in found.items()]
    output.table(None, ("table", "columns", "names"), rows, numbers=("columns",))


def _show(workspace: Workspace, as_json: bool) -> None:
    shown: list[dict[str, Any]] = []
    for connection in workspace.connections.all():
        table_name, source_id = connection.dialect.table_name, connection.source.id
        admission = workspace.lake(connection.lake).admission
        common = {"source": connection.name}
        shown += [
            {
                **common,
                "table": table_name(t.table_key),
                "state": "dropped",
                "rows": t.rows,
                "at": output.moment(t.at),
            }
            for t in admission.dropped(source_id)
        ]
        shown += [
            {
                **common,
                "table": table_name(t.table_key),
                "state": "refused",
                "lines": t.lines,
                "runs": t.runs,
                "at": output.moment(t.at),
            }
            for t in admission.refused(source_id)
        ]
    if as_json:
        output.print_json(shown)
        return
    if not shown:
        output.talk.print("No table was dropped, and none was refused.")
        return
    columns = ("source", "table", "state", "rows", "lines", "runs", "at")
    output.table(None, columns, [[entry.get(name) for name in columns] for entry in shown], numbers=columns[3:6])
