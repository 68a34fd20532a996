"""Rows between staging and publishing: values as they were sent, by the columns they are for."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eventlake.lake.ids import Array
from eventlake.schema import cells
from eventlake.schema.cells import Cells
from eventlake.schema.kinds import Place


@dataclass(frozen=True)
class StagedRows:
    """Rows of one table, as they are staged."""

    received: Array  # microseconds since 1970
    columns: dict[Place, Cells]
    rescued: Cells | None = None  # JSON of what flattening rescued

    def __len__(self) -> int:
        return len(self.received)

    @property
    def nbytes(self) -> int:
        every = (*self.columns.values(), *([self.rescued] if self.rescued else ()))
        return int(self.received.nbytes + sum(cells.values.nbytes for cells in every))

    def kept(self, which: Array) -> "StagedRows":
        columns = {place: values.kept(which) for place, values in self.columns.items()}
        return StagedRows(self.received[which], columns, self.rescued.kept(which) if self.rescued else None)


def joined(parts: Sequence[StagedRows]) -> StagedRows:
    """Rows of one table that follow each other."""
    if len(parts) == 1:
        return parts[0]
    places = dict.fromkeys(place for part in parts for place in part.columns)
    columns = {place: cells.joined([(len(part), part.columns.get(place)) for part in parts]) for place in places}
    rescued = [(len(part), part.rescued) for part in parts]
    return StagedRows(
        np.concatenate([part.received for part in parts]),
        columns,
        cells.joined(rescued) if any(part.rescued for part in parts) else None,
    )
