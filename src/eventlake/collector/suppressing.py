"""Whose events are not taken: the workspace's list, as it was a moment ago."""

import threading
from collections.abc import Mapping

from eventlake.control.suppressions import ALL_SOURCES, Suppressions
from eventlake.events.suppression import NOBODY, Suppressed
from eventlake.reading.named import Hides

SECONDS = 0.5  # between two looks at the list
_RECENT = 8  # what came is put to the rest when it is more than this part of it


class Suppressing:
    """Follows the list in a thread of its own: requests do not wait for it.

    Who is added is known after a moment, however long the list is. Who is removed is known when all of it was read
    again.
    """

    def __init__(self, suppressions: Suppressions) -> None:
        self._suppressions = suppressions
        self._version = self._removals = self._until = 0
        # The list, and what came since it was put together: that is a matter of seconds if it is very long.
        self._lists: list[Mapping[str, Suppressed]] = [{}, {}]
        self._read_all()  # before the first request: a database that is away must not let anybody in
        self._ended = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._follow, daemon=True).start()

    def stop(self) -> None:
        self._ended.set()

    def hides(self, source_id: str) -> Hides:
        """Whether an event of a source is of somebody on the list."""
        lists = [known for part in self._lists for key in (ALL_SOURCES, source_id) if (known := part.get(key))]
        return lambda value, above=(): any(known.hides(value, above) for known in lists)

    def _follow(self) -> None:
        while not self._ended.wait(SECONDS):
            try:
                self.look()
            except Exception:  # noqa: S112 - whatever it is, those who were on the list still are
                continue

    def look(self) -> None:
        """Look at the list, and read what changed."""
        version = self._suppressions.version()
        if version == self._version:
            return
        until = self._suppressions.last_added()
        whole, recent = self._lists
        recent = _joined(recent, self._suppressions.added_since(self._until))
        if _length(recent) * _RECENT > _length(whole):
            whole, recent = _joined(whole, recent), {}
        self._lists = [whole, recent]
        self._until = until
        if self._suppressions.removals() == self._removals:
            self._version = version
        else:
            self._read_all()

    def _read_all(self) -> None:
        version, removals = self._suppressions.version(), self._suppressions.removals()
        until = self._suppressions.last_added()
        self._lists = [self._suppressions.added_since(0), {}]
        self._version, self._removals, self._until = version, removals, until


def _joined(one: Mapping[str, Suppressed], other: Mapping[str, Suppressed]) -> Mapping[str, Suppressed]:
    return {key: one.get(key, NOBODY).joined(other.get(key, NOBODY)) for key in one.keys() | other.keys()}


def _length(known: Mapping[str, Suppressed]) -> int:
    return sum(map(len, known.values()))
