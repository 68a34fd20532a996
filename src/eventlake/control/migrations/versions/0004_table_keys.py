"""A table is known by its key, whatever the dialect; a connection knows its last run, and a replay how far it is.

Runs that are recorded from now on tell on top of which other they were made.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    for table in ("data_files", "dropped_tables", "refused_tables", "catalog_tables"):
        op.execute(f"ALTER TABLE {table} RENAME COLUMN segment_type TO table_key")
    op.add_column("connections", sa.Column("last_run", sa.String))
    op.create_table(
        "replays",
        sa.Column("lake", sa.String, primary_key=True),
        sa.Column("source_id", sa.String, primary_key=True),
        sa.Column("asked_from", sa.BigInteger),
        sa.Column("asked_to", sa.BigInteger),
        sa.Column("start", sa.BigInteger, nullable=False),
        sa.Column("table_keys", sa.JSON),
        sa.Column("parts", sa.Integer, nullable=False),
        sa.Column("done", sa.Integer, nullable=False),
    )
