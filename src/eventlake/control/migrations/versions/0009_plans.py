"""Plans with their versions, how sources enforce them, transformations, and files with what was found."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.create_table(
        "plans",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("name", sa.String, nullable=False, unique=True),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "plan_versions",
        sa.Column("plan_id", sa.String, primary_key=True),
        sa.Column("version", sa.BigInteger, primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.Column("saved_at", sa.BigInteger, nullable=False),
        sa.Column("saved_by", sa.String, nullable=False),
    )
    op.create_table(
        "source_plans",
        sa.Column("source_id", sa.String, primary_key=True),
        sa.Column("plan_id", sa.String),
        sa.Column("enforcement", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "transformations",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("source_id", sa.String, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.Column("changed_at", sa.BigInteger, nullable=False),
        sa.Column("changed_by", sa.String, nullable=False),
    )
    op.create_index("ix_transformations_source_id", "transformations", ["source_id"])
    op.create_table(
        "violation_files",
        sa.Column("lake", sa.String, primary_key=True),
        sa.Column("path", sa.String, primary_key=True),
        sa.Column("source_id", sa.String, nullable=False),
        sa.Column("run_id", sa.String, nullable=False),
    )
    for column in ("source_id", "run_id"):
        op.create_index(f"ix_violation_files_{column}", "violation_files", [column])
