"""Spreading work over Spark.

The work of a sync is functions over small task descriptions; Spark spreads them, retries what is lost, and scales
out. Plain RDDs do that without the seconds that SQL planning and pandas cost at the start, on every Spark from 3.5.
"""

import contextlib
import os
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from eventlake.errors import EventLakeError, PermissionMissingError, SetupError, TransientError
from eventlake.runners.java import java_home

Task = TypeVar("Task")
Result = TypeVar("Result")
Context = TypeVar("Context")

Progress = Callable[[int], None]
"""Called with the number of tasks that are done."""


class SparkRunner:
    """Runs tasks on Spark. The session starts with the first task and ends with `close`."""

    def __init__(self, master: str, conf: dict[str, str], log: Path) -> None:
        self._master = master
        self._conf = conf
        self._log = log
        self._session: Any = None

    @property
    def parallelism(self) -> int:
        return int(self._context.defaultParallelism)

    @property
    def _context(self) -> Any:
        if self._session is None:
            self._session = self._start()
        return self._session.sparkContext

    def run(
        self,
        function: Callable[[Context, Task], Result],
        context: Context,
        tasks: Sequence[Task],
        progress: Progress | None = None,
    ) -> list[Result]:
        """Call the function for every task; results come in the order of the tasks."""
        if not tasks:
            return []
        shared = self._context.broadcast(context)
        group = uuid.uuid4().hex
        self._context.setJobGroup(group, function.__name__)
        work = self._context.parallelize(tasks, len(tasks)).map(lambda task: function(shared.value, task))
        with _watched(self._context, group, progress):
            try:
                results: list[Result] = work.collect()
            except Exception as error:
                if type(error).__module__.startswith(("py4j", "pyspark")):
                    raise self._translated(function.__name__, _reason(error)) from error
                raise
            finally:
                shared.unpersist()
        return results

    def _translated(self, step: str, reason: str) -> EventLakeError:
        problem = f"Spark could not {step}: {reason}"
        if "PermissionError" in reason or "Read-only file system" in reason:
            fix = "give the user that Spark runs as the right to read the archive and to write the lake"
            return PermissionMissingError(problem, fix=fix)
        return TransientError(problem, fix=f"see {self._log}, then run it again: nothing was published")

    def _start(self) -> Any:
        os.environ.setdefault("JAVA_HOME", str(java_home()))
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        if self._master.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        from pyspark.sql import SparkSession  # noqa: PLC0415 - half a second that most commands can do without

        builder = SparkSession.builder.master(self._master).appName("eventlake")
        for key, value in (_DEFAULTS | self._conf).items():
            builder = builder.config(key, value)
        with _stderr_to(self._log):
            try:
                return builder.getOrCreate()
            except Exception as error:
                raise SetupError(
                    f"Spark did not start on {self._master}: {_reason(error)}",
                    fix=f"see {self._log}; check spark.master and spark.conf in the workspace's settings",
                ) from error

    def close(self) -> None:
        if self._session is not None:
            self._session.stop()
            self._session = None


_DEFAULTS = {
    "spark.ui.enabled": "false",  # a port without authentication
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "WARN",
    "spark.driver.memory": "1g",  # no data passes through the driver
    "spark.task.maxFailures": "4",
}


@contextlib.contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Let the JVM, which inherits it, write its log to a file and not between the user's tables."""
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@contextlib.contextmanager
def _watched(context: Any, group: str, progress: Progress | None) -> Iterator[None]:
    """Report how many tasks of a job group are done, while it runs."""
    if progress is None:
        yield
        return
    done = threading.Event()

    def watch() -> None:
        tracker = context.statusTracker()
        while not done.wait(0.2):
            stages = [s for job in tracker.getJobIdsForGroup(group) for s in tracker.getJobInfo(job).stageIds]
            infos = [tracker.getStageInfo(stage) for stage in stages]
            progress(sum(info.numCompletedTasks for info in infos if info))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _reason(error: Exception) -> str:
    """The line of a Java or Python stack that tells most."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if "Error: " in line or "Exception: " in line]
    return (told or lines or [type(error).__name__])[-1][:500]
