"""How the work of a run is shared out: raw files, hashes and tables, into tasks of about equal size."""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from eventlake.lake import segments
from eventlake.lake.ids import BUCKETS
from eventlake.tasks.publish import TableShare
from eventlake.tasks.staged import RawFile

Item = TypeVar("Item")

TASKS_PER_CORE = 4  # even out what turns out heavier than it looked
PUBLISH_TASKS_PER_CORE = 3


@dataclass(frozen=True)
class ShareSizes:
    """How much a task gets."""

    bytes_per_stage_task: int = 64 << 20  # of compressed raw files, at most; but a few tasks per core, if each gets
    fewest_bytes_per_stage_task: int = 8 << 20
    files_per_stage_task: int = 500
    bytes_to_open_a_file: int = 16 << 10  # what opening a file costs, in bytes that could have been read meanwhile
    ids_per_share: int = 1_000_000
    ids_for_one_share: int = 250_000  # up to so many, more shares are not worth it
    fewest_rows_per_share: int = 50_000
    most_rows_per_share: int = 1_000_000


DEFAULT_SIZES = ShareSizes()


def stage_tasks(files: Sequence[RawFile], parallelism: int, sizes: ShareSizes = DEFAULT_SIZES) -> list[list[RawFile]]:
    """Raw files packed into tasks of about equal work."""
    size = sum(file.size for file in files)
    for_cores = min(TASKS_PER_CORE * parallelism, size // sizes.fewest_bytes_per_stage_task)
    most = max(size // sizes.bytes_per_stage_task, len(files) // sizes.files_per_stage_task)
    wanted = max(parallelism, for_cores, most)
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


def dedupe_shares(messages: int, parallelism: int, sizes: ShareSizes = DEFAULT_SIZES) -> int:
    for_cores = parallelism if messages > sizes.ids_for_one_share else 1
    return max(1, min(BUCKETS, max(messages // sizes.ids_per_share, for_cores)))


def publish_tasks(
    tables: Sequence[tuple[TableShare, bytes | bytearray]], parallelism: int, sizes: ShareSizes = DEFAULT_SIZES
) -> list[list[TableShare]]:
    """Tables packed into tasks, with the segments that hold their rows: small ones together, large ones split."""
    least, most = sizes.fewest_rows_per_share, sizes.most_rows_per_share
    rows_in_all = sum(segments.rows_of(records) for _, records in tables)
    wanted = PUBLISH_TASKS_PER_CORE * parallelism
    limit = min(most, max(least, rows_in_all // wanted))
    shares: list[tuple[TableShare, int]] = []
    for table, of_table in tables:
        for number, (records, rows) in enumerate(segments.split(of_table, limit)):
            carry_from = table.carry_from if number == 0 else ()
            shares.append((table._replace(segments=records, carry_from=carry_from), rows + 1000))
    # A few tasks per core even out shares that turn out heavier than they looked.
    return packed(shares, max(parallelism, min(wanted, rows_in_all // least), rows_in_all // most))
