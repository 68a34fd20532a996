"""Whose events are not taken: the workspace's list, as it was a moment ago."""

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from eventlake.control.suppressions import ALL_SOURCES, Suppressions

if TYPE_CHECKING:
    from eventlake.events.suppression import Suppressed

SECONDS = 0.5  # between two looks at the list


class Suppressing:
    """Follows the list in a thread of its own: requests do not wait for it.

    Who is added is known after a moment, however long the list is. Who is removed is known when all of it was read
    again.
    """

    def __init__(self, suppressions: Suppressions) -> None:
        self._suppressions = suppressions
        self._version = self._removals = self._count = self._until = 0
        self._lists: list[Mapping[str, Suppressed]] = [{}]  # the whole list, and what came since it was read
        self._read_all()  # before the first request: a database that is away must not let anybody in
        self._ended = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._follow, daemon=True).start()

    def stop(self) -> None:
        self._ended.set()

    def hides(self, source_id: str) -> Callable[[Any], bool]:
        """Whether an event of a source is of somebody on the list."""
        lists = [known for part in self._lists for key in (ALL_SOURCES, source_id) if (known := part.get(key))]
        return lambda event: any(known.hides(event) for known in lists)

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
        new, more = self._suppressions.added_since(self._until)
        self._lists = [self._lists[0], more]
        # A change that took long may have been written down with a time that was read before.
        is_all = self._suppressions.count() == self._count + new
        if is_all and self._suppressions.removals() == self._removals:
            self._version = version
        else:
            self._read_all()

    def _read_all(self) -> None:
        version, removals = self._suppressions.version(), self._suppressions.removals()
        until = self._suppressions.last_added()
        self._count, everybody = self._suppressions.added_since(0, until)
        self._lists = [everybody]
        self._version, self._removals, self._until = version, removals, until
