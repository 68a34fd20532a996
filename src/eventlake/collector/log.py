"""The log: what was acknowledged is in it, on disk, before the answer goes out.

Each worker process has logs of its own. A log is a text file with a record per line:

    checksum source received hash event

the event being the line that goes to the raw archive. A log that is full or old is sealed: it gets another name, under
which the roller takes it (see `roll`). What a crash leaves is a log with perhaps half a record at its end; nobody was
told that this one is safe.
"""

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from isal.isal_zlib import crc32

from eventlake.lake import ids
from eventlake.storage.local import sync_folder

OPEN, SEALED = ".log", ".sealed"


class Record(NamedTuple):
    source_id: str
    received: int  # microseconds since 1970
    message_hash: bytes
    event: bytes

    def line(self) -> bytes:
        head = f"{self.source_id} {self.received} {self.message_hash.hex()} "
        content = head.encode() + self.event
        return b"%08x %s\n" % (crc32(content), content)


def message_hash(source_id: str, message_id: str) -> bytes:
    """By which copies are found: of one source, for ids are its own."""
    return ids.content_hash(f"{source_id} {message_id}".encode())


class Read(NamedTuple):
    records: list[Record]
    damaged: int  # bytes that are no records; half a record at the end is not damage


def read(path: Path) -> Read:
    """The records of a log."""
    records, damaged = [], 0
    content = path.read_bytes()
    whole, _, _ = content.rpartition(b"\n")
    for line in whole.split(b"\n") if whole else []:
        record = record_of(line)
        if record is None:
            damaged += len(line) + 1
        else:
            records.append(record)
    return Read(records, damaged)


def record_of(line: bytes) -> Record | None:
    checksum, _, content = line.partition(b" ")
    if checksum != b"%08x" % crc32(content):
        return None
    source_id, received, message_hash, event = content.split(b" ", 3)
    return Record(source_id.decode(), int(received), bytes.fromhex(message_hash.decode()), event)


@dataclass
class _Begun:
    """The log that is written to."""

    file: int
    path: Path
    at: float  # of the monotonic clock
    size: int = 0  # of what the disk is known to have


class Log:
    """Appends to logs, one after the other. Whoever appends can be sure when `append` returns."""

    def __init__(
        self, folder: Path, worker: str, *, max_bytes: int, max_seconds: float, request: Path | None = None
    ) -> None:
        self._folder = folder
        self._worker = worker
        self._max_bytes = max_bytes
        self._max_seconds = max_seconds
        self._begun: _Begun | None = None
        self._closed: list[Path] = []  # to be sealed
        self._request = request
        self._asked = self._last_request()

    def append(self, lines: Iterable[bytes]) -> None:
        """Write lines of records and wait until the disk has them. Raises OSError; then none of them counts."""
        content = b"".join(lines)
        log = self._begun or self._begin()
        try:
            if not log.size:
                sync_folder(self._folder)  # or the new file could be gone after a power cut
            _write_all(log.file, content)
            os.fdatasync(log.file)
        except OSError:
            # After an error of the disk nothing is sure but what it confirmed before, so this log ends here. What may
            # be there of the records that are refused now is taken back if it can be: clients send them again.
            with suppress(OSError):
                os.ftruncate(log.file, log.size)
            with suppress(OSError):
                self._close()
            raise
        log.size += len(content)

    def _begin(self) -> _Begun:
        path = self._folder / f"{self._worker}-{time.time_ns()}{OPEN}"
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._begun = _Begun(file, path, time.monotonic())
        return self._begun

    def _close(self) -> None:
        if self._begun:
            begun, self._begun = self._begun, None
            self._closed.append(begun.path)
            os.close(begun.file)

    def hand_on(self, *, all_of_it: bool = False) -> None:
        """Seal the log if it is full, old or asked for, and those that could not be sealed before. Raises OSError."""
        is_wanted = self._is_asked_for() or all_of_it
        if self._begun and (is_wanted or self._is_due(self._begun)):
            self._close()
        while self._closed:
            seal(self._closed[0])
            del self._closed[0]

    def _is_due(self, log: _Begun) -> bool:
        return log.size >= self._max_bytes or time.monotonic() - log.at >= self._max_seconds

    def _is_asked_for(self) -> bool:
        before, self._asked = self._asked, self._last_request()
        return before != self._asked

    def _last_request(self) -> int | None:
        try:
            return self._request.stat().st_mtime_ns if self._request else None
        except OSError:
            return None

    def probe(self) -> None:
        """Find out whether the disk takes anything. Raises OSError."""
        path = self._folder / f"{self._worker}.probe"
        with path.open("wb") as file:
            file.write(bytes(4096))
            file.flush()
            os.fsync(file.fileno())
        path.unlink()


def seal(path: Path) -> None:
    """Hand a log to the roller. Its new name tells when: logs are rolled in this order, also after a failure."""
    path.rename(path.with_name(f"{path.stem}@{time.time_ns()}{SEALED}"))


def name_of(path: Path) -> str:
    """What is the same of a log's name before and after it was sealed."""
    return path.stem.partition("@")[0]


def sealed(folder: Path) -> list[Path]:
    """The logs to be rolled, in the order in which they were sealed."""
    return sorted(folder.glob(f"*@*{SEALED}"), key=lambda path: path.stem.partition("@")[2].zfill(24))


def opened_at(path: Path) -> int:
    """When a log was begun, in microseconds since 1970, as its name tells; 0 if it does not."""
    moment = name_of(path).rpartition("-")[2]
    return int(moment) // 1000 if moment.isascii() and moment.isdigit() else 0


def waiting(folder: Path) -> list[Path]:
    """All logs that are not rolled yet, also those that are being written to."""
    return sorted(path for path in folder.glob("*") if path.suffix in (OPEN, SEALED))


def left_open(folder: Path) -> list[Path]:
    """Logs of processes that are gone; only to be asked for when none runs."""
    return list(folder.glob(f"*{OPEN}"))


def _write_all(file: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(file, view) :]
