"""What does not fit the columns of some rows, on its way to `_rescued_data` and to the table of discarded values."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlake.lake.discards import Discarded
from eventlake.lake.ids import Array
from eventlake.reading.exact_json import rescued_in
from eventlake.schema import rescue
from eventlake.schema.cells import Cells
from eventlake.schema.claims import ColumnRules
from eventlake.schema.rescue import Rescued


class Rescues:
    """The rescued values of some rows."""

    def __init__(self, counts: Counter[str]) -> None:
        self._entries: dict[int, list[tuple[Rescued, str]]] = {}  # with the column
        self._ids: dict[int, str] = {}  # of these rows
        self._counts = counts

    def __bool__(self) -> bool:
        return bool(self._entries)

    def add(self, row: int, entry: Rescued, column: str) -> None:
        self._entries.setdefault(row, []).append((entry, column))
        self._counts[column] += 1

    def add_staged(self, texts: Cells, rules: ColumnRules) -> None:
        """What flattening rescued already."""
        for number, text in enumerate(texts.values.to_pylist()):
            if text is not None:
                for entry in rescued_in(text):
                    column = entry.column or rules.column_of(tuple(rescue.keys_of(entry.pointer)))
                    self.add(texts.row(number), entry, column)

    def note_ids(self, ids: Sequence[Cells], count: int) -> None:
        """Note the ids of these rows: from the first column that has one."""
        rows = pa.array(sorted(self._entries))
        found = pc.coalesce(*(cells.spread(0, count).take(rows).cast(pa.string()) for cells in ids))
        self._ids = dict(zip(rows.to_pylist(), found.to_pylist(), strict=True))

    def cells(self) -> Cells:
        rows = sorted(self._entries)
        texts = [rescue.to_json(entry for entry, _ in self._entries[row]) for row in rows]
        return Cells(pa.array(texts, pa.string()), np.array(rows, np.int64))

    def discarded(self, received: Array) -> list[Discarded]:
        return [
            Discarded(self._ids[row], column, entry.json_text, int(received[row]), entry.reason)
            for row, entries in sorted(self._entries.items())
            for entry, column in entries
        ]
