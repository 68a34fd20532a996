"""What of events was not as planned, and what became of them: a row for each violation, and for each event blocked."""

from typing import NamedTuple

import pyarrow as pa

DAYS_KEPT = 30  # as Segment keeps them

SCHEMA = pa.schema(
    [
        ("raw_file", pa.string()),
        ("line", pa.int64()),
        ("message_id", pa.string()),
        ("received_at", pa.timestamp("us", "UTC")),
        ("event_type", pa.string()),
        ("event", pa.string()),
        ("action", pa.string()),  # allowed, omitted or blocked
        ("reason", pa.string()),  # why it was blocked
        ("violation_type", pa.string()),
        ("field", pa.string()),
        ("description", pa.string()),
        ("content", pa.binary()),  # of an event that was blocked, and of some of the others
    ]
)


class ViolationRow(NamedTuple):
    raw_file: str
    line: int
    message_id: str
    received_at: int
    event_type: str
    event: str | None
    action: str
    reason: str | None
    violation_type: str | None
    field: str | None
    description: str | None
    content: bytes | None
