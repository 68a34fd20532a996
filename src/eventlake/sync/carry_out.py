"""Carrying out what was asked for: one run, or, for a large replay, several in turn.

A replay is cut into parts of whole days, each a run of its own: what is done stays done if a later part fails or the
process dies, the rest can be done at any time, and the staging folder holds the files of one part.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

from eventlake.control.leases import Lane
from eventlake.control.ledger import LoadedFile
from eventlake.control.replays import PendingReplay
from eventlake.errors import EventLakeError
from eventlake.lake.layout import DAY
from eventlake.runners.base import Progress, Runner, no_progress
from eventlake.sync.jobs import Job
from eventlake.sync.not_begun import report_not_begun
from eventlake.sync.run import DEFAULT_SIZES, run
from eventlake.sync.work import Sizes
from eventlake.tasks.scope import Scope
from eventlake.workspace import Workspace


def carry_out(
    workspace: Workspace, job: Job, runner: Runner, progress: Progress = no_progress, sizes: Sizes = DEFAULT_SIZES
) -> Iterator[list[dict[str, Any]]]:
    """The reports of the runs that a job takes, each as soon as its run has ended."""
    if not job.is_beside_syncs or job.scope is None:
        yield run(workspace, job, runner, progress, sizes)
        return
    lake, source_id = workspace.lake(job.connection.lake), job.connection.source.id
    with lake.leases.held(source_id, Lane.REPLAY) as lane:
        most = max(sizes.bytes_per_part, sizes.bytes_per_part_and_core * _cores_for(workspace, job, runner))
        parts = parts_of(job.scope, lake.ledger.raw_files(source_id).values(), most)
        for number, part in enumerate(parts):
            lake.replays.put(_pending(job, part, number, len(parts)))
            watched = _with_part(progress, number, len(parts))
            yield run(workspace, _part(job, job.scope, part), runner, watched, sizes, lane=lane)
        lake.replays.finished(source_id)


def _cores_for(workspace: Workspace, job: Job, runner: Runner) -> int:
    """How many tasks there may be at once. To know it, the runner starts; if it cannot, the job has failed."""
    try:
        return runner.parallelism
    except EventLakeError as error:
        report_not_begun(workspace, job, error)
        raise


def parts_of(scope: Scope, files: Iterable[LoadedFile], most_bytes: int) -> list[Scope]:
    """The scope in parts of whole days with about so many bytes of raw files each; a day is never cut."""
    by_day: dict[int, int] = {}
    for file in files:
        if file.first_received is not None and scope.start <= file.first_received < scope.stop:
            by_day[file.first_received // DAY] = by_day.get(file.first_received // DAY, 0) + file.size
    cuts, size = [], 0
    for day in sorted(by_day):
        if size and size + by_day[day] > most_bytes and day * DAY > scope.start:
            cuts.append(day * DAY)
            size = 0
        size += by_day[day]
    return [replace(scope, start=start, stop=stop) for start, stop in pairwise([scope.start, *cuts, scope.stop])]


def _part(job: Job, whole: Scope, part: Scope) -> Job:
    """One part; its report tells which period it was, as far as one was asked for."""
    return replace(
        job,
        scope=part,
        asked_from=job.asked_from if part.start == whole.start else part.start,
        asked_to=job.asked_to if part.stop == whole.stop else part.stop,
    )


def _pending(job: Job, part: Scope, done: int, parts: int) -> PendingReplay:
    keys = sorted(part.table_keys) if part.table_keys is not None else None
    return PendingReplay(job.connection.source.id, job.asked_from, job.asked_to, part.start, keys, parts, done)


def _with_part(progress: Progress, number: int, parts: int) -> Progress:
    """Progress that tells of which part it is."""
    if parts == 1:
        return progress
    return lambda step, done, tasks: progress(f"part {number + 1} of {parts}: {step}", done, tasks)
