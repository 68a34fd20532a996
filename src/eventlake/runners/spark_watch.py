"""A step that runs on Spark, as it is watched."""

from typing import Any

from eventlake.runners import java_process


class JobGroup:
    """A `Job`: the jobs of a Spark of this process that belong together."""

    def __init__(self, context: Any, group: str) -> None:
        self._context = context
        self._group = group

    def done(self) -> int:
        tracker = self._context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._group)]
        infos = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        return sum(info.numCompletedTasks for info in infos if info)

    def cancel(self) -> None:
        self._context.cancelJobGroup(self._group)

    def is_lost(self, error: Exception, /) -> bool:
        return is_of_the_way(error) and java_process.how_it_ended(wait=True) is not None


def is_of_the_way(error: Exception) -> bool:
    """Whether an error is about the connection to Java, and not one that Java sent over it."""
    of_py4j = type(error).__module__.startswith("py4j") and type(error).__name__ != "Py4JJavaError"
    return of_py4j or isinstance(error, ConnectionError | EOFError)
