"""The events of one table that a stage task has read and not yet written."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from eventlake.lake import ids
from eventlake.lake.staging import RECEIVED, RESCUED, Field, rows_with
from eventlake.schema import instants, rescue
from eventlake.schema.evolve import Evidence, Sighting, join
from eventlake.schema.flatten import Flattener
from eventlake.schema.kinds import by_kind, seen_in
from eventlake.schema.rescue import Rescued


class Taken(NamedTuple):
    """Some events as staged rows, their messages in the same order, and what was seen of columns that are new."""

    rows: pa.RecordBatch
    messages: ids.Ids
    evidence: Evidence


class TableBuffer:
    """Collects events as lists; `take` turns them into Arrow arrays and starts anew."""

    def __init__(self, segment_type: str, *, known: Iterable[str], column_limit: int) -> None:
        self.segment_type = segment_type
        self._known = frozenset(known)
        self._flattener = Flattener(known=self._known, column_limit=column_limit)
        self._clear()

    def _clear(self) -> None:
        self._received: list[Any] = []
        self._hashes: list[bytes] = []
        self._digests: list[int] = []
        self._files: list[int] = []

    def __len__(self) -> int:
        return len(self._hashes)

    def add(
        self, event: dict[str, Any], set_aside: list[Rescued], *, message_hash: bytes, digest: int, file: int
    ) -> None:
        self._hashes.append(message_hash)
        self._received.append(event.get("receivedAt"))
        self._digests.append(digest)
        self._files.append(file)
        self._flattener.add(event, set_aside)

    def take(self, day_of_file: Callable[[int], int]) -> Taken:
        """The events collected; `day_of_file` tells when those were received that do not tell it themselves."""
        chunk = self._flattener.take()
        received = self._received_micros(day_of_file)
        columns = [(RECEIVED, pa.array(received))]
        evidence: list[dict[str, Sighting]] = []
        for name, place, values in chunk.columns:
            for typed in by_kind(values):
                columns.append((Field(name, place, typed.kind).encoded(), typed.values))
                if name not in self._known:
                    filled = len(values) - typed.values.null_count
                    evidence.append({name: Sighting(seen_in(typed), filled, place)})
        if chunk.rescued:
            texts = [rescue.to_json(chunk.rescued[row]) if row in chunk.rescued else None for row in range(chunk.rows)]
            columns.append((RESCUED, pa.array(texts, pa.string())))
        messages = self._messages(received)
        self._clear()
        return Taken(rows_with(columns), messages, join(evidence))

    def _received_micros(self, day_of_file: Callable[[int], int]) -> Any:
        if set(map(type, self._received)) == {str}:
            at_once = instants.parse_all(pa.array(self._received, pa.string()))
            if at_once is not None:
                return at_once.cast(pa.int64()).to_numpy()
        micros = np.empty(len(self._received), "<i8")
        for row, value in enumerate(self._received):
            instant = instants.parse(value) if isinstance(value, str) else None
            micros[row] = instant.micros if instant else day_of_file(self._files[row])
        return micros

    def _messages(self, received: Any) -> ids.Ids:
        return ids.Ids(
            {
                **ids.from_digests(self._hashes),
                "received": received,
                "table": np.full(len(self), ids.table_key(self.segment_type), "<u8"),
                "digest": np.array(self._digests, "<u4"),
                "file": np.array(self._files, "<u4"),
            }
        )
