"""Events of one table that a stage task has read and not yet written."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from eventlake.events import instants
from eventlake.lake import ids
from eventlake.lake.staging import RECEIVED, RESCUED, field_name, rows_with
from eventlake.schema import instant_columns, rescue
from eventlake.schema.evolve import Evidence, Sighting, join
from eventlake.schema.flatten import Flattener, TableColumns
from eventlake.schema.kinds import Place, Typed, by_kind
from eventlake.schema.rescue import Rescued
from eventlake.schema.tallies import tallied


class Taken(NamedTuple):
    """Some events as staged rows, their messages in the same order, and what was seen of columns that are new."""

    rows: pa.RecordBatch
    messages: ids.Ids
    evidence: Evidence


class TableBuffer:
    """The rows of one table. Events are collected as lists; `take` turns them into Arrow arrays and starts anew."""

    def __init__(self, segment_type: str, *, known: Iterable[str], column_limit: int) -> None:
        self.segment_type = segment_type
        self.columns = TableColumns(known=known, column_limit=column_limit)
        self._flattener = Flattener(self.columns)
        self._heads: list[tuple[bytes, Any, int, int]] = []  # hash of the id, receivedAt, digest and file of an event

    def __len__(self) -> int:
        return len(self._heads)

    def add(
        self, event: dict[str, Any], set_aside: list[Rescued], *, message_hash: bytes, digest: int, file: int
    ) -> None:
        self._flattener.add(event, set_aside)
        self._heads.append((message_hash, event.get("receivedAt"), digest, file))

    def take(self, day_of_file: Callable[[int], int]) -> Taken:
        """The events collected; `day_of_file` tells when those were received that do not tell it themselves."""
        chunk = self._flattener.take()
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
        columns = [
            (Place(name, pointer, kind), values)
            for name, pointer, cells in chunk.columns
            for kind, values in by_kind(cells)
        ]
        return self.taken(columns, messages, chunk.rescued)

    def taken(
        self, columns: Iterable[tuple[Place, pa.Array]], messages: ids.Ids, rescued: dict[int, list[Rescued]]
    ) -> Taken:
        """Events that are columns already, as rows of this table."""
        rows = len(messages)
        messages.arrays["table"] = np.full(rows, ids.table_key(self.segment_type), "<u8")
        staged = [(RECEIVED, pa.array(messages["received"]))]
        evidence: list[dict[str, Sighting]] = []
        for place, values in columns:
            staged.append((field_name(place), values))
            if place.column not in self.columns.known:
                evidence.append({place.column: Sighting.of(tallied(Typed(place.kind, values)), place.pointer)})
        if rescued:
            texts = [rescue.to_json(rescued[row]) if row in rescued else None for row in range(rows)]
            staged.append((RESCUED, pa.array(texts, pa.string())))
        return Taken(rows_with(staged), messages, join(evidence))


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
