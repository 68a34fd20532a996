"""Who must not be in the lake: subjects of events, known by hashes of their ids.

A subject is what an event has at some path: its user id, its anonymous id, or a trait such as an e-mail address. Only
hashes are kept where events are read, so that a list tells nobody who is on it.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from zlib import crc32

import msgspec
import numpy as np
import numpy.typing as npt

Path = tuple[str, ...]

USER_ID: Path = ("userId",)
ANONYMOUS_ID: Path = ("anonymousId",)
_SIZE = 16  # bytes of a hash


def subject_hash(subject: str) -> bytes:
    """What a list has of a subject."""
    return hashlib.blake2b(subject.encode("utf-8", "surrogatepass"), digest_size=_SIZE, person=b"suppressed").digest()


def check_of(subject: bytes) -> int:
    """A sum by which most others are told apart at once."""
    return crc32(subject)


class Subjects(NamedTuple):
    """Some subjects, in order of their hashes."""

    hashes: npt.NDArray[np.void]
    sums: npt.NDArray[np.uint32]  # of each of them
    checks: npt.NDArray[np.uint32]  # the same, sorted

    @classmethod
    def of(cls, entries: Iterable[tuple[bytes, int]]) -> "Subjects":
        """From the hashes and sums of subjects."""
        known = sorted(dict(entries).items())
        sums = np.fromiter((one for _, one in known), np.uint32, len(known))
        return cls(np.frombuffer(b"".join(found for found, _ in known), f"V{_SIZE}"), sums, np.unique(sums))

    def entries(self) -> Iterator[tuple[bytes, int]]:
        """What they were made from."""
        for found, one in zip(self.hashes, self.sums.tolist(), strict=True):
            yield found.tobytes(), one

    def has(self, subject: str) -> bool:
        wanted = subject_hash(subject)
        low, high = 0, len(self.hashes)
        while low < high:
            middle = (low + high) // 2
            if self.hashes[middle].tobytes() < wanted:
                low = middle + 1
            else:
                high = middle
        return low < len(self.hashes) and self.hashes[low].tobytes() == wanted


class Suppressed(NamedTuple):
    """The subjects whose events are left out, by where in an event they are named."""

    subjects: Mapping[Path, Subjects]

    def hides(self, event: Any) -> bool:
        """Whether an event is of one of them."""
        return any(subjects.has(text) for path, subjects in self.subjects.items() if (text := text_at(event, path)))

    def packed(self) -> bytes:
        lists = [(path, [array.tobytes() for array in found]) for path, found in self.subjects.items()]
        return msgspec.msgpack.encode(lists)

    @classmethod
    def unpacked(cls, content: bytes) -> "Suppressed":
        lists = msgspec.msgpack.decode(content, type=list[tuple[Path, tuple[bytes, bytes, bytes]]])
        return cls(
            {
                path: Subjects(
                    np.frombuffer(hashes, f"V{_SIZE}"), np.frombuffer(sums, np.uint32), np.frombuffer(checks, np.uint32)
                )
                for path, (hashes, sums, checks) in lists
            }
        )


NOBODY = Suppressed({})


def text_at(event: Any, path: Path) -> str | None:
    """What an event has at a path, as text; a number is its digits. None if there is nothing that names anybody.

    >>> text_at({"traits": {"email": "a@b.c"}}, ("traits", "email")), text_at({"userId": 7}, ("userId",))
    ('a@b.c', '7')
    """
    for key in path:
        if not isinstance(event, dict):
            return None
        event = event.get(key)
    match event:
        case str():
            return event
        case bool():
            return None
        case int():
            return str(event)
        case msgspec.Raw():
            return bytes(event).decode()
        case _:
            return None
