"""What `eventlake serve` needs: what runs came to without their reports, orders, people, alerts, what was collected."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

_COUNTS = ("lines", "loaded", "duplicates", "suppressed", "blocked", "quarantined")
_AT_ONCE = 500


def upgrade() -> None:
    for name in (*_COUNTS, "rescued"):
        op.add_column("runs", sa.Column(name, sa.BigInteger))
    op.add_column("runs", sa.Column("partial", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("runs", sa.Column("error_code", sa.String))
    op.add_column("runs", sa.Column("notices", sa.JSON(none_as_null=True)))
    op.add_column("runs", sa.Column("steps", sa.JSON(none_as_null=True)))
    op.add_column("runs", sa.Column("done", sa.Integer, nullable=False, server_default="0"))
    op.add_column("runs", sa.Column("tasks", sa.Integer, nullable=False, server_default="0"))
    op.add_column("runs", sa.Column("stop_asked", sa.Boolean, nullable=False, server_default=sa.false()))
    op.create_index("ix_runs_finished_at", "runs", ["finished_at"])
    op.create_index("ix_runs_connection", "runs", ["source_id", "lake", "kind", "run_id", "status"])
    op.create_index(
        "ix_data_files_sums", "data_files", ["source_id", "table_key", "lake", "rows", "size", "last_received"]
    )
    op.create_index("ix_runs_counts", "runs", ["started_at", "source_id", "lake", "kind", *_COUNTS, "rescued"])
    _count_runs()
    op.create_table(
        "orders",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("lake", sa.String, nullable=False),
        sa.Column("source_id", sa.String, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("arguments", sa.JSON, nullable=False),
        sa.Column("asked_by", sa.String, nullable=False),
        sa.Column("asked_at", sa.BigInteger, nullable=False),
        sa.Column("status", sa.String, nullable=False, index=True),
        sa.Column("taken_by", sa.String),
        sa.Column("alive_at", sa.BigInteger),
        sa.Column("finished_at", sa.BigInteger),
        sa.Column("run_id", sa.String),
        sa.Column("problem", sa.String),
        sa.Column("fix", sa.String),
        sa.Column("stop_asked", sa.Boolean, nullable=False),
    )
    op.create_table(
        "users",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("password_hash", sa.String, nullable=False),
        sa.Column("role", sa.String, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("locked_until", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "invitations",
        sa.Column("hash", sa.String, primary_key=True),
        sa.Column("role", sa.String, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "sessions",
        sa.Column("hash", sa.String, primary_key=True),
        sa.Column("user_name", sa.String, nullable=False, index=True),
        sa.Column("csrf", sa.String, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "tokens",
        sa.Column("hash", sa.String, primary_key=True),
        sa.Column("id", sa.String, nullable=False, unique=True),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("scope", sa.String, nullable=False),
        sa.Column("made_by", sa.String, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("used_at", sa.BigInteger),
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("who", sa.String, nullable=False),
        sa.Column("action", sa.String, nullable=False),
        sa.Column("target", sa.String, nullable=False),
        sa.Column("before", sa.JSON(none_as_null=True)),
        sa.Column("after", sa.JSON(none_as_null=True)),
    )
    op.create_table(
        "subscriptions",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("source_id", sa.String),
        sa.Column("channel", sa.String, nullable=False),
        sa.Column("threshold", sa.Float),
        sa.Column("created_at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "alerts",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("at", sa.BigInteger, nullable=False, index=True),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("lake", sa.String),
        sa.Column("source_id", sa.String),
        sa.Column("subject", sa.String, nullable=False),
        sa.Column("body", sa.String, nullable=False),
        sa.Column("link", sa.String, nullable=False),
    )
    op.create_table(
        "deliveries",
        sa.Column("alert_id", sa.String, primary_key=True),
        sa.Column("channel", sa.String, primary_key=True),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("next_at", sa.BigInteger, index=True),
        sa.Column("delivered_at", sa.BigInteger),
        sa.Column("problem", sa.String),
    )
    op.create_table(
        "collected",
        sa.Column("place", sa.String, primary_key=True),
        sa.Column("source_id", sa.String, primary_key=True),
        sa.Column("hour", sa.BigInteger, primary_key=True),
        sa.Column("accepted", sa.BigInteger, nullable=False),
        sa.Column("refused", sa.BigInteger, nullable=False),
        sa.Column("copies", sa.BigInteger, nullable=False),
    )


def _count_runs() -> None:
    """Write beside each run what its report says."""
    runs = sa.table(
        "runs",
        sa.column("run_id", sa.String),
        sa.column("report", sa.JSON),
        sa.column("notices", sa.JSON(none_as_null=True)),
        sa.column("partial", sa.Boolean),
        sa.column("error_code", sa.String),
        *(sa.column(name, sa.BigInteger) for name in (*_COUNTS, "rescued")),
    )
    connection, newest = op.get_bind(), ""
    while True:
        query = sa.select(runs.c.run_id, runs.c.report).where(runs.c.run_id > newest).order_by(runs.c.run_id)
        found = connection.execute(query.limit(_AT_ONCE)).all()
        for run_id, report in found:
            if isinstance(report, list) and report:
                connection.execute(runs.update().where(runs.c.run_id == run_id).values(_values(report[0])))
        if not found:
            return
        newest = found[-1].run_id


def _values(head: dict[str, Any]) -> dict[str, Any]:
    books = head.get("books", {})
    notices = [*head.get("notices", ()), *([head["error"]] if "error" in head else ())]
    return {
        **{name: books.get(name) for name in _COUNTS},
        "rescued": head.get("rescued"),
        "partial": bool(head.get("failed_files")),
        "error_code": head.get("error_code"),
        "notices": notices or None,
    }
