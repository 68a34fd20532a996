"""Rows of the lake that the raw archive no longer has.

A replay writes partitions anew from the archive. Where raw files are gone, their rows are taken from the old data
files, back into the form of staged rows, so that they are cast by the same rules as all others: values that were
rescued get another chance.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Raw

from eventlake.events import instants
from eventlake.lake import ids
from eventlake.lake.routes import Route
from eventlake.lake.staged_rows import StagedRows
from eventlake.reading import exact_json
from eventlake.schema import names, rescue
from eventlake.schema.cast import BESIDE_THE_CELL, REASONS
from eventlake.schema.cells import Cells
from eventlake.schema.claims import ColumnRules
from eventlake.schema.evolve import Column
from eventlake.schema.kinds import Place, by_kind
from eventlake.schema.rescue import keys_of
from eventlake.storage.base import Storage

_EXACT_WHOLE = 2**53  # doubles up to it are what was sent


def carried_rows(
    storage: Storage,
    rules: ColumnRules,
    routes: Sequence[Route],
    files: Sequence[str],
    columns: Sequence[Column],
    carried: Sequence[str],
    *,
    at_once: int,
) -> Iterator[StagedRows]:
    """The rows of some data files of one table whose messages, on these routes, are in `carried`, as staged rows."""
    if not files:
        return
    wanted = _wanted(storage, carried, routes)
    pointers = {column.name: column.pointer for column in columns}
    for file in files:
        with storage.open_input(file) as source:
            for batch in pq.ParquetFile(source).iter_batches(batch_size=at_once):
                rows = [row for row in batch.to_pylist() if _name(row, rules) in wanted]
                if rows:
                    yield _staged(rows, pointers, rules)


def _name(row: dict[str, Any], rules: ColumnRules) -> tuple[bytes, int]:
    """What tells a row from all others of its table: a message may be there twice, received at two times."""
    return ids.message_hash(row[rules.message_column]), instants.micros_of(row["received_at"])


def _wanted(storage: Storage, paths: Sequence[str], routes: Sequence[Route]) -> set[tuple[bytes, int]]:
    hashes_of_routes = np.array([ids.route_hash(route) for route in routes], "<u8")
    found: set[tuple[bytes, int]] = set()
    for path in paths:
        with ids.opened(storage, path) as file:
            rows = file.read(ids.ALL, ids.INDEX_FIELDS)
        rows = rows.take(np.isin(rows["route"], hashes_of_routes))
        halves = np.stack([rows["high"], rows["low"]], axis=1).astype(">u8").tobytes()
        hashes = [halves[start : start + 16] for start in range(0, len(halves), 16)]
        found.update(zip(hashes, rows["received"].tolist(), strict=True))
    return found


def _staged(rows: list[dict[str, Any]], pointers: dict[str, str], rules: ColumnRules) -> StagedRows:
    received = [instants.micros_of(row["received_at"]) for row in rows]
    cells: dict[tuple[str, str], list[Any]] = {}
    still_rescued: list[str | None] = []
    for number, row in enumerate(rows):
        text = row.pop(names.RESCUED_COLUMN, None)
        values = {(name, pointers[name]): _as_sent(value) for name, value in row.items() if value is not None}
        still_rescued.append(_with_rescued(values, text, rules))
        for place, value in values.items():
            cells.setdefault(place, [None] * len(rows))[number] = value
    columns = {
        Place(*place, kind): Cells(array)
        for place, values_there in cells.items()
        for kind, array in by_kind(values_there)
    }
    rescued = Cells(pa.array(still_rescued, pa.string())) if any(still_rescued) else None
    return StagedRows(np.array(received, np.int64), columns, rescued)


def _as_sent(value: Any) -> Any:
    """A cell as the value that a parser would have given."""
    if isinstance(value, str | bool | int):
        return value
    if hasattr(value, "tzinfo"):
        return instants.to_text(instants.micros_of(value))
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) <= _EXACT_WHOLE else Raw(repr(value).encode())
    return Raw(format(value, "f").rstrip("0").rstrip(".").encode())  # normalize() would round to 28 digits


def _with_rescued(values: dict[tuple[str, str], Any], text: str | None, rules: ColumnRules) -> str | None:
    """Give rescued values their cells back; returns the text of those that have none."""
    rest = []
    for entry in exact_json.rescued_in(text) if text else ():
        name = entry.column or rules.column_of(tuple(keys_of(entry.pointer)))
        cell = next((key for key in values if key[0] == name), None)
        taken = cell is not None and entry.reason not in BESIDE_THE_CELL
        if taken or entry.reason not in REASONS:
            rest.append(entry)
        else:
            if cell is not None:
                del values[cell]
            value = exact_json.parse(entry.json_text.encode()).value
            values[name, entry.pointer] = exact_json.encode(value) if isinstance(value, list | dict) else value
    return rescue.to_json(rest) if rest else None
