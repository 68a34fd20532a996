"""One run per source at a time, one collector per workspace."""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eventlake.errors import BusyError


@contextmanager
def only_run(folder: Path, source_id: str) -> Iterator[None]:
    """Hold a source."""
    problem = "another sync or replay of this source is running"
    with only_one(folder / f"{source_id}.lock", problem, fix="wait until it ends; see `eventlake runs`"):
        yield


@contextmanager
def only_one(path: Path, problem: str, *, fix: str, patience: float = 0) -> Iterator[int]:
    """Hold a lock, after waiting for it some seconds at most.

    It goes with the process that holds it, however that process ends, and with those that were given its handle.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + patience
    with path.open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() >= deadline:
                    raise BusyError(problem, fix=fix) from error
                time.sleep(0.1)
            else:
                break
        yield file.fileno()
