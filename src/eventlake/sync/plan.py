"""Decisions on the driver, from what was seen: how tables grow and how the work is shared out. No data is touched."""

import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from eventlake.lake.staging import IdSegment, Segment
from eventlake.schema.evolve import Column, Sighting, TableSchema, evolve, join
from eventlake.schema.types import Seen
from eventlake.sync.publish import TableShare
from eventlake.sync.staged import FileCount, RawFile, StagedTable, StageResult

BYTES_PER_STAGE_TASK = 8 << 20  # of compressed raw files
FILES_PER_STAGE_TASK = 500
BYTES_TO_OPEN_A_FILE = 16 << 10  # what opening a file costs, in bytes that could have been read meanwhile
IDS_PER_SHARE = 1_000_000
ROWS_PER_SHARE = (50_000, 1_000_000)

Item = TypeVar("Item")


def stage_tasks(files: Sequence[RawFile], parallelism: int) -> list[list[RawFile]]:
    """Raw files packed into tasks of about equal work."""
    size = sum(file.size for file in files)
    wanted = max(parallelism, size // BYTES_PER_STAGE_TASK, len(files) // FILES_PER_STAGE_TASK)
    wanted += -wanted % parallelism  # else some cores do nothing while others do the last tasks
    return packed([(file, file.size + BYTES_TO_OPEN_A_FILE) for file in files], wanted)


def packed(weighted: Iterable[tuple[Item, int]], groups: int) -> list[list[Item]]:
    """Items in at most `groups` groups of about equal weight, the heaviest group first."""
    heap: list[tuple[int, int, list[Item]]] = [(0, number, []) for number in range(groups)]
    for item, weight in sorted(weighted, key=lambda pair: -pair[1]):
        total, number, group = heapq.heappop(heap)
        group.append(item)
        heapq.heappush(heap, (total + weight, number, group))
    return [group for _, _, group in sorted(heap, key=lambda entry: (-entry[0], entry[1])) if group]


@dataclass
class Staged:
    """What all stage tasks found."""

    files: list[FileCount] = field(default_factory=list)
    tables: dict[str, StagedTable] = field(default_factory=dict)
    id_segments: list[IdSegment] = field(default_factory=list)
    quarantine: list[str] = field(default_factory=list)
    refused_tables: set[str] = field(default_factory=set)

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(sorted({segment.path for segment in self.id_segments}))

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables.values())

    @property
    def failed_files(self) -> frozenset[int]:
        return frozenset(count.file.number for count in self.files if count.error)


def combine(results: Iterable[StageResult]) -> Staged:
    """Join the results of stage tasks; the order does not matter."""
    whole = Staged()
    for result in results:
        whole.files += result.files
        whole.id_segments += result.id_segments
        whole.refused_tables |= set(result.refused_tables)
        if result.quarantine:
            whole.quarantine.append(result.quarantine)
        for name, table in result.tables.items():
            joined = whole.tables.setdefault(name, StagedTable())
            joined.rows += table.rows
            joined.segments += table.segments
            joined.evidence = join([joined.evidence, table.evidence])
    whole.files.sort(key=lambda count: count.file.number)
    return whole


def tables_within(limit: int, known: Collection[str], staged: Staged) -> frozenset[str] | None:
    """The tables that the limit allows, the most used of the new ones first; None if all are allowed."""
    new = sorted(staged.tables.keys() - set(known), key=lambda name: (-staged.tables[name].rows, name))
    room = max(0, limit - len(known))
    return frozenset(known) | frozenset(new[:room]) if len(new) > room else None


class TablePlan(NamedTuple):
    """How one table looks after the run."""

    segment_type: str
    is_new: bool
    columns: tuple[Column, ...]
    added: tuple[Column, ...]
    refused: tuple[str, ...]


def plan_table(
    segment_type: str, schema: TableSchema | None, evidence: Mapping[str, Sighting], *, column_limit: int
) -> TablePlan:
    # Every row has these two, also where the event does not tell them.
    always = {
        name: Sighting(Seen.NOTHING, 1 << 60, pointer)
        for name, pointer in (("message_id", "/messageId"), ("received_at", "/receivedAt"))
    }
    current = schema or TableSchema()
    change = evolve(current, join([always, evidence]), column_limit=max(column_limit, len(always)))
    return TablePlan(segment_type, schema is None, current.columns + change.added, change.added, change.refused)


def dedupe_shares(messages: int, parallelism: int) -> int:
    return max(1, min(256, max(messages // IDS_PER_SHARE, parallelism if messages > IDS_PER_SHARE // 4 else 1)))


def publish_tasks(
    plans: Sequence[TablePlan],
    staged: Staged,
    carry_from: Mapping[str, Sequence[str]],
    parallelism: int,
    rescued_at: Mapping[str, int] | None = None,
) -> list[list[TableShare]]:
    """Tables packed into tasks: small ones together, large ones split."""
    least, most = ROWS_PER_SHARE
    limit = min(most, max(least, staged.rows // (3 * parallelism)))
    shares: list[tuple[TableShare, int]] = []
    for plan in plans:
        name = plan.segment_type
        table = staged.tables.get(name, StagedTable())
        for number, (segments, rows) in enumerate(_split(table.segments, limit)):
            old = tuple(carry_from.get(name, ())) if number == 0 else ()
            shares.append((TableShare(name, plan.columns, segments, old, (rescued_at or {}).get(name)), rows + 1000))
    # A few tasks per core even out shares that turn out heavier than they looked.
    return packed(shares, max(parallelism, min(3 * parallelism, staged.rows // least), staged.rows // most))


def _split(segments: Sequence[Segment], limit: int) -> list[tuple[tuple[Segment, ...], int]]:
    """Segments in groups of about `limit` rows; one empty group if there are none."""
    groups: list[tuple[tuple[Segment, ...], int]] = []
    current: list[Segment] = []
    rows = 0
    for segment in sorted(segments):
        current.append(segment)
        rows += segment.rows
        if rows >= limit:
            groups.append((tuple(current), rows))
            current, rows = [], 0
    if current or not groups:
        groups.append((tuple(current), rows))
    return groups
