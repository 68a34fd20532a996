"""`eventlake verify` and `doctor`: is everything as it should be?"""

import shutil
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from eventlake.cli import output, state
from eventlake.cli.state import JsonFlag
from eventlake.errors import EventLakeError
from eventlake.runners.java import java_home
from eventlake.sync.repair import repair
from eventlake.sync.verify import Finding
from eventlake.sync.verify import verify as verify_source
from eventlake.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable


def verify(
    slugs: Annotated[list[str] | None, typer.Argument(metavar="[SLUG…]", help="Sources; by default all.")] = None,
    mend: Annotated[bool, typer.Option("--repair", help="Mend what the raw archive can give back.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Recount the raw archive against the lake; exit code 1 if anything differs.

    Reads every raw file and every data file, and compares them with the catalog, the index of message ids, the books
    and the reports. What differs is named: which file, which table and hour, how many rows, which messages.
    """
    place = state.workspace()
    sources = [place.sources.get(slug) for slug in slugs] if slugs else place.sources.all()
    findings: list[tuple[str, Finding]] = []
    with state.spark(place) as runner:
        for source in sources:
            with output.progress() as report:
                found = verify_source(place, source, runner, report)
                if found and mend:
                    repair(place, source, found, runner, report)
                    found = verify_source(place, source, runner)
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
        output.out.print(f"Everything agrees: {rows:,} rows of {len(sources)} sources.")
    if findings:
        raise typer.Exit(1)


def doctor(as_json: JsonFlag = False) -> None:
    """Check settings, storage, database, Java and Spark, step by step, each with its fix."""
    place = state.workspace()
    steps: list[tuple[str, Callable[[Workspace], str]]] = [
        ("settings", lambda place: f"workspace {place.settings.workspace_id}"),
        ("storage", _storage),
        ("disk space", _space),
        ("database", lambda place: f"{len(place.sources.all())} sources"),
        ("catalog", lambda place: f"{len(place.catalog.tables())} tables"),
        ("java", lambda _: str(java_home())),
        ("spark", _spark),
    ]
    results: list[dict[str, Any]] = []
    for name, step in steps:
        try:
            results.append({"step": name, "status": "passed", "detail": step(place)})
        except EventLakeError as error:
            results.append({"step": name, "status": "failed", "detail": error.problem, "fix": error.fix})
        except Exception as error:  # a doctor must not die of the illness
            fix = "see the message; `eventlake --verbose` shows more"
            results.append({"step": name, "status": "failed", "detail": f"{type(error).__name__}: {error}", "fix": fix})
    failed = any(result["status"] == "failed" for result in results)
    if as_json:
        output.print_json(results)
    else:
        marks = {"passed": Text("✓", "green"), "failed": Text("✗", "bold red")}
        rows = [(marks[r["status"]], r["step"], r["detail"], f"Fix: {r['fix']}" if "fix" in r else "") for r in results]
        output.table(None, ("", "step", "", ""), rows)
    if failed:
        raise typer.Exit(1)


def _storage(place: Workspace) -> str:
    path = "segment-stage/.doctor"
    place.storage.write(path, b"ok")
    seen = place.storage.read(path) == b"ok" and path in {file.path for file in place.storage.files("segment-stage")}
    place.storage.delete(path)
    if not seen or place.storage.stat(path):
        raise EventLakeError(f"{place.storage.root} does not give back what was written", fix="check the disk")
    return f"write, read, list and delete in {place.storage.root}"


def _space(place: Workspace) -> str:
    free = shutil.disk_usage(place.folder).free
    if free < 1_000_000_000:
        raise EventLakeError(
            f"only {output.size(free)} free", fix="make room: a sync needs about the size of its raw files"
        )
    return f"{output.size(free)} free"


def _spark(place: Workspace) -> str:
    with state.spark(place) as runner:
        cores = runner.parallelism
        runner.run(_twice, None, list(range(cores)))
        return f"{place.settings.spark.master}, {cores} tasks at once"


def _twice(_: None, number: int) -> int:
    return 2 * number
