"""`eventlake source`: the apps that send events."""

from typing import Annotated, Any

import typer

from eventlake.cli import output, state
from eventlake.control.settings import SourceSettings
from eventlake.control.sources import Source
from eventlake.errors import InvalidSettingsError
from eventlake.events import instants
from eventlake.reports.words import count

app = typer.Typer(no_args_is_help=True, help="Sources: the apps that send events, and their lake settings.")

Slug = Annotated[str, typer.Argument(metavar="SLUG", help="The source.")]
JsonFlag = state.JsonFlag


@app.command()
def add(
    slug: Slug,
    source_id: Annotated[
        str | None, typer.Option("--id", help="The source's id; it names its folder. Default: made up.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="A name for people.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Add a source. Its write key is shown once and not stored."""
    source, key = state.workspace().sources.add(slug, source_id=source_id, name=name)
    if as_json:
        output.print_json(_shown(source) | {"write_key": key})
        return
    output.pairs({"source": source.slug, "id": source.id, "database": source.settings.database, "write key": key})
    output.talk.print("Keep the write key: it cannot be shown again.")
    output.talk.print(f"Next: eventlake collect, or eventlake import {source.slug} FILE…; then eventlake sync")


@app.command(name="list")
def list_sources(as_json: JsonFlag = False) -> None:
    """Show the sources and their settings."""
    sources = state.workspace().sources.all()
    if as_json:
        output.print_json([_shown(source) for source in sources])
        return
    if not sources:
        output.talk.print("There is no source yet. Add one: eventlake source add web")
        return
    rows = [
        (
            s.slug,
            s.id,
            s.enabled,
            s.settings.database,
            s.settings.table_prefix,
            s.settings.date_partition.value,
            _days(s),
        )
        for s in sources
    ]
    output.table(None, ("source", "id", "enabled", "database", "prefix", "date partition", "look-back"), rows)


_SETTINGS_HELP = "Change settings of a source.\n\n" + "\n\n".join(
    f"[bold]{name}[/bold]: {field.description}" for name, field in SourceSettings.model_fields.items()
)


@app.command(name="set", help=_SETTINGS_HELP)
def set_settings(
    slug: Slug,
    settings: Annotated[list[str], typer.Argument(metavar="KEY=VALUE…", help="Settings to change.")],
    as_json: JsonFlag = False,
) -> None:
    source = state.workspace().sources.change(slug, assignments(settings))
    if as_json:
        output.print_json(_shown(source))
    else:
        output.pairs(_shown(source)["settings"])


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
    key = state.workspace().sources.add_key(slug)
    if as_json:
        output.print_json({"write_key": key})
    else:
        output.pairs({"source": slug, "write key": key})


@app.command(name="revoke-key")
def revoke_key(
    slug: Slug, key: Annotated[str, typer.Argument(metavar="KEY", help="The key, or the beginning of its hash.")]
) -> None:
    """Take a write key back. A collector that runs refuses it two seconds later."""
    revoked = state.workspace().sources.revoke_key(slug, key)
    output.talk.print(f"The key {revoked.hash[:12]}… of {slug} is not valid any more.")


@app.command()
def enable(slug: Slug) -> None:
    """Let `sync` load this source again; it catches up with everything."""
    source = state.workspace().sources.enable(slug, True)
    output.talk.print(f"{source.slug} is enabled.")


@app.command()
def disable(slug: Slug) -> None:
    """Make `sync` pass this source over; its data stays."""
    source = state.workspace().sources.enable(slug, False)
    output.talk.print(f"{source.slug} is disabled; its tables stay as they are.")


def assignments(texts: list[str]) -> dict[str, str]:
    """KEY=VALUE pairs."""
    pairs = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise InvalidSettingsError(f"{text!r} is not of the form KEY=VALUE", fix="for example lookback_days=14")
        pairs[key.strip()] = value.strip()
    return pairs


def _shown(source: Source) -> dict[str, Any]:
    return {
        "id": source.id,
        "slug": source.slug,
        "name": source.name,
        "enabled": source.enabled,
        "settings": source.settings.model_dump(mode="json"),
    }


def _days(source: Source) -> str:
    days = source.settings.lookback_days
    return "unlimited" if days is None else count(days, "day")
