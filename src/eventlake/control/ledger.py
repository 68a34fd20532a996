"""What is in a lake: which raw files were loaded, and which files hold their rows."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from eventlake.control import admission
from eventlake.control import database as db
from eventlake.control.admission import Decisions
from eventlake.control.leases import Lease


class LoadedFile(NamedTuple):
    """A raw file that was loaded, with its books."""

    source_id: str
    path: str
    size: int
    etag: str
    run_id: str
    lines: int
    loaded: int
    duplicates: int
    suppressed: int
    blocked: int
    quarantined: int
    checksum: str
    digest: str
    first_received: int | None
    last_received: int | None


class LakeFile(NamedTuple):
    """A data file of the lake."""

    path: str
    source_id: str
    segment_type: str
    partition: list[str]
    rows: int
    size: int
    digest: str
    first_received: int
    last_received: int
    run_id: str


class IndexFile(NamedTuple):
    """A file of the index of message ids."""

    path: str
    run_id: str
    messages: int
    checksum: str
    synced_at: int


class Entry(msgspec.Struct):
    """What one run changes in the ledger. Recording it twice has no further effect."""

    run_id: str
    source_id: str
    at: int
    report: list[dict[str, Any]]
    raw_files: list[LoadedFile] = []
    data_files: list[LakeFile] = []
    removed_data_files: list[str] = []
    index_files: list[IndexFile] = []
    removed_index_files: list[str] = []
    quarantine_files: list[str] = []
    source_settings: dict[str, Any] | None = None
    decisions: Decisions = Decisions()


class Ledger:
    def __init__(self, engine: sa.Engine, lake: str) -> None:
        self._engine = engine
        self._lake = lake

    def raw_files(self, source_id: str) -> dict[str, LoadedFile]:
        """The raw files of a source that were loaded, by path."""
        return {row["path"]: LoadedFile(**row) for row in self._select(db.raw_files, source_id=source_id)}

    def data_files(self, source_id: str, segment_type: str | None = None) -> list[LakeFile]:
        of_table = {} if segment_type is None else {"segment_type": segment_type}
        return [LakeFile(**row) for row in self._select(db.data_files, source_id=source_id, **of_table)]

    def index_files(self, source_id: str) -> list[IndexFile]:
        found = self._select(db.index_files, source_id=source_id)
        return [IndexFile(**{name: row[name] for name in IndexFile._fields}) for row in found]

    def quarantine_files(self) -> list[tuple[str, str, str]]:
        """Path, source and run of every file with quarantined lines."""
        return [(row["path"], row["source_id"], row["run_id"]) for row in self._select(db.quarantine_files)]

    def _select(self, table: sa.Table, **conditions: str) -> list[dict[str, Any]]:
        """The rows of this lake that meet the conditions, in order of their paths."""
        columns = [column for column in table.c if column.name != "lake"]
        here = [table.c[name] == value for name, value in conditions.items()]
        query = sa.select(*columns).where(table.c.lake == self._lake, *here).order_by(table.c.path)
        with self._engine.connect() as connection:
            return [dict(row._mapping) for row in connection.execute(query)]

    def has_data(self, source_id: str) -> bool:
        return self._has(db.data_files.c.lake == self._lake, db.data_files.c.source_id == source_id)

    def has_recorded(self, run_id: str) -> bool:
        """Whether a run that adds files is part of the ledger."""
        tables = (db.data_files, db.index_files, db.quarantine_files)
        return any(self._has(table.c.lake == self._lake, table.c.run_id == run_id) for table in tables)

    def _has(self, *conditions: sa.ColumnElement[bool]) -> bool:
        with self._engine.connect() as connection:
            return bool(connection.scalar(sa.select(sa.exists().where(*conditions))))

    def forget(self, source_id: str) -> None:
        """Know nothing of a source in this lake any more, nor of its runs: for building all of it anew."""
        tables = (db.raw_files, db.data_files, db.index_files, db.quarantine_files)
        with self._engine.begin() as connection:
            for table in (*tables, db.dropped_tables, db.refused_tables, db.runs):
                connection.execute(table.delete().where(table.c.lake == self._lake, table.c.source_id == source_id))

    def record(self, entry: Entry, lease: Lease) -> None:
        """Make a run's changes the truth, all at once, if the source is still held."""
        with self._engine.begin() as connection:
            lease.confirm_in(connection)
            self._delete(connection, db.data_files, entry.removed_data_files)
            self._delete(connection, db.index_files, entry.removed_index_files)
            here = {"lake": self._lake}
            of_run = {**here, "source_id": entry.source_id, "run_id": entry.run_id}
            db.upsert(connection, db.raw_files, [{**file._asdict(), **here} for file in entry.raw_files])
            db.upsert(connection, db.data_files, [{**file._asdict(), **here} for file in entry.data_files])
            db.upsert(connection, db.index_files, [{**file._asdict(), **of_run} for file in entry.index_files])
            db.upsert(connection, db.quarantine_files, [{"path": path, **of_run} for path in entry.quarantine_files])
            admission.record(connection, self._lake, entry.source_id, entry.decisions)
            if entry.source_settings is not None:
                ours = sa.and_(db.connections.c.lake == self._lake, db.connections.c.source_id == entry.source_id)
                connection.execute(db.connections.update().where(ours).values(settings=entry.source_settings))

    def _delete(self, connection: sa.Connection, table: sa.Table, paths: Iterable[str]) -> None:
        keys = [{"old": path} for path in paths]
        if keys:
            here = sa.and_(table.c.lake == self._lake, table.c.path == sa.bindparam("old"))
            connection.execute(table.delete().where(here), keys)
