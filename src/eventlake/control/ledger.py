"""What is in a lake: which raw files were loaded, and which files hold their rows."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from eventlake.control import admission
from eventlake.control import database as db
from eventlake.control.admission import Decisions
from eventlake.control.leases import Hold
from eventlake.errors import OvertakenError

_ROWS_AT_ONCE = 10_000


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
    table_key: str
    partition: list[str]
    rows: int
    size: int
    digest: str
    first_received: int
    last_received: int
    run_id: str
    owner: str = ""  # of discarded values, the table that they are from


class IndexFile(NamedTuple):
    """A file of the index of message ids."""

    path: str
    run_id: str
    messages: int
    checksum: str
    synced_at: int


class TableFiles(msgspec.Struct):
    """What one run does to the data files of one table."""

    table_key: str
    added: list[LakeFile] = []
    removed: list[str] = []


class Entry(msgspec.Struct):
    """What one run changes in the ledger. Recording it twice has no further effect.

    `base` is the run that was recorded last when this one was made: on top of another it must not be recorded.
    """

    run_id: str
    source_id: str
    at: int
    report: list[dict[str, Any]]
    raw_files: list[LoadedFile] = []
    files: list[TableFiles] = []
    index_files: list[IndexFile] = []
    removed_index_files: list[str] = []
    quarantine_files: list[str] = []
    violation_files: list[str] = []
    removed_violation_files: list[str] = []
    source_settings: dict[str, Any] | None = None
    decisions: Decisions = Decisions()
    base: str | None = None

    @property
    def data_files(self) -> list[LakeFile]:
        return [file for table in self.files for file in table.added]

    @property
    def removed_data_files(self) -> list[str]:
        return [path for table in self.files for path in table.removed]


class Ledger:
    def __init__(self, engine: sa.Engine, lake: str) -> None:
        self._engine = engine
        self._lake = lake

    def raw_files(self, source_id: str) -> dict[str, LoadedFile]:
        """The raw files of a source that were loaded, by path."""
        return {row["path"]: LoadedFile(**row) for row in self._select(db.raw_files, source_id=source_id)}

    def loaded(
        self, source_id: str, paths: Sequence[str], *, at_once: int = 1000, one_by_one: float = 0.1
    ) -> Iterator[tuple[str, int, str]]:
        """Path, size and etag, as they were then, of the raw files among these that were loaded; perhaps of others too.

        Of a history that is much longer only what is asked for is read: up to this share of it. All of it is read
        faster than most of it is found.
        """
        table = db.raw_files
        ours = (table.c.lake == self._lake, table.c.source_id == source_id)
        query = sa.select(table.c.path, table.c.size, table.c.etag).where(*ours)
        with self._engine.connect() as connection:
            known = connection.scalar(sa.select(sa.func.count()).where(*ours)) or 0
            if len(paths) > known * one_by_one:
                yield from _plain(connection.execute(query))
                return
            some = query.where(table.c.path.in_(sa.bindparam("some")))
            for start in range(0, len(paths), at_once):
                yield from _plain(connection.execute(some, {"some": paths[start : start + at_once]}))

    def loaded_files(self, source_id: str, paths: Sequence[str]) -> dict[str, LoadedFile]:
        """Those of some raw files that were loaded, by path."""
        table = db.raw_files.c
        here = (table.lake == self._lake, table.source_id == source_id, table.path.in_(paths))
        query = sa.select(*(table[name] for name in LoadedFile._fields)).where(*here)
        with self._engine.connect() as connection:
            return {row.path: LoadedFile(*row) for row in connection.execute(query)}

    def loaded_between(self, source_id: str, start: int, stop: int) -> int:
        """How many messages were loaded of the raw files that were received in [start, stop)."""
        table = db.raw_files.c
        received = (table.last_received >= start, table.last_received < stop)
        query = sa.select(sa.func.coalesce(sa.func.sum(table.loaded), 0))
        with self._engine.connect() as connection:
            here = (table.lake == self._lake, table.source_id == source_id, *received)
            return int(connection.execute(query.where(*here)).scalar_one())

    def last_received(self, source_id: str) -> int | None:
        """When the newest message came of those in raw files that were loaded."""
        table = db.raw_files.c
        query = sa.select(sa.func.max(table.last_received))
        with self._engine.connect() as connection:
            here = (table.lake == self._lake, table.source_id == source_id)
            newest: int | None = connection.scalar(query.where(*here))
        return newest

    def data_files(self, source_id: str, table_key: str | None = None) -> list[LakeFile]:
        of_table = {} if table_key is None else {"table_key": table_key}
        return [LakeFile(**row) for row in self._select(db.data_files, source_id=source_id, **of_table)]

    def index_files(self, source_id: str) -> list[IndexFile]:
        found = self._select(db.index_files, source_id=source_id)
        return [IndexFile(**{name: row[name] for name in IndexFile._fields}) for row in found]

    def quarantine_files(self) -> list[tuple[str, str, str]]:
        """Path, source and run of every file with quarantined lines."""
        return [(row["path"], row["source_id"], row["run_id"]) for row in self._select(db.quarantine_files)]

    def violation_files(self, source_id: str | None = None) -> dict[str, str]:
        """The files that tell what of events was not as planned, and the runs that found it."""
        of_source = {"source_id": source_id} if source_id is not None else {}
        return {row["path"]: row["run_id"] for row in self._select(db.violation_files, **of_source)}

    def newest_quarantine_files(
        self, limit: int, *, source_id: str | None = None, run_ids: Collection[str] | None = None
    ) -> list[str]:
        """The files with quarantined lines of the last runs, or of some."""
        table = db.quarantine_files.c
        wanted = [table.source_id == source_id] if source_id else []
        wanted += [table.run_id.in_(run_ids)] if run_ids is not None else []
        query = sa.select(table.path).where(table.lake == self._lake, *wanted).order_by(table.run_id.desc(), table.path)
        with self._engine.connect() as connection:
            return list(connection.scalars(query.limit(limit)))

    def _select(self, table: sa.Table, **conditions: str) -> list[dict[str, Any]]:
        """The rows of this lake that meet the conditions, in order of their paths."""
        columns = [column for column in table.c if column.name != "lake"]
        here = [table.c[name] == value for name, value in conditions.items()]
        query = sa.select(*columns).where(table.c.lake == self._lake, *here)
        with self._engine.connect() as connection:
            found = [dict(row._mapping) for row in connection.execute(query)]
        # Asked to sort, SQLite goes through all files of the lake in the order of their paths.
        return sorted(found, key=lambda row: str(row["path"]))

    def paths(self, source_id: str) -> set[str]:
        """The files of a source in the lake."""
        of_source = {"source_id": source_id}
        tables = (db.data_files, db.index_files, db.quarantine_files, db.violation_files)
        return {row["path"] for table in tables for row in self._select(table, **of_source)}

    def has_data(self, source_id: str) -> bool:
        return self._has(db.data_files.c.lake == self._lake, db.data_files.c.source_id == source_id)

    def has_recorded(self, run_id: str) -> bool:
        """Whether a run that adds files is part of the ledger."""
        tables = (db.data_files, db.index_files, db.quarantine_files, db.violation_files)
        return any(self._has(table.c.lake == self._lake, table.c.run_id == run_id) for table in tables)

    def _has(self, *conditions: sa.ColumnElement[bool]) -> bool:
        with self._engine.connect() as connection:
            return bool(connection.scalar(sa.select(sa.exists().where(*conditions))))

    def last_run(self, source_id: str) -> str | None:
        """The run of a source that was recorded last."""
        ours = self._connection(source_id)
        with self._engine.connect() as connection:
            found: str | None = connection.scalar(sa.select(db.connections.c.last_run).where(ours))
        return found

    def set_last_run(self, source_id: str, run_id: str | None) -> None:
        """Let the next run be on top of this one: for a run that was made so, and is put back."""
        with self._engine.begin() as connection:
            connection.execute(db.connections.update().where(self._connection(source_id)).values(last_run=run_id))

    def refuse_overtaken(self, entry: Entry) -> None:
        """Raise OvertakenError if another run was recorded since this one was made."""
        last = self.last_run(entry.source_id)
        if last not in (entry.base, entry.run_id):
            raise _overtaken(entry)

    def _connection(self, source_id: str) -> sa.ColumnElement[bool]:
        return sa.and_(db.connections.c.lake == self._lake, db.connections.c.source_id == source_id)

    def forget(self, source_id: str) -> None:
        """Know nothing of a source in this lake any more, nor of its runs: for building all of it anew."""
        tables = (db.raw_files, db.data_files, db.index_files, db.quarantine_files, db.violation_files)
        with self._engine.begin() as connection:
            for table in (*tables, db.dropped_tables, db.refused_tables, db.replays, db.runs):
                connection.execute(table.delete().where(table.c.lake == self._lake, table.c.source_id == source_id))
            connection.execute(db.connections.update().where(self._connection(source_id)).values(last_run=None))

    def record(self, entry: Entry, hold: Hold) -> None:
        """Make a run's changes the truth, all at once, if the source is still held and nothing came in between."""
        with self._engine.begin() as connection:
            hold.confirm_in(connection)
            ours = self._connection(entry.source_id)
            last = db.connections.c.last_run
            on_top = sa.or_(last.is_not_distinct_from(entry.base), last == entry.run_id)
            noted = db.connections.update().where(ours, on_top).values(last_run=entry.run_id)
            if connection.execute(noted).rowcount != 1:
                raise _overtaken(entry)
            self._delete(connection, db.data_files, entry.removed_data_files)
            self._delete(connection, db.index_files, entry.removed_index_files)
            self._delete(connection, db.violation_files, entry.removed_violation_files)
            here = {"lake": self._lake}
            of_run = {**here, "source_id": entry.source_id, "run_id": entry.run_id}
            db.upsert(connection, db.raw_files, [{**file._asdict(), **here} for file in entry.raw_files])
            db.upsert(connection, db.data_files, [{**file._asdict(), **here} for file in entry.data_files])
            db.upsert(connection, db.index_files, [{**file._asdict(), **of_run} for file in entry.index_files])
            db.upsert(connection, db.quarantine_files, [{"path": path, **of_run} for path in entry.quarantine_files])
            db.upsert(connection, db.violation_files, [{"path": path, **of_run} for path in entry.violation_files])
            admission.record(connection, self._lake, entry.source_id, entry.decisions)
            if entry.source_settings is not None:
                connection.execute(db.connections.update().where(ours).values(settings=entry.source_settings))
                pending = sa.and_(db.replays.c.lake == self._lake, db.replays.c.source_id == entry.source_id)
                connection.execute(db.replays.delete().where(pending))  # it was made for the partitions of before

    def _delete(self, connection: sa.Connection, table: sa.Table, paths: Iterable[str]) -> None:
        keys = [{"old": path} for path in paths]
        if keys:
            here = sa.and_(table.c.lake == self._lake, table.c.path == sa.bindparam("old"))
            connection.execute(table.delete().where(here), keys)


def _plain(result: sa.CursorResult[Any]) -> Iterator[tuple[Any, ...]]:
    """The rows as the driver gives them: for a million of them, SQLAlchemy's take three times as long."""
    while rows := result.cursor.fetchmany(_ROWS_AT_ONCE):
        yield from rows


def _overtaken(entry: Entry) -> OvertakenError:
    return OvertakenError(
        f"another run was recorded after run {entry.run_id} had been made for what was there before",
        fix="run it again: nothing of it was published",
    )
