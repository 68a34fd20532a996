"""`eventlake restore`: the workspace database from the lake, after it was lost."""

from collections.abc import Iterator

from eventlake.archive import layout as archive
from eventlake.audit.restore import Restored, unknown_sources
from eventlake.audit.restore import restore as restore_lake
from eventlake.cli import output, state
from eventlake.cli.state import JsonFlag
from eventlake.reports.words import count
from eventlake.workspace import CONFIG, Workspace


def restore(as_json: JsonFlag = False) -> None:
    """Build the workspace database anew from the lake, if it was lost or is an old copy.

    Manifests and reports in the lake tell what every run did: which raw files were loaded, which files make up the
    tables, how columns came to be. Afterwards `eventlake verify` agrees, and a sync adds nothing twice. Write keys are
    not in the lake: make new ones with `eventlake source add-key`.
    """
    place = state.workspace()
    done: list[Restored] = []
    with output.progress() as report:
        for name in place.lakes:
            done += restore_lake(place, name, report)
    known = {source.id for source in place.sources.all()}
    unloaded = [name for name in place.archive.folders(archive.ROOT) if name not in known]
    foreign = {source: writer for lake in place.lakes.values() for source, writer in unknown_sources(lake).items()}
    if as_json:
        restored = [
            {
                "source": one.connection.name,
                "source_id": one.connection.source.id,
                "runs": one.runs,
                "tables": one.tables,
                "rows": one.rows,
                "settings_guessed": one.is_guessed,
                "unfinished": one.is_unfinished,
            }
            for one in done
        ]
        output.print_json({"restored": restored, "unknown_sources": unloaded, "of_other_workspaces": foreign})
        return
    if done:
        rows = [(one.connection.name, one.connection.source.id, one.runs, one.tables, one.rows) for one in done]
        output.table(None, ("source", "id", "runs", "tables", "rows"), rows, numbers=("runs", "tables", "rows"))
    # Names of folders, and what manifests say, may be anybody's.
    for words in (*_notes(place, done), *_elsewhere(unloaded, foreign)):
        output.talk.print(output.printable(words))


def _elsewhere(unloaded: list[str], foreign: dict[str, str]) -> Iterator[str]:
    """What is there and was not put back."""
    if unloaded:
        yield (
            f"The raw archive has {count(len(unloaded), 'source')} of which no lake has anything: "
            f"{', '.join(unloaded)}. `eventlake source add SLUG --id ID` gives it back."
        )
    for source_id, writer in foreign.items():
        yield (
            f"Runs of the source {source_id} were made by a workspace with the id {writer}. If that is this one, put "
            f'workspace_id = "{writer}" into {CONFIG}.'
        )


def _notes(place: Workspace, done: list[Restored]) -> Iterator[str]:
    if not done:
        yield "There is nothing to restore: the database knows all that this workspace wrote to its lakes."
        return
    for slug in sorted({one.connection.source.slug for one in done}):
        if not place.sources.keys(slug):
            yield f"{slug} has no write key any more: `eventlake source add-key {slug}` makes a new one."
    for one in done:
        name, lake = one.connection.name, place.lake(one.connection.lake)
        if one.is_guessed:
            yield f"{name}: slug and settings are guessed from its tables; see `eventlake connection list`"
        if one.is_unfinished:
            yield f"{name}: `eventlake sync {name}` carries out what its last run had promised"
        if lake.settings.catalog.kind != "embedded":
            yield f"{name}: `eventlake catalog publish --lake {lake.name}` shows its tables again"
    yield "Next: eventlake sync, then eventlake verify"
