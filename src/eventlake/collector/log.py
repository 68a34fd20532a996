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
from pathlib import Path
from typing import NamedTuple

from isal.isal_zlib import crc32

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


class Read(NamedTuple):
    records: list[Record]
    damaged: int  # bytes that are no records; half a record at the end is not damage


def read(path: Path) -> Read:
    """The records of a log."""
    records, damaged = [], 0
    content = path.read_bytes()
    whole, _, _ = content.rpartition(b"\n")
    for line in whole.split(b"\n") if whole else []:
        record = _record(line)
        if record is None:
            damaged += len(line) + 1
        else:
            records.append(record)
    return Read(records, damaged)


def _record(line: bytes) -> Record | None:
    checksum, _, content = line.partition(b" ")
    if checksum != b"%08x" % crc32(content):
        return None
    source_id, received, message_hash, event = content.split(b" ", 3)
    return Record(source_id.decode(), int(received), bytes.fromhex(message_hash.decode()), event)


class Log:
    """Appends to logs, one after the other. Whoever appends can be sure when `append` returns."""

    def __init__(self, folder: Path, worker: str, *, max_bytes: int, max_seconds: float) -> None:
        self._folder = folder
        self._worker = worker
        self._max_bytes = max_bytes
        self._max_seconds = max_seconds
        self._file: int | None = None
        self._path = folder
        self._size = 0
        self._opened = 0.0
        self._closed: list[Path] = []  # to be sealed

    def append(self, lines: Iterable[bytes]) -> None:
        """Write lines of records and wait until the disk has them. Raises OSError; then none of them counts."""
        content = b"".join(lines)
        file = self._open() if self._file is None else self._file
        try:
            _write_all(file, content)
            os.fdatasync(file)
        except OSError:
            # After an error of the disk nothing is sure but what it confirmed before, so this log ends here. What may
            # be there of the records that are refused now is taken back if it can be: clients send them again.
            with suppress(OSError):
                os.ftruncate(file, self._size)
            with suppress(OSError):
                self._close()
            raise
        self._size += len(content)

    def _open(self) -> int:
        path = self._folder / f"{self._worker}-{time.time_ns()}{OPEN}"
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        try:
            sync_folder(self._folder)  # or the file could be gone after a power cut
        except OSError:
            os.close(file)
            raise
        self._file, self._path, self._size, self._opened = file, path, 0, time.monotonic()
        return file

    def _close(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            self._closed.append(self._path)
            os.close(file)

    def hand_on(self, *, all_of_it: bool = False) -> None:
        """Seal the log if it is full or old, and those that could not be sealed before. Raises OSError."""
        is_old = time.monotonic() - self._opened >= self._max_seconds
        if all_of_it or is_old or self._size >= self._max_bytes:
            self._close()
        while self._closed:
            seal(self._closed[0])
            del self._closed[0]

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


def left_open(folder: Path) -> list[Path]:
    """Logs of processes that are gone; only to be asked for when none runs."""
    return list(folder.glob(f"*{OPEN}"))


def _write_all(file: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(file, view) :]
