"""Who must not be in the lake, what was asked about them, and how often that changed."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.create_table(
        "suppressions",
        sa.Column("source_id", sa.String, primary_key=True),
        sa.Column("path", sa.String, primary_key=True),
        sa.Column("hash", sa.LargeBinary, primary_key=True),
        sa.Column("check", sa.BigInteger, nullable=False),
        sa.Column("subject", sa.String),
        sa.Column("added_at", sa.BigInteger, nullable=False),
        sa.Column("added_by", sa.String, nullable=False),
    )
    op.create_index("ix_suppressions_added_at", "suppressions", ["added_at"])
    op.create_table(
        "regulations",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("type", sa.String, nullable=False),
        sa.Column("subject_type", sa.String, nullable=False),
        sa.Column("subjects", sa.BigInteger, nullable=False),
        sa.Column("source_id", sa.String, nullable=False),
        sa.Column("status", sa.String, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("finished_at", sa.BigInteger),
        sa.Column("asked_by", sa.String, nullable=False),
    )
    op.create_table(
        "policy_versions",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("version", sa.BigInteger, nullable=False),
    )
