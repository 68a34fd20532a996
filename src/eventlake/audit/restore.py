"""Building the workspace database anew from what lies in a lake, after it was lost.

Every run left a manifest, which names all that the run did. Done once more, oldest first, on empty books, they give
ledger, catalog and history as they were. Reports tell of the runs that failed. A database that knows some of the runs,
an old copy, is treated the same: what it knows of a source is forgotten first. The runs are put back last: as long as
one is missing, no run of that source begins, so a restore that dies is begun again. Of a connection that never ran, the
lake has a note.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from typing import Any, NamedTuple

import msgspec

from eventlake.catalog.base import TableChange
from eventlake.catalog.embedded import EmbeddedCatalog
from eventlake.commit.manifest import Manifest, Noted, bases_of, in_order, manifest_paths, read_manifest, run_of
from eventlake.commit.ownership import written_by
from eventlake.control.connections import Connection
from eventlake.control.leases import Lane, Lease
from eventlake.control.runs import Run
from eventlake.control.settings import as_stored
from eventlake.errors import DamagedError, InvalidSettingsError
from eventlake.events.envelope import CALLS
from eventlake.events.suppression import Suppressed
from eventlake.lake import kept_connection
from eventlake.lake.kept_connection import KeptConnection
from eventlake.lake.layout import DatePartition
from eventlake.lake.policy_files import RULES, folder_of, number_of
from eventlake.lake.segment import TableNaming
from eventlake.policies.rules import RulesDocument
from eventlake.reports import report
from eventlake.runners.base import Progress, no_progress
from eventlake.workspace import Lake, Workspace


class Restored(NamedTuple):
    """What was put back of one source in one lake."""

    connection: Connection
    runs: int
    tables: int
    rows: int
    is_guessed: bool  # its settings are those that its tables let expect: no manifest notes them
    is_unfinished: bool  # its last run is carried out by the next
    is_connected: bool  # else it was disconnected, and stays so


def restore(workspace: Workspace, name: str, progress: Progress = no_progress) -> list[Restored]:
    """Let the database know all that this workspace wrote to a lake; what it knows already is left alone."""
    lake = workspace.lake(name)
    ours = [source_id for source_id, writer in unknown_sources(lake).items() if writer == lake.workspace_id]
    reports = _reports(lake) if ours else {}
    return [_restored(lake, source_id, reports.get(source_id, ()), progress) for source_id in ours]


def unknown_sources(lake: Lake) -> dict[str, str]:
    """The sources of which the lake has what the database does not know: id → the workspace that wrote it.

    First those of which it has runs, then those that are connected and never ran.
    """
    ids = sorted(folder.removeprefix("source=") for folder in lake.storage.folders(lake.folders.commits))
    unknown = [
        source_id
        for source_id in ids
        if set(map(run_of, manifest_paths(lake, source_id))) - lake.runs.ids_of(source_id)
    ]
    writers = {source_id: writer for source_id in unknown if (writer := written_by(lake, source_id)) is not None}
    known = {one.source.id for one in lake.workspace.connections.of_lake(lake.name)} | writers.keys()
    for source_id in kept_connection.sources(lake.storage, lake.folders):
        if source_id not in known and (kept := _kept(lake, source_id)) is not None and kept.workspace_id:
            writers[source_id] = kept.workspace_id
    return writers


def _restored(lake: Lake, source_id: str, reports: Sequence[str], progress: Progress) -> Restored:
    with lake.leases.held(source_id, Lane.REPLAY), lake.leases.held(source_id) as lease:
        paths = manifest_paths(lake, source_id)
        bases = bases_of(lake, paths)
        every = in_order(paths, bases)
        _refuse_copy(lake, every)
        runs = _reported(lake, source_id, reports)
        finished, given_up = ({run_id for run_id, run in runs.items() if run.status == how} for how in _ENDS)
        paths = [path for path in every if run_of(path) not in given_up]
        done, last = _done(paths, bases, finished)
        kept, rebuilt_at = _kept(lake, source_id), 0
        noted = _noted(lake, done or every, kept)
        was = noted or _guessed(lake, source_id, done or every)
        connections = lake.workspace.connections
        connection = connections.restore(source_id, lake.name, was.slug, was.name, as_stored(was.settings))
        catalog = EmbeddedCatalog(lake.workspace.engine, lake.name)  # others show what they show
        lake.ledger.forget(source_id)
        for table in catalog.tables(source_id):
            catalog.drop(table.database, table.name)
        for number, path in enumerate(paths, 1):
            manifest = read_manifest(lake, path)
            if path in done:
                _do_again(lake, catalog, manifest, lease)
                rebuilt_at = manifest.entry.at if manifest.entry.source_settings is not None else rebuilt_at
            runs[run_of(path)] = _run(lake, manifest, is_done=path in done)
            progress("restore", number, len(paths))
        if last is not None:  # the next run carries it out, on top of what it was made for
            lake.ledger.set_last_run(source_id, bases[run_of(last)])
        # A rebuild among them had brought its own settings.
        connection = _as_kept(connection, kept, rebuilt_at)
        connections.put_back(connection, connected=_is_connected(kept))
        lake.runs.restore(runs.values())
        _suppress(lake, source_id)
        _plan(lake, source_id)
    rows = sum(file.rows for file in lake.ledger.data_files(source_id))
    return Restored(
        connection,
        runs=len(runs),
        tables=len(catalog.tables(source_id)),
        rows=rows,
        is_guessed=noted is None,
        is_unfinished=len(done) < len(paths),
        is_connected=_is_connected(kept),
    )


def _noted(lake: Lake, paths: Sequence[str], kept: KeptConnection | None) -> Noted | None:
    """How a source was connected when it ran last; or if it never did, how it is."""
    if paths or kept is None:
        return read_manifest(lake, paths[-1]).connection
    return Noted(kept.slug, kept.name, kept.settings)


def _kept(lake: Lake, source_id: str) -> KeptConnection | None:
    path = kept_connection.path_of(lake.folders, source_id)
    try:
        return KeptConnection.unpacked(lake.storage.read(path))
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise DamagedError(
            f"{lake.storage.full(path)} cannot be read: {error}",
            fix="delete it: a connection that ran comes back with the settings of its last run, and switched on",
        ) from error


def _as_kept(connection: Connection, kept: KeptConnection | None, rebuilt_at: int) -> Connection:
    """A connection with switches and settings as the lake keeps them; a run may have brought its own settings since."""
    if kept is None:
        return connection
    return connection._replace(
        source=connection.source._replace(enabled=kept.source_enabled),
        enabled=kept.connected and kept.enabled,
        settings=connection.settings if kept.at < rebuilt_at else as_stored(kept.settings),
    )


def _is_connected(kept: KeptConnection | None) -> bool:
    return kept is None or kept.connected


def _plan(lake: Lake, source_id: str) -> None:
    """Let a source have the plan and the transformations that runs of the lake went by last."""
    try:
        kept = lake.storage.read(f"{folder_of(lake.folders, source_id)}/{RULES}")
    except FileNotFoundError:
        return
    lake.workspace.plans.restore(RulesDocument.unpacked(kept))


def _suppress(lake: Lake, source_id: str) -> None:
    """Put those back on the list whose events runs left out. The lake has their hashes, which is enough to go on."""
    paths = [file.path for file in lake.storage.files(folder_of(lake.folders, source_id)) if number_of(file.path) >= 0]
    if paths:
        newest = max(paths, key=number_of)
        lake.workspace.suppressions.restore(source_id, Suppressed.unpacked(lake.storage.read(newest)))


_ENDS = ("finished", "failed")


def _done(paths: Sequence[str], bases: Mapping[str, str | None], finished: Set[str]) -> tuple[list[str], str | None]:
    """The manifests that were carried out, and the last one if it was not.

    As long as nobody has undone a manifest that was overtaken, two are on top of the same run.
    """
    followed = finished | set(bases.values())
    overtaken = {
        run_id
        for run_id, base in bases.items()
        if run_id not in followed
        and base is not None
        and any(other in followed for other, of_other in bases.items() if of_other == base)
    }
    rest = [path for path in paths if run_of(path) not in overtaken]
    last = rest[-1] if rest and run_of(rest[-1]) not in followed else None
    return [path for path in rest if path != last], last


def _refuse_copy(lake: Lake, paths: Sequence[str]) -> None:
    """A copy of another lake holds the same runs, which can be in one lake only."""
    for run in lake.workspace.runs.with_id(run_of(paths[0])) if paths else ():
        if run.lake != lake.name:
            raise InvalidSettingsError(
                f"the lake in {lake.storage.root} has the runs of the lake {run.lake!r}",
                fix=f"it is a copy: empty it and let syncs fill it from the raw archive, or give {run.lake!r} its root"
                if run.lake in lake.workspace.lakes
                else f"call it [lakes.{run.lake}] again in eventlake.toml: a lake keeps its name, and nothing is lost",
            )


def _do_again(lake: Lake, catalog: EmbeddedCatalog, manifest: Manifest, lease: Lease) -> None:
    entry = manifest.entry
    # A name that this source had given up may have become another's.
    others = {(one.database, one.name) for one in catalog.tables() if one.source_id != entry.source_id}
    changes = [change for change in manifest.tables if (change.database, change.table) not in others]
    catalog.apply(changes, run_id=entry.run_id, at=entry.at)
    entry.base = lake.ledger.last_run(entry.source_id)  # whose manifest may be lost
    lake.ledger.record(entry, lease)
    for database, table in manifest.dropped_tables:
        if (database, table) not in others:
            catalog.drop(database, table)


def _run(lake: Lake, manifest: Manifest, *, is_done: bool) -> Run:
    """The run of a manifest. One that is not done is carried out by the next, as after any crash."""
    entry = manifest.entry
    return Run(
        run_id=entry.run_id,
        lake=lake.name,
        source_id=entry.source_id,
        kind=entry.report[0].get("kind", "sync"),
        status="finished" if is_done else "running",
        step="commit",
        started_at=report.micros(entry.report[0]["start_time"]),
        finished_at=entry.at if is_done else None,
        report=entry.report if is_done else None,
    )


_REPORT = re.compile(r".*/source=(?P<source_id>[^/]+)/[^/]+/report\.json")


def _reports(lake: Lake) -> dict[str, list[str]]:
    """Where the reports of each source are. They lie by day, so all are listed, once."""
    found = defaultdict(list)
    for file in lake.storage.files(lake.folders.reports):
        if is_report := _REPORT.fullmatch(file.path):
            found[is_report["source_id"]].append(file.path)
    return found


def _reported(lake: Lake, source_id: str, paths: Sequence[str]) -> dict[str, Run]:
    """The runs of which the lake has a report."""
    runs = {}
    for path in paths:
        try:
            lines = report.decoded(lake.storage.read(path))
            if lines[0]["workspace_id"] == lake.workspace_id and report.path(lake.folders, lines[0]) == path:
                runs[lines[0]["run_id"]] = _ended(lake, source_id, lines)
        except (ValueError, KeyError, IndexError) as error:
            raise DamagedError(
                f"the report {lake.storage.full(path)} cannot be read: {error}",
                fix="put it back from a backup; or delete it: of a run that succeeded, the manifest tells all",
            ) from error
    return runs


def _ended(lake: Lake, source_id: str, lines: list[dict[str, Any]]) -> Run:
    head = lines[0]
    kind = head.get("kind", "replay" if head.get("replay") else "sync")
    times = report.micros(head["start_time"]), report.micros(head["finish_time"])
    return Run(head["run_id"], lake.name, source_id, kind, head["status"], "discover", *times, lines)


def _guessed(lake: Lake, source_id: str, paths: list[str]) -> Noted:
    """What the tables of a source tell of its settings, where no manifest notes them."""
    database = read_manifest(lake, paths[-1]).entry.report[0]["database"]
    slug, settings = database.replace("_", "-").strip("-"), {"database": database}
    for manifest in (read_manifest(lake, path) for path in reversed(paths)):
        of_rebuild = manifest.entry.source_settings
        if of_rebuild is not None or manifest.tables:
            folder = manifest.tables[0].location.split("/")[2] if manifest.tables else source_id
            is_slug = folder != source_id
            slug = folder if is_slug else slug
            settings = of_rebuild or _of_tables(manifest.tables, is_slug=is_slug)
            break
    if any(slug == source.slug for source in lake.workspace.sources.all()):
        slug = source_id.lower()
    return Noted(slug, slug, settings)


def _of_tables(tables: Sequence[TableChange], *, is_slug: bool) -> dict[str, Any]:
    table = tables[0]
    of_tracks = [one.table_key for one in tables if one.table_key not in CALLS]
    is_plain = bool(of_tracks) and not any(name.startswith("track_") for name in of_tracks)
    return {
        "database": table.database,
        "table_prefix": table.table.removesuffix(table.table_key).removesuffix("_"),
        "date_partition": next(kind.value for kind in DatePartition if kind.keys == tuple(table.partition_keys)),
        "partition_by_slug": is_slug,
        "table_naming": (TableNaming.PLAIN if is_plain else TableNaming.PREFIXED).value,
    }
