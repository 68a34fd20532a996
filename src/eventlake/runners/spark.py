"""Spreading work over Spark.

The work of a sync is functions over small task descriptions; Spark spreads them, retries what is lost, and scales
out. Plain RDDs do that without the seconds that SQL planning and pandas cost at the start, on every Spark from 3.5.
"""

import contextlib
import importlib
import math
import os
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from eventlake.errors import EventLakeError, SetupError, TransientError
from eventlake.runners import java_process
from eventlake.runners.class_cache import java_options
from eventlake.runners.entry import ENVIRONMENT
from eventlake.runners.java import java_home
from eventlake.runners.spark_watch import JobGroup, is_of_the_way
from eventlake.runners.task_errors import explaining_errors, reason, translated
from eventlake.runners.watch import Progress, Watch

Task = TypeVar("Task")
Result = TypeVar("Result")
Context = TypeVar("Context")


_one_start = threading.Lock()  # a process has one Spark, and may have many threads


class SparkRunner:
    """Runs tasks on Spark, which starts with the first task and ends with `close`.

    A Spark that this process has already is used as it is, and stays. One whose Java process died is replaced for the
    next step. What spark-submit started has neither a master nor a log of its own to choose. A step in which no task
    ends for `patience` seconds is given up. Workers that cannot import eventlake get it in a `package`. A Spark
    that `gives_way` leaves the cores to whatever else on this machine wants them.
    """

    def __init__(
        self,
        master: str | None,
        conf: dict[str, str],
        log: Path | None,
        *,
        patience: float = math.inf,
        package: str | None = None,
        gives_way: bool = False,
    ) -> None:
        self._master = master
        self._conf = conf
        self._log = log
        self._patience = patience
        self._package = package
        self._gives_way = gives_way
        self._place = log or ("the log of Spark, if one is kept" if master else "the logs of the cluster")
        self._started: Any = None
        self._is_ours = False

    @classmethod
    def on(cls, context: Any) -> "SparkRunner":
        """A runner on a Spark that somebody else started, and stops."""
        runner = cls(None, {}, None)
        runner._started = context
        return runner

    @property
    def parallelism(self) -> int:
        with self._translating("start"):
            return int(self._context.defaultParallelism)

    @property
    def where(self) -> Mapping[str, str]:
        return {}

    @property
    def version(self) -> str:
        """Spark's."""
        with self._translating("start"):
            return str(self._context.version)

    @property
    def _context(self) -> Any:
        if self._started is not None:
            java_process.forget_if_ended()
        with _one_start:
            if self._started is None or self._started._jsc is None:  # stopped, or forgotten, since
                self._started = self._start()
            return self._started

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
        with self._translating(function.__name__):
            spark = self._context
            shared = spark.broadcast(context)
            group = uuid.uuid4().hex
            spark.setJobGroup(group, function.__name__, interruptOnCancel=True)
            spread = spark.parallelize(tasks, len(tasks))
            if self._package is None:
                work = spread.map(lambda task: explaining_errors(function, shared.value, task))
            else:
                work = spread.mapPartitions(_of_package(_alias(self._package), function, shared))
            watch = Watch(JobGroup(spark, group), progress, self._patience)
            try:
                with watch:
                    results: list[Result] = work.collect()
            except Exception as error:
                if watch.cancelled:
                    raise watch.cancelled from error
                if watch.gave_up:
                    raise TransientError(
                        f"Spark could not {function.__name__.replace('_', ' ')}: no task ended for "
                        f"{self._patience:g} seconds",
                        fix=f"see {self._place}: is the cluster busy, or does the storage hang? Then run it again",
                    ) from error
                raise
            finally:
                with contextlib.suppress(Exception):  # if it fails, there are more important things to tell
                    shared.unpersist()
            if watch.cancelled:  # a moment too late
                raise watch.cancelled
        return results

    @contextlib.contextmanager
    def _translating(self, step: str) -> Iterator[None]:
        """Let what Spark, and the way to it, raise become an error of ours."""
        try:
            yield
        except EventLakeError:
            raise
        except Exception as error:
            how = java_process.how_it_ended(wait=is_of_the_way(error))
            if how is not None:
                raise TransientError(
                    f"Spark could not {step.replace('_', ' ')}: its Java process {how}",
                    fix=f"see {self._place}, and the system's log if it was killed: is there enough memory? Then run "
                    "it again: nothing was published",
                ) from error
            if type(error).__module__.startswith(("py4j", "pyspark")):
                raise translated(step, error, self._place) from error
            raise

    def _start(self) -> Any:
        # Half a second that most commands can do without. No session is made: SQL would take another.
        from pyspark import SparkConf, SparkContext  # noqa: PLC0415

        java_process.forget_if_ended()
        there = SparkContext._active_spark_context
        self._is_ours = there is None
        conf = SparkConf().setAppName("eventlake")
        if there is None and self._master is None:
            there = SparkContext(conf=conf)
        if there is not None:
            if self._package is not None:
                # The Spark of a cluster outlives us, and its workers keep what they have imported. Each package has a
                # folder of its own, and, as Spark tells workers apart by their variables, workers of its own.
                there.addArchive(f"{self._package}#{_alias(self._package)}")
                there.environment["EVENTLAKE_PACKAGE"] = _alias(self._package)
            return there
        assert self._master  # noqa: S101 - spark-submit, or whoever was there before, knows it
        os.environ["JAVA_HOME"] = str(java_home())  # also in place of one that is empty or too old
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        local = {}
        if self._master.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            local = _LOCAL | {"spark.driver.extraJavaOptions": java_options()}
        settings = _DEFAULTS | local | self._conf | {"spark.master": self._master}
        conf.setAll(list(settings.items()))
        try:
            gateway = None
            if not SparkContext._gateway:
                gateway = java_process.launch(dict(conf.getAll()), self._log, gives_way=self._gives_way)
            context = SparkContext(conf=conf, gateway=gateway)
        except Exception as error:
            raise SetupError(
                f"Spark did not start on {self._master}: {reason(error)}",
                fix=f"see {self._place}; check spark.master and spark.conf in the workspace's settings",
            ) from error
        java_process.quiet(context)
        return context

    def close(self) -> None:
        started, self._started = self._started, None
        if started is not None and self._is_ours:
            java_process.stop(started)


_DEFAULTS = {
    "spark.ui.enabled": "false",  # a port without authentication
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.liveUpdate.period": "0",  # else the end of a task may be told as late as 10 seconds after it
    "spark.log.level": "WARN",
    "spark.driver.memory": "1g",  # no data passes through the driver
    "spark.task.maxFailures": "4",
}
_LOCAL = {
    # Nobody else has anything to do with a Spark of this machine: it listens to this machine only, and to those who
    # know a secret that Spark makes up.
    "spark.authenticate": "true",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


def _alias(package: str) -> str:
    """The folder into which Spark unpacks a package, whose name tells its version."""
    return f"{ENVIRONMENT}-{PurePosixPath(package).name.removesuffix('.tar.gz')}"


def _of_package(alias: str, function: Callable[..., Any], shared: Any) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """What a worker does that finds eventlake in the package.

    It is sent whole, for nothing of ours can be imported before it has run. Tasks, and what they share, come to it
    when it asks for them.
    """
    module, name = function.__module__, function.__name__

    def work(tasks: Iterator[Any]) -> Iterator[Any]:
        from pyspark import SparkFiles  # noqa: PLC0415

        library = f"{SparkFiles.get(alias)}/lib"
        if library not in sys.path:
            sys.path.insert(0, library)
        wanted = getattr(importlib.import_module(module), name)
        call = importlib.import_module("eventlake.runners.task_errors").explaining_errors
        for task in tasks:
            yield call(wanted, shared.value, task)

    return work
