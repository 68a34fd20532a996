"""Seeded choices for the demo events: quick, and the same in every process and on every platform."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")


class Dice:
    """A stream of choices that depends on nothing but its seed.

    Built on `random()` and `getrandbits()` alone: those two are promised not to change between versions
    of Python, `randrange` and `choice` are not (and are several times slower).
    """

    __slots__ = ("bits", "random")

    def __init__(self, seed: str) -> None:
        generator = random.Random(seed)  # noqa: S311 - invented events need no secrecy, only repeatability
        self.random = generator.random
        self.bits = generator.getrandbits

    def below(self, limit: int) -> int:
        return int(self.random() * limit)

    def between(self, low: int, high: int) -> int:
        """Pick a whole number from low to high, both included."""
        return low + int(self.random() * (high - low + 1))

    def pick(self, items: Sequence[T]) -> T:
        return items[int(self.random() * len(items))]

    def chance(self, share: float) -> bool:
        return self.random() < share

    def uuid(self) -> str:
        """Make a version 4 UUID as text; `uuid.uuid4` would ask the operating system and cannot be seeded."""
        digits = f"{self.bits(128):032x}"
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"

    def number(self, digits: int) -> str:
        """Make a number of exactly so many digits, as text."""
        low: int = 10 ** (digits - 1)
        return str(low + self.bits(4 * digits) % (9 * low))
