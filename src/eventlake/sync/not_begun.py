"""Runs that could not begin, which are reported like any that failed."""

from contextlib import suppress

from eventlake.commit.run_reports import save_failure
from eventlake.control.runs import Runs
from eventlake.errors import EventLakeError
from eventlake.reports import report
from eventlake.settings import DEFAULT_LAKE
from eventlake.sync.jobs import Job
from eventlake.workspace import Workspace


def refuse_wrong_lake(workspace: Workspace, job: Job) -> None:
    """Fail a job for a lake of which a setting is wrong, or with the raw archive in such a one.

    Where its report would be kept, only the database knows.
    """
    needed = [job.connection.lake, *([] if workspace.settings.archive else [DEFAULT_LAKE])]
    for name in needed:
        if name in workspace.settings.wrong_lakes:
            error = workspace.connections.no_lake(name)
            report_not_begun(workspace, job, error)
            raise error


def report_not_begun(workspace: Workspace, job: Job, error: EventLakeError) -> None:
    """Note a run that failed before anything was done for it."""
    connection, clock = job.connection, workspace.clock
    lake = workspace.lakes.get(connection.lake)
    runs = Runs(workspace.engine, clock.now, connection.lake)
    started_ns = clock.now_ns()
    head = report.RunHead(
        workspace.settings.workspace_id,
        connection.source.id,
        runs.start(connection.source.id, job.kind, started_ns),
        connection.database,
        started_ns,
        is_replay=job.is_replay,
        replay_from=job.asked_from,
        replay_to=job.asked_to,
        where=lake.settings.where if lake else {},
    )
    lines = report.failed(head, clock.now_ns(), error.problem, error.code, error.fix)
    if lake is None:
        runs.failed(head.run_id, lines)
        return
    with suppress(EventLakeError):
        save_failure(lake, head.run_id, lines)
