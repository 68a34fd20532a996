"""One run per source at a time."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eventlake.errors import BusyError


@contextmanager
def only_run(folder: Path, source_id: str) -> Iterator[None]:
    """Hold a source. The lock goes with the process that holds it, however that process ends."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{source_id}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BusyError(
                "another sync or replay of this source is running",
                fix="wait until it ends; see `eventlake runs`",
            ) from error
        yield
