"""What was acknowledged and is not in the archive yet: the records of all logs, counted by source."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from eventlake.collector import log

_CHUNK = 8 << 20
_HEAD = 160  # bytes of a record in which its source and time are


class Held(NamedTuple):
    """The events of one source."""

    events: int
    oldest: int  # when the first of them was received, in microseconds since 1970

    def and_more(self, other: "Held") -> "Held":
        return Held(self.events + other.events, min(self.oldest, other.oldest))


@dataclass
class _Counted:
    upto: int = 0  # bytes of the log that were read
    held: dict[str, Held] = field(default_factory=dict)


class Backlog:
    """Counts by reading the logs themselves, so it cannot be wrong after a crash.

    What it has read it does not read again, as long as the process lives.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._logs: dict[str, _Counted] = {}
        self._one_at_a_time = threading.Lock()

    def look(self) -> dict[str, Held]:
        """Source id → what is held of it; sources of which nothing is held are left out. Raises OSError."""
        with self._one_at_a_time:
            there = log.waiting(self._folder)
            self._logs = {log.name_of(path): self._logs.get(log.name_of(path), _Counted()) for path in there}
            for path in there:
                _go_on(self._logs[log.name_of(path)], path)
            return _sum(counted.held for counted in self._logs.values())


def _go_on(counted: _Counted, path: Path) -> None:
    """Count what was added to a log since."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return  # sealed or rolled this moment: the next look knows
    with file:
        if file.seek(0, 2) < counted.upto:  # records that the disk refused were taken back
            counted.upto, counted.held = 0, {}
        file.seek(counted.upto)
        rest = b""
        while chunk := file.read(_CHUNK):
            *lines, rest = (rest + chunk).split(b"\n")
            counted.upto = file.tell() - len(rest)
            counted.held = _sum((counted.held, _count(lines)))


def _count(lines: Iterable[bytes]) -> dict[str, Held]:
    found: dict[bytes, list[int]] = {}
    for line in lines:
        parts = line[:_HEAD].split(b" ", 3)
        if len(parts) == 4 and parts[2].isdigit():  # checksum, source, time, and the rest
            found.setdefault(parts[1], []).append(int(parts[2]))
    return {source.decode("ascii", "replace"): Held(len(times), min(times)) for source, times in found.items()}


def _sum(parts: Iterable[dict[str, Held]]) -> dict[str, Held]:
    total: dict[str, Held] = {}
    for part in parts:
        for source, held in part.items():
            total[source] = total[source].and_more(held) if source in total else held
    return total
