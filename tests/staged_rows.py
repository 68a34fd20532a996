"""Staged rows as plain values, for tests that look into them."""

from typing import Any

import pyarrow as pa

from eventlake.lake.staged_rows import StagedRows
from eventlake.lake.staging import Packed, rows_in
from eventlake.schema.kinds import Kind, Place

RESCUED = Place("", "", Kind.JSON)  # where these functions show what was rescued


def rows_of(staged: StagedRows) -> list[dict[Place, Any]]:
    """The values of each row, by place."""
    rows: list[dict[Place, Any]] = [{} for _ in range(len(staged))]
    columns = dict(staged.columns)
    if staged.rescued is not None:
        columns[RESCUED] = staged.rescued
    for place, cells in columns.items():
        for number, value in enumerate(cells.values.to_pylist()):
            if value is not None:
                assert place not in rows[cells.row(number)]
                rows[cells.row(number)][place] = value
    return rows


def rows_of_piece(piece: Packed, table_key: str) -> list[dict[Place, Any]]:
    return rows_of(rows_in(pa.py_buffer(piece.content), table_key))
