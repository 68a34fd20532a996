"""The reports of runs, where people and programs look for them: in the lake and in the workspace database."""

from typing import Any

from eventlake.control.connections import Connection
from eventlake.reports import report
from eventlake.workspace import Lake


def save_report(lake: Lake, lines: list[dict[str, Any]]) -> None:
    report.save(lake.storage, lake.folders, lines)
    head = lines[0]
    lake.catalog.register_report(head["source_id"], report.day(head), head["run_id"])


def save_failure(lake: Lake, run_id: str, lines: list[dict[str, Any]]) -> None:
    """Report a run that published nothing, and clean up after it."""
    try:
        lake.storage.delete_folder(lake.folders.of_run(run_id))
        save_report(lake, lines)
    finally:  # a lake that cannot be written to must not leave a run that seems to go on
        lake.runs.failed(run_id, lines)


def save_delay(lake: Lake, run_id: str, lines: list[dict[str, Any]]) -> None:
    """Report that a run waits to be finished; that will write its own report over this one."""
    if lake.runs.delayed(run_id, lines):
        save_report(lake, lines)


def write_late_reports(lake: Lake, connection: Connection, mine: str) -> None:
    """Write the reports of the last failures that had no place to go, as on a full disk."""
    for run in lake.runs.failed_last(connection.source.id):
        if run.run_id != mine and run.report and lake.storage.stat(report.path(lake.folders, run.report[0])) is None:
            save_report(lake, run.report)
