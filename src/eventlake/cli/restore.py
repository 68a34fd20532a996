"""`eventlake restore`: the workspace database from the lake, after it was lost."""

from eventlake.archive import layout as archive
from eventlake.cli import output, state
from eventlake.cli.state import JsonFlag
from eventlake.reports.words import count
from eventlake.sync.restore import restore as restore_lake


def restore(as_json: JsonFlag = False) -> None:
    """Build the workspace database anew from the lake, if it was lost or is an old copy.

    Manifests and reports in the lake tell what every run did: which raw files were loaded, which files make up the
    tables, how columns came to be. Afterwards `eventlake verify` agrees, and a sync adds nothing twice. Write keys are
    not in the lake: make new ones with `eventlake source add-key`.
    """
    place = state.workspace()
    done = []
    with output.progress() as report:
        for name in place.lakes:
            done += restore_lake(place, name, report)
    known = {source.id for source in place.sources.all()}
    unloaded = [name for name in place.archive.folders(archive.ROOT) if name not in known]
    if as_json:
        output.print_json(
            {
                "restored": [
                    {
                        "source": one.connection.name,
                        "source_id": one.connection.source.id,
                        "runs": one.runs,
                        "tables": one.tables,
                        "rows": one.rows,
                        "settings_guessed": one.is_guessed,
                    }
                    for one in done
                ],
                "unknown_sources": unloaded,
            }
        )
        return
    if done:
        rows = [(one.connection.name, one.connection.source.id, one.runs, one.tables, one.rows) for one in done]
        output.table(None, ("source", "id", "runs", "tables", "rows"), rows, numbers=("runs", "tables", "rows"))
        output.talk.print("Write keys were lost: `eventlake source add-key SLUG` makes new ones.")
        for one in done:
            if one.is_guessed:
                words = "slug and settings are guessed from its tables; see `eventlake connection list`"
                output.talk.print(f"{one.connection.name}: {words}")
            if place.lake(one.connection.lake).settings.catalog.kind != "embedded":
                output.talk.print(
                    f"{one.connection.name}: `eventlake catalog publish` shows its tables elsewhere again"
                )
        output.talk.print("Next: eventlake verify")
    else:
        output.talk.print("There is nothing to restore: the database knows all that is in the lake.")
    if unloaded:
        output.talk.print(
            f"The raw archive has {count(len(unloaded), 'source')} of which no lake has anything: "
            f"{', '.join(unloaded)}. `eventlake source add SLUG --id ID` gives it back."
        )
