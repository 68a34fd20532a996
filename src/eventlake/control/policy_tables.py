"""Tables of the workspace database about what may get in. Times are microseconds since 1970, UTC."""

import sqlalchemy as sa

from eventlake.control.database import metadata

suppressions = sa.Table(
    "suppressions",
    metadata,
    sa.Column("source_id", sa.String, primary_key=True),  # empty for all sources
    sa.Column("path", sa.String, primary_key=True),  # where events name the subject, with dots
    sa.Column("hash", sa.LargeBinary, primary_key=True),
    sa.Column("check", sa.BigInteger, nullable=False),
    sa.Column("subject", sa.String),  # none if the list was restored from a lake, which has only hashes
    sa.Column("added_at", sa.BigInteger, nullable=False, index=True),
    sa.Column("added_by", sa.String, nullable=False),
)

regulations = sa.Table(  # what was asked for over the HTTP API, as Segment's has it
    "regulations",
    metadata,
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("type", sa.String, nullable=False),
    sa.Column("subject_type", sa.String, nullable=False),
    sa.Column("subjects", sa.BigInteger, nullable=False),  # how many
    sa.Column("source_id", sa.String, nullable=False),  # empty for all sources
    sa.Column("status", sa.String, nullable=False),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("finished_at", sa.BigInteger),
    sa.Column("asked_by", sa.String, nullable=False),
)

policy_versions = sa.Table(  # grow with every change, so that whoever holds a copy knows that it is old
    "policy_versions",
    metadata,
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("version", sa.BigInteger, nullable=False),
)

plans = sa.Table(
    "plans",
    metadata,
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("name", sa.String, nullable=False, unique=True),
    sa.Column("version", sa.BigInteger, nullable=False),  # the one that is enforced
    sa.Column("created_at", sa.BigInteger, nullable=False),
)

plan_versions = sa.Table(
    "plan_versions",
    metadata,
    sa.Column("plan_id", sa.String, primary_key=True),
    sa.Column("version", sa.BigInteger, primary_key=True),
    sa.Column("content", sa.LargeBinary, nullable=False),  # in the form of Segment's public API
    sa.Column("saved_at", sa.BigInteger, nullable=False),
    sa.Column("saved_by", sa.String, nullable=False),
)

source_plans = sa.Table(  # of sources that have a plan, or have had one
    "source_plans",
    metadata,
    sa.Column("source_id", sa.String, primary_key=True),
    sa.Column("plan_id", sa.String),
    sa.Column("enforcement", sa.LargeBinary, nullable=False),
)

transformations = sa.Table(
    "transformations",
    metadata,
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("source_id", sa.String, nullable=False, index=True),
    sa.Column("position", sa.BigInteger, nullable=False),  # in which they are applied
    sa.Column("content", sa.LargeBinary, nullable=False),
    sa.Column("changed_at", sa.BigInteger, nullable=False),
    sa.Column("changed_by", sa.String, nullable=False),
)
