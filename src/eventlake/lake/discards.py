"""The table of values that a cast changed or refused, where a dialect has one: RudderStack's `rudder_discards`.

A row of it is about a value of a row of another table. That row keeps the value as well, exactly, in `_rescued_data`:
here it is where people who come from RudderStack look for it, and can be counted.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from eventlake.schema.evolve import Column
from eventlake.schema.types import ColumnType

ROW_ID = "row_id"
COLUMNS = tuple(
    Column(name, kind, "")
    for name, kind in {
        "table_name": ColumnType.STRING,
        ROW_ID: ColumnType.STRING,
        "column_name": ColumnType.STRING,
        "column_value": ColumnType.STRING,
        "received_at": ColumnType.TIMESTAMP,
        "uuid_ts": ColumnType.TIMESTAMP,
        "reason": ColumnType.STRING,
    }.items()
)


class Discarded(NamedTuple):
    row_id: str
    column_name: str
    json_text: str
    received: int  # microseconds since 1970
    reason: str


def as_table(values: Sequence[Discarded], table_name: str, constants: Mapping[str, Any]) -> pa.Table:
    """Some values of one table, in the order in which their rows were received; `constants` are those of the run."""
    ordered = sorted(values, key=lambda value: value.received)
    cells = {
        "table_name": [table_name] * len(ordered),
        ROW_ID: [value.row_id for value in ordered],
        "column_name": [value.column_name for value in ordered],
        "column_value": [_text(value.json_text) for value in ordered],
        "received_at": [value.received for value in ordered],
        "uuid_ts": [constants["uuid_ts"]] * len(ordered),
        "reason": [value.reason for value in ordered],
    }
    return pa.table({column.name: pa.array(cells[column.name]).cast(column.type.arrow) for column in COLUMNS})


def _text(json_text: str) -> str:
    """A value as RudderStack shows it: texts without quotes, half a surrogate pair as it was written."""
    if not json_text.startswith('"'):
        return json_text
    text: str = json.loads(json_text)
    return text if text.isascii() or _is_unicode(text) else json_text


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
