"""Who runs a source is known to all machines that share the database."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "leases",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("fence", sa.BigInteger, nullable=False),
        sa.Column("host", sa.String, nullable=False),
        sa.Column("pid", sa.BigInteger, nullable=False),
        sa.Column("since", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
    )
