"""`eventlake source`: the apps that send events."""

from typing import Annotated, Any

import typer

from eventlake.cli import output, state
from eventlake.cli.connections import SETTINGS_HELP, SUMMARY, assignments, summary, tell_small_letters
from eventlake.cli.state import LakeOption
from eventlake.control.connections import Connection
from eventlake.control.sources import Source
from eventlake.events import instants
from eventlake.settings import DEFAULT_LAKE

app = typer.Typer(no_args_is_help=True, help="Sources: the apps that send events, and their write keys.")

Slug = Annotated[str, typer.Argument(metavar="SLUG", help="The source.")]
JsonFlag = state.JsonFlag


@app.command()
def add(
    slug: Slug,
    source_id: Annotated[
        str | None, typer.Option("--id", help="The source's id; it names its folder. Default: made up.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="A name for people.")] = None,
    lake: LakeOption = DEFAULT_LAKE,
    as_json: JsonFlag = False,
) -> None:
    """Add a source, and connect it to a lake. Its write key is shown once and not stored."""
    connection, key = state.changes().add_source(slug, source_id=source_id, name=name, lake=lake)
    if as_json:
        output.print_json(_shown(connection.source, connection) | {"write_key": key})
        return
    source = connection.source
    output.pairs({"source": source.slug, "id": source.id, "database": connection.database, "write key": key})
    output.talk.print("Keep the write key: it cannot be shown again.")
    output.talk.print(f"Next: eventlake collect, or eventlake import {source.slug} FILE…; then eventlake sync")


@app.command(name="list")
def list_sources(as_json: JsonFlag = False) -> None:
    """Show the sources, with the settings of their connections to the default lake."""
    workspace = state.workspace()
    default = {one.source.id: one for one in workspace.connections.all() if one.lake == DEFAULT_LAKE}
    sources = workspace.sources.all()
    if as_json:
        output.print_json([_shown(source, default.get(source.id)) for source in sources])
        return
    if not sources:
        output.talk.print("There is no source yet. Add one: eventlake source add web")
        return
    rows = [(s.slug, s.id, s.enabled, *summary(default.get(s.id))) for s in sources]
    output.table(None, ("source", "id", "enabled", *SUMMARY), rows)


@app.command(name="set", help=f"Of the connection to the default lake. {SETTINGS_HELP}")
def set_settings(
    slug: Slug,
    settings: Annotated[list[str], typer.Argument(metavar="KEY=VALUE…", help="Settings to change.")],
    as_json: JsonFlag = False,
) -> None:
    changes = assignments(settings)
    connection = state.changes().set_settings(f"{slug}/{DEFAULT_LAKE}", changes)
    tell_small_letters(connection, changes)
    if as_json:
        output.print_json(_shown(connection.source, connection))
    else:
        output.pairs(connection.settings.model_dump(mode="json"))


@app.command(name="keys")
def list_keys(slug: Slug, as_json: JsonFlag = False) -> None:
    """Show the write keys of a source, by the beginning of their hashes: the keys themselves are not stored."""
    keys = state.workspace().sources.keys(slug)
    if as_json:
        output.print_json([{"hash": key.hash, "created_at": instants.to_text(key.created_at)} for key in keys])
    else:
        rows = [(key.hash[:12], instants.to_text(key.created_at)) for key in keys]
        output.table(None, ("hash begins with", "made"), rows)


@app.command(name="add-key")
def add_key(slug: Slug, as_json: JsonFlag = False) -> None:
    """Make another write key for a source; the others stay valid. It is shown once and not stored."""
    key = state.changes().add_key(slug)
    if as_json:
        output.print_json({"write_key": key})
    else:
        output.pairs({"source": slug, "write key": key})


@app.command(name="revoke-key")
def revoke_key(
    slug: Slug, key: Annotated[str, typer.Argument(metavar="KEY", help="The key, or the beginning of its hash.")]
) -> None:
    """Take a write key back. A collector that runs refuses it two seconds later."""
    revoked = state.changes().revoke_key(slug, key)
    output.talk.print(f"The key {revoked.hash[:12]}… of {slug} is not valid any more.")


@app.command()
def enable(slug: Slug) -> None:
    """Let the collector take events of this source again."""
    source = state.changes().enable_source(slug, True)
    output.talk.print(f"{source.slug} is enabled.")


@app.command()
def disable(slug: Slug) -> None:
    """Refuse new events of this source: the collector counts them, and `rejects` shows samples.

    What is in the raw archive is loaded all the same. To load nothing for a while, and lose nothing, use `eventlake
    connection disable`.
    """
    source = state.changes().enable_source(slug, False)
    output.talk.print(f"{source.slug} is disabled: its events are refused. What it has sent stays, and is loaded.")


@app.command(name="in-place")
def in_place(
    slug: Slug,
    forget: Annotated[
        str | None, typer.Option("--forget", metavar="ADDRESS", help="Read no more raw files from here.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show from where raw files of a source are read in place: see `eventlake import --in-place`.

    With --forget, what is in the lake stays; replays carry it over, as with raw files that are gone.
    """
    if forget is not None:
        address = state.changes().forget_place(slug, forget)
        output.talk.print(output.printable(f"No more raw files of {slug} are read from {address}."))
        return
    from eventlake.library.annexes import notes_of  # noqa: PLC0415 - the other commands do without

    notes = notes_of(state.workspace(), slug)
    if as_json:
        output.print_json([{"address": note.address, "follow": note.files is None} for note in notes])
    elif notes:
        rows = [(one.address, "all, at every sync" if one.files is None else f"{len(one.files):,}") for one in notes]
        output.table(None, ("raw files in", "files"), rows)
    else:
        output.talk.print(f"All raw files of {slug} are in the archive.")


def _shown(source: Source, connection: Connection | None) -> dict[str, Any]:
    settings = connection.settings.model_dump(mode="json") if connection else None
    return {**source._asdict(), "settings": settings}
