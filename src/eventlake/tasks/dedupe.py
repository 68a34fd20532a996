"""Between the two jobs: decide, message by message, which copy is the row.

Each task takes a share of the hash range: the staged ids of that share, from all staged files, against the same share
of the index of what is in the lake. No event is read. Of several copies the first received wins; what is in the lake
already stays there.

A replay looks at the same ids in another way: a copy that *is* the row in the lake is written again, with today's
rules, and a row of the lake that the raw archive no longer has is carried over. A message that goes to other tables by
today's rules leaves its old ones.
"""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eventlake.lake import ids
from eventlake.lake.ids import Ids, Share
from eventlake.lake.routes import Route
from eventlake.lake.staging import IdSegment
from eventlake.storage.base import Storage
from eventlake.tasks import counts
from eventlake.tasks.counts import Counts
from eventlake.tasks.dropped import write_dropped
from eventlake.tasks.id_files import IdWriter, NewIds
from eventlake.tasks.memory import give_back
from eventlake.tasks.scope import Mode, Scope


@dataclass(frozen=True)
class DedupeContext:
    """What all dedupe tasks of a run share."""

    folder: str  # where the run stages
    storage: Storage
    mode: Mode
    id_segments: tuple[IdSegment, ...]
    staged_paths: tuple[str, ...]
    index: tuple[str, ...]
    failed_files: frozenset[int]
    scope: Scope | None = None
    routes: tuple[Route, ...] = ()  # all that there are, if the scope is about some tables
    withheld: tuple[str, ...] = ()  # files with messages that a policy keeps out


@dataclass
class DedupeResult:
    files: Counts  # by number
    routes: Counts  # by hash
    dropped: str | None  # messages of which not all rows are to be published
    new_ids: NewIds | None  # a share of the run's index
    carried: str | None  # messages that only the lake has
    carried_routes: dict[int, int] = field(default_factory=dict)  # how many, by hash
    removed: str | None = None  # messages that a replay takes out of the lake
    removed_routes: dict[int, int] = field(default_factory=dict)


def dedupe(context: DedupeContext, share: Share) -> DedupeResult:
    """Decide about one share of the messages."""
    give_back()
    staged, where = _staged(context, share)
    readable = ~np.isin(staged["file"], list(context.failed_files))
    holds, rows = _lake(context, share, staged)
    first = _first_of_each(staged, "high", "low") & readable
    new = first if context.mode is Mode.REBUILD else first & ~holds
    again, only_there = np.zeros(len(staged), bool), np.ones(len(rows), bool)
    is_removed = np.zeros(len(rows), bool)
    if context.mode is Mode.REPLAY:
        # What a broken file gave will not be written: the lake must keep it.
        again[readable], only_there = _written_again(rows, staged.take(readable))
        moves, is_removed = _moved(rows, _removable(context, rows) & only_there, staged, first & ~again)
        new = new | moves
    elif context.mode is Mode.REBUILD:
        only_there = ~np.isin(_hashes(rows), _hashes(staged.take(readable)))
    is_removed |= only_there & _removable(context, rows) & _withheld(context, share, rows)
    carried, removed = rows.take(only_there & ~is_removed), rows.take(is_removed)
    write = IdWriter(context.storage, context.folder)
    return DedupeResult(
        files=_counts(staged, "file", new, again, readable),
        routes=_counts(staged, "route", new, again, readable),
        dropped=_write_dropped(context, staged, where, new=new, again=again),
        new_ids=write.index(Ids({name: staged[name][new] for name in ids.INDEX_FIELDS})),
        carried=write.file(carried.ordered(), "carried"),
        carried_routes=_tally(carried["route"]),
        removed=write.file(removed.ordered(), "removed"),
        removed_routes=_tally(removed["route"]),
    )


def _staged(context: DedupeContext, share: Share) -> tuple[Ids, Any]:
    """The staged messages of this share in order of arrival, and which staged file each is in.

    Messages of files that broke off come last of all copies, so that they never win over a readable one.
    """
    number = {path: position for position, path in enumerate(context.staged_paths)}
    parts, where = [ids.empty()], [np.empty(0, int)]

    def read(segment: IdSegment) -> Ids:
        with ids.opened(context.storage, segment.path, segment.offset, tuple(ids.FIELDS)) as file:
            part = file.read(share, ids.FIELDS)
            return Ids({name: values.copy() for name, values in part.arrays.items()})

    for segment, part in zip(context.id_segments, context.storage.beside(read, context.id_segments), strict=True):
        parts.append(part)
        where.append(np.full(len(part), number[segment.path]))
    whole = ids.joined(parts)
    failed = np.isin(whole["file"], list(context.failed_files))
    keys = [
        whole["number"],
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

    def look_up(path: str) -> tuple[Any, Ids]:
        with ids.opened(context.storage, path) as file:
            found = file.positions(share, staged) >= 0
            if context.mode is Mode.SYNC:
                return found, ids.empty(ids.INDEX_FIELDS)
            held = file.read(share, ids.INDEX_FIELDS)
            return found, held.take(_in_scope(held, context))

    for found, held in context.storage.beside(look_up, context.index):
        holds |= found
        rows.append(held)
    return holds, ids.joined(rows)


def _written_again(lake: Ids, staged: Ids) -> tuple[Any, Any]:
    """Which staged copies are rows of the lake, and which rows of the lake have no copies.

    A message that came again after the look-back is in the lake several times. If some of its rows cannot be told
    apart and fewer copies are left than there are rows, none is written again: the lake keeps them all.
    """
    both = ids.joined([lake, Ids({name: staged[name] for name in ids.INDEX_FIELDS})])
    order = np.lexsort([both[name] for name in ("route", "received", "low", "high")])  # of equals, the lake's first
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


def _withheld(context: DedupeContext, share: Share, rows: Ids) -> Any:
    """Which messages of the lake a policy keeps out now."""
    parts = [ids.empty(ids.INDEX_FIELDS)]
    for path in context.withheld:
        with ids.opened(context.storage, path) as file:
            part = file.read(share, ids.INDEX_FIELDS)
            parts.append(Ids({name: values.copy() for name, values in part.arrays.items()}))
    return np.isin(_hashes(rows), _hashes(ids.joined(parts)))


def _removable(context: DedupeContext, rows: Ids) -> Any:
    """Which messages of the lake a replay may take out. One that also has rows outside of its tables stays as it is."""
    if context.scope is None or (table_keys := context.scope.table_keys) is None:
        return np.ones(len(rows), bool)
    return _takes(rows, (route for route in context.routes if table_keys.issuperset(route)))


def _moved(lake: Ids, may_go: Any, staged: Ids, is_free: Any) -> tuple[Any, Any]:
    """Which staged copies are rows that the lake has in other tables, and which rows of the lake those are.

    One that is in the lake several times stays where it is: nobody could tell which of its rows is meant. So does one
    of which a copy for its own tables is in a file that broke off.
    """
    _, place, times = np.unique(_hashes(lake), return_inverse=True, return_counts=True)
    goes = may_go & (times[place] == 1) & ~np.isin(_fields(lake, *ids.INDEX_FIELDS), _fields(staged, *ids.INDEX_FIELDS))
    copies, rows = (_fields(some, "high", "low", "received") for some in (staged, lake))
    moves = is_free & np.isin(copies, rows[goes])
    return moves, goes & np.isin(rows, copies[moves])


def _hashes(messages: Ids) -> Any:
    """Messages that can be compared by both halves of their hashes at once."""
    return _fields(messages, "high", "low")


def _fields(messages: Ids, *names: str) -> Any:
    """Messages that can be compared by some fields at once."""
    return np.rec.fromarrays([messages[name] for name in names])


def _in_scope(messages: Ids, context: DedupeContext) -> Any:
    """Which messages of the lake a replay writes anew, in some table."""
    scope = context.scope
    if scope is None:
        return np.ones(len(messages), bool)
    wanted = (messages["received"] >= scope.start) & (messages["received"] < scope.stop)
    if scope.table_keys is not None:
        wanted &= _takes(messages, (route for route in context.routes if not scope.table_keys.isdisjoint(route)))
    return wanted


def _takes(messages: Ids, routes: Iterable[Route]) -> Any:
    """Which messages take one of these routes."""
    return np.isin(messages["route"], np.array([ids.route_hash(route) for route in routes], "<u8"))


def _tally(values: Any) -> dict[int, int]:
    keys, counts = np.unique(values, return_counts=True)
    return dict(zip(keys.tolist(), counts.tolist(), strict=True))


def _counts(staged: Ids, by: str, new: Any, again: Any, readable: Any) -> Counts:
    """Counts by raw file or by route."""
    order = np.argsort(staged[by])
    keys, starts = np.unique(staged[by][order], return_index=True)

    def total(values: Any) -> Any:
        return np.add.reduceat(values[order].astype(np.uint64), starts) if len(staged) else keys

    zero = np.uint64(0)
    checked = (np.where(new, staged[half], zero) for half in ("high", "low"))
    return counts.packed(keys, map(total, (new, readable & ~new, again, *checked)))


def _write_dropped(context: DedupeContext, staged: Ids, where: Any, *, new: Any, again: Any) -> str | None:
    """Note the messages that are in the lake: their rows are published nowhere, or only in the tables of the scope."""
    known = ~(new | again)
    if context.scope is not None and (table_keys := context.scope.table_keys) is not None:
        known |= again & ~_takes(staged, (route for route in context.routes if table_keys.issuperset(route)))
    path = f"{context.folder}/dropped-{uuid.uuid4().hex}"
    return write_dropped(context.storage, path, where[known], staged["number"][known], again[known])
