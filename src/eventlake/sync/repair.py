"""Mending what `verify` found, from the raw archive and the workspace database."""

from collections.abc import Sequence
from dataclasses import replace

from eventlake.catalog.base import unchanged
from eventlake.control.locks import only_run
from eventlake.control.sources import Source
from eventlake.reports import report
from eventlake.sync import jobs
from eventlake.sync.run import run
from eventlake.sync.steps import Progress, Runner, no_progress
from eventlake.sync.verify import Finding
from eventlake.workspace import Workspace


def repair(
    workspace: Workspace,
    source: Source,
    findings: Sequence[Finding],
    runner: Runner,
    progress: Progress = no_progress,
) -> None:
    """Write partitions anew that lost or changed rows, register partitions, restore reports.

    Raw files cannot be mended, and files that are not ours are left alone: they are found again by the next `verify`.
    """
    places = {finding.place for finding in findings if finding.place}
    if places:
        width = source.settings.date_partition.width
        numbers = [place.number for place in places]
        tables = frozenset(place.segment_type for place in places)
        run(workspace, jobs.replay(source, min(numbers) * width, (max(numbers) + 1) * width, tables), runner, progress)
    with only_run(workspace.folder / "locks", source.id):
        if any(finding.kind in ("partition_missing", "not_in_glue") for finding in findings):
            _register_partitions(workspace, source)
        if any(finding.kind in ("report_gone", "report_changed") for finding in findings):
            _restore_reports(workspace, source)


def _register_partitions(workspace: Workspace, source: Source) -> None:
    files = workspace.ledger.data_files(source.id)
    changes = []
    for table in workspace.catalog.tables(source.id):
        ours = [file for file in files if file.segment_type == table.segment_type]
        changes.append(replace(unchanged(table), partitions=tuple(sorted({tuple(file.partition) for file in ours}))))
    workspace.catalog.apply(changes, run_id="repair", at=workspace.clock.now())


def _restore_reports(workspace: Workspace, source: Source) -> None:
    for ended in workspace.runs.latest(1_000_000, source.id):
        if ended.report:
            report.save(workspace.storage, ended.report)
