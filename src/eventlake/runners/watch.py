"""What watches over a step while Spark carries it out."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

from eventlake.errors import CancelledError

_log = logging.getLogger(__name__)

Progress = Callable[[int], None]
"""Called with the number of tasks that are done."""


class Job(Protocol):
    """What can be asked about a step, and done to it, while it runs."""

    def done(self) -> int:
        """How many of its tasks are."""

    def cancel(self) -> None:
        """End it. May be called again, and before it has begun."""

    def is_lost(self, error: Exception, /) -> bool:
        """Whether an error that came of asking means that there is nothing to watch any more."""


class Watch:
    """Follows a job while it runs, and tells how many tasks are done.

    Cancels it when none ends for too long, or when whoever is told wants it.
    """

    def __init__(self, job: Job, progress: Progress | None, patience: float) -> None:
        self.gave_up = False
        self.cancelled: CancelledError | None = None
        self._job = job
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
                now = self._job.done()
                if now != done:
                    done, since = now, time.monotonic()
                if self._progress:
                    self._progress(done)
            except CancelledError as error:
                self.cancelled = error
                with contextlib.suppress(Exception):  # it is done again in a moment, as it may not be submitted yet
                    self._job.cancel()
                continue
            except Exception as error:  # whoever is told must not stop the watch: the time limit holds without it
                if self._job.is_lost(error):
                    return
                if not told:
                    _log.warning("the progress of a step cannot be told", exc_info=True)
                told = True
            if time.monotonic() - since > self._patience and not self.gave_up:
                self.gave_up = True
                self._job.cancel()
