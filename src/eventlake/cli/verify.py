"""`eventlake verify`: is the lake what it should be?"""

from functools import partial
from typing import Annotated

import typer

from eventlake.cli import output, state
from eventlake.cli.state import JsonFlag, WaitOption
from eventlake.control.sources import Source
from eventlake.reports.words import count
from eventlake.sync.ownership import refuse_unknown
from eventlake.sync.repair import repair
from eventlake.sync.steps import Runner
from eventlake.sync.verify import Finding
from eventlake.sync.verify import verify as verify_source
from eventlake.workspace import Workspace


def verify(
    slugs: Annotated[list[str] | None, typer.Argument(metavar="[SLUG…]", help="Sources; by default all.")] = None,
    mend: Annotated[bool, typer.Option("--repair", help="Mend what the raw archive can give back.")] = False,
    wait: WaitOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Recount the raw archive against the lake; exit code 1 if anything differs.

    Reads every raw file and every data file, and compares them with the catalog, the index of message ids, the books
    and the reports. What differs is named: which file, which table and hour, how many rows, which messages.
    """
    place = state.workspace()
    refuse_unknown(place)
    sources = [place.sources.get(slug) for slug in slugs] if slugs else place.sources.all()
    findings: list[tuple[str, Finding]] = []
    with state.runner(place) as runner:
        for source in sources:
            found = state.patiently(wait, source.slug, partial(_verify, place, source, runner, mend=mend))
            findings += [(source.slug, finding) for finding in found]
    if as_json:
        output.print_json(
            [{"source": slug, "kind": f.kind, "where": f.where, "detail": f.detail} for slug, f in findings]
        )
    elif findings:
        shown = [(slug, f.kind, f.where, f.detail) for slug, f in findings]
        output.table("What differs", ("source", "kind", "where", "detail"), shown)
    else:
        rows = sum(file.rows for source in sources for file in place.ledger.data_files(source.id))
        output.out.print(f"Everything agrees: {count(rows, 'row')} of {count(len(sources), 'source')}.")
    if findings:
        raise typer.Exit(state.FAILED)


def _verify(place: Workspace, source: Source, runner: Runner, *, mend: bool) -> list[Finding]:
    with output.progress() as report:
        found = verify_source(place, source, runner, report)
        if found and mend:
            repair(place, source, found, runner, report)
            found = verify_source(place, source, runner)
    return found
