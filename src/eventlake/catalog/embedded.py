"""The catalog that needs no server: tables in the workspace database."""

import json
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from eventlake.catalog.base import CatalogTable, SchemaEvent, TableChange
from eventlake.schema.evolve import Column, TableSchema
from eventlake.schema.types import ColumnType

metadata = sa.MetaData()


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


_tables = sa.Table(
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
_columns = sa.Table(
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
_partitions = sa.Table(
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
        query = sa.select(_tables).where(_tables.c.lake == self._lake).order_by(_tables.c.database, _tables.c.name)
        columns_query = sa.select(_columns).where(_columns.c.lake == self._lake).order_by(_columns.c.position)
        if source_id is not None:
            query = query.where(_tables.c.source_id == source_id)
        with self._engine.connect() as connection:
            rows = connection.execute(query).all()
            columns: dict[tuple[str, str], list[Column]] = {}
            for row in connection.execute(columns_query):
                column = Column(row.name, ColumnType(row.type), row.pointer)
                columns.setdefault((row.database, row.table), []).append(column)
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

    def partitions(self, database: str, table: str) -> list[tuple[str, ...]]:
        query = sa.select(_partitions.c.partition).where(self._of(_partitions, database, table)).order_by("partition")
        with self._engine.connect() as connection:
            return [tuple(json.loads(text)) for text in connection.scalars(query)]

    def history(self, database: str, table: str) -> list[SchemaEvent]:
        query = (
            sa.select(_history).where(self._of(_history, database, table)).order_by(_history.c.at, _history.c.column)
        )
        with self._engine.connect() as connection:
            return [
                SchemaEvent(row.column, row.change, row.type, row.old_type, row.run_id, row.at)
                for row in connection.execute(query)
            ]

    def apply(self, changes: Sequence[TableChange], *, run_id: str, at: int) -> None:
        with self._engine.begin() as connection:
            for change in changes:
                self._apply(connection, change, run_id, at)

    def _apply(self, connection: sa.Connection, change: TableChange, run_id: str, at: int) -> None:
        where = {"lake": self._lake, "database": change.database, "table": change.table}
        self._make_table(connection, change, run_id, at)
        columns = connection.execute(
            sa.select(_columns.c.name, _columns.c.type).where(self._of(_columns, change.database, change.table))
        ).all()
        types = {row.name: row.type for row in columns}
        for column in change.added:
            if column.name not in types:
                row = {"name": column.name, "type": column.type.value, "pointer": column.pointer}
                connection.execute(_columns.insert().values(**where, **row, position=len(types)))
                types[column.name] = column.type.value
                _remember(
                    connection,
                    **where,
                    column=column.name,
                    change="added",
                    type=column.type.value,
                    run_id=run_id,
                    at=at,
                )
        for name, new_type in change.retyped:
            if types[name] != new_type.value:
                here = sa.and_(self._of(_columns, change.database, change.table), _columns.c.name == name)
                connection.execute(_columns.update().where(here).values(type=new_type.value))
                _remember(
                    connection,
                    **where,
                    column=name,
                    change="retyped",
                    type=new_type.value,
                    old_type=types[name],
                    run_id=run_id,
                    at=at,
                )
        if change.anew:
            connection.execute(_partitions.delete().where(self._of(_partitions, change.database, change.table)))
        known = set(
            connection.scalars(
                sa.select(_partitions.c.partition).where(self._of(_partitions, change.database, change.table))
            )
        )
        new = [json.dumps(values) for values in change.partitions if json.dumps(values) not in known]
        if new:
            connection.execute(_partitions.insert(), [{**where, "partition": text, "run_id": run_id} for text in new])

    def _make_table(self, connection: sa.Connection, change: TableChange, run_id: str, at: int) -> None:
        here = self._is_table(change.database, change.table)
        row = {
            "lake": self._lake,
            "database": change.database,
            "name": change.table,
            "source_id": change.source_id,
            "table_key": change.table_key,
            "location": change.location,
            "partition_keys": list(change.partition_keys),
        }
        if connection.execute(sa.select(_tables.c.name).where(here)).first() is None:
            connection.execute(_tables.insert().values(**row, created_run=run_id, created_at=at))
        else:
            connection.execute(_tables.update().where(here).values(**row))

    def drop(self, database: str, table: str) -> None:
        with self._engine.begin() as connection:
            for kept in (_columns, _history, _partitions):
                connection.execute(kept.delete().where(self._of(kept, database, table)))
            connection.execute(_tables.delete().where(self._is_table(database, table)))

    def not_shown(self, source_id: str) -> list[tuple[str, str]]:
        del source_id  # what this catalog has is shown by itself
        return []

    def register_report(self, source_id: str, day: str) -> None:
        """Queries find reports by themselves."""

    def _is_table(self, database: str, table: str) -> sa.ColumnElement[bool]:
        return sa.and_(_tables.c.lake == self._lake, _tables.c.database == database, _tables.c.name == table)

    def _of(self, kept: sa.Table, database: str, table: str) -> sa.ColumnElement[bool]:
        return sa.and_(kept.c.lake == self._lake, kept.c.database == database, kept.c.table == table)


def _remember(connection: sa.Connection, **event: Any) -> None:
    connection.execute(_history.insert().values(**event))
