"""What watches over a step that runs on Spark."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from eventlake.errors import CancelledError
from eventlake.runners import java_process

_log = logging.getLogger(__name__)

Progress = Callable[[int], None]
"""Called with the number of tasks that are done."""


class Watch:
    """Follows a job group while it runs, and tells how many tasks are done.

    Cancels it when none ends for too long, or when whoever is told wants it.
    """

    def __init__(self, context: Any, group: str, progress: Progress | None, patience: float) -> None:
        self.gave_up = False
        self.cancelled: CancelledError | None = None
        self._context = context
        self._group = group
        self._progress = progress
        self._patience = patience
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _follow(self) -> None:
        done, since, told = 0, time.monotonic(), False
        while not self._ended.wait(0.2):
            try:
                now = self._done()
                if now != done:
                    done, since = now, time.monotonic()
                if self._progress:
                    self._progress(done)
            except CancelledError as error:
                self.cancelled = error
                with contextlib.suppress(Exception):  # it is done again in a moment, as it may not be submitted yet
                    self._context.cancelJobGroup(self._group)
                continue
            except Exception as error:  # whoever is told must not stop the watch: the time limit holds without it
                if is_of_the_way(error) and java_process.how_it_ended(wait=True):
                    return
                if not told:
                    _log.warning("the progress of a step cannot be told", exc_info=True)
                told = True
            if time.monotonic() - since > self._patience and not self.gave_up:
                self.gave_up = True
                self._context.cancelJobGroup(self._group)

    def _done(self) -> int:
        tracker = self._context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._group)]
        infos = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        return sum(info.numCompletedTasks for info in infos if info)


def is_of_the_way(error: Exception) -> bool:
    """Whether an error is about the connection to Java, and not one that Java sent over it."""
    of_py4j = type(error).__module__.startswith("py4j") and type(error).__name__ != "Py4JJavaError"
    return of_py4j or isinstance(error, ConnectionError | EOFError)
