"""The catalog that needs no server: tables in the workspace database."""

import json
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from eventlake.catalog.base import Among, CatalogTable, SchemaEvent, TableChange
from eventlake.schema.evolve import Column, TableSchema
from eventlake.schema.types import ColumnType

metadata = sa.MetaData()

_AT_ONCE = 1000  # names that a query asks for
_TYPES = {kind.value: kind for kind in ColumnType}
_TABLE_OF = (("lake", "lake"), ("database", "database"), ("table", "name"))  # how columns name their table


class _AnyText(sa.TypeDecorator[str]):
    """Text with any character. PostgreSQL has no place for NUL, which keys of events may hold."""

    impl = sa.String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> str | None:
        if value is None or dialect.name != "postgresql":
            return value
        return value.replace("\\", "\\\\").replace("\0", "\\0")

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> str | None:
        if value is None or dialect.name != "postgresql":
            return value
        return "\\".join(part.replace("\\0", "\0") for part in value.split("\\\\"))


TABLES = sa.Table(
    "catalog_tables",
    metadata,
    sa.Column("lake", sa.String, primary_key=True),
    sa.Column("database", sa.String, primary_key=True),
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("source_id", sa.String, nullable=False),
    sa.Column("table_key", sa.String, nullable=False),
    sa.Column("location", sa.String, nullable=False),
    sa.Column("partition_keys", sa.JSON, nullable=False),
    sa.Column("created_run", sa.String, nullable=False),
    sa.Column("created_at", sa.BigInteger, nullable=False),
)
COLUMNS = sa.Table(
    "catalog_columns",
    metadata,
    sa.Column("lake", sa.String, primary_key=True),
    sa.Column("database", sa.String, primary_key=True),
    sa.Column("table", sa.String, primary_key=True),
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("type", sa.String, nullable=False),
    sa.Column("pointer", _AnyText, nullable=False),
)
_history = sa.Table(
    "catalog_history",
    metadata,
    sa.Column("lake", sa.String, primary_key=True),
    sa.Column("database", sa.String, primary_key=True),
    sa.Column("table", sa.String, primary_key=True),
    sa.Column("column", sa.String, primary_key=True),
    sa.Column("run_id", sa.String, primary_key=True),
    sa.Column("change", sa.String, nullable=False),
    sa.Column("type", sa.String, nullable=False),
    sa.Column("old_type", sa.String),
    sa.Column("at", sa.BigInteger, nullable=False),
)
PARTITIONS = sa.Table(
    "catalog_partitions",
    metadata,
    sa.Column("lake", sa.String, primary_key=True),
    sa.Column("database", sa.String, primary_key=True),
    sa.Column("table", sa.String, primary_key=True),
    sa.Column("partition", sa.String, primary_key=True),  # a JSON list: primary keys cannot be JSON
    sa.Column("run_id", sa.String, nullable=False),
)


class EmbeddedCatalog:
    """The `Catalog` of a lake, in a database of SQLAlchemy."""

    def __init__(self, engine: sa.Engine, lake: str) -> None:
        self._engine = engine
        self._lake = lake

    def prepare(self, database: str) -> frozenset[str]:
        del database  # there is nothing to make, and nobody else
        return frozenset()

    def tables(self, source_id: str | None = None) -> list[CatalogTable]:
        query = sa.select(TABLES).where(self._is_here).order_by(TABLES.c.database, TABLES.c.name)
        of_table = sa.and_(*(COLUMNS.c[a] == TABLES.c[b] for a, b in _TABLE_OF))
        columns_query = (
            sa.select(COLUMNS.c.database, COLUMNS.c.table, COLUMNS.c.name, COLUMNS.c.type, COLUMNS.c.pointer)
            .join(TABLES, of_table)
            .where(self._is_here)
            .order_by(COLUMNS.c.position)
        )
        if source_id is not None:
            query = query.where(TABLES.c.source_id == source_id)
            columns_query = columns_query.where(TABLES.c.source_id == source_id)
        with self._engine.connect() as connection:
            rows = connection.execute(query).all()
            columns: dict[tuple[str, str], list[Column]] = {}
            for database, table, name, kind, pointer in connection.execute(columns_query):
                columns.setdefault((database, table), []).append(Column(name, _TYPES[kind], pointer))
        return [
            CatalogTable(
                row.database,
                row.name,
                row.source_id,
                row.table_key,
                row.location,
                tuple(row.partition_keys),
                TableSchema(tuple(columns.get((row.database, row.name), ()))),
            )
            for row in rows
        ]

    def partitions(self, database: str, table: str, among: Among = None) -> list[tuple[str, ...]]:
        query = sa.select(PARTITIONS.c.partition).where(self._of(PARTITIONS, database, table)).order_by("partition")
        with self._engine.connect() as connection:
            if among is None:
                return [tuple(json.loads(text)) for text in connection.scalars(query)]
            texts = [json.dumps(values) for values in among]
            query = query.where(PARTITIONS.c.partition.in_(sa.bindparam("some")))
            parts = (texts[start : start + _AT_ONCE] for start in range(0, len(texts), _AT_ONCE))
            found = [text for part in parts for text in connection.scalars(query, {"some": part})]
            return [tuple(json.loads(text)) for text in sorted(found)]

    def history(self, database: str, table: str) -> list[SchemaEvent]:
        query = (
            sa.select(_history).where(self._of(_history, database, table)).order_by(_history.c.at, _history.c.column)
        )
        with self._engine.connect() as connection:
            return [
                SchemaEvent(row.column, row.change, row.type, row.old_type, row.run_id, row.at)
                for row in connection.execute(query)
            ]

    def apply(self, changes: Sequence[TableChange], *, run_id: str, at: int) -> list[str]:
        with self._engine.begin() as connection:
            self._make_tables(connection, changes, run_id, at)
            types = self._types(connection, changes)
            new: list[dict[str, Any]] = []
            events: list[dict[str, Any]] = []
            partitions: list[dict[str, Any]] = []
            for change in changes:
                where = {"lake": self._lake, "database": change.database, "table": change.table}
                event = {**where, "run_id": run_id, "at": at, "old_type": None}
                known = types.get((change.database, change.table), {})
                for name, kind, pointer in change.added:
                    if name not in known:
                        column = {"name": name, "type": kind.value, "pointer": pointer, "position": len(known)}
                        new.append({**where, **column})
                        events.append({**event, "column": name, "change": "added", "type": kind.value})
                        known[name] = kind.value
                for name, kind in change.retyped:
                    if known[name] != kind.value:
                        self._retype(connection, change, name, kind.value)
                        retyped = {"column": name, "change": "retyped", "type": kind.value, "old_type": known[name]}
                        events.append({**event, **retyped})
                self._forget(connection, change)
                partitions += ({**where, "partition": json.dumps(of), "run_id": run_id} for of in change.partitions)
            _insert_missing(connection, COLUMNS, new)
            _insert_missing(connection, _history, events)
            _insert_missing(connection, PARTITIONS, partitions)
        return []

    def _types(
        self, connection: sa.Connection, changes: Sequence[TableChange]
    ) -> dict[tuple[str, str], dict[str, str]]:
        """The types of the columns of tables that change, by database and table."""
        query = sa.select(COLUMNS.c.database, COLUMNS.c.table, COLUMNS.c.name, COLUMNS.c.type).where(
            COLUMNS.c.lake == self._lake,
            COLUMNS.c.database.in_(sorted({change.database for change in changes})),
            COLUMNS.c.table.in_(sa.bindparam("some")),
        )
        types: dict[tuple[str, str], dict[str, str]] = {}
        tables = sorted({change.table for change in changes})
        for start in range(0, len(tables), _AT_ONCE):
            for database, table, name, kind in connection.execute(query, {"some": tables[start : start + _AT_ONCE]}):
                types.setdefault((database, table), {})[name] = kind
        return types

    def _forget(self, connection: sa.Connection, change: TableChange) -> None:
        texts = [json.dumps(values) for values in change.forgotten]
        for part in (texts[start : start + _AT_ONCE] for start in range(0, len(texts), _AT_ONCE)):
            here = self._of(PARTITIONS, change.database, change.table)
            connection.execute(PARTITIONS.delete().where(here, PARTITIONS.c.partition.in_(part)))

    def _retype(self, connection: sa.Connection, change: TableChange, column: str, new_type: str) -> None:
        here = sa.and_(self._of(COLUMNS, change.database, change.table), COLUMNS.c.name == column)
        connection.execute(COLUMNS.update().where(here).values(type=new_type))

    def _make_tables(self, connection: sa.Connection, changes: Sequence[TableChange], run_id: str, at: int) -> None:
        known = {(row.database, row.name): row for row in connection.execute(sa.select(TABLES).where(self._is_here))}
        new = []
        for change in changes:
            row = {
                "source_id": change.source_id,
                "table_key": change.table_key,
                "location": change.location,
                "partition_keys": list(change.partition_keys),
            }
            before = known.get((change.database, change.table))
            if before is None:
                name = {"lake": self._lake, "database": change.database, "name": change.table}
                new.append({**name, **row, "created_run": run_id, "created_at": at})
            elif any(getattr(before, name) != value for name, value in row.items()):
                here = self._is_table(change.database, change.table)
                connection.execute(TABLES.update().where(here).values(**row))
                if before.partition_keys != row["partition_keys"]:
                    connection.execute(PARTITIONS.delete().where(self._of(PARTITIONS, change.database, change.table)))
        _insert_missing(connection, TABLES, new)

    def drop(self, database: str, table: str) -> None:
        with self._engine.begin() as connection:
            for kept in (COLUMNS, _history, PARTITIONS):
                connection.execute(kept.delete().where(self._of(kept, database, table)))
            connection.execute(TABLES.delete().where(self._is_table(database, table)))

    def not_shown(self, source_id: str) -> list[tuple[str, str]]:
        del source_id  # what this catalog has is shown by itself
        return []

    def register_report(self, source_id: str, day: str, run_id: str) -> None:
        """Queries find reports by themselves."""

    @property
    def _is_here(self) -> sa.ColumnElement[bool]:
        return TABLES.c.lake == self._lake

    def _is_table(self, database: str, table: str) -> sa.ColumnElement[bool]:
        return sa.and_(self._is_here, TABLES.c.database == database, TABLES.c.name == table)

    def _of(self, kept: sa.Table, database: str, table: str) -> sa.ColumnElement[bool]:
        return sa.and_(kept.c.lake == self._lake, kept.c.database == database, kept.c.table == table)


def _insert_missing(connection: sa.Connection, table: sa.Table, rows: list[dict[str, Any]]) -> None:
    """Insert rows, all at once, but for those whose keys are there."""
    if not rows:
        return
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects.postgresql import insert  # noqa: PLC0415 - takes its time to load
    else:
        from sqlalchemy.dialects.sqlite import insert  # type: ignore[assignment] # noqa: PLC0415
    connection.execute(insert(table).on_conflict_do_nothing(), rows)
