"""From lines that were read as columns (see `columns`) to rows of their tables.

A line comes this way only if nothing about it is special: it has a table and a message id, and each of its values has
a column to itself. Any other is left to the exact reader, like those that were not read whole.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from isal.isal_zlib import crc32

from eventlake.lake import ids
from eventlake.lake.ids import Array
from eventlake.reading.proof import Read
from eventlake.reading.route_buffer import RouteBuffer, Taken, received_micros
from eventlake.schema import names
from eventlake.schema.kinds import Kind, Place
from eventlake.schema.rescue import pointer


class ByRoute:
    """Lines that were read, and the route of each."""

    def __init__(self, read: Read, buffer_for: Callable[[str, str], RouteBuffer | None]) -> None:
        self._leaves = read.leaves
        self._places = [Place(names.column_name(*leaf.path), pointer(leaf.path), leaf.kind) for leaf in read.leaves]
        self._count = len(read.whole)
        self._buffers: list[RouteBuffer] = []
        self._route_of = self._found_routes(read.whole, buffer_for)
        self._leave_out_without_id()
        self._leave_out_shared_columns()

    @property
    def taken(self) -> Array:
        """Which lines go to their tables."""
        return self._route_of >= 0

    def _texts(self, *path: str) -> tuple[Array, pa.Array]:
        """The lines that have a text there, and their texts."""
        for leaf in self._leaves:
            if leaf.path == path and leaf.kind is Kind.TEXT:
                return leaf.rows, leaf.values
        return np.empty(0, np.int64), pa.array([], pa.string())

    def _found_routes(self, whole: Array, buffer_for: Callable[[str, str], RouteBuffer | None]) -> Array:
        """The number of each line's route; -1 for none."""
        calls, call_of = self._numbered("type")
        call_of[~whole] = -1
        events, event_of = self._numbered("event")
        event_of[call_of != _number(calls, "track")] = -1
        pairs, pair_of = np.unique(call_of * (len(events) + 1) + event_of + 1, return_inverse=True)
        numbers: dict[tuple[str, ...], int] = {}
        route_of_pair = np.full(len(pairs), -1)
        for place, pair in enumerate(pairs.tolist()):
            call, event = divmod(pair, len(events) + 1)
            buffer = buffer_for(calls[call], events[event - 1] if event else "") if call >= 0 else None
            if buffer is not None:
                route_of_pair[place] = numbers.setdefault(buffer.route, len(numbers))
                if len(numbers) > len(self._buffers):
                    self._buffers.append(buffer)
        return np.asarray(route_of_pair[pair_of])

    def _numbered(self, key: str) -> tuple[list[str], Array]:
        """The distinct texts of a key, and the number of each line's; -1 for none."""
        rows, texts = self._texts(key)
        distinct = texts.dictionary_encode()
        numbers = np.full(self._count, -1)
        numbers[rows] = distinct.indices.to_numpy()
        return distinct.dictionary.to_pylist(), numbers

    def _leave_out_without_id(self) -> None:
        rows, texts = self._texts("messageId")
        has_id = np.zeros(self._count, bool)
        has_id[rows] = pc.not_equal(texts, "").to_numpy(zero_copy_only=False)
        self._route_of[~has_id] = -1

    def _leave_out_shared_columns(self) -> None:
        for leaf, place in zip(self._leaves, self._places, strict=True):
            routes = self._route_of[leaf.rows]
            for number in np.flatnonzero(np.bincount(routes + 1)[1:]).tolist():
                if not self._buffers[number].has_own(place.column, place.pointer):
                    self._route_of[leaf.rows[routes == number]] = -1

    def rows(
        self, lines: Sequence[bytes], file_of: Array, day_of_file: Callable[[int], int]
    ) -> Iterator[tuple[RouteBuffer, Taken]]:
        """The messages of each route, with their rows."""
        order = np.argsort(self._route_of, kind="stable")
        order = order[np.count_nonzero(~self.taken) :]
        starts = np.searchsorted(self._route_of[order], np.arange(len(self._buffers) + 1))
        columns = self._columns(order, starts)
        messages = self._messages(lines, order, file_of, day_of_file)
        for number, buffer in enumerate(self._buffers):
            rows = slice(starts[number], starts[number + 1])
            if rows.start < rows.stop:
                yield buffer, buffer.taken(columns[number], messages.take(rows))

    def _messages(
        self, lines: Sequence[bytes], order: Array, file_of: Array, day_of_file: Callable[[int], int]
    ) -> ids.Ids:
        files = file_of[order]
        hashes = [ids.message_hash(text) for text in self._in_order(order, "messageId")]
        received = received_micros(self._in_order(order, "receivedAt"), files.tolist(), day_of_file)
        digests = np.fromiter(map(crc32, map(lines.__getitem__, order.tolist())), "<u4", len(order))
        return ids.Ids({**ids.from_digests(hashes), "received": received, "digest": digests, "file": files})

    def _in_order(self, order: Array, key: str) -> list[Any]:
        rows, texts = self._texts(key)
        place = np.full(self._count, -1)
        place[rows] = np.arange(len(rows))
        found = place[order]
        return list(texts.take(pa.array(found, mask=found < 0)).to_pylist())

    def _columns(self, order: Array, starts: Array) -> list[list[tuple[Place, pa.Array]]]:
        """The columns of each route, its rows in this order."""
        # -1 comes last; small numbers are sorted in no time.
        routes = self._route_of.astype(np.uint16 if len(self._buffers) < 0xFFFF else np.uint32)
        rank = np.full(self._count, len(order))
        rank[order] = np.arange(len(order))
        columns: list[list[tuple[Place, pa.Array]]] = [[] for _ in self._buffers]
        for leaf, place in zip(self._leaves, self._places, strict=True):
            sorting = np.argsort(routes[leaf.rows], kind="stable")
            ranks, values = rank[leaf.rows[sorting]], leaf.values.take(pa.array(sorting))
            bounds = np.searchsorted(ranks, starts)
            for number in np.flatnonzero(bounds[1:] > bounds[:-1]).tolist():
                start, stop = bounds[number], bounds[number + 1]
                rows = starts[number + 1] - starts[number]
                part = values.slice(start, stop - start)
                if len(part) < rows:
                    part = _spread(part, ranks[start:stop] - starts[number], rows)
                columns[number].append((place, part))
        return columns


def _number(texts: list[str], text: str) -> int:
    return texts.index(text) if text in texts else len(texts)


def _spread(values: pa.Array, rows: Array, count: int) -> pa.Array:
    """These values in these rows of so many, null in the others."""
    which = np.full(count, -1)
    which[rows] = np.arange(len(rows))
    return values.take(pa.array(which, mask=which < 0))
