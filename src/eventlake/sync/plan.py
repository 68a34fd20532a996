"""Decisions on the driver, from what was seen: how tables grow and how the work is shared out. No data is touched."""

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from eventlake.lake.ids import BUCKETS
from eventlake.lake.staging import IdSegment, Segment
from eventlake.schema.declared import INFERRED, TypeRules
from eventlake.schema.evolve import Column, Sighting, TableSchema, evolve, join
from eventlake.schema.types import Seen
from eventlake.sync.publish import TableShare
from eventlake.sync.staged import HOURS_COUNTED, FileCount, RawFile, StagedTable, StageResult

Item = TypeVar("Item")


@dataclass(frozen=True)
class PlanSizes:
    """How work is shared out."""

    bytes_per_stage_task: int = 8 << 20  # of compressed raw files
    files_per_stage_task: int = 500
    bytes_to_open_a_file: int = 16 << 10  # what opening a file costs, in bytes that could have been read meanwhile
    ids_per_share: int = 1_000_000
    ids_for_one_share: int = 250_000  # up to so many, more shares are not worth it
    fewest_rows_per_share: int = 50_000
    most_rows_per_share: int = 1_000_000


DEFAULT_SIZES = PlanSizes()


def stage_tasks(files: Sequence[RawFile], parallelism: int, sizes: PlanSizes = DEFAULT_SIZES) -> list[list[RawFile]]:
    """Raw files packed into tasks of about equal work."""
    size = sum(file.size for file in files)
    wanted = max(parallelism, size // sizes.bytes_per_stage_task, len(files) // sizes.files_per_stage_task)
    wanted += -wanted % parallelism  # else some cores do nothing while others do the last tasks
    return packed([(file, file.size + sizes.bytes_to_open_a_file) for file in files], wanted)


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
    refused_tables: Counter[str] = field(default_factory=Counter)  # lines
    misread_by: set[str] = field(default_factory=set)  # versions of DuckDB that no line was read with

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
        whole.refused_tables.update(result.refused_tables)
        whole.misread_by |= {result.misread_by} if result.misread_by else set()
        if result.quarantine:
            whole.quarantine.append(result.quarantine)
        for name, table in result.tables.items():
            joined = whole.tables.setdefault(name, StagedTable())
            joined.rows += table.rows
            joined.segments += table.segments
            joined.evidence = join([joined.evidence, table.evidence])
            joined.hours |= table.hours
    whole.files.sort(key=lambda count: count.file.number)
    return whole


class Room(NamedTuple):
    """How many tables may be added: at all, and of names that were not seen for long."""

    tables: int
    of_young_names: int


def tables_within(
    room: Room, known: Collection[str], staged: Staged, refused_before: Collection[str] = ()
) -> frozenset[str] | None:
    """The tables that may be, if there is so much room for new ones; None if all may be.

    Names that come again come first, then those seen in the most hours, then those with the most rows: whoever makes
    up names has to go on doing so for long to win over an app.
    """

    def hours(name: str) -> int:
        return min(len(staged.tables[name].hours), HOURS_COUNTED)

    new = sorted(
        staged.tables.keys() - set(known),
        key=lambda name: (name not in refused_before, -hours(name), -staged.tables[name].rows, name),
    )
    young = [name for name in new if hours(name) < HOURS_COUNTED]
    refused = set(young[room.of_young_names :])
    allowed = [name for name in new if name not in refused][: room.tables]
    return frozenset(known) | frozenset(allowed) if len(allowed) < len(new) else None


class TablePlan(NamedTuple):
    """How one table looks after the run."""

    segment_type: str
    is_new: bool
    columns: tuple[Column, ...]
    added: tuple[Column, ...]
    refused: tuple[str, ...]
    reasons: Mapping[str, str] = MappingProxyType({})  # of types of added columns


def plan_table(
    segment_type: str,
    schema: TableSchema | None,
    evidence: Mapping[str, Sighting],
    *,
    column_limit: int,
    rules: TypeRules = INFERRED,
) -> TablePlan:
    # Every row has these two, also where the event does not tell them.
    always = {
        name: Sighting(Seen.NOTHING, 1 << 60, pointer)
        for name, pointer in (("message_id", "/messageId"), ("received_at", "/receivedAt"))
    }
    current = schema or TableSchema()
    limit = max(column_limit, len(always))
    change = evolve(current, join([always, evidence]), column_limit=limit, table=segment_type, rules=rules)
    columns = current.columns + change.added
    return TablePlan(segment_type, schema is None, columns, change.added, change.refused, change.reasons)


def dedupe_shares(messages: int, parallelism: int, sizes: PlanSizes = DEFAULT_SIZES) -> int:
    for_cores = parallelism if messages > sizes.ids_for_one_share else 1
    return max(1, min(BUCKETS, max(messages // sizes.ids_per_share, for_cores)))


def publish_tasks(
    plans: Sequence[TablePlan],
    staged: Staged,
    carry_from: Mapping[str, Sequence[str]],
    parallelism: int,
    rescued_at: Mapping[str, int] | None = None,
    sizes: PlanSizes = DEFAULT_SIZES,
) -> list[list[TableShare]]:
    """Tables packed into tasks: small ones together, large ones split."""
    least, most = sizes.fewest_rows_per_share, sizes.most_rows_per_share
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
