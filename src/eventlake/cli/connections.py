"""`eventlake connect`, `disconnect` and `connection`: which sources go to which lakes, and how."""

from typing import Annotated, Any

import typer

from eventlake.cli import output, state
from eventlake.cli.state import JsonFlag
from eventlake.control.connections import Connection
from eventlake.control.settings import RudderStackSettings, SegmentSettings
from eventlake.errors import InvalidSettingsError
from eventlake.reports.words import count
from eventlake.settings import DEFAULT_LAKE

app = typer.Typer(no_args_is_help=True, help="Connections: sources in lakes, and how their events become tables there.")

Name = Annotated[
    str, typer.Argument(metavar="SOURCE[/LAKE]", help="The source; with its lake, if it is connected to several.")
]


def _help() -> str:
    """All settings; those that only lakes in RudderStack's dialect have come last."""
    known, others = SegmentSettings.model_fields, RudderStackSettings.model_fields
    told = [f"[bold]{name}[/bold]: {field.description}" for name, field in known.items()]
    told.append("In a lake with RudderStack's dialect, these instead of the first five:")
    told += [f"[bold]{name}[/bold]: {field.description}" for name, field in others.items() if name not in known]
    return "Change how the events of a source become tables.\n\n" + "\n\n".join(told)


SETTINGS_HELP = _help()
SUMMARY = ("database", "prefix", "date partition", "look-back")


def connect(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The source.")],
    rest: Annotated[
        list[str] | None,
        typer.Argument(metavar="[LAKE] [KEY=VALUE…]", help="The lake, by default the default one; and settings."),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(
            "--like",
            metavar="SOURCE[/LAKE]",
            help="Copy the settings of this connection; the database only of the same source.",
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Connect a source to a lake. The next sync loads all that is in the source's raw archive.

    A source that was connected to this lake before resumes where it left off.

    Example: eventlake connect web aws --like mobile/aws lookback_days=14
    """
    slug, _, lake = source.partition("/")
    words = list(rest or [])
    if not lake:
        lake = words.pop(0) if words and "=" not in words[0] else DEFAULT_LAKE
    made = state.workspace().connections.connect(slug, lake, assignments(words), like=like)
    if as_json:
        output.print_json(shown(made))
        return
    output.pairs({"connection": made.name, **dict(zip(SUMMARY, summary(made), strict=True))})
    output.talk.print(f"Next: eventlake sync {made.name}")


def disconnect(name: Name) -> None:
    """Stop loading a source into a lake. Its tables and its raw archive stay as they are.

    Example: eventlake disconnect web/aws
    """
    gone = state.workspace().connections.disconnect(name)
    output.talk.print(f"{gone.source.slug} is not connected to the lake {gone.lake} any more; its tables stay.")


@app.command(name="list")
def list_connections(as_json: JsonFlag = False) -> None:
    """Show which sources go to which lakes."""
    found = state.workspace().connections.all()
    if as_json:
        output.print_json([shown(one) for one in found])
        return
    if not found:
        output.talk.print("There is no connection yet: eventlake source add web, or eventlake connect SOURCE LAKE")
        return
    rows = [(one.source.slug, one.lake, one.enabled, *summary(one)) for one in found]
    output.table(None, ("source", "lake", "enabled", *SUMMARY), rows)


@app.command(name="set", help=SETTINGS_HELP)
def set_settings(
    name: Name,
    settings: Annotated[list[str], typer.Argument(metavar="KEY=VALUE…", help="Settings to change.")],
    as_json: JsonFlag = False,
) -> None:
    _show_settings(state.workspace().connections.change(name, assignments(settings)), as_json)


@app.command()
def copy(
    origin: Annotated[str, typer.Argument(metavar="FROM", help="The connection whose settings are wanted.")],
    name: Annotated[str, typer.Argument(metavar="TO", help="The connection that gets them.")],
    as_json: JsonFlag = False,
) -> None:
    """Give a connection the settings of another; the database only if both are of the same source.

    Example: eventlake connection copy web/default web/aws
    """
    _show_settings(state.workspace().connections.copy(origin, name), as_json)


@app.command()
def check(name: Name, as_json: JsonFlag = False) -> None:
    """Try everything that a sync of this connection needs, one after the other, each with its fix.

    What is written to try it is deleted again.

    Example: eventlake connection check web/aws
    """
    from eventlake.cli import doctor  # noqa: PLC0415 - takes its time to load, and the other commands do without

    doctor.show(doctor.examined(state.lake(state.workspace().connections.get(name).lake)), as_json)


@app.command()
def enable(name: Name) -> None:
    """Let `sync` load this connection again; it catches up with everything that came in meanwhile."""
    found = state.workspace().connections.enable(name, True)
    output.talk.print(f"{found.full_name} is enabled.")


@app.command()
def disable(name: Name) -> None:
    """Make `sync` pass this connection over. Nothing is lost: events are collected as before."""
    found = state.workspace().connections.enable(name, False)
    output.talk.print(f"{found.full_name} is disabled; its tables stay, and its events are kept in the archive.")


def assignments(texts: list[str]) -> dict[str, str]:
    """KEY=VALUE pairs."""
    pairs = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise InvalidSettingsError(
                f"{text!r} is not of the form KEY=VALUE", fix="for example lookback_days=14; a lake comes before them"
            )
        pairs[key.strip()] = value.strip()
    return pairs


def summary(connection: Connection | None) -> tuple[str | None, ...]:
    """What tables show of a connection."""
    if connection is None:
        return (None,) * len(SUMMARY)
    settings, days = connection.settings, connection.settings.lookback_days
    lookback = "unlimited" if days is None else count(days, "day")
    return connection.database, settings.prefix, settings.layout, lookback


def shown(connection: Connection) -> dict[str, Any]:
    return {
        "source": connection.source.slug,
        "source_id": connection.source.id,
        "lake": connection.lake,
        "enabled": connection.enabled,
        "settings": connection.settings.model_dump(mode="json"),
    }


def _show_settings(connection: Connection, as_json: bool) -> None:
    if as_json:
        output.print_json(shown(connection))
    else:
        output.pairs(connection.settings.model_dump(mode="json"))
