"""What the steps of a run share: the job, the lake, and where tasks are carried out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from eventlake.archive.annexes import Annex, whole_archive
from eventlake.archive.whole import WholeArchive
from eventlake.errors import StagingDeniedError, UploadDeniedError
from eventlake.runners.base import Context, Progress, Result, Runner, Task
from eventlake.sync.jobs import Job
from eventlake.sync.shares import ShareSizes
from eventlake.tasks.publish import PublishSizes
from eventlake.tasks.staged import StageSizes
from eventlake.workspace import Lake


@dataclass(frozen=True)
class Sizes:
    """The sizes at which a run takes another way. What comes out is the same at any, only time and memory differ."""

    shares: ShareSizes = field(default_factory=ShareSizes)
    stage: StageSizes = field(default_factory=StageSizes)
    publish: PublishSizes = field(default_factory=PublishSizes)
    bytes_per_part: int = 2 << 30  # of compressed raw files, in one part of a replay; or, if that is more,
    bytes_per_part_and_core: int = 64 << 20


@dataclass(frozen=True)
class Work:
    lake: Lake
    job: Job
    runner: Runner
    progress: Progress
    run_id: str
    sizes: Sizes

    @property
    def folder(self) -> str:
        """Where the run stages."""
        return self.lake.folders.of_run(self.run_id)

    @cached_property
    def annexes(self) -> list[Annex]:
        return self.lake.workspace.annexes(self.job.connection.source.id)

    @property
    def archive(self) -> WholeArchive:
        return whole_archive(self.lake.archive, self.annexes)

    def spread(
        self, step: str, function: Callable[[Context, Task], Result], context: Context, tasks: Sequence[Task]
    ) -> list[Result]:
        """Carry out the tasks of a step, wherever that is done."""
        self.lake.runs.at_step(self.run_id, step)
        self.progress(step, 0, len(tasks))
        try:
            results = self.runner.run(function, context, tasks, lambda done: self.progress(step, done, len(tasks)))
        except UploadDeniedError as error:
            raise StagingDeniedError(error.problem, fix=error.fix) from error  # steps write nowhere else
        self.progress(step, len(tasks), len(tasks))
        return results
