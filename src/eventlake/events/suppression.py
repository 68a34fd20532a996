"""Who must not be in the lake: subjects of events, known by hashes of their ids.

A subject is what an event has at some path: its user id, its anonymous id, or a trait such as an e-mail address. Only
hashes are kept where events are read, so that a list tells nobody who is on it.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import msgspec
import numpy as np
import numpy.typing as npt

Path = tuple[str, ...]
Halves = npt.NDArray[np.uint64]
Sums = npt.NDArray[np.uint32]

USER_ID: Path = ("userId",)
ANONYMOUS_ID: Path = ("anonymousId",)
LONGEST_PATH = 20  # keys
_SIZE = 16  # bytes of a hash


def subject_hash(subject: str) -> bytes:
    """What a list has of a subject."""
    return hashlib.blake2b(subject.encode("utf-8", "surrogatepass"), digest_size=_SIZE, person=b"suppressed").digest()


def check_of(subject: bytes) -> int:
    """A sum by which most others are told apart at once."""
    return crc32(subject)


class Subjects:
    """Some subjects, in order of the first halves of their hashes: 20 bytes for each."""

    def __init__(self, high: Halves, low: Halves, sums: Sums, checks: Sums | None = None) -> None:
        self._high = high  # of the hashes
        self._low = low
        self.sums = sums  # of each of them
        self._checks = checks

    @classmethod
    def of(cls, entries: Iterable[tuple[bytes, int]]) -> "Subjects":
        """From the hashes and sums of subjects, in any order."""
        known = list(entries)
        return cls.of_arrays(b"".join(found for found, _ in known), np.array([one for _, one in known], np.uint32))

    @classmethod
    def of_arrays(cls, hashes: bytes, sums: Sums) -> "Subjects":
        """From hashes, one after the other, and their sums."""
        return cls._ordered(*_halves(hashes), sums)

    @classmethod
    def _ordered(cls, high: Halves, low: Halves, sums: Sums) -> "Subjects":
        order = np.argsort(high, kind="stable")  # which takes no time for what is in order already
        high, low, sums = high[order], low[order], sums[order]
        again = np.zeros(len(high), bool)
        again[1:] = (high[1:] == high[:-1]) & (low[1:] == low[:-1])
        return cls(high[~again], low[~again], sums[~again]) if again.any() else cls(high, low, sums)

    def __len__(self) -> int:
        return len(self._high)

    @property
    def hashes(self) -> bytes:
        """All hashes, one after the other."""
        return np.stack([self._high, self._low], axis=1).astype(">u8").tobytes()

    @property
    def checks(self) -> Sums:
        """The sums, sorted."""
        return np.unique(self.sums) if self._checks is None else self._checks

    def entries(self) -> Iterator[tuple[bytes, int]]:
        """What they were made from."""
        hashes = self.hashes
        for number, one in enumerate(self.sums.tolist()):
            yield hashes[number * _SIZE : (number + 1) * _SIZE], one

    def has(self, subject: str) -> bool:
        wanted = subject_hash(subject)
        first, second = int.from_bytes(wanted[:8]), int.from_bytes(wanted[8:])
        place = int(np.searchsorted(self._high, np.uint64(first)))
        while place < len(self._high) and int(self._high[place]) == first:
            if int(self._low[place]) == second:
                return True
            place += 1
        return False

    def joined(self, other: "Subjects") -> "Subjects":
        """Those of both."""
        both = ((self._high, other._high), (self._low, other._low))
        high, low = map(np.concatenate, both)
        return self._ordered(high, low, np.concatenate([self.sums, other.sums]))

    def packed(self) -> tuple[bytes, bytes, bytes]:
        return self.hashes, self.sums.tobytes(), self.checks.tobytes()

    @classmethod
    def unpacked(cls, hashes: bytes, sums: bytes, checks: bytes) -> "Subjects":
        return cls(*_halves(hashes), np.frombuffer(sums, np.uint32), np.frombuffer(checks, np.uint32))


def _halves(hashes: bytes) -> tuple[Halves, Halves]:
    both = np.frombuffer(hashes, ">u8").reshape(-1, 2).astype(np.uint64)
    return np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1])


@dataclass(frozen=True)
class Suppressed:
    """The subjects whose events are left out, by where in an event they are named."""

    subjects: Mapping[Path, Subjects]

    def hides(self, value: Any, above: Path = ()) -> bool:
        """Whether an event is of one of them; or a value that is at a place of it."""
        depth = len(above)
        return any(
            subjects.has(text)
            for path, subjects in self.subjects.items()
            if path[:depth] == above and (text := text_at(value, path[depth:]))
        )

    def __len__(self) -> int:
        return sum(map(len, self.subjects.values()))

    def joined(self, other: "Suppressed") -> "Suppressed":
        """Those of both."""
        paths = self.subjects.keys() | other.subjects.keys()
        some = {path: [one.subjects[path] for one in (self, other) if path in one.subjects] for path in paths}
        return Suppressed({path: first.joined(*more) if more else first for path, (first, *more) in some.items()})

    def packed(self) -> bytes:
        return msgspec.msgpack.encode([(path, found.packed()) for path, found in self.subjects.items()])

    @classmethod
    def unpacked(cls, content: bytes) -> "Suppressed":
        lists = msgspec.msgpack.decode(content, type=list[tuple[Path, tuple[bytes, bytes, bytes]]])
        return cls({path: Subjects.unpacked(*parts) for path, parts in lists})


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
