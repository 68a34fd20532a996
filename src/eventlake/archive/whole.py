"""The raw archive as runs read it: what is in it, and raw files that stay where they are."""

from dataclasses import dataclass
from typing import Any

from eventlake.archive.layout import ROOT
from eventlake.storage.base import Storage


@dataclass(frozen=True)
class WholeArchive:
    """A raw file of the archive is known by its path there, one of an annex by its whole address."""

    own: Storage
    annexes: tuple[Storage, ...] = ()

    def open_stream(self, path: str) -> Any:
        storage, there = self._at(path)
        return storage.open_stream(there)

    def digest(self, path: str) -> str | None:
        """A hash of a raw file's content; None if it is gone."""
        try:
            storage, there = self._at(path)
        except FileNotFoundError:
            return None
        return storage.digest(there)

    def _at(self, path: str) -> tuple[Storage, str]:
        """Where a raw file is, and its path there. One of an annex that nobody knows any more counts as gone."""
        if not is_address(path):
            return self.own, path
        for annex in self.annexes:
            if path.startswith(below := f"{annex.root}/"):
                return annex, path.removeprefix(below)
        raise FileNotFoundError(path)


def is_address(path: str) -> bool:
    """Whether a raw file is in an annex: paths in the archive begin with its folder, whatever follows."""
    return not path.startswith(f"{ROOT}/")
