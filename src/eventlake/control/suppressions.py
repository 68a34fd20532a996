"""The list of subjects that must not be in the lake. Every change of it gives it another version."""

import re
from array import array
from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from eventlake.control import policy_tables as tables
from eventlake.control.in_order import Entry, in_order, some_at_once
from eventlake.errors import InvalidSettingsError
from eventlake.events.suppression import LONGEST_PATH, NOBODY, Path, Subjects, Suppressed, subject_hash

ALL_SOURCES = ""
_CHANGES, _REMOVALS = "suppressions", "suppressions removed"  # what is counted
_READ_AT_ONCE = 50_000
_KEY = re.compile(r"(?:[^.\\]|\\.)+")


class Suppression(NamedTuple):
    source_id: str  # empty for all
    path: str
    subject: str | None  # None if only its hash is known
    added_at: int
    added_by: str


class Total(NamedTuple):
    path: str
    source_id: str  # empty for all
    subjects: int
    last_added: int


def keys_of(path: str) -> Path:
    """The keys of a path with dots between them. Raises InvalidSettingsError for what is no path."""
    keys = _KEY.findall(path)
    if not keys or ".".join(keys) != path or len(keys) > LONGEST_PATH:
        raise InvalidSettingsError(
            f"{path!r} is not a path",
            fix=r"use userId, anonymousId, or keys with dots between them: traits.email; a dot in a key is \.",
        )
    return tuple(re.sub(r"\\(.)", r"\1", key) for key in keys)


class Suppressions:
    def __init__(self, engine: sa.Engine, now: Callable[[], int]) -> None:
        self._engine = engine
        self._now = now

    def add(self, subjects: Iterable[str], path: str = "userId", source_id: str = ALL_SOURCES, by: str = "") -> int:
        """Suppress some subjects; how many were not on the list.

        They are written some at a time: others may write meanwhile, and if it breaks off, it may be done again.
        """
        written, added = _written(keys_of(path)), 0
        for some in in_order(subjects):
            with self._engine.begin() as connection:
                added += self._insert(connection, [_row(one, written) for one in some], source_id, by)
        return added

    def add_within(self, connection: sa.Connection, subjects: Iterable[str], path: str, source_id: str, by: str) -> int:
        """The same within a transaction; for a few."""
        rows = [_row(one, _written(keys_of(path))) for some in in_order(subjects) for one in some]
        return self._insert(connection, rows, source_id, by)

    def _insert(self, connection: sa.Connection, rows: list[dict[str, Any]], source_id: str, by: str) -> int:
        if not rows:
            return 0
        _begin(connection)
        # Later than all before, whatever the clock says: whoever knows the list up to some time needs only what is new.
        at = max(self._now(), self._last_added(connection) + 1)
        whole = [{**row, "source_id": source_id, "added_at": at, "added_by": by} for row in rows]
        options = {"preserve_rowcount": True}
        added = connection.execute(_if_new(connection, tables.suppressions), whole, execution_options=options).rowcount
        if added:
            self._grow(connection)
        return added

    def restore(self, source_id: str, known: Suppressed) -> int:
        """Suppress subjects of a source of which only hashes are known; how many were not on the list."""
        added = 0
        for path, subjects in known.subjects.items():
            for some in some_at_once(subjects.entries()):
                rows = [{"path": _written(path), "hash": found, "check": one, "subject": None} for found, one in some]
                with self._engine.begin() as connection:
                    added += self._insert(connection, rows, source_id, "restore")
        return added

    def remove(self, subjects: Iterable[str], path: str = "userId", source_id: str = ALL_SOURCES) -> int:
        """Let some subjects in again; how many were on the list."""
        with self._engine.begin() as connection:
            return self.remove_within(connection, subjects, path, source_id)

    def remove_within(self, connection: sa.Connection, subjects: Iterable[str], path: str, source_id: str) -> int:
        """The same within a transaction."""
        table, removed = tables.suppressions, 0
        mine = (table.c.source_id == source_id, table.c.path == _written(keys_of(path)))
        _begin(connection)
        for some in some_at_once(dict.fromkeys(subjects), 500):
            hashes = [subject_hash(subject) for subject in some]
            removed += connection.execute(table.delete().where(*mine, table.c.hash.in_(hashes))).rowcount
        if removed:
            self._grow(connection)
            self._grow(connection, _REMOVALS)
        return removed

    def _grow(self, connection: sa.Connection, name: str = _CHANGES) -> None:
        """Another version, that no list ever had: after a loss, an older copy of the database may be what counts."""
        table = tables.policy_versions
        mine, now = table.c.name == name, self._now()
        newer = sa.case((table.c.version < now, now), else_=table.c.version + 1)
        if not connection.execute(table.update().where(mine).values(version=newer)).rowcount:
            connection.execute(table.insert().values(name=name, version=now))

    def latest(self, limit: int = 100, *, skip: int = 0) -> list[Suppression]:
        """Newest first."""
        table = tables.suppressions
        names = [table.c[name] for name in Suppression._fields]
        query = sa.select(*names).order_by(table.c.added_at.desc(), table.c.hash).limit(limit).offset(skip)
        with self._engine.connect() as connection:
            return [Suppression(*row) for row in connection.execute(query)]

    def count(self) -> int:
        with self._engine.connect() as connection:
            return int(connection.scalar(sa.select(sa.func.count()).select_from(tables.suppressions)) or 0)

    def version(self) -> int:
        """Another number after every change; 0 if there never was one."""
        return self._version(_CHANGES)

    def removals(self) -> int:
        """Another number after every change by which somebody was removed."""
        return self._version(_REMOVALS)

    def _version(self, name: str) -> int:
        query = sa.select(tables.policy_versions.c.version).where(tables.policy_versions.c.name == name)
        with self._engine.connect() as connection:
            return int(connection.scalar(query) or 0)

    def totals(self) -> list[Total]:
        """How many there are, by path and source."""
        table = tables.suppressions
        key = (table.c.path, table.c.source_id)
        query = sa.select(*key, sa.func.count(), sa.func.max(table.c.added_at)).group_by(*key).order_by(*key)
        with self._engine.connect() as connection:
            return [Total(*row) for row in connection.execute(query)]

    def sources_of(self, subject: str, path: str) -> list[str]:
        """The sources in which somebody is suppressed; empty for all."""
        path = _written(keys_of(path))
        table = tables.suppressions
        query = sa.select(table.c.source_id).where(table.c.path == path, table.c.hash == subject_hash(subject))
        with self._engine.connect() as connection:
            return sorted(connection.scalars(query))

    def last_added(self) -> int:
        """When somebody was added last, of those who are on the list."""
        with self._engine.connect() as connection:
            return self._last_added(connection)

    @staticmethod
    def _last_added(connection: sa.Connection) -> int:
        return int(connection.scalar(sa.select(sa.func.max(tables.suppressions.c.added_at))) or 0)

    def of_source(self, source_id: str) -> Suppressed:
        """The subjects that are suppressed in a source, or in all."""
        found = self._read(tables.suppressions.c.source_id.in_([source_id, ALL_SOURCES])).values()
        return reduce(Suppressed.joined, found, NOBODY)

    def added_since(self, time: int) -> dict[str, Suppressed]:
        """Who was added after a time, by source; of time 0, everybody."""
        return self._read(tables.suppressions.c.added_at > time if time else sa.true())

    def _read(self, wanted: sa.ColumnElement[bool]) -> dict[str, Suppressed]:
        table = tables.suppressions.c
        # In no order: to put them in one, SQLite would read all that there are.
        query = sa.select(table.source_id, table.path, table.hash, table.check).where(wanted)
        found: dict[str, dict[str, _Gathered]] = {}
        with self._engine.connect() as connection:
            for source_id, path, one, check in connection.execute(query.execution_options(yield_per=_READ_AT_ONCE)):
                found.setdefault(source_id, {}).setdefault(path, _Gathered()).add(one, check)
        return {
            source_id: Suppressed({keys_of(path): some.subjects() for path, some in by_path.items()})
            for source_id, by_path in found.items()
        }


class _Gathered:
    """Subjects that are being read, in little room."""

    def __init__(self) -> None:
        self._hashes = bytearray()
        self._sums = array("I")

    def add(self, found: bytes, check: int) -> None:
        self._hashes += found
        self._sums.append(check)

    def subjects(self) -> Subjects:
        return Subjects.of_arrays(bytes(self._hashes), np.array(self._sums, np.uint32))


def _row(entry: Entry, path: str) -> dict[str, Any]:
    return {**entry._asdict(), "path": path}


def _begin(connection: sa.Connection) -> None:
    """Wait until nobody else changes the list."""
    table = tables.policy_versions
    mine = table.update().where(table.c.name == _CHANGES).values(version=table.c.version)
    if not connection.execute(mine).rowcount:
        connection.execute(_if_new(connection, table), {"name": _CHANGES, "version": 0})
        connection.execute(mine)


def _if_new(connection: sa.Connection, table: sa.Table) -> postgresql.Insert | sqlite.Insert:
    """Insert what is not there."""
    if connection.dialect.name == "postgresql":
        return postgresql.insert(table).on_conflict_do_nothing()
    return sqlite.insert(table).on_conflict_do_nothing()


def _written(path: Path) -> str:
    """A path in the one way in which it is stored."""
    return ".".join(re.sub(r"([.\\])", r"\\\1", key) for key in path)
