"""The events of one table that a stage task has read and not yet written."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from eventlake.lake import ids
from eventlake.lake.staging import RECEIVED, RESCUED, field_name, rows_with
from eventlake.schema import instants, rescue
from eventlake.schema.evolve import Evidence, Sighting, join
from eventlake.schema.folding import FoldingFlattener, RepeatedParts
from eventlake.schema.kinds import Typed, seen_in
from eventlake.schema.rescue import Rescued


class Taken(NamedTuple):
    """Some events as staged rows, their messages in the same order, and what was seen of columns that are new."""

    rows: pa.RecordBatch
    messages: ids.Ids
    evidence: Evidence


class TableBuffer:
    """Collects events as lists; `take` turns them into Arrow arrays and starts anew."""

    def __init__(self, segment_type: str, *, known: Iterable[str], column_limit: int, parts: RepeatedParts) -> None:
        self.segment_type = segment_type
        self._known = frozenset(known)
        self._flattener = FoldingFlattener(known=self._known, column_limit=column_limit, parts=parts)
        self._heads: list[tuple[bytes, Any, int, int]] = []  # hash of the id, receivedAt, digest and file of an event

    def __len__(self) -> int:
        return len(self._heads)

    def add(
        self, event: dict[str, Any], set_aside: list[Rescued], *, message_hash: bytes, digest: int, file: int
    ) -> None:
        """Add an event, which is taken apart. Raises what `FoldingFlattener.add` raises; then nothing was added."""
        received = event.get("receivedAt")
        self._flattener.add(event, set_aside)
        self._heads.append((message_hash, received, digest, file))

    @property
    def takes_whole(self) -> bool:
        """Whether events must come whole, as `exact_json` gives them."""
        return self._flattener.takes_whole

    def take_whole(self) -> None:
        self._flattener.take_whole()

    def take(self, day_of_file: Callable[[int], int]) -> Taken:
        """The events collected; `day_of_file` tells when those were received that do not tell it themselves."""
        flat = self._flattener.take()
        hashes, sent, digests, files = zip(*self._heads, strict=True)
        self._heads = []
        received = _received_micros(sent, files, day_of_file)
        columns = [(RECEIVED, pa.array(received))]
        evidence: list[dict[str, Sighting]] = []
        for place, values in flat.columns:
            columns.append((field_name(place), values))
            if place.column not in self._known:
                seen = seen_in(Typed(place.kind, values))
                evidence.append({place.column: Sighting(seen, flat.rows - values.null_count, place.pointer)})
        if flat.rescued:
            texts = [rescue.to_json(flat.rescued[row]) if row in flat.rescued else None for row in range(flat.rows)]
            columns.append((RESCUED, pa.array(texts, pa.string())))
        messages = ids.Ids(
            {
                **ids.from_digests(hashes),
                "received": received,
                "table": np.full(flat.rows, ids.table_key(self.segment_type), "<u8"),
                "digest": np.array(digests, "<u4"),
                "file": np.array(files, "<u4"),
            }
        )
        return Taken(rows_with(columns), messages, join(evidence))


def _received_micros(sent: Sequence[Any], files: Sequence[int], day_of_file: Callable[[int], int]) -> Any:
    if set(map(type, sent)) == {str}:
        at_once = instants.parse_all(pa.array(sent, pa.string()))
        if at_once is not None:
            return at_once.cast(pa.int64()).to_numpy()
    micros = np.empty(len(sent), "<i8")
    for row, (value, file) in enumerate(zip(sent, files, strict=True)):
        instant = instants.parse(value) if isinstance(value, str) else None
        micros[row] = instant.micros if instant else day_of_file(file)
    return micros
