"""Counters that all worker processes share, each in a file of its own: any of them can tell the sum."""

import os
import struct
from contextlib import suppress
from pathlib import Path

NAMES = {
    "requests": "Requests of all kinds.",
    "events_stored": "Events that were acknowledged and are on disk.",
    "events_rejected": "Events that were refused; see eventlake rejects.",
    "requests_refused": "Requests that were refused as a whole: no valid write key, no JSON, too large.",
    "requests_limited": "Requests that were told to come again later, because there were too many.",
    "rejects_lost": "Refused events of which no note could be kept, because the disk did not take it.",
    "errors": "Requests that met a mistake of the collector.",
    "storage_errors": "Requests that were told to come again later, because the disk did not take them.",
}
_FORMAT = f"<{len(NAMES)}Q"
_SIZE = struct.calcsize(_FORMAT)


class Counters:
    def __init__(self, folder: Path, worker: str) -> None:
        self._folder = folder
        self._counts = dict.fromkeys(NAMES, 0)
        self._file: int | None = None
        with suppress(OSError):  # without room for it, counting goes on in memory
            folder.mkdir(parents=True, exist_ok=True)
            self._file = os.open(folder / f"{worker}.count", os.O_RDWR | os.O_CREAT, 0o600)
            self._counts = _read(os.pread(self._file, _SIZE, 0))

    def add(self, name: str, number: int = 1) -> None:
        self._counts[name] += number
        if self._file is not None:
            with suppress(OSError):
                os.pwrite(self._file, struct.pack(_FORMAT, *self._counts.values()), 0)

    def exposition(self) -> str:
        """All counters in the text format of Prometheus."""
        sums = dict.fromkeys(NAMES, 0)
        for path in self._folder.glob("*.count"):
            for name, value in _read(path.read_bytes()).items():
                sums[name] += value
        lines = []
        for name, value in sums.items():
            lines += [
                f"# HELP eventlake_collector_{name}_total {NAMES[name]}",
                f"# TYPE eventlake_collector_{name}_total counter",
                f"eventlake_collector_{name}_total {value}",
            ]
        return "\n".join(lines) + "\n"


def _read(content: bytes) -> dict[str, int]:
    counts = struct.unpack(_FORMAT, content) if len(content) == _SIZE else [0] * len(NAMES)
    return dict(zip(NAMES, counts, strict=True))
