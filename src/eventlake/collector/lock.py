"""One collector per workspace folder."""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eventlake.errors import BusyError
from eventlake.storage import private


@contextmanager
def only_one(path: Path, problem: str, *, fix: str, patience: float = 0) -> Iterator[int]:
    """Hold a lock, after waiting for it some seconds at most.

    It goes with the process that holds it, however that process ends, and with those that were given its handle.
    """
    private.make_file(path)
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
