"""Whatever a run asks of the ledger is found by an index: with a long history, to read all of it would take seconds."""

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    for table in ("data_files", "index_files", "quarantine_files"):
        op.create_index(f"ix_{table}_run_id", table, ["run_id"])
    op.create_index("ix_runs_status", "runs", ["status"])
