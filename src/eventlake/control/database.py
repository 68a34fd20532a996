"""The workspace database: sources, connections, runs, the ledger of raw files, and which files make up each lake.

The tables are made by `migrations`; here they stand as they are now, for queries. SQLite by default, any database of
SQLAlchemy by URL. Times are microseconds since 1970, UTC.
"""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from eventlake.control.migrations import migrate
from eventlake.errors import ConfigurationError, DamagedError, NoSpaceError, PermissionMissingError, TransientError
from eventlake.storage import private

metadata = sa.MetaData()

COUNTS = ("lines", "loaded", "duplicates", "suppressed", "blocked", "quarantined", "rescued")  # of a run

sources = sa.Table(
    "sources",
    metadata,
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("slug", sa.String, nullable=False, unique=True),
    sa.Column("name", sa.String, nullable=False),
    sa.Column("enabled", sa.Boolean, nullable=False),
    sa.Column("created_at", sa.BigInteger, nullable=False),
)

connections = sa.Table(  # a source in a lake
    "connections",
    metadata,
    sa.Column("source_id", sa.ForeignKey("sources.id"), primary_key=True),
    sa.Column("lake", sa.String, primary_key=True),
    sa.Column("enabled", sa.Boolean, nullable=False),
    sa.Column("connected", sa.Boolean, nullable=False),  # else only its tables are still there
    sa.Column("settings", sa.JSON, nullable=False),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("last_run", sa.String),  # that was recorded in the ledger
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
    sa.Column("lake", sa.String, nullable=False),
    sa.Column("source_id", sa.ForeignKey("sources.id"), nullable=False, index=True),
    sa.Column("kind", sa.String, nullable=False),
    sa.Column("status", sa.String, nullable=False, index=True),  # running, finished, failed
    sa.Column("step", sa.String, nullable=False),
    sa.Column("started_at", sa.BigInteger, nullable=False),
    sa.Column("finished_at", sa.BigInteger, index=True),
    sa.Column("report", sa.JSON),  # the lines of report.json
    # What the report says of the whole run, for lists and sums over many of them.
    *(sa.Column(name, sa.BigInteger) for name in COUNTS),
    sa.Column("partial", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("error_code", sa.String),
    sa.Column("fix", sa.String),
    sa.Column("notices", sa.JSON(none_as_null=True)),
    # How far it is.
    sa.Column("steps", sa.JSON(none_as_null=True)),  # those that were begun, each with its time
    sa.Column("done", sa.Integer, nullable=False, server_default="0"),  # tasks of the step
    sa.Column("tasks", sa.Integer, nullable=False, server_default="0"),
    sa.Column("stop_asked", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Index("ix_runs_connection", "source_id", "lake", "kind", "run_id", "status"),
    sa.Index("ix_runs_counts", "started_at", "source_id", "lake", "kind", *COUNTS),
)

raw_files = sa.Table(  # the ledger: a raw file is here if and only if its events are in the lake
    "raw_files",
    metadata,
    sa.Column("lake", sa.String, primary_key=True),
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
    sa.Column("lake", sa.String, primary_key=True),
    sa.Column("path", sa.String, primary_key=True),
    sa.Column("source_id", sa.String, nullable=False, index=True),
    sa.Column("table_key", sa.String, nullable=False),
    sa.Column("partition", sa.JSON, nullable=False),
    sa.Column("rows", sa.BigInteger, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("digest", sa.String, nullable=False),
    sa.Column("first_received", sa.BigInteger, nullable=False),
    sa.Column("last_received", sa.BigInteger, nullable=False),
    sa.Column("run_id", sa.String, nullable=False, index=True),
    sa.Column("owner", sa.String, nullable=False, server_default=""),
    sa.Index("ix_data_files_sums", "source_id", "table_key", "lake", "rows", "size", "first_received", "last_received"),
)

index_files = sa.Table(
    "index_files",
    metadata,
    sa.Column("lake", sa.String, primary_key=True),
    sa.Column("path", sa.String, primary_key=True),
    sa.Column("source_id", sa.String, nullable=False, index=True),
    sa.Column("run_id", sa.String, nullable=False, index=True),
    sa.Column("synced_at", sa.BigInteger, nullable=False),
    sa.Column("messages", sa.BigInteger, nullable=False),
    sa.Column("checksum", sa.String, nullable=False),
)

quarantine_files = sa.Table(
    "quarantine_files",
    metadata,
    sa.Column("lake", sa.String, primary_key=True),
    sa.Column("path", sa.String, primary_key=True),
    sa.Column("source_id", sa.String, nullable=False, index=True),
    sa.Column("run_id", sa.String, nullable=False, index=True),
)

violation_files = sa.Table(
    "violation_files",
    metadata,
    sa.Column("lake", sa.String, primary_key=True),
    sa.Column("path", sa.String, primary_key=True),
    sa.Column("source_id", sa.String, nullable=False, index=True),
    sa.Column("run_id", sa.String, nullable=False, index=True),
)

dropped_tables = sa.Table(  # the rules that keep tables out
    "dropped_tables",
    metadata,
    sa.Column("lake", sa.String, primary_key=True),
    sa.Column("source_id", sa.String, primary_key=True),
    sa.Column("table_key", sa.String, primary_key=True),
    sa.Column("rows", sa.BigInteger, nullable=False),
    sa.Column("run_id", sa.String, nullable=False),
    sa.Column("at", sa.BigInteger, nullable=False),
)

refused_tables = sa.Table(  # names for which there was no room; as many as are worth remembering
    "refused_tables",
    metadata,
    sa.Column("lake", sa.String, primary_key=True),
    sa.Column("source_id", sa.String, primary_key=True),
    sa.Column("table_key", sa.String, primary_key=True),
    sa.Column("lines", sa.BigInteger, nullable=False),
    sa.Column("runs", sa.Integer, nullable=False),
    sa.Column("at", sa.BigInteger, nullable=False),
)

replays = sa.Table(  # that are not finished
    "replays",
    metadata,
    sa.Column("lake", sa.String, primary_key=True),
    sa.Column("source_id", sa.String, primary_key=True),
    sa.Column("asked_from", sa.BigInteger),
    sa.Column("asked_to", sa.BigInteger),
    sa.Column("start", sa.BigInteger, nullable=False),  # of what is left
    sa.Column("table_keys", sa.JSON(none_as_null=True)),
    sa.Column("parts", sa.Integer, nullable=False),
    sa.Column("done", sa.Integer, nullable=False),
)

leases = sa.Table(  # who runs a connection
    "leases",
    metadata,
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("fence", sa.BigInteger, nullable=False),  # grows with every holder
    sa.Column("host", sa.String, nullable=False),
    sa.Column("pid", sa.BigInteger, nullable=False),
    sa.Column("since", sa.BigInteger, nullable=False),
    sa.Column("expires_at", sa.BigInteger, nullable=False),
)


def connect(address: str, folder: Path) -> sa.Engine:
    """Open the database with this URL, and bring its tables to what this version works with.

    A path in the URL of an SQLite file begins at the folder.
    """
    url = _url(address)
    is_file = url.get_backend_name() == "sqlite"
    if is_file:
        path = folder / str(url.database)
        url = url.set(database=os.fspath(path))
        with suppress(OSError):  # SQLite says what is wrong with it
            private.make_file(path)  # what SQLite puts beside it gets the same rights
    if url.drivername == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
    try:
        engine = sa.create_engine(url, pool_pre_ping=not is_file)  # a server may have been restarted meanwhile
    except (sa.exc.ArgumentError, ImportError) as error:
        raise ConfigurationError(
            f"the database {url.render_as_string()} cannot be used: {error}",
            fix="correct the setting `database`, or install what it needs: pip install 'eventlake[postgres]'",
        ) from error
    if is_file:
        sa.event.listen(engine, "connect", _prepare_sqlite)
    sa.event.listen(engine, "handle_error", _explained)
    migrate(engine)
    return engine


def _url(address: str) -> sa.URL:
    # A URL that is wrong is not shown: it may hold a password.
    wrong = ConfigurationError(
        "the setting `database` is not the URL of a database that lasts",
        fix="for example sqlite:///eventlake.db or postgresql://user:password@host/name",
    )
    try:
        url = sa.make_url(address)
    except (sa.exc.ArgumentError, ValueError):
        raise wrong from None
    if url.get_backend_name() == "sqlite" and (url.host or url.database in (None, "", ":memory:")):
        raise wrong
    return url


def _explained(failure: sa.engine.ExceptionContext) -> BaseException | None:
    """Let every user of the database see errors that say who must act; what is left alone is a mistake of ours."""
    error = " ".join(str(failure.original_exception).split())  # of some drivers, it has several lines
    problem = f"the workspace database does not answer: {error}"
    if "readonly" in error or "unable to open" in error:
        fix = "give the user that runs this the right to write the workspace's folder"
        return PermissionMissingError(problem, fix=fix)
    if "not a database" in error or "malformed" in error:
        return DamagedError(
            f"the workspace database is broken: {error}",
            fix="put a backup of it in its place; without one, move it away and let `eventlake restore` build it anew "
            "from the lake. The files of the lake and the raw archive are not touched by this",
        )
    if "disk is full" in error:
        return NoSpaceError(problem, fix="make room on the disk, then run it again")
    if failure.is_disconnect or failure.connection is None or "locked" in error or "disk I/O" in error:
        return TransientError(problem, fix="check the database, then run it again")
    return None


def _prepare_sqlite(connection: Any, _: Any) -> None:
    connection.execute("PRAGMA journal_mode=WAL")  # readers are not stopped by a running sync
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA busy_timeout=30000")


def now(connection: sa.Connection) -> int:
    """The time by the clock of the database: those of machines that share it differ."""
    if connection.dialect.name == "sqlite":
        return time.time_ns() // 1000
    seconds = connection.execute(sa.select(sa.func.extract("epoch", sa.func.clock_timestamp()))).scalar_one()
    return int(seconds * 1_000_000)


def upsert(connection: sa.Connection, table: sa.Table, rows: list[dict[str, Any]], *, at_once: int = 1000) -> None:
    """Insert rows, in place of those with the same key: doing it twice has no further effect."""
    for start in range(0, len(rows), at_once):
        part = rows[start : start + at_once]
        keys = list(table.primary_key.columns)
        condition = sa.and_(*(column == sa.bindparam(f"old_{column.name}") for column in keys))
        connection.execute(
            table.delete().where(condition), [{f"old_{c.name}": row[c.name] for c in keys} for row in part]
        )
        connection.execute(table.insert(), part)
