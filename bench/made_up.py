"""Results of tasks for a billion events that nobody made. They agree with each other, as the books demand."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from eventlake.lake import ids, packing, segments
from eventlake.lake.layout import HOUR
from eventlake.lake.parquet import DataFile
from eventlake.lake.segments import Segment
from eventlake.lake.staging import IdSegment
from eventlake.schema.evolve import Sighting
from eventlake.schema.types import Seen
from eventlake.tasks import counts
from eventlake.tasks.dedupe import DedupeContext, DedupeResult
from eventlake.tasks.id_files import NewIds
from eventlake.tasks.publish import PublishContext, Published, TableShare
from eventlake.tasks.staged import FileCount, News, RawFile, StageContext, StageResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

EVENTS_PER_TASK = 83_334
_SHAPES = 50  # tasks with the same numbers of rows by table: others are copies of these
_HOURS = 3  # of data
_CORES = 2_000
_DIGEST = "0" * 32


@dataclass
class MadeUp:
    """Answers tasks with results that agree with each other, and measures how long that takes."""

    table_keys: list[str]
    parallelism: int = _CORES
    seconds: float = 0.0
    _rows: Any = field(init=False)  # of each table, by shape

    def __post_init__(self) -> None:
        dice = np.random.default_rng(1)
        share = 1 / np.arange(1, len(self.table_keys) + 1)
        self._rows = np.maximum(dice.poisson(share / share.sum() * EVENTS_PER_TASK, (_SHAPES, len(share))), 1)

    @property
    def where(self) -> dict[str, str]:
        return {}

    def run(
        self,
        function: Callable[[Any, Any], Any],
        context: Any,
        tasks: Sequence[Any],
        progress: Callable[[int], None] | None = None,
    ) -> list[Any]:
        del progress
        started = time.perf_counter()
        results: list[Any] = list(getattr(self, function.__name__)(context, tasks))
        self.seconds += time.perf_counter() - started
        return results

    def stage(self, context: StageContext, tasks: Sequence[list[RawFile]]) -> Iterator[StageResult]:
        shapes = [self._packed(rows) for rows in self._rows.tolist()]
        self._of_file: dict[int, int] = {}
        self._tasks = len(tasks)
        for number, files in enumerate(tasks):
            path = f"{context.folder}/staged-{uuid.uuid4().hex}"
            rows = int(self._rows[number % _SHAPES].sum())
            lines = [rows // len(files) + (place < rows % len(files)) for place in range(len(files))]
            self._of_file |= {file.number: part for file, part in zip(files, lines, strict=True)}
            new = {self.table_keys[number % 7]: News({f"properties_new_{number % 3}": Sighting(Seen.TEXT, 9, "/n")})}
            yield StageResult(
                files=[
                    FileCount(file, part, part, 0, 0, 0, HOUR, _DIGEST) for file, part in zip(files, lines, strict=True)
                ],
                staged=path,
                tables=bytes(bytearray(shapes[number % _SHAPES])),  # each a copy of its own, as results are
                news=new if number % 100 == 0 else {},
                id_segments=[IdSegment(path, 0, rows)],
                quarantine=None,
                refused_tables=Counter(),
            )

    def _packed(self, rows: list[int]) -> bytes:
        found, offset, first = {}, 0, 0
        for key, many in zip(self.table_keys, rows, strict=True):
            found[key] = [Segment(0, many, first, 40 * many + 900, 130 * many + 2000, offset)]
            offset, first = offset + 40 * many + 900, first + many
        return segments.packed(found)

    def dedupe(self, _: DedupeContext, shares: Sequence[Any]) -> Iterator[DedupeResult]:
        dice = np.random.default_rng(2)
        files = np.array(sorted(self._of_file), "<u8")
        of_file = np.array([self._of_file[number] for number in files.tolist()], "<u8")
        routes = np.array([ids.route_hash((key,)) for key in self.table_keys], "<u8")
        repeats = np.bincount(np.arange(self._tasks) % _SHAPES, minlength=_SHAPES)
        of_route = (self._rows * repeats[:, None]).sum(axis=0).astype("<u8")
        for number in range(len(shares)):
            loaded, by_route = (_part(whole, number, len(shares)) for whole in (of_file, of_route))
            sums = [dice.integers(0, 1 << 64, len(files), "<u8") for _ in range(2)]
            halves = [dice.integers(0, 1 << 64, len(routes), "<u8") for _ in range(2)]
            with np.errstate(over="ignore"):  # sums are modulo 2^64
                for own, half in zip(sums, halves, strict=True):
                    half[0] += own.sum(dtype="<u8") - half.sum(dtype="<u8")
            checksum = ids.checksum_of(*(int(own.sum(dtype="<u8")) for own in sums))
            none = np.zeros(len(files), "<u8")
            yield DedupeResult(
                files=counts.packed(files, [loaded, none, none, *sums]),
                routes=counts.packed(routes, [by_route, none[: len(routes)], none[: len(routes)], *halves]),
                dropped=None,
                new_ids=NewIds(f"ids-{number}", int(loaded.sum()), checksum),
                carried=None,
            )

    def publish(self, context: PublishContext, tasks: Sequence[list[TableShare]]) -> Iterator[list[Published]]:
        layout, start = context.dialect.date_partition, 490_000 * HOUR
        for task in tasks:
            done = []
            for share in task:
                rows = int(packing.unpacked_records(share.segments, segments.RECORD)["rows"].sum())
                files = []
                for hour in range(_HOURS):
                    name = f"{context.run_id}-{uuid.uuid4().hex[:8]}-{hour + 1}.parquet"
                    at = start + hour * HOUR
                    values, folder = layout.values(at // layout.width), layout.folder(at // layout.width)
                    path = f"{context.dialect.location(share.table_key)}/{folder}/{name}"
                    part = rows // _HOURS + (hour < rows % _HOURS)
                    written = f"{context.dialect.folders.stage}/{name}"
                    files.append(DataFile(share.table_key, values, path, written, part, 40 * part, _DIGEST, at, at))
                done.append(Published(share.table_key, files, rows))
            yield done


def _part(whole: Any, number: int, parts: int) -> Any:
    """One of so many parts of whole numbers."""
    return whole // np.uint64(parts) + (np.uint64(number) < whole % np.uint64(parts))
