"""`eventlake doctor`: every part that a sync needs, tried one after the other."""

import signal
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from eventlake.cli import output, state
from eventlake.cli.runners import surroundings
from eventlake.cli.state import JsonFlag
from eventlake.doctor.steps import examined, of_parts, refuse_unknown_parts, steps_of
from eventlake.settings import DEFAULT_LAKE
from eventlake.workspace import Lake

_MARKS = {"passed": Text("✓", "green"), "failed": Text("✗", "bold red"), "skipped": Text("-", "dim")}

Parts = Annotated[
    list[str] | None,
    typer.Argument(metavar="[PART…]", help="Only these, and what they need: storage, catalog, glue, spark, …"),
]


def doctor(
    parts: Parts = None,
    quick_start: Annotated[
        bool, typer.Option("--quick-start", help="Make a class cache, from which Spark starts sooner.")
    ] = False,
    expire_staging: Annotated[
        bool, typer.Option("--expire-staging", help="Give the bucket a rule that removes staging files after 14 days.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Check settings, storage, catalog, database, Java and Spark, step by step, each with its fix.

    Example: eventlake doctor storage
    """
    workspace = state.workspace()
    lakes = list(workspace.lakes.values()) or [workspace.lake()]  # if it is wrong, that is what there is to tell
    check(lakes, parts or (), as_json, quick_start=quick_start, expire_staging=expire_staging)


def check(lakes: Sequence[Lake], parts: Sequence[str], as_json: bool, **options: bool) -> None:
    """Show what came of the steps of some lakes; the program ends with 1 if one failed."""
    steps = {lake.name: steps_of(lake, surroundings, **options) for lake in lakes}
    refuse_unknown_parts((step for some in steps.values() for step in some), parts)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # which ends what a step has started elsewhere
    wanted = {lake.name: of_parts(steps[lake.name], parts) for lake in lakes}
    shown = {name: "" if len(lakes) == 1 or name == DEFAULT_LAKE else f"{name}: " for name in wanted}
    width = max(len(shown[name]) + len(step.name) for name, some in wanted.items() for step in some)
    results = []
    for lake in lakes:
        for one in examined(lake, wanted[lake.name]):
            results.append(one | {"step": f"{shown[lake.name]}{one['step']}"})
            if not as_json:
                _show(results[-1], width)
    if as_json:
        output.print_json(results)
    if any(result["status"] == "failed" for result in results):
        raise typer.Exit(1)


def _show(result: dict[str, Any], width: int) -> None:
    """A line of its own for each step, as soon as it is done: some take long."""
    line = Table(box=None, show_header=False, pad_edge=False)
    line.add_column(width=1)
    line.add_column(width=width)
    line.add_column(overflow="fold")
    fix = f"  Fix: {result['fix']}" if "fix" in result else ""
    line.add_row(_MARKS[result["status"]], result["step"], Text(output.printable(f"{result['detail']}{fix}")))
    output.out.print(line)
