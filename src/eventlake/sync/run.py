"""A run, from raw files to a report. Read this page first.

    discover ─► stage ─► dedupe ─► plan ─► publish ─► close the books ─► commit

Staging, deduplication and publishing run on Spark (see `tasks`); what comes back to the driver is where things lie
and how many they are. Nothing is visible to readers before the commit, and nothing can undo a run after it.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any

from eventlake.commit.commit import fulfil, promise
from eventlake.commit.manifest import Manifest
from eventlake.commit.ownership import refuse_unknown
from eventlake.commit.recover import give_up_replays, recover
from eventlake.commit.run_reports import save_delay, save_failure
from eventlake.control.conflicts import check_dialect
from eventlake.control.leases import Hold, Lane, Lease, Together
from eventlake.errors import (
    BusyError,
    CancelledError,
    EventLakeError,
    InternalError,
    InvalidSettingsError,
    LeaseLostError,
    NotDueError,
    PermissionMissingError,
    UnknownLakeError,
    of_system,
)
from eventlake.reports import report
from eventlake.runners.base import Progress, Runner, no_progress
from eventlake.sync import books, jobs
from eventlake.sync.adopt import manifest_of_adoption, refuse_moved
from eventlake.sync.beside import still_holding
from eventlake.sync.dedupe import dedupe
from eventlake.sync.discover import discover
from eventlake.sync.drop import manifest_of_drop
from eventlake.sync.forward import forward
from eventlake.sync.jobs import Job
from eventlake.sync.manifest_of import manifest_of
from eventlake.sync.noted import Noted
from eventlake.sync.outcome import Outcome
from eventlake.sync.plan import plan, with_discards
from eventlake.sync.publish import publish
from eventlake.sync.stage import stage
from eventlake.sync.state import LakeState, read_state
from eventlake.sync.work import Sizes, Work
from eventlake.workspace import Lake, Workspace

DEFAULT_SIZES = Sizes()
REFUSALS = (InvalidSettingsError, PermissionMissingError)  # after which nothing was written


def run(
    workspace: Workspace,
    job: Job,
    runner: Runner,
    progress: Progress = no_progress,
    sizes: Sizes = DEFAULT_SIZES,
    *,
    lane: Lease | None = None,
) -> list[dict[str, Any]]:
    """Carry out a job and return the lines of its report. A run that fails is reported as well, then raised.

    The `lane` that a replay needs may be held already, for all parts of it.
    """
    lake = workspace.lake(job.connection.lake)
    with ExitStack() as lanes:
        own = Together((lane,)) if lane else lanes.enter_context(_held(lake, job))
        _refuse_if_begun(lake, job)
        _refuse_unknown(lake, job, runner, own)
        head = begun(lake, job, runner.where)
        with _failure_reported(lake, head, own):
            _recover(lake, job, own, head)
            job = jobs.as_saved(job, workspace.connections.of_table(lake.name, job.connection.source.id))
            work = Work(lake, job, runner, Noted(lake.runs, head.run_id, progress), head.run_id, sizes)
            if job.is_beside_syncs:
                state = read_state(lake, job)
                outcome = _produced(work, state)
                hold = lanes.enter_context(_committing(work, own))
                manifest = _on_top_of_syncs(work, hold, head, state, outcome)
            else:
                hold = own
                manifest = _manifest(work, read_state(lake, job), head)
        lake.runs.at_step(head.run_id, "commit")
        with _failure_reported(lake, head, hold, REFUSALS):  # another error may come after the manifest was written
            promise(lake, manifest, hold)
        with _delay_reported(lake, head):
            return fulfil(lake, manifest, hold)


def _produced(work: Work, state: LakeState) -> Outcome:
    """All that a run makes of raw files, in its staging folder."""
    refuse_moved(work, state)
    found = discover(work, state)
    staged = stage(work, state, found)
    kept = dedupe(work, state, found, staged)
    plans = plan(work.job, state, staged, kept)
    published = publish(work, state, plans, staged, kept)
    accounts = books.close(staged, kept, published, has_discards=work.job.connection.dialect.discards is not None)
    forward(work, staged)
    plans = with_discards(plans, work.job, state, published)
    return Outcome(found, staged, kept, plans, published, accounts, state.replaced_files(work.job))


def _manifest(work: Work, state: LakeState, head: report.RunHead, outcome: Outcome | None = None) -> Manifest:
    if work.job.dropped is not None:
        return manifest_of_drop(work, state, work.job.dropped, head)
    if work.job.adopted:
        return manifest_of_adoption(work, state, work.job.adopted, head)
    outcome = outcome or _produced(work, state)
    lake, dialect = work.lake, work.job.connection.dialect
    partitions = {
        key: lake.catalog.partitions(dialect.database, dialect.table_name(key), written)
        for key, written in outcome.partitions.items()
    }
    return manifest_of(work.job, state, partitions, head, outcome, lake.clock.now_ns())


def _on_top_of_syncs(work: Work, hold: Together, head: report.RunHead, before: LakeState, outcome: Outcome) -> Manifest:
    """The manifest of a replay, on top of what syncs committed while it went on. No other is committed from here on."""
    lake, connection = work.lake, work.job.connection
    recover(lake, connection, hold, mine=work.run_id, replay=hold.leases[0])
    saved = lake.workspace.connections.of_table(lake.name, connection.source.id)
    work = replace(work, job=jobs.as_saved(work.job, saved))
    now = read_state(lake, work.job)
    return _manifest(work, now, head, still_holding(work.job, outcome, before, now))


@contextmanager
def _held(lake: Lake, job: Job) -> Iterator[Together]:
    """Hold the lanes that a job needs before it commits: a sync its own, a replay its own, anything else both."""
    needed = [Lane.REPLAY] if job.is_beside_syncs else [Lane.REPLAY, Lane.SYNC] if job.is_alone else [Lane.SYNC]
    with ExitStack() as lanes:
        yield Together(tuple(lanes.enter_context(lake.leases.held(job.connection.source.id, lane)) for lane in needed))


def _committing(work: Work, own: Together) -> AbstractContextManager[Together]:
    """Hold all lanes, as soon as the sync that is running has ended."""
    (replay,) = own.leases
    return work.lake.leases.committing(
        work.job.connection.source.id, replay, waiting=lambda: work.progress("waiting for a sync", 0, 1)
    )


def _recover(lake: Lake, job: Job, own: Together, head: report.RunHead) -> None:
    """Finish or give up what earlier runs left. Beside a sync that is running, which did the same, less is to do."""
    connection, mine = job.connection, head.run_id
    if not job.is_beside_syncs:
        recover(lake, connection, own, mine=mine, replay=own.leases[0] if job.is_alone else None)
        return
    (replay,) = own.leases
    give_up_replays(lake, connection, mine=mine)
    with suppress(BusyError), lake.leases.committing(connection.source.id, replay) as hold:
        recover(lake, connection, hold, mine=mine, replay=replay)


def _refuse_if_begun(lake: Lake, job: Job) -> None:
    """Of several schedulers that find a sync due, the first does it. No other begins one while the lane is held."""
    last = lake.runs.last_sync(job.connection.source.id, lake.name) if job.due_since is not None else None
    if last is not None and job.due_since is not None and last.started_at >= job.due_since:
        raise NotDueError(f"run {last.run_id} was begun since this was due", fix="nothing is to be done")


def _refuse_unknown(lake: Lake, job: Job, runner: Runner, own: Hold) -> None:
    """Begin no run on a lake that the database does not know. Whatever else goes wrong is reported as any failure."""
    check_dialect(job.connection, lake.settings.dialect)  # else not even a report would have its place
    try:
        refuse_unknown(lake, job.connection)
    except UnknownLakeError:
        raise
    except EventLakeError:
        with _failure_reported(lake, begun(lake, job, runner.where), own):
            raise


def begun(lake: Lake, job: Job, ran: Mapping[str, str]) -> report.RunHead:
    """Note that a run begins; `ran` tells where, as soon as that is known."""
    started_ns = lake.clock.now_ns()
    run_id = lake.runs.start(job.connection.source.id, job.kind, started_ns)
    return report.RunHead(
        workspace_id=lake.workspace_id,
        source_id=job.connection.source.id,
        run_id=run_id,
        database=job.connection.database,
        start_ns=started_ns,
        is_replay=job.is_replay,
        replay_from=job.asked_from,
        replay_to=job.asked_to,
        where=lake.settings.where,
        ran=ran,
    )


@contextmanager
def _failure_reported(
    lake: Lake, head: report.RunHead, hold: Hold, kinds: tuple[type[BaseException], ...] = (BaseException,)
) -> Iterator[None]:
    """Report that a run failed, if an error of one of these kinds ends it."""
    try:
        yield
    except kinds as error:
        _raise_if_lost(hold, error)
        shown = of_system(error) if isinstance(error, OSError) else error
        told = CancelledError("stopped by hand", fix="run it again") if isinstance(error, KeyboardInterrupt) else shown
        # On a full disk the report cannot be written either; the next start then does it.
        with suppress(EventLakeError):
            save_failure(lake, head.run_id, _failure(lake, head, told))
        if isinstance(shown, EventLakeError):
            shown.run_id = head.run_id
        if shown is error:
            raise
        raise shown from error


def _raise_if_lost(hold: Hold, error: BaseException) -> None:
    """Whatever went wrong in a run whose place another took: that is why, and the other has reported it."""
    try:
        hold.confirm()
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
        error.run_id = head.run_id
        with suppress(EventLakeError):
            save_delay(lake, head.run_id, _failure(lake, head, error))
        raise


def _failure(lake: Lake, head: report.RunHead, error: BaseException) -> list[dict[str, Any]]:
    if not isinstance(error, EventLakeError):
        error = InternalError(f"{type(error).__name__}: {error}", fix="run it again; if it happens twice, report it")
    return report.failed(head, lake.clock.now_ns(), error.problem, error.code, error.fix)
