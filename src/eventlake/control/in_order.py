"""Subjects of any number, checked and put in order on the disk before the list is touched.

So a list that is wrong, or comes slowly, holds nobody up, and what is written lies side by side in the database.
"""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from tempfile import TemporaryFile
from typing import IO, NamedTuple, TypeVar

from eventlake.errors import InvalidSettingsError
from eventlake.events.suppression import check_of, subject_hash

Item = TypeVar("Item")

LONGEST_SUBJECT = 4096  # bytes
_AT_ONCE = 5000
_IN_MEMORY = 100_000
_HASH, _LENGTH = 16, 4  # bytes before each subject in a file


class Entry(NamedTuple):
    hash: bytes
    check: int
    subject: str


def some_at_once(items: Iterable[Item], size: int = _AT_ONCE) -> Iterator[list[Item]]:
    left = iter(items)
    while some := list(islice(left, size)):
        yield some


def in_order(subjects: Iterable[str]) -> Iterator[list[Entry]]:
    """Subjects in the order of their hashes, some at a time. Nothing comes before all of them were checked."""
    left = iter(subjects)
    first = [_checked(subject) for subject in islice(left, _IN_MEMORY)]
    if len(first) < _IN_MEMORY:
        yield from _batches(map(_entry, first))
        return
    with ExitStack() as stack:
        files = [stack.enter_context(TemporaryFile()) for _ in range(64)]  # which has no name: it holds ids
        for some in (first, map(_checked, left)):
            for subject in some:
                text = _bytes(subject)
                found = subject_hash(subject)
                files[found[0] >> 2].write(found + len(text).to_bytes(_LENGTH) + text)
        first.clear()
        for file in files:
            yield from _batches(_read(file))


def _batches(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    return some_at_once(sorted(set(entries)))


def _read(file: IO[bytes]) -> Iterator[Entry]:
    file.seek(0)
    while found := file.read(_HASH):
        text = file.read(int.from_bytes(file.read(_LENGTH)))
        yield Entry(found, check_of(text), text.decode("utf-8", "surrogatepass"))


def _entry(subject: str) -> Entry:
    return Entry(subject_hash(subject), check_of(_bytes(subject)), subject)


def _bytes(subject: str) -> bytes:
    return subject.encode("utf-8", "surrogatepass")


def _checked(subject: str) -> str:
    if not subject or len(_bytes(subject)) > LONGEST_SUBJECT or "\0" in subject:
        raise InvalidSettingsError(
            "a subject is empty, longer than 4,096 bytes, or has a null character",
            fix="give the id of a user, or whatever the path leads to",
        )
    return subject
