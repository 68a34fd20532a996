"""A data file may hold values that rows of another table could not: which table that is, is told by `owner`."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("data_files", sa.Column("owner", sa.String, nullable=False, server_default=""))
