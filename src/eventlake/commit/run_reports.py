"""The reports of runs, where people and programs look for them: in the lake and in the workspace database."""

from itertools import takewhile
from typing import Any

from eventlake.control.connections import Connection
from eventlake.control.run_lines import RunLine
from eventlake.errors import CatalogLimitError
from eventlake.reports import report
from eventlake.workspace import Lake

_NOT_SHOWN = "the report is not shown in the catalog"
_TRIED_AGAIN = 100  # runs, at most


def save_report(lake: Lake, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put a report into its places, and return it: with a notice if a limit keeps it out of the catalog.

    Those of the runs before that were kept out are tried again.
    """
    report.save(lake.storage, lake.folders, lines)
    head = lines[0]
    source_id, run_id = head["source_id"], head["run_id"]
    before = takewhile(_was_not_shown, lake.runs.lines(_TRIED_AGAIN, source_id, before=run_id))
    days = {report.day_of(run.started_at): run.run_id for run in before} | {report.day(head): run_id}
    try:
        for day, of_run in days.items():
            lake.catalog.register_report(source_id, day, of_run)
    except CatalogLimitError as error:
        lines = report.with_notices(lines, [f"{_NOT_SHOWN}: {error.problem}"])
        report.save(lake.storage, lake.folders, lines)
    return lines


def _was_not_shown(run: RunLine) -> bool:
    return any(notice.startswith(_NOT_SHOWN) for notice in run.notices or ())


def save_failure(lake: Lake, run_id: str, lines: list[dict[str, Any]]) -> None:
    """Report a run that published nothing, and clean up after it."""
    try:
        lake.storage.delete_folder(lake.folders.of_run(run_id))
        lines = save_report(lake, lines)
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
