"""The workspace database: sources, runs, the ledger of raw files, and which files make up the lake.

SQLite by default, any database of SQLAlchemy by URL. Times are microseconds since 1970, UTC.
"""

from pathlib import Path
from typing import Any

import sqlalchemy as sa

from eventlake.errors import NoSpaceError, PermissionMissingError, TransientError

metadata = sa.MetaData()

sources = sa.Table(
    "sources",
    metadata,
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("slug", sa.String, nullable=False, unique=True),
    sa.Column("name", sa.String, nullable=False),
    sa.Column("enabled", sa.Boolean, nullable=False),
    sa.Column("settings", sa.JSON, nullable=False),
    sa.Column("created_at", sa.BigInteger, nullable=False),
)

write_keys = sa.Table(
    "write_keys",
    metadata,
    sa.Column("key_hash", sa.String, primary_key=True),  # the key itself is shown once and never stored
    sa.Column("source_id", sa.ForeignKey("sources.id"), nullable=False),
    sa.Column("created_at", sa.BigInteger, nullable=False),
)

runs = sa.Table(
    "runs",
    metadata,
    sa.Column("run_id", sa.String, primary_key=True),
    sa.Column("source_id", sa.ForeignKey("sources.id"), nullable=False, index=True),
    sa.Column("kind", sa.String, nullable=False),
    sa.Column("status", sa.String, nullable=False),  # running, finished, failed
    sa.Column("step", sa.String, nullable=False),
    sa.Column("started_at", sa.BigInteger, nullable=False),
    sa.Column("finished_at", sa.BigInteger),
    sa.Column("report", sa.JSON),  # the lines of report.json
)

raw_files = sa.Table(  # the ledger: a raw file is here if and only if its events are in the lake
    "raw_files",
    metadata,
    sa.Column("source_id", sa.String, primary_key=True),
    sa.Column("path", sa.String, primary_key=True),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("etag", sa.String, nullable=False),
    sa.Column("run_id", sa.String, nullable=False),
    sa.Column("lines", sa.BigInteger, nullable=False),
    sa.Column("loaded", sa.BigInteger, nullable=False),
    sa.Column("duplicates", sa.BigInteger, nullable=False),
    sa.Column("suppressed", sa.BigInteger, nullable=False),
    sa.Column("blocked", sa.BigInteger, nullable=False),
    sa.Column("quarantined", sa.BigInteger, nullable=False),
    sa.Column("checksum", sa.String, nullable=False),  # of the message ids loaded
    sa.Column("digest", sa.String, nullable=False),  # of the file's content
    sa.Column("first_received", sa.BigInteger),
    sa.Column("last_received", sa.BigInteger),
)

data_files = sa.Table(
    "data_files",
    metadata,
    sa.Column("path", sa.String, primary_key=True),
    sa.Column("source_id", sa.String, nullable=False, index=True),
    sa.Column("segment_type", sa.String, nullable=False),
    sa.Column("partition", sa.JSON, nullable=False),
    sa.Column("rows", sa.BigInteger, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("digest", sa.String, nullable=False),
    sa.Column("first_received", sa.BigInteger, nullable=False),
    sa.Column("last_received", sa.BigInteger, nullable=False),
    sa.Column("run_id", sa.String, nullable=False),
)

index_files = sa.Table(
    "index_files",
    metadata,
    sa.Column("path", sa.String, primary_key=True),
    sa.Column("source_id", sa.String, nullable=False, index=True),
    sa.Column("run_id", sa.String, nullable=False),
    sa.Column("synced_at", sa.BigInteger, nullable=False),
    sa.Column("messages", sa.BigInteger, nullable=False),
    sa.Column("checksum", sa.String, nullable=False),
)

quarantine_files = sa.Table(
    "quarantine_files",
    metadata,
    sa.Column("path", sa.String, primary_key=True),
    sa.Column("source_id", sa.String, nullable=False, index=True),
    sa.Column("run_id", sa.String, nullable=False),
)


def connect(url: str) -> sa.Engine:
    """Open the database, with its tables; makes them when they are not there."""
    engine = sa.create_engine(url)
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _prepare_sqlite)
        if engine.url.database:
            Path(engine.url.database).parent.mkdir(parents=True, exist_ok=True)
    sa.event.listen(engine, "handle_error", _told)
    metadata.create_all(engine)
    return engine


def _told(failure: sa.engine.ExceptionContext) -> BaseException | None:
    """Let every user of the database see errors that say who must act; what is left alone is a mistake of ours."""
    error = str(failure.original_exception)
    problem = f"the workspace database does not answer: {error}"
    if "readonly" in error or "unable to open" in error:
        fix = "give the user that runs this the right to write the workspace's folder"
        return PermissionMissingError(problem, fix=fix)
    if "disk is full" in error:
        return NoSpaceError(problem, fix="make room on the disk, then run it again")
    if failure.is_disconnect or "locked" in error or "disk I/O" in error:
        return TransientError(problem, fix="check the database, then run it again")
    return None


def _prepare_sqlite(connection: Any, _: Any) -> None:
    connection.execute("PRAGMA journal_mode=WAL")  # readers are not stopped by a running sync
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA busy_timeout=30000")


def upsert(connection: sa.Connection, table: sa.Table, rows: list[dict[str, Any]]) -> None:
    """Insert rows, in place of those with the same key: doing it twice has no further effect."""
    for start in range(0, len(rows), 1000):
        part = rows[start : start + 1000]
        keys = list(table.primary_key.columns)
        condition = sa.and_(*(column == sa.bindparam(f"old_{column.name}") for column in keys))
        connection.execute(
            table.delete().where(condition), [{f"old_{c.name}": row[c.name] for c in keys} for row in part]
        )
        connection.execute(table.insert(), part)
