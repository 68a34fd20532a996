"""The past of a lake that was in use for long, for a lake that was not: rows in its database, without the files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from eventlake.catalog.embedded import metadata as catalog
from eventlake.control import database as db
from eventlake.lake.layout import DAY, HOUR
from eventlake.schema.types import ColumnType
from eventlake.storage.base import StoredFile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    import sqlalchemy as sa

    from eventlake.control.connections import Connection
    from eventlake.workspace import Lake

_DIGEST = "0" * 32
_AT_ONCE = 50_000


@dataclass(frozen=True)
class Past:
    """How much there was."""

    raw_files: int = 1_000_000
    data_files: int = 500_000
    runs: int = 13_000  # three years of a sync every two hours
    tables: int = 2_000
    columns: int = 50  # of each table

    @property
    def table_keys(self) -> list[str]:
        return [f"track_event_{number:05d}" for number in range(self.tables)]


def write_past(lake: Lake, connection: Connection, past: Past) -> list[StoredFile]:
    """Let the database of a lake remember all this, and tell its raw files. Nothing of it is later than a week ago."""
    begin = (lake.clock.now() // DAY - 7) * DAY - past.runs * 2 * HOUR
    writer = _Writer(lake, connection, past, begin)
    with lake.workspace.engine.begin() as database:
        for table, rows in (
            (db.runs, writer.runs()),
            (db.raw_files, writer.raw_files()),
            (db.data_files, writer.data_files()),
            (catalog.tables["catalog_tables"], writer.tables()),
            (catalog.tables["catalog_columns"], writer.columns()),
            (catalog.tables["catalog_partitions"], writer.partitions()),
        ):
            _insert(database, table, rows)
        ours = (db.connections.c.lake == lake.name) & (db.connections.c.source_id == connection.source.id)
        database.execute(db.connections.update().where(ours).values(last_run=writer.run_id(past.runs - 1)))
    return [StoredFile(row["path"], row["size"], row["etag"]) for row in writer.raw_files()]


def _insert(database: sa.Connection, table: sa.Table, rows: Iterator[dict[str, Any]]) -> None:
    batch: list[dict[str, Any]] = []
    for row in rows:
        batch.append(row)
        if len(batch) == _AT_ONCE:
            database.execute(table.insert(), batch)
            batch = []
    if batch:
        database.execute(table.insert(), batch)


class _Writer:
    def __init__(self, lake: Lake, connection: Connection, past: Past, begin: int) -> None:
        self._here = {"lake": lake.name, "source_id": connection.source.id}
        self._lake, self._dialect, self._past, self._begin = lake, connection.dialect, past, begin

    def run_id(self, number: int) -> str:
        return f"{(self._begin + number * 2 * HOUR) * 1000:019d}"

    def runs(self) -> Iterator[dict[str, Any]]:
        report = [{"workspace_id": self._lake.workspace_id, "table_name": key} for key in self._past.table_keys[:100]]
        for number in range(self._past.runs):
            at = self._begin + number * 2 * HOUR
            times = {"started_at": at, "finished_at": at + 60_000_000}
            status = {"kind": "sync", "status": "finished", "step": "commit", "report": report}
            yield {**self._here, "run_id": self.run_id(number), **status, **times}

    def raw_files(self) -> Iterator[dict[str, Any]]:
        each = self._past.raw_files // self._past.runs + 1
        for number in range(self._past.raw_files):
            at = self._begin + number // each * 2 * HOUR
            path = f"segment-logs/{self._here['source_id']}/{at // DAY * DAY // 1000}/past-{number}.gz"
            counts = {"lines": 1000, "loaded": 1000, "duplicates": 0, "suppressed": 0, "blocked": 0, "quarantined": 0}
            file = {"path": path, "size": 100_000, "etag": f"{number:032x}", "checksum": _DIGEST, "digest": _DIGEST}
            times = {"first_received": at, "last_received": at + HOUR}
            yield {**self._here, "run_id": self.run_id(number // each), **file, **counts, **times}

    def _hours(self, of_each: int) -> Iterator[tuple[int, str, list[str]]]:
        """When, in which table, and in which partition data files are: so many of each table."""
        layout = self._dialect.date_partition
        for number in range(of_each):
            at = self._begin + number * HOUR
            values = list(layout.values(at // layout.width))
            for key in self._past.table_keys:
                yield at, key, values

    def data_files(self) -> Iterator[dict[str, Any]]:
        for at, key, values in self._hours(self._past.data_files // self._past.tables):
            run_id = self.run_id((at - self._begin) // (2 * HOUR))
            layout = self._dialect.date_partition
            place = f"{self._dialect.location(key)}/{layout.folder(at // layout.width)}"
            file = {"path": f"{place}/{run_id}-00000000-1.parquet", "rows": 2000, "size": 100_000, "digest": _DIGEST}
            times = {"first_received": at, "last_received": at}
            yield {**self._here, "table_key": key, "partition": values, "run_id": run_id, **file, **times}

    def _named(self, key: str) -> dict[str, Any]:
        return {"lake": self._lake.name, "database": self._dialect.database, "table": self._dialect.table_name(key)}

    def tables(self) -> Iterator[dict[str, Any]]:
        keys = list(self._dialect.date_partition.keys)
        for key in self._past.table_keys:
            name = {"database": self._dialect.database, "name": self._dialect.table_name(key), "table_key": key}
            made = {"partition_keys": keys, "created_run": self.run_id(0), "created_at": self._begin}
            yield {**self._here, **name, "location": self._dialect.location(key), **made}

    def columns(self) -> Iterator[dict[str, Any]]:
        names = ["message_id", "received_at", *(f"properties_{number}" for number in range(self._past.columns - 2))]
        for key in self._past.table_keys:
            for position, name in enumerate(names):
                kind = ColumnType.TIMESTAMP if name == "received_at" else ColumnType.STRING
                column = {"name": name, "position": position, "type": kind.value, "pointer": f"/{name}"}
                yield {**self._named(key), **column}

    def partitions(self) -> Iterator[dict[str, Any]]:
        for at, key, values in self._hours(self._past.data_files // self._past.tables):
            partition = '["' + '", "'.join(values) + '"]'
            yield {**self._named(key), "partition": partition, "run_id": self.run_id((at - self._begin) // (2 * HOUR))}
