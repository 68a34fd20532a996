"""Rows of a query as JSON and CSV can hold them, exactly: what JSON has no number for is text."""

import base64
import csv
import io
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eventlake.errors import InvalidSettingsError
from eventlake.library.workspace import Workspace
from eventlake.query import query
from eventlake.query.fixes import OVER_HTTP
from eventlake.web.turns import turn

SECONDS = 30.0
MEMORY = "2GB"
_EXACT = 2**53


def ask(workspace: Workspace, sql: str, lake: str, limit: int) -> tuple[pa.Table, bool]:
    """The first rows that a query gives, and whether there are more."""
    if not sql.strip():
        raise InvalidSettingsError("there is no query", fix=OVER_HTTP.empty)
    with turn():
        rows = query(workspace.lake(lake), sql, timeout=SECONDS, memory=MEMORY, most_rows=limit + 1, fixes=OVER_HTTP)
    return rows.slice(0, limit), rows.num_rows > limit


def as_json(rows: pa.Table) -> list[list[Any]]:
    columns = [_values(column) for column in rows.columns]
    return [[_plain(value) for value in row] for row in zip(*columns, strict=True)]


def _values(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column; times that Python has no place for (infinity, before year 1) as they are stored."""
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError):
        numbers = pc.cast(column, pa.int32() if pa.types.is_date32(column.type) else pa.int64())
        return [str(number) for number in numbers.to_pylist()]


def as_csv(rows: pa.Table) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(rows.column_names)
    for row in as_json(rows):
        writer.writerow([_in_a_cell(value) for value in row])
    return out.getvalue()


def text(value: Any) -> str:
    """A cell for people."""
    plain = _plain(value)
    return "" if plain is None else str(plain).lower() if isinstance(plain, bool) else str(plain)


def _plain(value: Any) -> Any:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return value if -_EXACT <= value <= _EXACT else str(value)
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, date | time | timedelta):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return str(value)


def _in_a_cell(value: Any) -> Any:
    """Text that a spreadsheet would take for a formula is marked as text: values come from outside."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return value
