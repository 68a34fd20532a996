"""`eventlake transform`: how a source's events are changed before they have tables."""

from pathlib import Path
from typing import Annotated, Any

import click
import msgspec
import typer

from eventlake.cli import output, state
from eventlake.cli.state import JsonFlag
from eventlake.control.transformations import TransformationList, decoded
from eventlake.errors import InvalidSettingsError
from eventlake.library import plans as library
from eventlake.library.preview import previewed
from eventlake.policies.transformations import Transformation, shown

app = typer.Typer(no_args_is_help=True, help="Transformations: how events are changed before they have tables.")

Slug = Annotated[str, typer.Argument(metavar="SOURCE", help="The source's slug.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The transformation's name or id.")]
File = Annotated[Path, typer.Argument(metavar="FILE", help="JSON as Segment's API has it; - for standard input.")]


@app.command()
def add(source: Slug, file: File) -> None:
    """Add transformations, or replace those of the same names. They hold from the next sync on.

    What is in the lake already is changed by a replay: the raw archive keeps what was sent.

    Example: eventlake transform add web rename.json
    """
    rules = state.changes().rules
    for told in _read(file):
        made = rules.save_transformation(source, told)
        output.say(f"{made.name}: if {made.if_}")


@app.command("list")
def list_(source: Slug, as_json: JsonFlag = False) -> None:
    """Show the transformations of a source, in the order in which they are applied."""
    found = [shown(one) for one in _list().of_source(_id(source))]
    if as_json:
        output.print_json(found)
        return
    rest = ("id", "name", "if", "enabled")
    rows = [
        (
            one["name"],
            one["if"],
            "on" if one.get("enabled", True) else "off",
            ", ".join(k for k in one if k not in rest),
        )
        for one in found
    ]
    output.table(None, ("transformation", "if", "", "does"), rows)


@app.command()
def remove(source: Slug, name: Name) -> None:
    """Remove a transformation; a replay brings events back as they were sent."""
    output.say(f"{state.changes().rules.remove_transformation(source, name).name} is removed")


@app.command()
def enable(source: Slug, name: Name) -> None:
    """Apply a transformation again."""
    _switch(source, name, True)


@app.command()
def disable(source: Slug, name: Name) -> None:
    """Keep a transformation, and do not apply it."""
    _switch(source, name, False)


@app.command()
def preview(
    source: Slug,
    file: File,
    most: Annotated[int, typer.Option("--events", min=1, metavar="N", help="So many, of the last days first.")] = 1000,
    as_json: JsonFlag = False,
) -> None:
    """Show what a transformation would make of the last events of a source; nothing is changed.

    Example: eventlake transform preview web rename.json
    """
    workspace = state.workspace()
    sent = library.events_sent(workspace, _id(source), None, None, most)
    found = previewed([decoded(told) for told in _read(file)], (one.event for one in sent))
    if as_json:
        output.print_json(found._asdict())
        return
    output.say(f"{found.changed:,} of {found.events:,} events changed, {found.dropped:,} dropped")
    rows = [(one["where"], one["before"], one["after"]) for one in found.samples]
    output.table(None, ("place", "before", "after"), rows)


def _read(file: Path) -> list[Any]:
    try:
        with click.open_file(str(file), "rb") as content:
            told = msgspec.json.decode(content.read())
    except (OSError, msgspec.DecodeError) as error:
        raise InvalidSettingsError(f"{file} cannot be read: {error}", fix="give a file with JSON") from error
    if isinstance(told, dict) and isinstance(told.get("transformations"), list):
        told = told["transformations"]
    return told if isinstance(told, list) else [told]


def _switch(source: str, name: str, on: bool) -> None:
    found: Transformation = msgspec.structs.replace(_list().get(_id(source), name), enabled=on)
    state.changes().rules.save_transformation(source, found)
    output.say(f"{found.name} is {'on' if on else 'off'}")


def _id(source: str) -> str:
    return state.workspace().sources.get(source).id


def _list() -> TransformationList:
    return state.workspace().plans.transformations
