"""The tables of 0.1.0. Databases that were made before there were steps have them already."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    _sources_and_runs()
    _ledger()
    _admission()
    _catalog()


def _sources_and_runs() -> None:
    op.create_table(
        "sources",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("slug", sa.String, nullable=False, unique=True),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("enabled", sa.Boolean, nullable=False),
        sa.Column("settings", sa.JSON, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        if_not_exists=True,
    )
    op.create_table(
        "write_keys",
        sa.Column("key_hash", sa.String, primary_key=True),
        sa.Column("source_id", sa.String, sa.ForeignKey("sources.id"), nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        if_not_exists=True,
    )
    op.create_table(
        "runs",
        sa.Column("run_id", sa.String, primary_key=True),
        sa.Column("source_id", sa.String, sa.ForeignKey("sources.id"), nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("status", sa.String, nullable=False),
        sa.Column("step", sa.String, nullable=False),
        sa.Column("started_at", sa.BigInteger, nullable=False),
        sa.Column("finished_at", sa.BigInteger),
        sa.Column("report", sa.JSON),
        if_not_exists=True,
    )
    op.create_index("ix_runs_source_id", "runs", ["source_id"], if_not_exists=True)


def _ledger() -> None:
    counts = ("lines", "loaded", "duplicates", "suppressed", "blocked", "quarantined")
    op.create_table(
        "raw_files",
        sa.Column("source_id", sa.String, primary_key=True),
        sa.Column("path", sa.String, primary_key=True),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("etag", sa.String, nullable=False),
        sa.Column("run_id", sa.String, nullable=False),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in counts),
        sa.Column("checksum", sa.String, nullable=False),
        sa.Column("digest", sa.String, nullable=False),
        sa.Column("first_received", sa.BigInteger),
        sa.Column("last_received", sa.BigInteger),
        if_not_exists=True,
    )
    op.create_table(
        "data_files",
        sa.Column("path", sa.String, primary_key=True),
        sa.Column("source_id", sa.String, nullable=False),
        sa.Column("segment_type", sa.String, nullable=False),
        sa.Column("partition", sa.JSON, nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("digest", sa.String, nullable=False),
        sa.Column("first_received", sa.BigInteger, nullable=False),
        sa.Column("last_received", sa.BigInteger, nullable=False),
        sa.Column("run_id", sa.String, nullable=False),
        if_not_exists=True,
    )
    op.create_table(
        "index_files",
        sa.Column("path", sa.String, primary_key=True),
        sa.Column("source_id", sa.String, nullable=False),
        sa.Column("run_id", sa.String, nullable=False),
        sa.Column("synced_at", sa.BigInteger, nullable=False),
        sa.Column("messages", sa.BigInteger, nullable=False),
        sa.Column("checksum", sa.String, nullable=False),
        if_not_exists=True,
    )
    op.create_table(
        "quarantine_files",
        sa.Column("path", sa.String, primary_key=True),
        sa.Column("source_id", sa.String, nullable=False),
        sa.Column("run_id", sa.String, nullable=False),
        if_not_exists=True,
    )
    for table in ("data_files", "index_files", "quarantine_files"):
        op.create_index(f"ix_{table}_source_id", table, ["source_id"], if_not_exists=True)


def _admission() -> None:
    op.create_table(
        "dropped_tables",
        sa.Column("source_id", sa.String, primary_key=True),
        sa.Column("segment_type", sa.String, primary_key=True),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("run_id", sa.String, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        if_not_exists=True,
    )
    op.create_table(
        "refused_tables",
        sa.Column("source_id", sa.String, primary_key=True),
        sa.Column("segment_type", sa.String, primary_key=True),
        sa.Column("lines", sa.BigInteger, nullable=False),
        sa.Column("runs", sa.Integer, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        if_not_exists=True,
    )


def _catalog() -> None:
    def of_table() -> list[sa.Column[str]]:
        return [sa.Column(name, sa.String, primary_key=True) for name in ("database", "table")]

    op.create_table(
        "catalog_tables",
        sa.Column("database", sa.String, primary_key=True),
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("source_id", sa.String, nullable=False),
        sa.Column("segment_type", sa.String, nullable=False),
        sa.Column("location", sa.String, nullable=False),
        sa.Column("partition_keys", sa.JSON, nullable=False),
        sa.Column("created_run", sa.String, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        if_not_exists=True,
    )
    op.create_table(
        "catalog_columns",
        *of_table(),
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("type", sa.String, nullable=False),
        sa.Column("pointer", sa.String, nullable=False),
        if_not_exists=True,
    )
    op.create_table(
        "catalog_history",
        *of_table(),
        sa.Column("column", sa.String, primary_key=True),
        sa.Column("run_id", sa.String, primary_key=True),
        sa.Column("change", sa.String, nullable=False),
        sa.Column("type", sa.String, nullable=False),
        sa.Column("old_type", sa.String),
        sa.Column("at", sa.BigInteger, nullable=False),
        if_not_exists=True,
    )
    op.create_table(
        "catalog_partitions",
        *of_table(),
        sa.Column("partition", sa.String, primary_key=True),
        sa.Column("run_id", sa.String, nullable=False),
        if_not_exists=True,
    )
