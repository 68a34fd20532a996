"""Making the index of message ids anew from data files."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eventlake.lake import ids
from eventlake.lake.dialects import Dialect
from eventlake.lake.routes import Route
from eventlake.storage.base import Storage
from eventlake.tasks.id_files import IdWriter, NewIds

_MESSAGE = ("high", "low", "received")  # the same message may be in the lake twice, after the look-back


@dataclass(frozen=True)
class ReindexContext:
    folder: str  # where the run stages
    storage: Storage
    dialect: Dialect
    sound: tuple[str, ...]
    routes: tuple[Route, ...] = ()  # of more than one table that messages may have taken


class Unindexed(NamedTuple):
    """A data file whose messages may be missing in the index."""

    path: str
    table_key: str


def reindex(context: ReindexContext, files: list[Unindexed]) -> NewIds | None:
    """Write the ids of messages that no sound file of the index has; of a partition, all files come together.

    A data file that is gone or broken has none: `verify --repair` brings its rows back, and their ids with them.
    """
    table_keys = sorted({file.table_key for file in files})
    rows = [_rows(context, file) for file in files]
    tables = [np.full(len(part), table_keys.index(file.table_key)) for part, file in zip(rows, files, strict=True)]
    found = _messages(ids.joined([ids.empty(_MESSAGE), *rows]), np.concatenate(tables), table_keys, context.routes)
    missing = np.ones(len(found), bool)
    for path in context.sound:
        with ids.opened(context.storage, path) as file:
            missing &= ~np.isin(_whole(found), _whole(file.read(ids.ALL, ids.INDEX_FIELDS)))
    rest = found.take(missing)
    if any(len(route) > 1 for route in context.routes):
        rest = rest.take(_known_on_no_route(context, found, rest))
    return IdWriter(context.storage, context.folder).index(rest.ordered())


def _known_on_no_route(context: ReindexContext, found: ids.Ids, rest: ids.Ids) -> ids.Array:
    """Which messages are not in a sound file on another route either: of its tables, one may have lost its rows."""
    there = _whole(found)
    elsewhere = [np.empty(0, _whole(rest, _MESSAGE).dtype)]
    for path in context.sound:
        with ids.opened(context.storage, path) as file:
            held = file.read(ids.ALL, ids.INDEX_FIELDS)
            elsewhere.append(_whole(held, _MESSAGE)[~np.isin(_whole(held), there)])
    return ~np.isin(_whole(rest, _MESSAGE), np.concatenate(elsewhere))


def _rows(context: ReindexContext, file: Unindexed) -> ids.Ids:
    message_column = context.dialect.columns(file.table_key).message_column
    try:
        with context.storage.open_input(file.path) as source:
            rows = pq.read_table(source, columns=[message_column, "received_at"])
    except (pa.ArrowInvalid, OSError):
        return ids.empty(_MESSAGE)
    hashes = [ids.message_hash(message_id) for message_id in rows.column(message_column).to_pylist()]
    received = rows.column("received_at").cast(pa.int64()).to_numpy()
    return ids.Ids({**ids.from_digests(hashes), "received": received})


def _messages(rows: ids.Ids, tables: ids.Array, table_keys: Sequence[str], routes: Sequence[Route]) -> ids.Ids:
    """The messages of rows in some tables, each with the route that its rows tell."""
    copies = _numbered(rows, tables)
    order = np.lexsort([tables, copies, *(rows[name] for name in reversed(_MESSAGE))])
    rows, tables, copies = rows.take(order), tables[order], copies[order]
    starts = np.flatnonzero(_changes(*(rows[name] for name in _MESSAGE), copies))
    sizes = np.diff(np.append(starts, len(rows)))
    # Each row is a message of its own, unless it is together with others on a route.
    taken = np.array([ids.route_hash((key,)) for key in table_keys], ids.FIELDS["route"])[tables]
    is_message = np.ones(len(rows), bool)
    by_tables = {frozenset(route): ids.route_hash(route) for route in routes}
    for size in {len(route) for route in by_tables}:
        places = starts[sizes == size][:, None] + np.arange(size)
        kinds, kind_of = np.unique(tables[places], axis=0, return_inverse=True)
        for number, kind in enumerate(kinds.tolist()):
            together = by_tables.get(frozenset(table_keys[table] for table in kind))
            if together is not None:
                here = places[kind_of.reshape(-1) == number]
                taken[here[:, 0]] = together
                is_message[here[:, 1:]] = False
    return ids.Ids({**rows.arrays, "route": taken}).take(is_message)


def _numbered(rows: ids.Ids, tables: ids.Array) -> ids.Array:
    """For each row, how many before it are of the same message and table."""
    order = np.lexsort([tables, *(rows[name] for name in reversed(_MESSAGE))])
    begins = _changes(*(rows[name][order] for name in _MESSAGE), tables[order])
    place = np.arange(len(order))
    numbers = np.empty(len(order), np.int64)
    numbers[order] = place - np.maximum.accumulate(np.where(begins, place, 0))
    return numbers


def _changes(*fields: ids.Array) -> ids.Array:
    """Where a row differs from the one before it."""
    changes = np.ones(len(fields[0]), bool)
    changes[1:] = np.logical_or.reduce([values[1:] != values[:-1] for values in fields])
    return changes


def _whole(messages: ids.Ids, fields: Sequence[str] = ids.INDEX_FIELDS) -> ids.Array:
    """Messages that can be compared by some fields together."""
    whole = np.empty(len(messages), [(name, ids.FIELDS[name]) for name in fields])
    for name in fields:
        whole[name] = messages[name]
    return whole
