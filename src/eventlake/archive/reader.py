"""Reading raw files line by line, in bounded memory, whatever they hold."""

import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from isal import igzip, isal_zlib

from eventlake.errors import DownloadDeniedError, PermissionMissingError
from eventlake.storage.base import Storage, new_digest

BLOCK = 1 << 20
MAX_LINE = 16 << 20  # Segment's limit for an event is 32 KB; a longer line is quarantined, not parsed
SAMPLE = 64 << 10


class UnreadableFileError(Exception):
    """A raw file that cannot be read to its end."""


class Lines(NamedTuple):
    """Consecutive lines of a file; blank ones are empty."""

    first: int  # number of the first line, from 1
    lines: list[bytes]


class LongLine(NamedTuple):
    """A line longer than MAX_LINE: its beginning only."""

    number: int
    sample: bytes
    size: int


class Digested(io.RawIOBase):
    """A stream whose content is hashed while it is read."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self._hash = new_digest()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count: int = self._raw.readinto(buffer)
        self._hash.update(memoryview(buffer)[:count])
        return count

    def digest(self) -> str:
        """The hash of the whole content; reads what is left of it. Raises UnreadableFileError."""
        with _readable():
            self.readall()
        return self._hash.hexdigest()


def read_lines(raw: Any) -> Iterator[Lines | LongLine]:
    """The lines of a gzip or plain file. Raises UnreadableFileError when the file breaks off."""
    with _readable():
        yield from _lines(_decompressed(raw))


@contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except (EOFError, OSError, zlib.error, isal_zlib.error) as error:  # type: ignore[misc] # it is an exception class
        raise UnreadableFileError(f"{type(error).__name__}: {error}") from error


@contextmanager
def opened(storage: Storage, path: str) -> Iterator[Digested]:
    """A raw file of the archive. Raises UnreadableFileError where it is gone or may not be read."""
    try:
        stored = storage.open_stream(path)
    except FileNotFoundError as error:
        raise UnreadableFileError(f"{path} is gone") from error
    except DownloadDeniedError:  # like an outage, a missing right hits all files: no reason to go on without them
        raise
    except PermissionMissingError as error:  # of one file on a disk
        raise UnreadableFileError(error.problem) from error
    with stored:
        yield Digested(stored)


def _decompressed(raw: Any) -> Iterator[bytes]:
    stream = io.BufferedReader(raw, BLOCK) if not isinstance(raw, io.BufferedReader) else raw
    gzipped = stream.peek(2)[:2] == b"\x1f\x8b"
    source = igzip.IGzipFile(fileobj=stream, mode="rb") if gzipped else stream
    while block := source.read(BLOCK):
        yield block


def _lines(blocks: Iterator[bytes]) -> Iterator[Lines | LongLine]:
    number, rest, skipped = 1, b"", 0
    for block in blocks:
        if skipped:  # inside a line that is too long
            end = block.find(b"\n")
            skipped += len(block) if end < 0 else end
            if end < 0:
                continue
            yield LongLine(number, rest[:SAMPLE], skipped)
            number, rest, skipped = number + 1, b"", 0
            block = block[end + 1 :]  # noqa: PLW2901
        lines = (rest + block).split(b"\n")
        rest = lines.pop()
        if lines and len(lines[0]) > MAX_LINE:  # only the first can be: a block is shorter than that
            yield LongLine(number, lines[0][:SAMPLE], len(lines[0]))
            number, lines = number + 1, lines[1:]
        if lines:
            yield Lines(number, lines)
            number += len(lines)
        if len(rest) > MAX_LINE:
            rest, skipped = rest[:SAMPLE], len(rest)
    if skipped:
        yield LongLine(number, rest, skipped)
    elif rest:
        yield Lines(number, [rest])
