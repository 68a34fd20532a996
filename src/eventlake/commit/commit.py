"""Making a run's result part of the lake, all or nothing.

The manifest names every file, partition, column and ledger entry of the run, and is written first. A crash before
it leaves the lake as it was; after it, the next start takes every step again. Each step may be repeated: files that
moved stay moved, columns that exist are not added twice, ledger rows replace themselves.
"""

from typing import Any

import msgspec

from eventlake.catalog.mirrored import MirroredCatalog
from eventlake.commit.manifest import Manifest, path_of
from eventlake.commit.run_reports import save_report
from eventlake.commit.schema_files import describe, forget
from eventlake.control.leases import Hold
from eventlake.errors import EventLakeError, InternalError, LeaseLostError, StagingLostError
from eventlake.reports.report import with_notices
from eventlake.workspace import Lake


def promise(lake: Lake, manifest: Manifest, hold: Hold) -> None:
    """Write the manifest. Once it is there the run will be in the lake, whatever happens."""
    path = path_of(lake, manifest.entry.source_id, manifest.entry.run_id)
    lake.storage.settle()
    hold.confirm()
    if not lake.storage.create(path, msgspec.json.encode(manifest)):
        lake.runs.failed(manifest.entry.run_id, [])  # else the next run would take the other manifest for its own
        raise InternalError(
            f"there is another manifest for run {manifest.entry.run_id}: {lake.storage.full(path)}",
            fix="do not let two workspaces share a lake; run it again: nothing was published",
        )
    try:
        hold.confirm()
    except LeaseLostError:
        # Who took the connection over either found no manifest and gave the run up, or has carried it out.
        if lake.runs.get(manifest.entry.run_id).status == "failed":
            lake.storage.delete(path)
        raise


def fulfil(lake: Lake, manifest: Manifest, hold: Hold) -> list[dict[str, Any]]:
    """Do what the manifest says, and return the report. May be done again."""
    entry, storage = manifest.entry, lake.storage
    if not lake.ledger.has_recorded(entry.run_id):  # else every file got its name, whatever became of it since
        lake.ledger.refuse_overtaken(entry)
        describe(lake, manifest)
        _move(lake, manifest)
    hold.confirm()  # else another may have changed the same tables since
    refused = lake.catalog.apply(manifest.tables, run_id=entry.run_id, at=entry.at)
    if not (manifest.tables or manifest.dropped_tables) and isinstance(lake.catalog, MirroredCatalog):
        refused += lake.catalog.catch_up(entry.source_id, run_id=entry.run_id, at=entry.at)
    storage.settle()
    lake.ledger.record(entry, hold)
    connection = lake.workspace.connections.of_table(lake.name, entry.source_id)
    lake.note(connection)  # a rebuild brought other settings; and a lake that was away for a change learns it now
    forget(lake, entry.source_id, manifest.dropped_tables)
    for database, table in manifest.dropped_tables:  # their rows are elsewhere now, or wanted no more
        lake.catalog.drop(database, table)
    refused += show_views(lake, entry.source_id)
    # Nobody is told of these any more.
    for path in (*entry.removed_data_files, *entry.removed_index_files, *entry.removed_violation_files):
        storage.delete(path)
    lines = save_report(lake, with_notices(entry.report, refused))
    lake.runs.finished(entry.run_id, lines, entry.at)
    storage.delete_folder(lake.folders.of_run(entry.run_id))
    return lines


def show_views(lake: Lake, source_id: str) -> list[str]:
    """Let Glue have the views that a connection asks for; what could not be shown, in words.

    They are for people's convenience: a run is not held up by them, and the next one tries again.
    """
    if lake.settings.catalog.kind != "glue":
        return []
    connection = lake.workspace.connections.of_table(lake.name, source_id)
    if not connection.settings.warehouse:
        return []
    try:
        return lake.glue.show_views(source_id, connection.settings.warehouse, lake.warehouse_views(connection))
    except EventLakeError as error:
        return [f"the views in {connection.settings.warehouse} are not up to date in Glue: {error.problem}"]


def _move(lake: Lake, manifest: Manifest) -> None:
    try:
        lake.storage.move_all(manifest.moves)
    except FileNotFoundError as error:
        place = lake.storage.full(lake.folders.stage)
        raise StagingLostError(
            f"run {manifest.entry.run_id} cannot be finished: files are gone that it left in {place}",
            fix="run it again: this run is undone, and its raw files are loaded by the next",
        ) from error
