"""The data of the speed benchmark: archives of events, each made once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from rich.progress import Progress

from bench.shapes import Shapes, write_shapes
from eventlake.demo.events import Recipe, write_archive

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

_SMALLEST_SAMPLE = 10_000
_SAMPLE_PER_TRACK_TYPE = 60  # so that every table and nearly every column is in it


@dataclass(frozen=True)
class Archive:
    folder: Path
    events: int  # distinct ones
    files: int
    gzip_bytes: int
    json_bytes: int


class Archives:
    """Makes archives in a scratch folder; asked for the same one again, it has it."""

    def __init__(self, scratch: Path, console: Console) -> None:
        self._scratch = scratch
        self._console = console
        self._made: dict[tuple[Recipe | Shapes, int], Archive] = {}

    def archive(self, recipe: Recipe | Shapes, files: int) -> Archive:
        key = (recipe, files)
        if key not in self._made:
            self._made[key] = self._make(self._scratch / f"archive-{len(self._made)}", recipe, files)
        return self._made[key]

    def sample(self, recipe: Recipe | Shapes) -> Archive:
        """Other events of the same kinds, received before those of the recipe: what an earlier sync may have seen."""
        earlier = recipe.until - timedelta(hours=recipe.hours)
        events = max(_SMALLEST_SAMPLE, _SAMPLE_PER_TRACK_TYPE * recipe.track_types)
        return self.archive(replace(recipe, events=events, until=earlier, hours=1, seed=recipe.seed + 1), files=1)

    def _make(self, folder: Path, recipe: Recipe | Shapes, files: int) -> Archive:
        with Progress(console=self._console, transient=True) as progress:
            task = progress.add_task("making events", total=recipe.events * (1 + recipe.duplicate_share))

            def advance(lines: int) -> None:
                progress.advance(task, lines)

            if isinstance(recipe, Shapes):
                paths = write_shapes(recipe, folder, files=files, progress=advance)
            else:
                paths = write_archive(recipe, folder, files=files, progress=advance)
        gzip_bytes = sum(path.stat().st_size for path in paths)
        return Archive(folder, recipe.events, len(paths), gzip_bytes, sum(map(_unpacked_bytes, paths)))


def _unpacked_bytes(path: Path) -> int:
    """What the end of a gzip file says about its content; true below 4 GiB."""
    with path.open("rb") as file:
        file.seek(-4, 2)
        return int.from_bytes(file.read(), "little")
