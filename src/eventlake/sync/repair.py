"""Mending what `verify` found, from the raw archive, the data files, the manifests and the workspace database."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from eventlake.catalog.base import unchanged
from eventlake.control.sources import Source
from eventlake.reports import report
from eventlake.sync import jobs
from eventlake.sync.commit import manifests
from eventlake.sync.run import run
from eventlake.sync.steps import Progress, Runner, no_progress
from eventlake.sync.verify import Finding, verify
from eventlake.workspace import Workspace

_OF_INDEX = {"index_file_gone", "index_file_damaged", "index_file_changed"}
_OF_CATALOG = {"table_missing", "partition_missing", "partition_empty", "not_in_glue"}
_OF_REPORTS = {"report_gone", "report_changed"}


def repair(
    workspace: Workspace,
    source: Source,
    findings: Sequence[Finding],
    runner: Runner,
    progress: Progress = no_progress,
) -> None:
    """Make the index anew, write partitions anew that lost or changed rows, register tables, restore reports.

    Raw files cannot be mended, and files that are not ours are left alone: they are found again by the next `verify`.
    """
    if _kinds(findings) & _OF_INDEX:
        findings = _with_sound_index(workspace, source, findings, runner, progress)
    with workspace.leases.held(source.id):
        if _kinds(findings) & _OF_CATALOG:
            _register(workspace, source, _kinds(findings))
        if _kinds(findings) & _OF_REPORTS:
            _restore_reports(workspace, source)
    places = {finding.place for finding in findings if finding.place}
    if places:
        width = source.settings.date_partition.width
        numbers = [place.number for place in places]
        tables = frozenset(place.segment_type for place in places)
        run(workspace, jobs.replay(source, min(numbers) * width, (max(numbers) + 1) * width, tables), runner, progress)


def _kinds(findings: Sequence[Finding]) -> set[str]:
    return {finding.kind for finding in findings}


def _with_sound_index(
    workspace: Workspace, source: Source, findings: Sequence[Finding], runner: Runner, progress: Progress
) -> list[Finding]:
    """Make the index anew where it is lost or damaged; returns what differs from then on.

    Rows can only be compared with an index that is whole.
    """
    for finding in findings:
        if finding.kind in _OF_INDEX:
            workspace.storage.delete(finding.where)  # the run finds it gone, and makes it anew from the data files
    run(workspace, jobs.reindex(source), runner, progress)
    return verify(workspace, source, runner, progress)


def _register(workspace: Workspace, source: Source, kinds: Collection[str]) -> None:
    """Let the catalog have every table and every partition that has data, and no partition that has none."""
    if "table_missing" in kinds:
        _restore_tables(workspace, source)
    files = workspace.ledger.data_files(source.id)
    changes = []
    for table in workspace.catalog.tables(source.id):
        ours = [file for file in files if file.segment_type == table.segment_type]
        partitions = tuple(sorted({tuple(file.partition) for file in ours}))
        changes.append(replace(unchanged(table), partitions=partitions, anew="partition_empty" in kinds))
    workspace.catalog.apply(changes, run_id="repair", at=workspace.clock.now())


def _restore_tables(workspace: Workspace, source: Source) -> None:
    """Give the catalog tables back that vanished from it, with their history: manifests tell how they came to be."""
    known = {table.segment_type for table in workspace.catalog.tables(source.id)}
    filled = {file.segment_type for file in workspace.ledger.data_files(source.id)}
    rules = source.rules
    for manifest in manifests(workspace, source):
        changes = [
            change
            for change in manifest.tables
            if change.segment_type in filled - known
            and (change.database, change.table) == (rules.database, rules.table_name(change.segment_type))
        ]
        workspace.catalog.apply(changes, run_id=manifest.entry.run_id, at=manifest.entry.at)


def _restore_reports(workspace: Workspace, source: Source) -> None:
    for ended in workspace.runs.latest(None, source.id):
        if ended.report:
            report.save(workspace.storage, ended.report)
