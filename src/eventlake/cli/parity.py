"""`eventlake parity`: does a lake that somebody else wrote have the same rows?"""

from typing import Annotated

import typer

from eventlake.cli import output, state
from eventlake.cli.connections import Name
from eventlake.cli.state import JsonFlag
from eventlake.query.parity import Parity
from eventlake.query.parity import parity as compared
from eventlake.reports.words import count
from eventlake.settings.storage import StorageSettings

_SHOWN = 50


def parity(
    name: Name,
    where: Annotated[
        str | None,
        typer.Argument(
            metavar="[ADDRESS]",
            help="Their tables: a folder, s3://…, gs://… or abfss://…, with segment_type=… in it; by default, whatever "
            "is beside ours in the lake.",
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Compare a lake that Segment wrote with this one: rows, messages and cells; exit code 1 if rows are missing.

    For moving in: load the same raw archive, then see what differs, by table and hour. Nothing is changed.

    Example: eventlake parity web s3://acme-events/segment-data/data/5GmQbRYjUf
    """
    workspace = state.workspace()
    connection = workspace.connections.get(name)
    lake = workspace.lake(connection.lake)
    other, folder = lake.storage, connection.dialect.data_folder
    if where is not None:
        way_in = lake.settings.model_dump(include={"timeout", "aws", "s3", "azure", "gcs"})
        other, folder = workspace.storage_of(StorageSettings.model_validate({**way_in, "root": where.rstrip("/")})), ""
    with output.talk.status("comparing…"):
        found = compared(lake, connection, other, folder)
    if as_json:
        output.print_json(
            {
                "hours": [hour._asdict() for hour in found.hours],
                "differences": [one._asdict() for one in found.differences],
                "only_theirs": found.only_theirs,
                "only_ours": found.only_ours,
            }
        )
    else:
        _show(found)
    if found.missing or found.only_theirs:
        raise typer.Exit(state.FAILED)


def _show(found: Parity) -> None:
    unlike = [hour for hour in found.hours if hour.missing or hour.extra or hour.theirs != hour.ours]
    if unlike:
        head = ("table", "hour (UTC)", "theirs", "ours", "missing", "extra", "missing messages")
        output.table("Rows that differ", head, [(*one[:6], ", ".join(one.examples)) for one in unlike[:_SHOWN]])
        if len(unlike) > _SHOWN:
            output.talk.print(f"{_SHOWN} of {count(len(unlike), 'hour')}; all with --json")
    if found.differences:
        columns = [(*one[:4], "we have no such column" if one.only_theirs else "") for one in found.differences]
        output.table("Cells that differ", ("table", "column", "rows", "for example", ""), columns[:_SHOWN])
    for words, names in (("Only they have", found.only_theirs), ("Only we have", found.only_ours)):
        if names:
            output.out.print(f"{words}: {', '.join(names[:_SHOWN])}")
    theirs, ours = count(sum(hour.theirs for hour in found.hours), "row"), sum(hour.ours for hour in found.hours)
    tables = count(len({hour.table for hour in found.hours}), "table")
    missing = count(found.missing, "message")
    output.out.print(f"{theirs} of theirs, {ours:,} of ours in {tables} that both have; {missing} missing.")
