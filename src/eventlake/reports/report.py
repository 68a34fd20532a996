"""Sync reports, in the place and form that Segment documents, extended with the books.

A report is a list of JSON objects, one per line: first the whole run (`type` = `source`), then one per table
(`type` = `event`). Fields that do not apply are left out.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from eventlake.lake.layout import Folders
from eventlake.storage.base import Storage


@dataclass(frozen=True)
class RunHead:
    """What every line of a report repeats."""

    workspace_id: str
    source_id: str
    run_id: str
    database: str
    start_ns: int
    replay_from: int | None = None  # microseconds
    replay_to: int | None = None
    is_replay: bool = False
    where: Mapping[str, str] = field(default_factory=dict)  # the lake is: `s3_bucket`
    ran: Mapping[str, str] = field(default_factory=dict)  # where Spark ran: `emr_cluster_id`; may be told late

    def line(self, kind: str, status: str, finish_ns: int) -> dict[str, Any]:
        line: dict[str, Any] = {
            "type": kind,
            "workspace_id": self.workspace_id,
            "source_id": self.source_id,
            "run_id": self.run_id,
            "start_time": time_text(self.start_ns),
            "finish_time": time_text(finish_ns),
            "duration_mins": max(0, finish_ns - self.start_ns) // 60_000_000_000,
            "status": status,
            "table_name": "",
            "database": self.database,
            **self.where,
            **self.ran,
        }
        if self.is_replay:
            line["replay"] = True
            if self.replay_from is not None:
                line["replay_from"] = time_text(self.replay_from * 1000)
            if self.replay_to is not None:
                line["replay_to"] = time_text(self.replay_to * 1000)
        return line


@dataclass
class TableLine:
    """The report of one table."""

    table_name: str
    row_count: int
    is_new: bool
    partitions: list[dict[str, str]] = field(default_factory=list)
    new_columns: list[dict[str, str]] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)


def finished(head: RunHead, finish_ns: int, tables: list[TableLine], extra: dict[str, Any]) -> list[dict[str, Any]]:
    """The lines of a run that finished; `extra` is what eventlake tells beyond Segment."""
    source = head.line("source", "finished", finish_ns)
    source["row_count"] = sum(table.row_count for table in tables)
    lines = [source | extra]
    for table in tables:
        line = head.line("event", "finished", finish_ns)
        line |= {"table_name": table.table_name, "row_count": table.row_count, "is_new": table.is_new}
        if table.partitions:
            line["partitions"] = table.partitions
        if table.new_columns:
            line["new_columns"] = table.new_columns
        lines.append(line | table.extra)
    return lines


def failed(head: RunHead, finish_ns: int, error: str, error_code: str, fix: str) -> list[dict[str, Any]]:
    return [head.line("source", "failed", finish_ns) | {"error": error, "error_code": error_code, "fix": fix}]


def with_notices(lines: list[dict[str, Any]], notices: list[str]) -> list[dict[str, Any]]:
    """The lines of a report with something that came up after it was made."""
    head, *tables = lines
    return [{**head, "notices": [*head.get("notices", ()), *notices]}, *tables] if notices else lines


def day(line: dict[str, Any]) -> str:
    """The day of the sync, not of the data."""
    text: str = line["start_time"]
    return text[:10]


def day_of(moment: int) -> str:
    """The same of a run that began then, in microseconds since 1970."""
    return time_text(moment * 1000)[:10]


def path(folders: Folders, line: dict[str, Any]) -> str:
    """Where the report with this first line lies."""
    return f"{folders.reports}/day={day(line)}/source={line['source_id']}/run_id={line['run_id']}/report.json"


def encoded(lines: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()


def decoded(content: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in content.splitlines()]


def save(storage: Storage, folders: Folders, lines: list[dict[str, Any]]) -> None:
    """Put a report into its place in the lake; doing it again has no effect."""
    storage.write(path(folders, lines[0]), encoded(lines))


def micros(text: str) -> int:
    """Microseconds since 1970 of a time that `time_text` wrote."""
    moment = datetime.strptime(text[:19], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    return int(moment.timestamp()) * 1_000_000 + int(text[20:26])


def time_text(nanoseconds: int) -> str:
    """`2026-01-31 08:30:00.000000001`, in UTC."""
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}.{rest:09d}"
