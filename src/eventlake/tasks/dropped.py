"""Files of messages of which not all rows are published.

A file is a sorted array of 64-bit numbers: which staged file (31 bits), which message of it (32), and whether the
message has rows in the tables of a replay's scope.
"""

from collections.abc import Sequence

import numpy as np

from eventlake.lake.ids import Array
from eventlake.storage.base import Storage

_ENTRY = np.dtype("<u8")
_FILE, _MESSAGE = 33, 1  # where the bits of both begin
_IN_SCOPE = np.uint64(1)


def _entries(staged: Array, numbers: Array) -> Array:
    high, low = np.asarray(staged, _ENTRY) << np.uint64(_FILE), np.asarray(numbers, _ENTRY) << np.uint64(_MESSAGE)
    return np.asarray(high | low)


def write_dropped(storage: Storage, path: str, staged: Array, numbers: Array, in_scope: Array) -> str | None:
    """Write the messages with these numbers, of these staged files; the path, or None if there are none."""
    if not len(numbers):
        return None
    with storage.open_output(path) as sink:
        sink.write(np.sort(_entries(staged, numbers) | in_scope.astype(_ENTRY)).tobytes())
    return path


class Dropped:
    """What some files tell. The part about one staged file is held at a time: there may be many copies."""

    def __init__(self, storage: Storage, paths: Sequence[str]) -> None:
        self._files: list[Array] = []
        for path in paths:
            with storage.open_input(path) as source:
                self._files.append(np.frombuffer(source.read_buffer(), _ENTRY))
        self._staged = -1
        self._entries = np.empty(0, _ENTRY)

    def kept(self, staged: int, first: int, count: int, *, in_scope: bool) -> Array | None:
        """Which of the messages that follow each other in a staged file have a row in a table; None for all."""
        if not self._files:
            return None
        if staged != self._staged:
            self._staged, self._entries = staged, self._of(staged)
        begin, end = np.searchsorted(self._entries, _entries(np.full(2, staged), np.array([first, first + count])))
        here = self._entries[begin:end]
        if in_scope:
            here = here[here & _IN_SCOPE == 0]
        if not len(here):
            return None
        keep = np.ones(count, bool)
        keep[(here >> np.uint64(_MESSAGE) & np.uint64(0xFFFF_FFFF)).astype(np.int64) - first] = False
        return keep

    def _of(self, staged: int) -> Array:
        bounds = _entries(np.array([staged, staged + 1]), np.zeros(2))
        parts = [file[slice(*np.searchsorted(file, bounds))] for file in self._files]
        return np.sort(np.concatenate(parts))
