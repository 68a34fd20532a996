"""A run, from raw files to a report. Read this page first.

    discover ─► stage ─► dedupe ─► plan ─► publish ─► close the books ─► commit

Staging, deduplication and publishing run on Spark (see `steps`); what comes back to the driver is where things lie
and how many they are. Nothing is visible to readers before the commit, and nothing can undo a run after it.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from eventlake.control.leases import Lease
from eventlake.errors import (
    EventLakeError,
    InternalError,
    InvalidSettingsError,
    LeaseLostError,
    PermissionMissingError,
    UnknownLakeError,
    of_system,
)
from eventlake.reports import report
from eventlake.sync import books, jobs
from eventlake.sync.commit import fulfil, promise, recover, save_delay, save_failure
from eventlake.sync.discover import discover
from eventlake.sync.drop import manifest_of_drop
from eventlake.sync.jobs import Job
from eventlake.sync.manifest import manifest_of
from eventlake.sync.outcome import Outcome
from eventlake.sync.ownership import refuse_unknown
from eventlake.sync.steps import Progress, Runner, Sizes, Steps, no_progress
from eventlake.workspace import Lake, Workspace

DEFAULT_SIZES = Sizes()
REFUSALS = (InvalidSettingsError, PermissionMissingError)  # after which nothing was written


def run(
    workspace: Workspace, job: Job, runner: Runner, progress: Progress = no_progress, sizes: Sizes = DEFAULT_SIZES
) -> list[dict[str, Any]]:
    """Carry out a job and return the lines of its report. A run that fails is reported as well, then raised."""
    lake = workspace.lake(job.connection.lake)
    with lake.leases.held(job.connection.source.id) as lease:
        _refuse_unknown(lake, job, lease)
        head = _begin(lake, job)
        with _failure_reported(lake, head, lease):
            recover(lake, job.connection, lease, before=head.run_id)
            job = jobs.as_saved(job, workspace.connections.of_table(lake.name, job.connection.source.id))
            taken = lake.catalog.prepare(job.connection.settings.database)
            steps = Steps(lake, job, runner, progress, head.run_id, sizes)
            if job.dropped is not None:
                manifest = manifest_of_drop(steps, job.dropped, head)
            else:
                found = discover(lake, job)
                staged = steps.stage(found)
                kept = steps.dedupe(found, staged)
                plans = steps.plan(staged, kept, taken)
                published = steps.publish(plans, staged, kept)
                accounts = books.close(staged, kept, published)
                outcome = Outcome(found, staged, kept, plans, published, accounts)
                manifest = manifest_of(lake, job, head, outcome)
        with _failure_reported(lake, head, lease, REFUSALS):  # another error may come after the manifest was written
            promise(lake, manifest, lease)
        with _delay_reported(lake, head):
            fulfil(lake, manifest, lease)
    return manifest.entry.report


def _refuse_unknown(lake: Lake, job: Job, lease: Lease) -> None:
    """Begin no run on a lake that the database does not know. Whatever else goes wrong is reported as any failure."""
    try:
        refuse_unknown(lake, job.connection)
    except UnknownLakeError:
        raise
    except EventLakeError:
        with _failure_reported(lake, _begin(lake, job), lease):
            raise


def _begin(lake: Lake, job: Job) -> report.RunHead:
    started_ns = lake.clock.now_ns()
    run_id = lake.runs.start(job.connection.source.id, job.kind, started_ns)
    return report.RunHead(
        workspace_id=lake.workspace_id,
        source_id=job.connection.source.id,
        run_id=run_id,
        database=job.connection.settings.database,
        start_ns=started_ns,
        is_replay=job.is_replay,
        replay_from=job.asked_from,
        replay_to=job.asked_to,
        where=lake.where,
    )


@contextmanager
def _failure_reported(
    lake: Lake, head: report.RunHead, lease: Lease, kinds: tuple[type[BaseException], ...] = (BaseException,)
) -> Iterator[None]:
    """Report that a run failed, if an error of one of these kinds ends it."""
    try:
        yield
    except kinds as error:
        _raise_if_lost(lease, error)
        told = of_system(error) if isinstance(error, OSError) else error
        # On a full disk the report cannot be written either; the next start then does it.
        with suppress(EventLakeError):
            save_failure(lake, head.run_id, _failure(lake, head, told))
        if told is error:
            raise
        raise told from error


def _raise_if_lost(lease: Lease, error: BaseException) -> None:
    """Whatever went wrong in a run whose place another took: that is why, and the other has reported it."""
    try:
        lease.confirm()
    except LeaseLostError as lost:
        raise lost from error
    except EventLakeError:
        return  # a database that does not answer is told by others


@contextmanager
def _delay_reported(lake: Lake, head: report.RunHead) -> Iterator[None]:
    """Report why a run whose manifest is written cannot be finished now; the next start goes on with it."""
    try:
        yield
    except EventLakeError as error:
        with suppress(EventLakeError):
            save_delay(lake, head.run_id, _failure(lake, head, error))
        raise


def _failure(lake: Lake, head: report.RunHead, error: BaseException) -> list[dict[str, Any]]:
    if isinstance(error, EventLakeError):
        problem, code = error.problem, error.code
    else:
        problem, code = f"{type(error).__name__}: {error}", InternalError.code
    return report.failed(head, lake.clock.now_ns(), problem, code)
