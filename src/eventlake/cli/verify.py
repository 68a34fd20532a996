"""`eventlake verify`: is the lake what it should be?"""

from functools import partial
from typing import Annotated

import typer

from eventlake.audit.repair import repair
from eventlake.audit.verify import Finding
from eventlake.audit.verify import verify as verify_connection
from eventlake.cli import output, state
from eventlake.cli.runners import Runners
from eventlake.cli.state import JsonFlag, WaitOption
from eventlake.commit.ownership import refuse_unknown
from eventlake.control.connections import Connection
from eventlake.reports.words import count
from eventlake.workspace import Workspace


def verify(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[SOURCE[/LAKE]…]", help="Sources, or connections; by default all.")
    ] = None,
    mend: Annotated[bool, typer.Option("--repair", help="Mend what the raw archive can give back.")] = False,
    wait: WaitOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Recount the raw archive against the lake; exit code 1 if anything differs.

    Reads every raw file and every data file, and compares them with the catalog, the index of message ids, the books
    and the reports. What differs is named: which file, which table and hour, how many rows, which messages.
    """
    place = state.workspace()
    connections = place.connections.meant(names)
    for name in {one.lake for one in connections} if names else place.lakes:
        refuse_unknown(place.lake(name))
    findings: list[tuple[str, Finding]] = []
    with Runners(place) as runners:
        for connection in connections:
            attempt = partial(_verify, place, connection, runners, mend=mend)
            found = state.patiently(wait, connection.name, attempt)
            findings += [(connection.name, finding) for finding in found]
    if as_json:
        output.print_json(
            [{"source": name, "kind": f.kind, "where": f.where, "detail": f.detail} for name, f in findings]
        )
    elif findings:
        shown = [(name, f.kind, f.where, f.detail) for name, f in findings]
        output.table("What differs", ("source", "kind", "where", "detail"), shown)
    else:
        files = (file for one in connections for file in place.lake(one.lake).ledger.data_files(one.source.id))
        rows, of = sum(file.rows for file in files), len({one.source.id for one in connections})
        output.out.print(f"Everything agrees: {count(rows, 'row')} of {count(of, 'source')}.")
    if findings:
        raise typer.Exit(state.FAILED)


def _verify(place: Workspace, connection: Connection, runners: Runners, *, mend: bool) -> list[Finding]:
    with runners.of(connection.lake) as runner, output.progress() as report:
        found = verify_connection(place, connection, runner, report)
        if found and mend:
            repair(place, connection, found, runner, report)
            found = verify_connection(place, connection, runner)
    return found
