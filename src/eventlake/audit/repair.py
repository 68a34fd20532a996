"""Mending what `verify` found, from the raw archive, the data files, the manifests and the workspace database."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from eventlake.audit.verify import Finding, verify
from eventlake.catalog.base import unchanged
from eventlake.commit.manifest import manifests
from eventlake.control.connections import Connection
from eventlake.control.leases import Lane
from eventlake.reports import report
from eventlake.runners.base import Progress, Runner, no_progress
from eventlake.sync import jobs
from eventlake.sync.run import run
from eventlake.workspace import Lake, Workspace

_OF_INDEX = {"index_file_gone", "index_file_damaged", "index_file_changed"}
_OF_CATALOG = {"table_missing", "partition_missing", "partition_empty", "not_in_glue", "not_in_hive"}
_OF_REPORTS = {"report_gone", "report_changed"}


def mended(
    workspace: Workspace, connection: Connection, runner: Runner, progress: Progress = no_progress
) -> list[Finding]:
    """What still differs when all was mended that can be."""
    found = verify(workspace, connection, runner, progress)
    if found:
        repair(workspace, connection, found, runner, progress)
        found = verify(workspace, connection, runner, progress)
    return found


def repair(
    workspace: Workspace,
    connection: Connection,
    findings: Sequence[Finding],
    runner: Runner,
    progress: Progress = no_progress,
) -> None:
    """Make the index anew, write partitions anew that lost or changed rows, register tables, restore reports.

    Raw files cannot be mended, and files that are not ours are left alone: they are found again by the next `verify`.
    """
    lake = workspace.lake(connection.lake)
    if _kinds(findings) & _OF_INDEX:
        findings = _with_sound_index(workspace, connection, findings, runner, progress)
    with lake.leases.held(connection.source.id, Lane.REPLAY), lake.leases.held(connection.source.id):
        if _kinds(findings) & _OF_CATALOG:
            _register(lake, connection, _kinds(findings))
        if _kinds(findings) & _OF_REPORTS:
            _restore_reports(lake, connection)
    places = {finding.place for finding in findings if finding.place}
    if places:
        width = connection.dialect.date_partition.width
        numbers = [place.number for place in places]
        tables = frozenset(place.table_key for place in places)
        run(
            workspace,
            jobs.replay(connection, min(numbers) * width, (max(numbers) + 1) * width, tables),
            runner,
            progress,
        )


def _kinds(findings: Sequence[Finding]) -> set[str]:
    return {finding.kind for finding in findings}


def _with_sound_index(
    workspace: Workspace, connection: Connection, findings: Sequence[Finding], runner: Runner, progress: Progress
) -> list[Finding]:
    """Make the index anew where it is lost or damaged; returns what differs from then on.

    Rows can only be compared with an index that is whole.
    """
    for finding in findings:
        if finding.kind in _OF_INDEX:
            workspace.lake(connection.lake).storage.delete(
                finding.where
            )  # the run finds it gone, and makes it anew from the data files
    run(workspace, jobs.reindex(connection), runner, progress)
    return verify(workspace, connection, runner, progress)


def _register(lake: Lake, connection: Connection, kinds: Collection[str]) -> None:
    """Let the catalog have every table and every partition that has data, and no partition that has none."""
    if "table_missing" in kinds:
        _restore_tables(lake, connection)
    files = lake.ledger.data_files(connection.source.id)
    changes = []
    for table in lake.catalog.tables(connection.source.id):
        ours = [file for file in files if file.table_key == table.table_key]
        partitions = tuple(sorted({tuple(file.partition) for file in ours}))
        empty = set(lake.catalog.partitions(table.database, table.name)).difference(partitions)
        changes.append(replace(unchanged(table), partitions=partitions, forgotten=tuple(sorted(empty))))
    lake.catalog.apply(changes, run_id="repair", at=lake.clock.now())


def _restore_tables(lake: Lake, connection: Connection) -> None:
    """Give the catalog tables back that vanished from it, with their history: manifests tell how they came to be."""
    known = {table.table_key for table in lake.catalog.tables(connection.source.id)}
    filled = {file.table_key for file in lake.ledger.data_files(connection.source.id)}
    dialect = connection.dialect
    for manifest in manifests(lake, connection.source.id):
        changes = [
            change
            for change in manifest.tables
            if change.table_key in filled - known
            and (change.database, change.table) == (dialect.database, dialect.table_name(change.table_key))
        ]
        lake.catalog.apply(changes, run_id=manifest.entry.run_id, at=manifest.entry.at)


def _restore_reports(lake: Lake, connection: Connection) -> None:
    for ended in lake.runs.latest(None, connection.source.id):
        if ended.report:
            report.save(lake.storage, lake.folders, ended.report)
