"""Tables of the workspace database that `eventlake serve` needs: orders, people, alerts, what was collected.

Nothing of the lake depends on them. Times are microseconds since 1970, UTC.
"""

import sqlalchemy as sa

from eventlake.control.database import metadata

orders = sa.Table(  # what people asked for, to be carried out by a scheduler
    "orders",
    metadata,
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("lake", sa.String, nullable=False),
    sa.Column("source_id", sa.String, nullable=False),
    sa.Column("kind", sa.String, nullable=False),
    sa.Column("arguments", sa.JSON, nullable=False),
    sa.Column("asked_by", sa.String, nullable=False),
    sa.Column("asked_at", sa.BigInteger, nullable=False),
    sa.Column("status", sa.String, nullable=False, index=True),  # waiting, running, done, failed, cancelled
    sa.Column("taken_by", sa.String),  # which scheduler carries it out
    sa.Column("alive_at", sa.BigInteger),  # when whoever carries it out was last known to live
    sa.Column("finished_at", sa.BigInteger),
    sa.Column("run_id", sa.String),  # the last that it led to
    sa.Column("problem", sa.String),
    sa.Column("fix", sa.String),
    sa.Column("stop_asked", sa.Boolean, nullable=False),
)

users = sa.Table(
    "users",
    metadata,
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("password_hash", sa.String, nullable=False),
    sa.Column("role", sa.String, nullable=False),  # read, operate, admin
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("failures", sa.Integer, nullable=False),  # to sign in, since the last success
    sa.Column("locked_until", sa.BigInteger, nullable=False),
)

invitations = sa.Table(  # links by which a user is made, once
    "invitations",
    metadata,
    sa.Column("hash", sa.String, primary_key=True),
    sa.Column("role", sa.String, nullable=False),
    sa.Column("expires_at", sa.BigInteger, nullable=False),
)

sessions = sa.Table(  # of users who are signed in
    "sessions",
    metadata,
    sa.Column("hash", sa.String, primary_key=True),
    sa.Column("user_name", sa.String, nullable=False, index=True),
    sa.Column("csrf", sa.String, nullable=False),
    sa.Column("expires_at", sa.BigInteger, nullable=False),
)

tokens = sa.Table(  # by which programs use the HTTP API
    "tokens",
    metadata,
    sa.Column("hash", sa.String, primary_key=True),  # the token itself is shown once and never stored
    sa.Column("id", sa.String, nullable=False, unique=True),
    sa.Column("name", sa.String, nullable=False),
    sa.Column("scope", sa.String, nullable=False),  # read, operate, admin
    sa.Column("made_by", sa.String, nullable=False),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("used_at", sa.BigInteger),
)

audit = sa.Table(  # every change that was made through the console or the HTTP API
    "audit",
    metadata,
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("at", sa.BigInteger, nullable=False),
    sa.Column("who", sa.String, nullable=False),
    sa.Column("action", sa.String, nullable=False),
    sa.Column("target", sa.String, nullable=False),
    sa.Column("before", sa.JSON(none_as_null=True)),
    sa.Column("after", sa.JSON(none_as_null=True)),
)

subscriptions = sa.Table(  # who is told of which alerts
    "subscriptions",
    metadata,
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("kind", sa.String, nullable=False),
    sa.Column("source_id", sa.String),  # none: of all sources
    sa.Column("channel", sa.String, nullable=False),
    sa.Column("threshold", sa.Float),
    sa.Column("created_at", sa.BigInteger, nullable=False),
)

alerts = sa.Table(
    "alerts",
    metadata,
    sa.Column("id", sa.String, primary_key=True),  # made of what it is about: nothing is told twice
    sa.Column("at", sa.BigInteger, nullable=False, index=True),
    sa.Column("kind", sa.String, nullable=False),
    sa.Column("lake", sa.String),
    sa.Column("source_id", sa.String),
    sa.Column("subject", sa.String, nullable=False),
    sa.Column("body", sa.String, nullable=False),
    sa.Column("link", sa.String, nullable=False),  # a page of the console
)

deliveries = sa.Table(  # of alerts, by channel
    "deliveries",
    metadata,
    sa.Column("alert_id", sa.String, primary_key=True),
    sa.Column("channel", sa.String, primary_key=True),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("next_at", sa.BigInteger, index=True),  # none: delivered, or given up
    sa.Column("delivered_at", sa.BigInteger),
    sa.Column("problem", sa.String),
)

collected = sa.Table(  # how much the collector of a place had taken by the end of an hour, since it was set up
    "collected",
    metadata,
    sa.Column("place", sa.String, primary_key=True),
    sa.Column("source_id", sa.String, primary_key=True),
    sa.Column("hour", sa.BigInteger, primary_key=True),
    sa.Column("accepted", sa.BigInteger, nullable=False),
    sa.Column("refused", sa.BigInteger, nullable=False),
    sa.Column("copies", sa.BigInteger, nullable=False),
)
