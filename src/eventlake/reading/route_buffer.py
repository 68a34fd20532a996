"""Events that take the same route to their tables, and that a stage task has read and not yet written."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from eventlake.events import instants
from eventlake.lake import ids
from eventlake.lake.dialects import Route
from eventlake.lake.staging import RECEIVED, RESCUED, field_name, rows_with
from eventlake.reading.flatten import Flattener, TableColumns
from eventlake.schema import instant_columns, rescue
from eventlake.schema.evolve import Evidence, Sighting, join
from eventlake.schema.kinds import Place, Typed, by_kind
from eventlake.schema.rescue import Rescued
from eventlake.schema.tallies import tallied


class TableRows(NamedTuple):
    """Some events as staged rows of one table, and what was seen of columns that are new there."""

    table_key: str
    rows: pa.RecordBatch
    evidence: Evidence


class Taken(NamedTuple):
    """The messages of some events, and a row for each of them, in the same order, in every table of their route."""

    messages: ids.Ids
    tables: list[TableRows]


class RouteBuffer:
    """Events of one route. They are collected as lists; `take` turns them into Arrow arrays and starts anew."""

    def __init__(self, route: Route, columns: Sequence[TableColumns]) -> None:
        self.route = route
        self._columns = dict(zip(route, columns, strict=True))
        self._flatteners = {key: Flattener(known) for key, known in self._columns.items()}
        self._hash = ids.route_hash(route)
        self._heads: list[tuple[bytes, Any, int, int]] = []  # hash of the id, receivedAt, digest and file of an event

    def __len__(self) -> int:
        return len(self._heads)

    def has_own(self, column: str, pointer: str) -> bool:
        """Whether values from this place have a column to themselves, in all tables."""
        return all(known.has_own(column, pointer) for known in self._columns.values())

    def add(
        self, event: dict[str, Any], set_aside: list[Rescued], *, message_hash: bytes, digest: int, file: int
    ) -> None:
        for flattener in self._flatteners.values():
            flattener.add(event, set_aside)
        self._heads.append((message_hash, event.get("receivedAt"), digest, file))

    def take(self, day_of_file: Callable[[int], int]) -> Taken:
        """The events collected; `day_of_file` tells when those were received that do not tell it themselves."""
        hashes, sent, digests, files = zip(*self._heads, strict=True)
        self._heads = []
        messages = ids.Ids(
            {
                **ids.from_digests(hashes),
                "received": received_micros(sent, files, day_of_file),
                "digest": np.array(digests, "<u4"),
                "file": np.array(files, "<u4"),
            }
        )
        tables = []
        for key, flattener in self._flatteners.items():
            chunk = flattener.take()
            columns = [
                (Place(name, pointer, kind), values)
                for name, pointer, cells in chunk.columns
                for kind, values in by_kind(cells)
            ]
            tables.append(self._rows(key, columns, messages, chunk.rescued))
        return self._taken(messages, tables)

    def taken(self, columns: Sequence[tuple[Place, pa.Array]], messages: ids.Ids) -> Taken:
        """Events that are columns already."""
        return self._taken(messages, [self._rows(key, columns, messages, {}) for key in self.route])

    def _taken(self, messages: ids.Ids, tables: list[TableRows]) -> Taken:
        messages.arrays["route"] = np.full(len(messages), self._hash, "<u8")
        return Taken(messages, tables)

    def _rows(
        self,
        table_key: str,
        columns: Iterable[tuple[Place, pa.Array]],
        messages: ids.Ids,
        rescued: dict[int, list[Rescued]],
    ) -> TableRows:
        staged = [(RECEIVED, pa.array(messages["received"]))]
        evidence: list[dict[str, Sighting]] = []
        known = self._columns[table_key].known
        for place, values in columns:
            staged.append((field_name(place), values))
            if place.column not in known:
                evidence.append({place.column: Sighting.of(tallied(Typed(place.kind, values)), place.pointer)})
        if rescued:
            texts = [rescue.to_json(rescued[row]) if row in rescued else None for row in range(len(messages))]
            staged.append((RESCUED, pa.array(texts, pa.string())))
        return TableRows(table_key, rows_with(staged), join(evidence))


def received_micros(sent: Sequence[Any], files: Sequence[int], day_of_file: Callable[[int], int]) -> Any:
    """When events were received, by what they say and else by the day of their file."""
    if set(map(type, sent)) == {str}:
        at_once = instant_columns.parse_all(pa.array(sent, pa.string()))
        if at_once is not None:
            return at_once.cast(pa.int64()).to_numpy()
    micros = np.empty(len(sent), "<i8")
    for row, (value, file) in enumerate(zip(sent, files, strict=True)):
        instant = instants.parse(value) if isinstance(value, str) else None
        micros[row] = instant.micros if instant else day_of_file(file)
    return micros
