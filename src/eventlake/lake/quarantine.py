"""Lines that are not events, kept with their file, their position and the reason."""

from typing import NamedTuple

import pyarrow as pa

SCHEMA = pa.schema(
    [
        ("raw_file", pa.string()),
        ("line", pa.int64()),
        ("reason", pa.string()),
        ("detail", pa.string()),
        ("size", pa.int64()),
        ("content", pa.binary()),  # not text: a line may be quarantined because it is not UTF-8
    ]
)


class Quarantined(NamedTuple):
    raw_file: str
    line: int
    reason: str
    detail: str | None
    size: int
    content: bytes
