"""Rows of a query for people: as a table if it fits the screen, else as much of it as does, or row by row."""

from collections.abc import Sequence
from enum import Enum
from typing import Any

import pyarrow as pa
from rich.cells import cell_len
from rich.text import Text

from eventlake.cli import output
from eventlake.reports.words import count

_FOLDS = (60, 50, 40)  # longer texts are folded, the sooner the more columns there are; a message id stays whole
_FEW = 3  # rows that can be read one below the other


class Layout(Enum):
    FITTING = "fitting"
    WIDE = "wide"  # every column, however long the lines
    RECORDS = "records"  # every row as a list of names and values


def show_rows(found: pa.Table, layout: Layout) -> None:
    """Print all rows of a table."""
    cells = [[output.text(_plain(value)) for value in column.to_pylist()] for column in found.columns]
    headings = [cell_len(output.printable(name)) for name in found.column_names]
    longest = [max(map(_width, texts), default=0) for texts in cells]
    folded = [[max(head, min(most, fold)) for head, most in zip(headings, longest, strict=True)] for fold in _FOLDS]
    needed = next((widths for widths in folded if _fitting(widths, output.out.width) == len(widths)), folded[0])
    fitting = _fitting(needed, output.out.width)
    if layout is Layout.FITTING and fitting < len(needed) and found.num_rows <= _FEW:
        layout = Layout.RECORDS if found.num_rows else layout
    if layout is Layout.RECORDS:
        _show_records(found, cells)
        return
    numbers = [field.name for field in found.schema if _is_number(field.type)]
    if layout is Layout.WIDE:
        output.lines(found.column_names, zip(*cells, strict=True), numbers=numbers)
        return
    rows = zip(*cells[:fitting], strict=True)
    output.table(None, found.column_names[:fitting], rows, numbers=numbers, widths=needed[:fitting])
    if fitting < len(needed):
        rest = ", ".join(output.printable(name) for name in found.column_names[fitting:])
        output.out.print(Text(f"… {count(len(needed) - fitting, 'more column')}: {rest}", "dim"))
        output.talk.print("--records shows all columns, one below the other; --wide shows them in long lines")


def _fitting(needed: Sequence[int], width: int) -> int:
    """How many columns fit, from the left; at least one."""
    used, fitting = -output.GAP, 0
    for one in needed:
        used += one + output.GAP
        if used > width:
            break
        fitting += 1
    return max(fitting, 1)


def _show_records(found: pa.Table, cells: Sequence[Sequence[str]]) -> None:
    for row in range(found.num_rows):
        values = {
            name: Text(texts[row])
            for name, texts, column in zip(found.column_names, cells, found.columns, strict=True)
            if column[row].is_valid
        }
        output.say((f"── row {row + 1} ──", "dim"))
        output.pairs(values)
        empty = found.num_columns - len(values)
        if empty:
            output.say((f"… {count(empty, 'column')} without a value", "dim"))


def _width(text: str) -> int:
    return max(map(cell_len, text.splitlines()), default=0)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _plain(value: Any) -> Any:
    return value if not isinstance(value, list | dict) else str(value)
