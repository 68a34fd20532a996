"""A workspace may have several lakes: what was there belongs to the one called default.

The settings of a source become those of its connection to that lake. A source that was switched off was neither
collected nor loaded: it stays so, and so does its connection.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    _connections()
    op.add_column("runs", sa.Column("lake", sa.String, nullable=False, server_default="default"))
    _files()
    counts = ("lines", "loaded", "duplicates", "suppressed", "blocked", "quarantined")
    _with_lake(
        "raw_files",
        _key("source_id", "path"),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("etag", sa.String, nullable=False),
        sa.Column("run_id", sa.String, nullable=False),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in counts),
        sa.Column("checksum", sa.String, nullable=False),
        sa.Column("digest", sa.String, nullable=False),
        sa.Column("first_received", sa.BigInteger),
        sa.Column("last_received", sa.BigInteger),
    )
    _with_lake(
        "dropped_tables",
        _key("source_id", "segment_type"),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("run_id", sa.String, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
    )
    _with_lake(
        "refused_tables",
        _key("source_id", "segment_type"),
        sa.Column("lines", sa.BigInteger, nullable=False),
        sa.Column("runs", sa.Integer, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
    )
    _catalog()


def _files() -> None:
    def of_run() -> list[sa.Column[str]]:
        return [sa.Column(name, sa.String, nullable=False) for name in ("source_id", "run_id")]

    received = [sa.Column(f"{which}_received", sa.BigInteger, nullable=False) for which in ("first", "last")]
    _with_lake(
        "data_files",
        _key("path"),
        *of_run(),
        sa.Column("segment_type", sa.String, nullable=False),
        sa.Column("partition", sa.JSON, nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.String, nullable=False),
        *received,
    )
    _with_lake(
        "index_files",
        _key("path"),
        *of_run(),
        sa.Column("synced_at", sa.BigInteger, nullable=False),
        sa.Column("messages", sa.BigInteger, nullable=False),
        sa.Column("checksum", sa.String, nullable=False),
    )
    _with_lake("quarantine_files", _key("path"), *of_run())
    for table in ("data_files", "index_files", "quarantine_files"):
        op.create_index(f"ix_{table}_source_id", table, ["source_id"])


def _connections() -> None:
    made = op.create_table(
        "connections",
        sa.Column("source_id", sa.String, sa.ForeignKey("sources.id"), primary_key=True),
        sa.Column("lake", sa.String, primary_key=True),
        sa.Column("enabled", sa.Boolean, nullable=False),
        sa.Column("connected", sa.Boolean, nullable=False),
        sa.Column("settings", sa.JSON, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
    )
    sources = sa.table(
        "sources",
        sa.column("id", sa.String),
        sa.column("enabled", sa.Boolean),
        sa.column("settings", sa.JSON),
        sa.column("created_at", sa.BigInteger),
    )
    old = sa.select(
        sources.c.id, sa.literal("default"), sources.c.enabled, sa.true(), sources.c.settings, sources.c.created_at
    )
    op.execute(made.insert().from_select([column.name for column in made.c], old))
    op.drop_column("sources", "settings")


def _catalog() -> None:
    _with_lake(
        "catalog_tables",
        _key("database", "name"),
        sa.Column("source_id", sa.String, nullable=False),
        sa.Column("segment_type", sa.String, nullable=False),
        sa.Column("location", sa.String, nullable=False),
        sa.Column("partition_keys", sa.JSON, nullable=False),
        sa.Column("created_run", sa.String, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
    )
    _with_lake(
        "catalog_columns",
        _key("database", "table", "name"),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("type", sa.String, nullable=False),
        sa.Column("pointer", sa.String, nullable=False),
    )
    _with_lake(
        "catalog_history",
        _key("database", "table", "column", "run_id"),
        sa.Column("change", sa.String, nullable=False),
        sa.Column("type", sa.String, nullable=False),
        sa.Column("old_type", sa.String),
        sa.Column("at", sa.BigInteger, nullable=False),
    )
    _with_lake(
        "catalog_partitions", _key("database", "table", "partition"), sa.Column("run_id", sa.String, nullable=False)
    )


def _key(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.String, primary_key=True) for name in names]


def _with_lake(name: str, key: list[sa.Column[str]], *rest: sa.Column[Any]) -> None:
    """Write a table anew with the lake as a part of its key, which SQLite cannot change."""
    columns: list[sa.Column[Any]] = [*key, *rest]
    made = op.create_table(f"{name}_of_lakes", *_key("lake"), *columns)
    old = sa.table(name, *(sa.column(column.name, column.type) for column in columns))
    op.execute(made.insert().from_select([column.name for column in made.c], sa.select(sa.literal("default"), *old.c)))
    op.drop_table(name)
    op.rename_table(f"{name}_of_lakes", name)
