"""`eventlake lake`: the places where tables live."""

from typing import Annotated

import typer

from eventlake.cli import doctor, output, state
from eventlake.cli.state import JsonFlag
from eventlake.settings import DEFAULT_LAKE

app = typer.Typer(no_args_is_help=True, help="Lakes: the places where tables live, as eventlake.toml names them.")


@app.command(name="list")
def list_lakes(as_json: JsonFlag = False) -> None:
    """Show the lakes and the sources that are connected to them."""
    workspace = state.workspace()
    connections = workspace.connections.all()
    shown = [
        {
            "lake": lake.name,
            "root": lake.storage.root,
            "dialect": lake.settings.dialect,
            "catalog": lake.settings.catalog.kind,
            "runner": lake.settings.runner.kind,
            "sources": [one.source.slug for one in connections if one.lake == lake.name],
        }
        for lake in workspace.lakes.values()
    ]
    if as_json:
        output.print_json(shown)
    else:
        columns = ("lake", "root", "dialect", "catalog", "runner")
        rows = [(*(one[name] for name in columns), ", ".join(one["sources"])) for one in shown]
        output.table(None, (*columns, "sources"), rows)
        for name, problem in workspace.settings.wrong_lakes.items():
            output.talk.print(output.printable(f"{name} cannot be used. {problem}"))


@app.command()
def check(
    name: Annotated[str, typer.Argument(metavar="[LAKE]", help="By default the default one.")] = DEFAULT_LAKE,
    parts: doctor.Parts = None,
    as_json: JsonFlag = False,
) -> None:
    """Try every part of a lake that a sync needs, one after the other: storage, catalog and runner, each with its fix.

    Example: eventlake lake check aws
    """
    doctor.check([state.lake(name)], parts or (), as_json)
