"""Events that were refused: kept to be looked at, in files that do not grow without end."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

MAX_BYTES = 8 << 20  # of a worker's file; the one before is kept as well


MAX_NOTED = 1000  # characters of a refused event


class Reject(NamedTuple):
    time: str
    source: str | None  # its id; None if the write key was not known
    code: str
    message: str
    sample: str

    def bounded(self, key: str | None) -> "Reject":
        """As it is kept: not too long, and without the write key."""
        message, sample = self.message[:MAX_NOTED], self.sample[:MAX_NOTED]
        if key:
            message, sample = message.replace(key, "…"), sample.replace(key, "…")
        return self._replace(message=message, sample=sample)


class Rejects:
    """Writes the rejects of one process."""

    def __init__(self, folder: Path, worker: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / f"{worker}.ndjson"

    def add(self, rejects: list[Reject]) -> None:
        """Keep these. Raises OSError."""
        lines = b"".join(msgspec.json.encode(reject._asdict()) + b"\n" for reject in rejects)
        handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(handle, lines)
            full = os.fstat(handle).st_size > MAX_BYTES
        finally:
            os.close(handle)
        if full:
            self._path.replace(self._path.with_suffix(".before"))


def read(folder: Path) -> list[Reject]:
    """All that is kept, oldest first."""
    return sorted(_read(folder), key=lambda reject: reject.time)


def latest(folder: Path, *, most_bytes: int = 256 << 10) -> list[Reject]:
    """The newest of each process, oldest first; as many as are in so many bytes."""
    return sorted(_read(folder, most_bytes), key=lambda reject: reject.time)


def _read(folder: Path, most_bytes: int | None = None) -> Iterator[Reject]:
    paths = [*folder.glob("*.before"), *folder.glob("*.ndjson")] if most_bytes is None else folder.glob("*.ndjson")
    for path in paths:
        for line in end_of(path, most_bytes).splitlines():
            try:
                members: dict[str, Any] = msgspec.json.decode(line)
                yield Reject(**members)
            except (msgspec.MsgspecError, TypeError):
                continue  # half a line, of a process that was killed


def end_of(path: Path, most_bytes: int | None) -> bytes:
    """The last bytes of a file, or all of them."""
    with path.open("rb") as file:
        if most_bytes is not None:
            file.seek(max(0, file.seek(0, 2) - most_bytes))
        return file.read()
