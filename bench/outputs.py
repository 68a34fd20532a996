"""What a contestant left on disk, event by event.

It may be any Parquet files, with the whole of an event in one row, or in a row and the rows that hang on it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from bench.corpus import MARK, MESSAGE_ID

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Cells = list[object]

_ID_COLUMNS = ("messageId", "message_id")


@dataclass
class Output:
    rows: dict[str, list[Cells]] = field(default_factory=lambda: defaultdict(list))  # by message id
    marks: set[str] = field(default_factory=set)  # of lines that are no events, wherever they turned up


def read_output(folder: Path) -> Output:
    output = Output()
    rows: dict[str, Cells] = {}  # by the number that dlt gives a row
    hanging: list[tuple[str, str, Cells]] = []  # number, number of the row it hangs on
    for row in _rows(folder):
        cells = [cell for name, cell in row.items() if cell is not None and not name.startswith("_dlt_")]
        number, parent = str(row.get("_dlt_id")), row.get("_dlt_parent_id")
        if parent is not None:
            hanging.append((number, str(parent), cells))
            continue
        rows[number] = cells
        for message_id in _message_ids(row, cells):
            output.rows[message_id].append(cells)
        output.marks.update(mark for text in _texts(cells) for mark in MARK.findall(text))
    _hang(rows, hanging)
    return output


def _rows(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.rglob("*.parquet")):
        if not path.parent.name.startswith("_dlt_"):
            for batch in pq.ParquetFile(path).iter_batches():
                yield from batch.to_pylist()


def _message_ids(row: dict[str, Any], cells: Cells) -> list[str]:
    """Whose row it is; a whole line that a reader set aside as it was still counts as the row of its event."""
    named = [str(row[name]) for name in _ID_COLUMNS if row.get(name) is not None]
    return named or [found for text in _texts(cells) for found in MESSAGE_ID.findall(text)]


def _texts(cells: Cells) -> Iterator[str]:
    for cell in cells:
        if isinstance(cell, str):
            yield cell
        elif isinstance(cell, bytes):
            yield cell.decode(errors="replace")


def _hang(rows: dict[str, Cells], hanging: list[tuple[str, str, Cells]]) -> None:
    """Add the cells of hanging rows, at any depth, to the row that they belong to in the end."""
    above = {number: parent for number, parent, _ in hanging}
    for _, parent, cells in hanging:
        top = parent
        while top in above:
            top = above[top]
        if top in rows:
            rows[top] += cells
