"""Reading raw files line by line, in bounded memory, whatever they hold."""

import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from isal import igzip, isal_zlib

from eventlake.archive.whole import WholeArchive
from eventlake.errors import DownloadDeniedError, PermissionMissingError
from eventlake.lake.ids import Array
from eventlake.storage.base import new_digest

_NEWLINE = ord("\n")
_IS_CONTENT = np.array([not bytes([byte]).isspace() for byte in range(256)])


@dataclass(frozen=True)
class ReadSizes:
    """How files are read; in bytes."""

    block: int = 1 << 20  # two or more, to tell gzip by; not longer than the longest line
    longest_line: int = 16 << 20  # Segment's limit for an event is 32 KB; a longer line is quarantined, not parsed
    sample: int = 64 << 10  # what is kept of a line that is longer


DEFAULT_SIZES = ReadSizes()


class UnreadableFileError(Exception):
    """A raw file that cannot be read to its end."""


class Lines(NamedTuple):
    """Lines of a file that are not blank."""

    numbers: Array  # of the lines in the file, from 1; blank ones count
    text: bytes  # that they are in; each is followed by a newline
    starts: Array
    ends: Array

    @property
    def lines(self) -> list[bytes]:
        bounds = zip(self.starts.tolist(), self.ends.tolist(), strict=True)
        return [self.text[start:end] for start, end in bounds]


class LongLine(NamedTuple):
    """A line that is too long: its beginning only."""

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


def read_lines(raw: Any, sizes: ReadSizes = DEFAULT_SIZES) -> Iterator[Lines | LongLine]:
    """The lines of a gzip or plain file. Raises UnreadableFileError when the file breaks off."""
    with _readable():
        yield from _lines(_decompressed(raw, sizes.block), sizes)


@contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except (EOFError, OSError, zlib.error, isal_zlib.error) as error:  # type: ignore[misc] # it is an exception class
        raise UnreadableFileError(f"{type(error).__name__}: {error}") from error


@contextmanager
def opened(archive: WholeArchive, path: str) -> Iterator[Digested]:
    """A raw file of the archive. Raises UnreadableFileError where it is gone or may not be read."""
    try:
        stored = archive.open_stream(path)
    except FileNotFoundError as error:
        raise UnreadableFileError(f"{path} is gone") from error
    except DownloadDeniedError:  # like an outage, a missing right hits all files: no reason to go on without them
        raise
    except PermissionMissingError as error:  # of one file on a disk
        raise UnreadableFileError(error.problem) from error
    with stored:
        yield Digested(stored)


def _decompressed(raw: Any, block_size: int) -> Iterator[bytes]:
    stream = io.BufferedReader(raw, block_size) if not isinstance(raw, io.BufferedReader) else raw
    gzipped = stream.peek(2)[:2] == b"\x1f\x8b"
    source = igzip.IGzipFile(fileobj=stream, mode="rb") if gzipped else stream
    while block := source.read(block_size):
        yield block


def _lines(blocks: Iterator[bytes], sizes: ReadSizes) -> Iterator[Lines | LongLine]:
    number, rest, skipped = 1, b"", 0
    for block in blocks:
        if skipped:  # inside a line that is too long
            end = block.find(b"\n")
            skipped += len(block) if end < 0 else end
            if end < 0:
                continue
            yield LongLine(number, rest, skipped)
            number, rest, skipped = number + 1, b"", 0
            block = block[end + 1 :]  # noqa: PLW2901
        whole = rest + block
        end = whole.rfind(b"\n") + 1
        text, rest = whole[:end], whole[end:]
        first = text.find(b"\n")
        if first > sizes.longest_line:  # only the first line can be so long: a block is shorter
            yield LongLine(number, text[: min(first, sizes.sample)], first)
            number, text = number + 1, text[first + 1 :]
        if text:
            lines, count = _filled(number, text)
            if len(lines.numbers):
                yield lines
            number += count
        if len(rest) > sizes.longest_line:
            rest, skipped = rest[: sizes.sample], len(rest)
    if skipped:
        yield LongLine(number, rest, skipped)
    elif rest.strip():
        yield Lines(np.array([number]), rest + b"\n", np.array([0]), np.array([len(rest)]))


def _filled(first: int, text: bytes) -> tuple[Lines, int]:
    """The lines of a text, each ended by a newline, that are not blank; and how many there are in all.

    Half a megabyte of gzip can hold half a billion blank lines: no Python object is made of any.
    """
    data = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(data == _NEWLINE)
    starts = np.concatenate([[0], ends[:-1] + 1])
    is_filled = _IS_CONTENT[data[starts]]
    if not is_filled.all():  # some begin with a space: is that all there is?
        is_filled = np.logical_or.reduceat(_IS_CONTENT[data], starts)
    filled = np.flatnonzero(is_filled)
    return Lines(first + filled, text, starts[filled], ends[filled]), len(ends)
