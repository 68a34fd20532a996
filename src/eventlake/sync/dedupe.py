"""Between the two jobs: decide, message by message, which copy is the row.

Each task takes a share of the hash range: the staged ids of that share, from all staged files, against the same share
of the index of what is in the lake. No event is read. Of several copies the first received wins; what is in the lake
already stays there.

A replay looks at the same ids in another way: a copy that *is* the row in the lake is written again, with today's
rules, and a row of the lake that the raw archive no longer has is carried over.
"""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from eventlake.errors import InternalError
from eventlake.lake import ids
from eventlake.lake.ids import Ids, Share
from eventlake.lake.layout import STAGE
from eventlake.lake.staging import IdSegment
from eventlake.storage.base import Storage
from eventlake.sync.index import IdWriter, NewIds, Reindexed
from eventlake.sync.staged import Scope
from eventlake.sync.worker_memory import give_back

DROPPED = np.dtype([("table", "<u8"), ("staged", "<u4"), ("row", "<u4")])


class Mode(Enum):
    SYNC = "sync"  # load what is not in the lake
    REPLAY = "replay"  # and write again what is
    REBUILD = "rebuild"  # write everything again, as if the lake were empty


@dataclass(frozen=True)
class DedupeContext:
    """What all dedupe tasks of a run share."""

    run_id: str
    storage: Storage
    mode: Mode
    id_segments: tuple[IdSegment, ...]
    staged_paths: tuple[str, ...]
    index: tuple[str, ...]
    failed_files: frozenset[int]
    scope: Scope | None = None


class Count(NamedTuple):
    """Rows of one raw file or one table."""

    loaded: int = 0
    duplicates: int = 0
    rewritten: int = 0  # of the duplicates: the row in the lake itself
    checksum: int = 0  # of the message ids loaded

    def plus(self, other: "Count") -> "Count":
        return Count(
            self.loaded + other.loaded,
            self.duplicates + other.duplicates,
            self.rewritten + other.rewritten,
            ids.add_checksums(self.checksum, other.checksum),
        )


@dataclass
class DedupeResult:
    files: dict[int, Count]
    tables: dict[int, Count]  # by table key
    dropped: str | None  # rows that are not to be published
    new_ids: NewIds | None  # a share of the run's index
    carried: str | None  # rows of the lake that only the lake has
    carried_rows: dict[int, int] = field(default_factory=dict)  # by table key


@dataclass
class Kept:
    """What all dedupe tasks decided."""

    files: dict[int, Count] = field(default_factory=dict)
    tables: dict[str, Count] = field(default_factory=dict)
    dropped: list[str] = field(default_factory=list)
    new_ids: list[NewIds] = field(default_factory=list)
    carried: list[str] = field(default_factory=list)
    carried_rows: dict[str, int] = field(default_factory=dict)
    reindexed: Reindexed = field(default_factory=Reindexed)

    @property
    def indexed(self) -> tuple[int, int]:
        """How many messages are new in the index, and their checksum."""
        checksum = ids.sum_checksums(part.checksum for part in self.new_ids)
        return sum(part.messages for part in self.new_ids), checksum


def combine(results: Iterable[DedupeResult], table_names: Mapping[int, str]) -> Kept:
    """Join the results of dedupe tasks; `table_names` tells what the table keys stand for."""
    kept = Kept()
    for result in results:
        kept.dropped += [result.dropped] if result.dropped else []
        kept.new_ids += [result.new_ids] if result.new_ids else []
        kept.carried += [result.carried] if result.carried else []
        for number, count in result.files.items():
            kept.files[number] = kept.files.get(number, Count()).plus(count)
        for key, count in result.tables.items():
            name = _name_of(key, table_names)
            kept.tables[name] = kept.tables.get(name, Count()).plus(count)
        for key, rows in result.carried_rows.items():
            name = _name_of(key, table_names)
            kept.carried_rows[name] = kept.carried_rows.get(name, 0) + rows
    return kept


def _name_of(key: int, table_names: Mapping[int, str]) -> str:
    if key not in table_names:
        problem = f"rows of a table were counted that neither the lake nor this run has: {key}"
        raise InternalError(problem, fix="run it again; if it happens twice, report it with this message")
    return table_names[key]


def dedupe(context: DedupeContext, share: Share) -> DedupeResult:
    """Decide about one share of the messages."""
    give_back()
    staged, where = _staged(context, share)
    readable = ~np.isin(staged["file"], list(context.failed_files))
    holds, rows = _lake(context, share, staged)
    first = _first_of_each(staged, "high", "low") & readable
    new = first if context.mode is Mode.REBUILD else first & ~holds
    again, carried = np.zeros(len(staged), bool), rows
    if context.mode is Mode.REPLAY:
        # What a broken file gave will not be written: the lake must keep it.
        again[readable], only_there = _written_again(rows, staged.take(readable))
        carried = rows.take(only_there)
    elif context.mode is Mode.REBUILD:
        carried = rows.take(~np.isin(_hashes(rows), _hashes(staged.take(readable))))
    write = IdWriter(context.storage, context.run_id)
    return DedupeResult(
        files=_counts(staged, "file", new, again, readable),
        tables=_counts(staged, "table", new, again, readable),
        dropped=_write_dropped(context, staged, where, ~(new | again)),
        new_ids=write.index(Ids({name: staged[name][new] for name in ids.INDEX_FIELDS})),
        carried=write.file(carried.ordered(), "carried"),
        carried_rows=_tally(carried["table"]),
    )


def _staged(context: DedupeContext, share: Share) -> tuple[Ids, Any]:
    """The staged messages of this share in order of arrival, and which staged file each is in.

    Messages of files that broke off come last of all copies, so that they never win over a readable one.
    """
    number = {path: position for position, path in enumerate(context.staged_paths)}
    parts, where = [ids.empty()], [np.empty(0, int)]
    for segment in context.id_segments:
        with ids.opened(context.storage, segment.path, segment.offset, tuple(ids.FIELDS)) as file:
            part = file.read(share, ids.FIELDS)
            parts.append(Ids({name: values.copy() for name, values in part.arrays.items()}))
            where.append(np.full(len(part), number[segment.path]))
    whole = ids.joined(parts)
    failed = np.isin(whole["file"], list(context.failed_files))
    keys = [
        whole["row"],
        whole["file"],
        whole["digest"],
        whole["received"],
        failed,
        whole["low"],
        whole["high"],
    ]
    order = np.lexsort(keys)
    return whole.take(order), np.concatenate(where)[order]


def _first_of_each(staged: Ids, *fields: str) -> Any:
    """Which messages are the first of a group of neighbours with equal fields."""
    first = np.ones(len(staged), bool)
    first[1:] = np.logical_or.reduce([staged[name][1:] != staged[name][:-1] for name in fields])
    return first


def _lake(context: DedupeContext, share: Share, staged: Ids) -> tuple[Any, Ids]:
    """Which of the staged messages the lake has, and, for a replay, all rows of the lake that it writes anew."""
    holds = np.zeros(len(staged), bool)
    rows = [ids.empty(ids.INDEX_FIELDS)]
    for path in context.index:
        with ids.opened(context.storage, path) as file:
            holds |= file.positions(share, staged) >= 0
            if context.mode is not Mode.SYNC:
                held = file.read(share, ids.INDEX_FIELDS)
                rows.append(held.take(_in_scope(held, context.scope)))
    return holds, ids.joined(rows)


def _written_again(lake: Ids, staged: Ids) -> tuple[Any, Any]:
    """Which staged copies are rows of the lake, and which rows of the lake have no copies.

    A message that came again after the look-back is in the lake several times. If some of its rows cannot be told
    apart and fewer copies are left than there are rows, none is written again: the lake keeps them all.
    """
    both = ids.joined([lake, Ids({name: staged[name] for name in ids.INDEX_FIELDS})])
    order = np.lexsort([both[name] for name in ("table", "received", "low", "high")])  # of equals, the lake's first
    begins = _first_of_each(both.take(order), *ids.INDEX_FIELDS)
    group = np.cumsum(begins) - 1
    is_staged = order >= len(lake)
    rows = np.bincount(group[~is_staged], minlength=len(both))[group]
    copies = np.bincount(group[is_staged], minlength=len(both))[group]
    place = np.arange(len(both)) - np.flatnonzero(begins)[group]
    chosen = np.empty(len(both), bool)
    enough = copies >= rows
    chosen[order] = np.where(is_staged, enough & (place < 2 * rows), ~enough)  # as many copies as rows, after them
    return chosen[len(lake) :], chosen[: len(lake)]


def _hashes(messages: Ids) -> Any:
    """Messages that can be compared by both halves of their hashes at once."""
    return np.rec.fromarrays([messages["high"], messages["low"]])


def _in_scope(rows: Ids, scope: Scope | None) -> Any:
    if scope is None:
        return np.ones(len(rows), bool)
    wanted = (rows["received"] >= scope.start) & (rows["received"] < scope.stop)
    if scope.segment_types is not None:
        wanted &= np.isin(rows["table"], np.array([ids.table_key(t) for t in scope.segment_types], "<u8"))
    return wanted


def _tally(values: Any) -> dict[int, int]:
    keys, counts = np.unique(values, return_counts=True)
    return dict(zip(keys.tolist(), counts.tolist(), strict=True))


def _counts(staged: Ids, by: str, new: Any, again: Any, readable: Any) -> dict[int, Count]:
    """Counts by raw file or by table."""
    if not len(staged):
        return {}
    order = np.argsort(staged[by])
    keys, starts = np.unique(staged[by][order], return_index=True)

    def total(values: Any) -> list[int]:
        sums: list[int] = np.add.reduceat(values[order].astype(np.uint64), starts).tolist()
        return sums

    zero = np.uint64(0)
    columns = (
        total(new),
        total(readable & ~new),
        total(again),
        total(np.where(new, staged["high"], zero)),
        total(np.where(new, staged["low"], zero)),
    )
    return {
        int(key): Count(loaded, duplicates, rewritten, ids.checksum_of(high, low))
        for key, loaded, duplicates, rewritten, high, low in zip(keys, *columns, strict=True)
    }


def _write_dropped(context: DedupeContext, staged: Ids, where: Any, which: Any) -> str | None:
    rows = np.empty(int(which.sum()), DROPPED)
    rows["table"], rows["staged"], rows["row"] = staged["table"][which], where[which], staged["row"][which]
    if not len(rows):
        return None
    path = f"{STAGE}/{context.run_id}/dropped-{uuid.uuid4().hex}"
    with context.storage.open_output(path) as sink:
        sink.write(np.sort(rows).tobytes())  # by table first
    return path


def dropped_rows(storage: Storage, paths: list[str], table: int) -> dict[int, Any]:
    """For one table: the rows that must not be published, by number of the staged file."""
    found: list[Any] = []
    for path in paths:
        with storage.open_input(path) as source:
            rows = np.frombuffer(source.read_buffer(), DROPPED)
            begin = np.searchsorted(rows["table"], np.uint64(table))
            end = np.searchsorted(rows["table"], np.uint64(table), "right")
            found.append(rows[begin:end].copy())
    if not found:
        return {}
    whole = np.concatenate(found)
    return {int(number): whole["row"][whole["staged"] == number] for number in np.unique(whole["staged"])}
