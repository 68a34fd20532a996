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

from eventlake.lake import ids
from eventlake.lake.ids import IdFile, Ids, Share
from eventlake.lake.layout import STAGE
from eventlake.lake.staging import IdSegment
from eventlake.storage.base import Storage
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


class NewIds(NamedTuple):
    """A file with the ids of messages that are new in the lake."""

    path: str
    messages: int
    checksum: int


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
            name = table_names[key]
            kept.tables[name] = kept.tables.get(name, Count()).plus(count)
        for key, rows in result.carried_rows.items():
            name = table_names[key]
            kept.carried_rows[name] = kept.carried_rows.get(name, 0) + rows
    return kept


def dedupe(context: DedupeContext, share: Share) -> DedupeResult:
    """Decide about one share of the messages."""
    give_back()
    staged, where = _staged(context, share)
    readable = ~np.isin(staged["file"], list(context.failed_files))
    lake = _Lake(context, share, staged, readable)
    first = _first_of_each(staged, "high", "low") & readable
    again = np.zeros(len(staged), bool)
    new = first if context.mode is Mode.REBUILD else first & ~lake.holds
    if context.mode is Mode.REPLAY:
        again = lake.is_row & readable & _first_of_each(staged, "high", "low", "received", "table")
    write = _Writer(context)
    return DedupeResult(
        files=_counts(staged, "file", new, again, readable),
        tables=_counts(staged, "table", new, again, readable),
        dropped=write.dropped(staged, where, ~(new | again)),
        new_ids=write.new_ids(Ids({name: staged[name][new] for name in ids.INDEX_FIELDS})),
        carried=write.ids(lake.carried, "carried"),
        carried_rows=_tally(lake.carried["table"]),
    )


def _staged(context: DedupeContext, share: Share) -> tuple[Ids, Any]:
    """The staged messages of this share in order of arrival, and which staged file each is in.

    Messages of files that broke off come last of all copies, so that they never win over a readable one.
    """
    number = {path: position for position, path in enumerate(context.staged_paths)}
    parts, where = [ids.empty()], [np.empty(0, "<u4")]
    for segment in context.id_segments:
        with context.storage.open_input(segment.path) as source:
            part = IdFile(source, segment.offset, tuple(ids.FIELDS)).read(share, ids.FIELDS)
            parts.append(Ids({name: values.copy() for name, values in part.arrays.items()}))
            where.append(np.full(len(part), number[segment.path], "<u4"))
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
    if len(staged) > 1:
        first[1:] = np.logical_or.reduce([staged[name][1:] != staged[name][:-1] for name in fields])
    return first


class _Lake:
    """What the lake has of the staged messages, and what it has that is not staged."""

    def __init__(self, context: DedupeContext, share: Share, staged: Ids, readable: Any) -> None:
        self.holds = np.zeros(len(staged), bool)
        self.is_row = np.zeros(len(staged), bool)
        carried = [ids.empty(ids.INDEX_FIELDS)]
        for path in context.index:
            with context.storage.open_input(path) as source:
                file = IdFile(source)
                places = file.positions(share, staged)
                held = places >= 0
                self.holds |= held
                if context.mode is not Mode.SYNC:
                    rows = file.read(share, ids.INDEX_FIELDS)
                    is_row = held & readable  # what a broken file gave will not be written: the lake must keep it
                    if context.mode is Mode.REPLAY:
                        for name in ("received", "table"):
                            is_row[held] &= rows[name][places[held]] == staged[name][held]
                    self.is_row |= is_row
                    missing = _in_scope(rows, context.scope)
                    missing[places[is_row]] = False
                    carried.append(rows.take(missing))
        self.carried = ids.joined(carried).ordered()


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
    order = np.argsort(staged[by], kind="stable")
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


class _Writer:
    def __init__(self, context: DedupeContext) -> None:
        self._storage = context.storage
        self._folder = f"{STAGE}/{context.run_id}"

    def dropped(self, staged: Ids, where: Any, which: Any) -> str | None:
        rows = np.empty(int(which.sum()), DROPPED)
        rows["table"], rows["staged"], rows["row"] = (
            staged["table"][which],
            where[which],
            staged["row"][which],
        )
        if not len(rows):
            return None
        path = f"{self._folder}/dropped-{uuid.uuid4().hex}"
        with self._storage.open_output(path) as sink:
            sink.write(np.sort(rows, order=["table", "staged", "row"]).tobytes())
        return path

    def new_ids(self, messages: Ids) -> NewIds | None:
        path = self.ids(messages, "ids")
        return NewIds(path, len(messages), ids.checksum(messages)) if path else None

    def ids(self, messages: Ids, name: str) -> str | None:
        if not len(messages):
            return None
        path = f"{self._folder}/{name}-{uuid.uuid4().hex}"
        with self._storage.open_output(path) as sink:
            ids.write(sink, messages)
        return path


def dropped_rows(storage: Storage, paths: list[str], table: int) -> dict[int, Any]:
    """For one table: the rows that must not be published, by number of the staged file."""
    found: list[Any] = []
    for path in paths:
        with storage.open_input(path) as source:
            rows = np.frombuffer(source.read_buffer(), DROPPED)
            begin = np.searchsorted(rows["table"], np.uint64(table), "left")
            end = np.searchsorted(rows["table"], np.uint64(table), "right")
            found.append(rows[begin:end].copy())
    if not found:
        return {}
    whole = np.concatenate(found)
    return {int(number): whole["row"][whole["staged"] == number] for number in np.unique(whole["staged"])}
