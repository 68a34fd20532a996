"""The cells of a column: one for each row, or, where few rows have a value, values with the numbers of their rows.

A table with a thousand columns of which a row fills thirty would be nulls mostly. Nothing is made of these before a
file is written.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventlake.errors import InternalError

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Cells(NamedTuple):
    values: pa.Array
    rows: Rows | None = None  # of the values, in order; None if there is one, or null, for each row

    def row(self, number: int) -> int:
        """The row of the value with this number."""
        return number if self.rows is None else int(self.rows[number])

    def kept(self, which: Mask) -> "Cells":
        """The cells of some rows, which are numbered anew."""
        if self.rows is None:
            return Cells(self.values.filter(pa.array(which)))
        stay = which[self.rows]
        return Cells(self.values.filter(pa.array(stay)), (np.cumsum(which) - 1)[self.rows[stay]])

    def placed(self, ranks: Rows) -> "Cells":
        """The cells of rows that are numbered in another way: row `n` becomes row `ranks[n]`."""
        if self.rows is None:
            order = np.empty(len(ranks), np.int64)
            order[ranks] = np.arange(len(ranks))
            return Cells(self.values.take(pa.array(order)))
        places = ranks[self.rows]
        order = np.argsort(places)
        return Cells(self.values.take(pa.array(order)), places[order])

    def spread(self, start: int, stop: int) -> pa.Array:
        """A value or null for each of some rows that follow each other."""
        if self.rows is None:
            return self.values.slice(start, stop - start)
        first, last = np.searchsorted(self.rows, [start, stop])
        if first == last:
            return pa.nulls(stop - start, self.values.type)
        return spread(Cells(self.values.slice(first, last - first), self.rows[first:last] - start), stop - start)


def no_cells(kind: pa.DataType) -> Cells:
    """The cells of a column that no row has a value for."""
    return Cells(pa.nulls(0, kind), np.empty(0, np.int64))


def joined(parts: Sequence[tuple[int, Cells | None]]) -> Cells:
    """The cells of a column in parts that follow each other, with so many rows each; a part may have none.

    They are numbered unless most rows have one: a few rows that are full must not fill up all the others.
    """
    there = [cells for _, cells in parts if cells is not None]
    if sum(len(cells.values) for cells in there if cells.rows is None) * 2 > sum(count for count, _ in parts):
        kind = there[0].values.type
        return Cells(
            pa.concat_arrays(
                [pa.nulls(count, kind) if cells is None else cells.spread(0, count) for count, cells in parts]
            )
        )
    starts = np.cumsum([0, *(count for count, _ in parts)]).tolist()
    numbered = [(start, *_numbered(cells)) for start, (_, cells) in zip(starts, parts, strict=False) if cells]
    return Cells(
        pa.concat_arrays([values for _, values, _ in numbered]),
        np.concatenate([rows + start for start, _, rows in numbered]),
    )


def one_of(several: Sequence[Cells]) -> Cells:
    """The cells of a column whose values are found at several places; no row has more than one."""
    if len(several) == 1:
        return several[0]
    numbered = [_numbered(cells) for cells in several]
    rows = np.concatenate([rows for _, rows in numbered])
    order = np.argsort(rows)
    if (np.diff(rows[order]) == 0).any():
        raise InternalError("a row has two values for one column", fix="report this with the log: it is a bug")
    return Cells(pa.concat_arrays([values for values, _ in numbered]).take(pa.array(order)), rows[order])


def present(cells: Cells, count: int) -> Mask:
    """Which of so many rows have a value."""
    there = np.zeros(count, bool)
    there[_numbered(cells)[1]] = True
    return there


def without(cells: Cells, rows: Mask) -> Cells:
    """The cells, but for those of some rows."""
    values, numbers = _numbered(cells)
    stay = ~rows[numbers]
    return Cells(values.filter(pa.array(stay)), numbers[stay])


def values_by_row(cells: Cells, rows: Mask) -> dict[int, Any]:
    """The values of some rows."""
    values, numbers = _numbered(cells)
    wanted = rows[numbers]
    return dict(zip(numbers[wanted].tolist(), values.filter(pa.array(wanted)).to_pylist(), strict=True))


def _numbered(cells: Cells) -> tuple[pa.Array, Rows]:
    """The values that are not null, and their rows."""
    rows = np.arange(len(cells.values)) if cells.rows is None else cells.rows
    if not cells.values.null_count:
        return cells.values, rows
    return cells.values.drop_null(), rows[cells.values.is_valid().to_numpy(zero_copy_only=False)]


def spread(cells: Cells, count: int) -> pa.Array:
    """The values of numbered rows in an array of so many, null elsewhere. Arrow's own way takes five times as long."""
    values, rows = _numbered(cells)
    filled = np.zeros(count, bool)
    filled[rows] = True
    buffers = [np.packbits(filled, bitorder="little")]
    if pa.types.is_string(values.type):
        _, offsets, data = values.buffers()
        bounds = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1]
        ends = np.zeros(count + 1, np.int32)
        ends[rows + 1] = np.diff(bounds)
        buffers += [np.cumsum(ends, dtype=np.int32), np.frombuffer(data or b"", np.uint8)[bounds[0] : bounds[-1]]]
    elif pa.types.is_boolean(values.type):
        filled[rows] = values.to_numpy(zero_copy_only=False)
        buffers.append(np.packbits(filled, bitorder="little"))
    else:
        width = values.type.byte_width
        content = np.frombuffer(values.buffers()[1], np.uint8).reshape(-1, width)
        cells_of_all = np.zeros((count, width), np.uint8)
        cells_of_all[rows] = content[values.offset : values.offset + len(values)]
        buffers.append(cells_of_all)
    return pa.Array.from_buffers(values.type, count, [pa.py_buffer(buffer) for buffer in buffers])
