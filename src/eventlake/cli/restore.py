"""`eventlake restore`: the workspace database from the lake, after it was lost."""

from collections.abc import Iterator
from typing import Annotated

import typer

from eventlake.archive import layout as archive
from eventlake.audit.restore import Restored, unknown_sources
from eventlake.audit.restore import restore as restore_lake
from eventlake.cli import output, state
from eventlake.cli.state import JsonFlag
from eventlake.reports.words import count
from eventlake.workspace import CONFIG, Workspace


def restore(
    names: Annotated[
        list[str] | None, typer.Option("--lake", metavar="LAKE", help="Only this lake; may be repeated.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Build the workspace database anew from the lake, if it was lost or is an old copy.

    Manifests and reports in the lake tell what every run did: which raw files were loaded, which files make up the
    tables, how columns came to be. Afterwards `eventlake verify` agrees, and a sync adds nothing twice. Connections
    come back with their settings and switches. Write keys are not in the lake: make new ones with `eventlake source
    add-key`.
    """
    workspace = state.workspace()
    done: list[Restored] = []
    foreign: dict[str, str] = {}
    wanted = list(dict.fromkeys(names or workspace.named_lakes))
    attempts = state.Attempts(len(wanted))
    with output.progress() as report:
        for name in wanted:
            with attempts.one(f"lake {name}"):
                done += restore_lake(workspace, name, report)
                foreign |= unknown_sources(workspace.lake(name))
    known = {source.id for source in workspace.sources.all()}
    unloaded = [name for name in archive.sources(workspace.archive) if name not in known]
    if as_json:
        restored = [
            {
                "source": one.connection.name,
                "source_id": one.connection.source.id,
                "runs": one.runs,
                "tables": one.tables,
                "rows": one.rows,
                "connected": one.is_connected,
                "enabled": one.connection.enabled,
                "settings_guessed": one.is_guessed,
                "unfinished": one.is_unfinished,
            }
            for one in done
        ]
        output.print_json({"restored": restored, "unknown_sources": unloaded, "of_other_workspaces": foreign})
        attempts.end()
        return
    if done:
        rows = [(one.connection.name, one.connection.source.id, one.runs, one.tables, one.rows) for one in done]
        output.table(None, ("source", "id", "runs", "tables", "rows"), rows, numbers=("runs", "tables", "rows"))
    # Names of folders, and what manifests say, may be anybody's.
    for words in (*_notes(workspace, done, is_all=not attempts.failed), *_elsewhere(unloaded, foreign)):
        output.talk.print(output.printable(words))
    attempts.end()


def _elsewhere(unloaded: list[str], foreign: dict[str, str]) -> Iterator[str]:
    """What is there and was not put back."""
    if unloaded:
        yield (
            f"The raw archive has {count(len(unloaded), 'source')} of which no lake has anything: "
            f"{', '.join(unloaded)}. `eventlake source add SLUG --id ID` gives it back."
        )
    for source_id, writer in foreign.items():
        yield (
            f"What is there of the source {source_id} was written by a workspace with the id {writer}. If that is this "
            f'one, put workspace_id = "{writer}" into {CONFIG}.'
        )


def _notes(workspace: Workspace, done: list[Restored], *, is_all: bool) -> Iterator[str]:
    if not done and is_all:
        yield "There is nothing to restore: the database knows all that this workspace wrote to its lakes."
    for one in done:
        name, lake = one.connection.name, workspace.lake(one.connection.lake)
        if one.is_guessed:
            yield f"{name}: slug and settings are guessed from its tables; see `eventlake connection list`"
        if not one.is_connected:
            yield f"{name}: it was disconnected, and is; `eventlake connect {one.connection.source.slug} {lake.name}`"
        elif not one.connection.enabled:
            yield f"{name}: it was switched off, and is; `eventlake connection enable {name}`"
        if one.is_unfinished:
            yield f"{name}: `eventlake sync {name}` carries out what its last run had promised"
        if lake.settings.catalog.kind != "embedded":
            yield f"{name}: `eventlake catalog publish --lake {lake.name}` shows its tables again"
    for source in workspace.sources.all():
        if not source.enabled:
            yield f"{source.slug} was switched off, and is; `eventlake source enable {source.slug}`"
        if not workspace.sources.keys(source.slug):
            yield f"{source.slug} has no write key any more: `eventlake source add-key {source.slug}` makes a new one."
    if done:
        yield "Next: eventlake sync, then eventlake verify"
