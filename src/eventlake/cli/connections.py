"""`eventlake connect`, `disconnect` and `connection`: which sources go to which lakes, and how."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from eventlake.cli import output, state
from eventlake.cli.state import JsonFlag
from eventlake.control import segment_names
from eventlake.control.connections import Connection
from eventlake.control.settings import RudderStackSettings, SegmentSettings
from eventlake.errors import InvalidSettingsError
from eventlake.events import instants
from eventlake.reports.words import count
from eventlake.settings import DEFAULT_LAKE
from eventlake.workspace import CONFIG

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
    from_segment: Annotated[
        Path | None,
        typer.Option(
            "--from-segment",
            metavar="FILE",
            help="Take over a Segment Data Lake: its destination as Segment's API shows it, in JSON.",
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
        lake = words.pop(0) if words and "=" not in words[0] else ""
    changes = assignments(words)
    if from_segment is not None:
        if like:
            raise InvalidSettingsError("--like and --from-segment exclude each other", fix="give one of them")
        made = _as_at_segment(from_segment, slug, lake, changes)
    else:
        made = state.changes().connect(slug, lake or DEFAULT_LAKE, changes, like=like)
    tell_small_letters(made, changes)
    if as_json:
        output.print_json(shown(made))
        return
    output.pairs({"connection": made.name, **dict(zip(SUMMARY, summary(made), strict=True))})
    output.talk.print(f"Next: eventlake sync {made.name}")


def _as_at_segment(file: Path, slug: str, lake: str, changes: dict[str, str]) -> Connection:
    """Connect a source as Segment's settings say; the lake that they mean is made if it is not there."""
    from eventlake.library.new_lakes import connect_as_told  # noqa: PLC0415 - the other commands do without

    try:
        document = json.loads(file.read_bytes())
    except OSError as error:
        raise InvalidSettingsError(f"{file} cannot be read: {error.strerror}", fix="check its name") from error
    except ValueError as error:
        raise InvalidSettingsError(f"{file} is not JSON: {error}", fix="give what Segment's API shows") from error
    told = segment_names.told_by(document)
    made, has_new_lake = connect_as_told(state.workspace(), slug, told, changes, lake, who=state.who())
    if has_new_lake:
        output.talk.print(f"The lake {made.lake} is new: see [lakes.{made.lake}] in {CONFIG}.")
    tell_small_letters(made, told.connection)
    if not told.enabled:
        output.talk.print("At Segment it is switched off; `eventlake connection disable` does that here.")
    return made


def disconnect(name: Name) -> None:
    """Stop loading a source into a lake. Its tables and its raw archive stay as they are.

    Example: eventlake disconnect web/aws
    """
    gone = state.changes().disconnect(name)
    output.talk.print(f"{gone.source.slug} is not connected to the lake {gone.lake} any more; its tables stay.")


@app.command(name="list")
def list_connections(as_json: JsonFlag = False) -> None:
    """Show which sources go to which lakes, and when they are synced."""
    from eventlake.status.connections import statuses  # noqa: PLC0415 - the other commands do without

    found = [(one.connection, one.next_at if one.last else None) for one in statuses(state.workspace())]
    if as_json:
        times = [instants.to_text(at) if at is not None else None for _, at in found]
        output.print_json([shown(one) | {"next_sync_at": at} for (one, _), at in zip(found, times, strict=True)])
        return
    if not found:
        output.talk.print("There is no connection yet: eventlake source add web, or eventlake connect SOURCE LAKE")
        return
    rows = [
        (one.source.slug, one.lake, one.enabled, *summary(one), one.settings.schedule, output.moment(at))
        for one, at in found
    ]
    columns = ("source", "lake", "enabled", *SUMMARY, "schedule", "next sync")
    output.table(None, columns, rows, spare=("prefix", "look-back"))


@app.command(name="set", help=SETTINGS_HELP)
def set_settings(
    name: Name,
    settings: Annotated[list[str], typer.Argument(metavar="KEY=VALUE…", help="Settings to change.")],
    as_json: JsonFlag = False,
) -> None:
    changes = assignments(settings)
    changed = state.changes().set_settings(name, changes)
    tell_small_letters(changed, changes)
    _show_settings(changed, as_json)


@app.command()
def copy(
    origin: Annotated[str, typer.Argument(metavar="FROM", help="The connection whose settings are wanted.")],
    name: Annotated[str, typer.Argument(metavar="TO", help="The connection that gets them.")],
    as_json: JsonFlag = False,
) -> None:
    """Give a connection the settings of another; the database only if both are of the same source.

    Example: eventlake connection copy web/default web/aws
    """
    _show_settings(state.changes().copy_settings(origin, name), as_json)


@app.command()
def check(name: Name, as_json: JsonFlag = False) -> None:
    """Try everything that a sync of this connection needs, one after the other, each with its fix.

    What is written to try it is deleted again.

    Example: eventlake connection check web/aws
    """
    from eventlake.cli import doctor  # noqa: PLC0415 - takes its time to load, and the other commands do without

    doctor.check([state.lake(state.workspace().connections.get(name).lake)], (), as_json)


@app.command()
def enable(name: Name) -> None:
    """Let `sync` load this connection again; it catches up with everything that came in meanwhile."""
    found = state.changes().enable_connection(name, True)
    output.talk.print(f"{found.full_name} is enabled.")


@app.command()
def disable(name: Name) -> None:
    """Make `sync` pass this connection over. Nothing is lost: events are collected as before."""
    found = state.changes().enable_connection(name, False)
    output.talk.print(f"{found.full_name} is disabled; its tables stay, and its events are kept in the archive.")


def tell_small_letters(connection: Connection, given: dict[str, str]) -> None:
    """Catalogs know no capitals, so a prefix has none, whatever was given."""
    prefix = connection.settings.prefix
    if any(name in given and given[name] != prefix for name in ("table_prefix", "tablePrefix")):
        output.talk.print(f"Names of tables have no capitals: the table prefix is {prefix}.")


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
