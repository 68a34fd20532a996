"""`eventlake verify`: is the lake what it should be?"""

from functools import partial
from typing import Annotated

import typer

from eventlake.audit.repair import mended
from eventlake.audit.verify import Finding, verified_each
from eventlake.audit.verify import verify as verify_connection
from eventlake.cli import output, state
from eventlake.cli.runners import Runners
from eventlake.cli.state import JsonFlag, WaitOption
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
    and the reports. What differs is named: which file, which table and hour, how many rows, which messages. What
    cannot be verified, in a lake that cannot be reached say, does not hold up the rest.
    """
    workspace = state.workspace()
    with Runners(workspace) as runners:

        def attempt(connection: Connection) -> list[Finding]:
            verify = partial(_verified, workspace, connection, runners, mend=mend)
            return state.patiently(wait, connection.name, verify)

        found = verified_each(workspace, names or (), attempt)
    findings = [(name, finding) for name, of_one in found.items() for finding in of_one]
    if as_json:
        output.print_json(
            [{"source": name, "kind": f.kind, "where": f.where, "detail": f.detail} for name, f in findings]
        )
    elif findings:
        shown = [(name, f.kind, f.where, f.detail) for name, f in findings]
        output.table("What differs", ("source", "kind", "where", "detail"), shown)
    else:
        connections = workspace.connections.meant(names)
        files = (file for one in connections for file in workspace.lake(one.lake).ledger.data_files(one.source.id))
        rows, of = sum(file.rows for file in files), len({one.source.id for one in connections})
        output.out.print(f"Everything agrees: {count(rows, 'row')} of {count(of, 'source')}.")
    if findings:
        raise typer.Exit(
            state.PARTLY if {finding.kind for _, finding in findings} == {"not_verified"} else state.FAILED
        )


def _verified(workspace: Workspace, connection: Connection, runners: Runners, *, mend: bool) -> list[Finding]:
    cluster_id = connection.settings.emr_cluster_id
    with runners.of(connection.lake, cluster_id) as runner, output.progress() as report:
        how = mended if mend else verify_connection
        return how(workspace, connection, runner, report)
