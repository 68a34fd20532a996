"""The list of subjects that must not be in the lake. Every change of it gives it another version."""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as insert_on_postgres
from sqlalchemy.dialects.sqlite import insert as insert_on_sqlite

from eventlake.control import policy_tables as tables
from eventlake.errors import InvalidSettingsError
from eventlake.events.suppression import Path, Subjects, Suppressed, check_of, subject_hash

Item = TypeVar("Item")

ALL_SOURCES = ""
_CHANGES, _REMOVALS = "suppressions", "suppressions removed"  # what is counted
_AT_ONCE = 5000
LONGEST_SUBJECT = 4096  # bytes
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
    if not keys or ".".join(keys) != path or len(keys) > 20:
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
        """Suppress some subjects; how many were not on the list."""
        keys_of(path)
        rows = (
            {
                "path": path,
                "hash": subject_hash(subject),
                "check": check_of(subject.encode("utf-8", "surrogatepass")),
                "subject": subject,
            }
            for subject in map(_checked, subjects)
        )
        with self._engine.begin() as connection:
            return self._insert(connection, rows, source_id, by)

    def _insert(self, connection: sa.Connection, rows: Iterable[dict[str, Any]], source_id: str, by: str) -> int:
        insert = insert_on_postgres if self._engine.dialect.name == "postgresql" else insert_on_sqlite
        before = self._count(connection)
        for some in _batches(rows, _AT_ONCE):
            whole = [{**row, "source_id": source_id, "added_at": self._now(), "added_by": by} for row in some]
            connection.execute(insert(tables.suppressions).on_conflict_do_nothing(), whole)
        added = self._count(connection) - before
        if added:
            _grow(connection)
        return added

    def restore(self, source_id: str, known: Suppressed) -> int:
        """Suppress subjects of a source of which only hashes are known; how many were not on the list."""
        rows = (
            {"path": ".".join(map(_escaped, path)), "hash": found, "check": check, "subject": None}
            for path, some in known.subjects.items()
            for found, check in some.entries()
        )
        with self._engine.begin() as connection:
            return self._insert(connection, rows, source_id, "restore")

    def remove(self, subjects: Iterable[str], path: str = "userId", source_id: str = ALL_SOURCES) -> int:
        """Let some subjects in again; how many were on the list."""
        table, removed = tables.suppressions, 0
        with self._engine.begin() as connection:
            for some in _batches(dict.fromkeys(subjects), 500):
                mine = (table.c.source_id == source_id, table.c.path == path)
                gone = connection.execute(
                    table.delete().where(*mine, table.c.hash.in_([subject_hash(subject) for subject in some]))
                )
                removed += gone.rowcount
            if removed:
                _grow(connection)
                _grow(connection, _REMOVALS)
        return removed

    def latest(self, limit: int = 100, *, skip: int = 0) -> list[Suppression]:
        """Newest first."""
        table = tables.suppressions
        names = [table.c[name] for name in Suppression._fields]
        query = sa.select(*names).order_by(table.c.added_at.desc(), table.c.hash).limit(limit).offset(skip)
        with self._engine.connect() as connection:
            return [Suppression(*row) for row in connection.execute(query)]

    def count(self) -> int:
        with self._engine.connect() as connection:
            return self._count(connection)

    @staticmethod
    def _count(connection: sa.Connection) -> int:
        return int(connection.execute(sa.select(sa.func.count()).select_from(tables.suppressions)).scalar_one())

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
        keys_of(path)
        table = tables.suppressions
        query = sa.select(table.c.source_id).where(table.c.path == path, table.c.hash == subject_hash(subject))
        with self._engine.connect() as connection:
            return sorted(connection.scalars(query))

    def last_added(self) -> int:
        """When somebody was added last, of those who are on the list."""
        with self._engine.connect() as connection:
            return int(connection.scalar(sa.select(sa.func.max(tables.suppressions.c.added_at))) or 0)

    def of_source(self, source_id: str) -> Suppressed:
        """The subjects that are suppressed in a source, or in all."""
        table = tables.suppressions
        rows = self._rows(table.c.source_id.in_([source_id, ALL_SOURCES]), by=(table.c.path,))
        return _suppressed(rows)

    def added_since(self, time: int, until: int | None = None) -> tuple[int, dict[str, Suppressed]]:
        """How many were added after a time, and who they are, by source."""
        table = tables.suppressions
        within = sa.and_(table.c.added_at > time, table.c.added_at <= until if until is not None else sa.true())
        rows = list(self._rows(within, by=(table.c.source_id, table.c.path)))
        found = itertools.groupby(rows, key=lambda row: str(row.source_id))
        return len(rows), {source_id: _suppressed(some) for source_id, some in found}

    def _rows(self, wanted: sa.ColumnElement[bool], by: tuple[sa.ColumnElement[str], ...]) -> Iterator[Any]:
        table = tables.suppressions
        query = sa.select(table.c.source_id, table.c.path, table.c.hash, table.c.check).where(wanted).order_by(*by)
        with self._engine.connect() as connection:
            yield from connection.execute(query.execution_options(yield_per=50_000))


def _suppressed(rows: Iterable[Any]) -> Suppressed:
    """From rows in the order of their paths."""
    by_path = itertools.groupby(rows, key=lambda row: str(row.path))
    return Suppressed(
        {keys_of(path): Subjects.of((bytes(row.hash), row.check) for row in some) for path, some in by_path}
    )


def _grow(connection: sa.Connection, name: str = _CHANGES) -> None:
    table = tables.policy_versions
    changed = connection.execute(table.update().where(table.c.name == name).values(version=table.c.version + 1))
    if not changed.rowcount:
        connection.execute(table.insert().values(name=name, version=1))


def _batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    left = iter(items)
    while some := list(itertools.islice(left, size)):
        yield some


def _checked(subject: str) -> str:
    if not subject or len(subject.encode("utf-8", "surrogatepass")) > LONGEST_SUBJECT or "\0" in subject:
        raise InvalidSettingsError(
            "a subject is empty, longer than 4,096 bytes, or has a null character",
            fix="give the id of a user, or whatever the path leads to",
        )
    return subject


def _escaped(key: str) -> str:
    return re.sub(r"([.\\])", r"\\\1", key)
