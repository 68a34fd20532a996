"""How far a run is, for everybody who looks: noted in the workspace database, where somebody may ask it to stop."""

import time
from contextlib import suppress

from eventlake.control.runs import Runs
from eventlake.errors import CancelledError, EventLakeError
from eventlake.runners.base import Progress

EVERY = 0.5  # seconds


class Noted:
    """Progress that is told to somebody and noted, now and then."""

    def __init__(self, runs: Runs, run_id: str, progress: Progress) -> None:
        self._runs = runs
        self._run_id = run_id
        self._progress = progress
        self._noted_at = float("-inf")

    def __call__(self, step: str, done: int, tasks: int) -> None:
        self._progress(step, done, tasks)
        if time.monotonic() - self._noted_at < EVERY:
            return
        self._noted_at = time.monotonic()
        is_wanted_to_stop = False
        with suppress(EventLakeError):  # a database that is away for a moment is no reason to fail
            is_wanted_to_stop = self._runs.progress(self._run_id, done, tasks)
        if is_wanted_to_stop:
            raise CancelledError("somebody asked this run to stop", fix="nothing was published; sync again any time")
