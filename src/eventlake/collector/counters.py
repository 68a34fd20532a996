"""Counters that all worker processes share, each in a file of its own: any of them can tell the sum."""

import mmap
import os
import struct
from pathlib import Path

NAMES = {
    "requests": "Requests of all kinds.",
    "events_stored": "Events that were acknowledged and are on disk.",
    "events_rejected": "Events that were refused; see eventlake rejects.",
    "requests_refused": "Requests that were refused as a whole: no valid write key, no JSON, too large.",
    "requests_limited": "Requests that were told to come again later, because there were too many.",
    "storage_errors": "Requests that were told to come again later, because the disk did not take them.",
}
_PLACE = {name: 8 * place for place, name in enumerate(NAMES)}
_SIZE = 8 * len(NAMES)


class Counters:
    def __init__(self, folder: Path, worker: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        path = folder / f"{worker}.count"
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.ftruncate(handle, _SIZE)
        self._memory = mmap.mmap(handle, _SIZE)
        os.close(handle)

    def add(self, name: str, number: int = 1) -> None:
        place = _PLACE[name]
        (before,) = struct.unpack_from("<Q", self._memory, place)
        struct.pack_into("<Q", self._memory, place, before + number)

    def exposition(self) -> str:
        """All counters in the text format of Prometheus."""
        sums = dict.fromkeys(NAMES, 0)
        for path in self._folder.glob("*.count"):
            for name, value in zip(NAMES, struct.unpack(f"<{len(NAMES)}Q", path.read_bytes()[:_SIZE]), strict=True):
                sums[name] += value
        lines = []
        for name, value in sums.items():
            lines += [
                f"# HELP eventlake_collector_{name}_total {NAMES[name]}",
                f"# TYPE eventlake_collector_{name}_total counter",
                f"eventlake_collector_{name}_total {value}",
            ]
        return "\n".join(lines) + "\n"
