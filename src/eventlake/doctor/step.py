"""A step of an examination."""

from collections.abc import Callable
from typing import NamedTuple

from eventlake.workspace import Lake


class SkippedStep(Exception):  # noqa: N818 - not an error
    """There is nothing to try here."""


class Step(NamedTuple):
    """Something to try; it is skipped if a step that it needs did not pass."""

    name: str
    attempt: Callable[[Lake], str]
    needs: str | None = None

    @property
    def part(self) -> str:
        """What it is a step of."""
        return self.name.partition(":")[0]
