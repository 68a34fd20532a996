"""What lists tell of tables is found in the index alone, since when there are rows among it."""

from alembic import op

revision = "0010"
down_revision = "0009"

_COLUMNS = ["source_id", "table_key", "lake", "rows", "size", "first_received", "last_received"]


def upgrade() -> None:
    op.drop_index("ix_data_files_sums", "data_files")
    op.create_index("ix_data_files_sums", "data_files", _COLUMNS)
