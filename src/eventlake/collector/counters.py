"""Counters by source that all processes share, each in a file of its own: any of them can tell the sums.

A file is a row of slots of one size. The first is for what belongs to no source; each of the others begins with the id
of its source. To count is to write one slot again.
"""

import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

NAMES = {
    "requests": "Requests of all kinds.",
    "events_stored": "Events that were acknowledged and are on disk.",
    "events_rejected": "Events that were refused; see eventlake rejects.",
    "events_suppressed": "Events of people who must not be in the lake; nothing of them is kept.",
    "events_archived": "Events that were written to the raw archive.",
    "events_copies": "Events that were left out of the archive, because their message came in the 24 hours before.",
    "requests_refused": "Requests that were refused as a whole: no valid write key, no JSON, too large.",
    "requests_limited": "Requests that were told to come again later, because there were too many.",
    "rejects_lost": "Refused events of which no note could be kept, because the disk did not take it.",
    "errors": "Requests that met a mistake of the collector.",
    "storage_errors": "Requests that were told to come again later, because the disk did not take them.",
    "archive_errors": "Attempts to write a log to the archive that failed.",
}
NO_SOURCE = ""
_SLOT = struct.Struct(f"<104s{len(NAMES)}Q")  # an id of a source has at most 100 characters of ASCII


class Counters:
    def __init__(self, folder: Path, process: str) -> None:
        self._folder = folder
        self._slots: dict[str, int] = {NO_SOURCE: 0}
        self._counts: dict[str, dict[str, int]] = {NO_SOURCE: dict.fromkeys(NAMES, 0)}
        self._file: int | None = None
        with suppress(OSError):  # without room for it, counting goes on in memory
            folder.mkdir(parents=True, exist_ok=True)
            self._file = os.open(folder / f"{process}.count", os.O_RDWR | os.O_CREAT, 0o600)
            for source, counts in _read(os.pread(self._file, os.fstat(self._file).st_size, 0)):
                self._slots.setdefault(source, len(self._slots))
                self._counts[source] = counts

    def add(self, name: str, number: int = 1, source: str | None = None) -> None:
        key = source or NO_SOURCE
        if key not in self._counts:
            self._slots[key] = len(self._slots)
            self._counts[key] = dict.fromkeys(NAMES, 0)
        counts = self._counts[key]
        counts[name] += number
        if self._file is not None:
            with suppress(OSError):
                os.pwrite(self._file, _SLOT.pack(key.encode(), *counts.values()), self._slots[key] * _SLOT.size)

    def sums(self) -> dict[str, dict[str, int]]:
        """Of all processes: source id → name → number."""
        sums: dict[str, dict[str, int]] = {NO_SOURCE: dict.fromkeys(NAMES, 0)}
        for path in sorted(self._folder.glob("*.count")):
            for source, counts in _read(path.read_bytes()):
                of_source = sums.setdefault(source, dict.fromkeys(NAMES, 0))
                for name, value in counts.items():
                    of_source[name] += value
        return sums


def _read(content: bytes) -> Iterator[tuple[str, dict[str, int]]]:
    if len(content) % _SLOT.size:
        return  # of a version that counted something else
    for source, *counts in _SLOT.iter_unpack(content):
        yield source.rstrip(b"\0").decode("ascii", "replace"), dict(zip(NAMES, counts, strict=True))
