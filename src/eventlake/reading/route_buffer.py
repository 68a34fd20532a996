"""Events that take the same route to their tables, and that a stage task has read and not yet written."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from eventlake.lake import ids
from eventlake.lake.ids import Array
from eventlake.lake.routes import Route
from eventlake.lake.staging import RESCUED, Packed, packed
from eventlake.reading.flatten import Flattener, TableColumns
from eventlake.schema import rescue
from eventlake.schema.claims import NOWHERE
from eventlake.schema.kinds import Kind, by_kind
from eventlake.schema.reading import SEGMENT, Reading
from eventlake.schema.rescue import Rescued


class Taken(NamedTuple):
    """The messages of some events, and what is staged of them, in the same order."""

    messages: ids.Ids
    piece: Packed


class RouteBuffer:
    """Events of one route. They are collected as lists; `take` turns them into Arrow arrays and starts anew."""

    def __init__(self, route: Route, columns: Sequence[TableColumns], reading: Reading = SEGMENT) -> None:
        self.route = route
        self._columns = dict(zip(route, columns, strict=True))
        self._flatteners = {key: Flattener(known, reading) for key, known in self._columns.items()}
        self._hash = ids.route_hash(route)
        self._heads: list[tuple[bytes, int, int, int]] = []  # hash of the id, time, digest and file of an event

    def __len__(self) -> int:
        return len(self._heads)

    @property
    def padding(self) -> int:
        """How many cells are held that stand for nothing."""
        return sum(flattener.padding for flattener in self._flatteners.values())

    def claimed(self, path: tuple[str, ...]) -> list[tuple[str, str]] | None:
        """The tables that have columns for values from this place only, and what these are called there.

        None if these values may have to share a column, or cannot have one that they should have.
        """
        owned = []
        for key, columns in self._columns.items():
            claimed = columns.claimed(path)
            if claimed is None:
                return None
            owned += [(key, name) for name in claimed]
        return owned

    def add(
        self,
        event: dict[str, Any],
        set_aside: list[Rescued],
        *,
        message_hash: bytes,
        received: int,
        digest: int,
        file: int,
    ) -> None:
        for key, flattener in self._flatteners.items():
            flattener.add(event, [entry for entry in set_aside if self._keeper(entry) == key])
        self._heads.append((message_hash, received, digest, file))

    def _keeper(self, entry: Rescued) -> str:
        """The table whose row keeps what a parser could not place: the first that has something from there."""
        path = tuple(rescue.keys_of(entry.pointer))
        have = (key for key, columns in self._columns.items() if columns.rules.claims(path) != NOWHERE)
        return next(have, self.route[0])

    def take(self) -> Taken:
        """The events collected."""
        hashes, received, digests, files = zip(*self._heads, strict=True)
        self._heads = []
        messages = self.messages(hashes, np.array(received), np.array(digests, "<u4"), np.array(files, "<u4"))
        fields: list[tuple[str, Kind, pa.Array]] = []
        tables: dict[str, list[tuple[str, int]]] = {}
        for key, flattener in self._flatteners.items():
            chunk = flattener.take()
            columns = tables[key] = []
            for names, pointer, cells in chunk.columns:
                for kind, values in by_kind(cells):
                    columns += [(name, len(fields)) for name in names]
                    fields.append((pointer, kind, values))
            if chunk.rescued:
                texts = [
                    rescue.to_json(chunk.rescued[row]) if row in chunk.rescued else None for row in range(chunk.rows)
                ]
                columns.append((RESCUED, len(fields)))
                fields.append(("", Kind.JSON, pa.array(texts, pa.string())))
        return Taken(messages, packed(messages["received"], fields, tables))

    def messages(self, hashes: Sequence[bytes], received: Array, digests: Array, files: Array) -> ids.Ids:
        """What is kept of the messages of some events on this route."""
        route = np.full(len(received), self._hash, "<u8")
        of_lines = {"received": received, "route": route, "digest": digests, "file": files}
        return ids.Ids({**ids.from_digests(hashes), **of_lines})
