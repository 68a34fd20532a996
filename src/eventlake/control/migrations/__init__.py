"""How the workspace database came to have its tables: one file of `versions` for each step, in order.

A new step is a file like the last one, with the next number; `NEWEST` names it. Steps are never changed once they are
released, and each works on SQLite and on PostgreSQL.
"""

from pathlib import Path

import sqlalchemy as sa

from eventlake.errors import ConfigurationError

NEWEST = "0011"
FOLDER = Path(__file__).parent

_versions = sa.table("alembic_version", sa.column("version_num", sa.String))
_ONE_AT_A_TIME = {"sqlite": "BEGIN IMMEDIATE", "postgresql": f"SELECT pg_advisory_xact_lock({0x6576_6C61_6B65})"}


def migrate(engine: sa.Engine) -> None:
    """Bring the tables of a database to what this version of eventlake works with; makes them if there are none."""
    with engine.connect() as connection:
        if _version(connection) == NEWEST:
            return
    with engine.connect() as connection:
        if lock := _ONE_AT_A_TIME.get(engine.dialect.name):
            connection.exec_driver_sql(lock)
        version = _version(connection)
        if version is not None and version > NEWEST:
            raise ConfigurationError(
                f"the workspace database was used by a newer version of eventlake: it is at step {version}, and this "
                f"version knows {NEWEST}",
                fix="install that version or a newer one: pip install --upgrade eventlake",
            )
        if version != NEWEST:
            _upgrade(connection)
        connection.commit()


def _version(connection: sa.Connection) -> str | None:
    """The last step that was taken; none in a new database, and in those of versions that had no steps yet."""
    if not sa.inspect(connection).has_table(_versions.name):
        return None
    version: str | None = connection.execute(sa.select(_versions.c.version_num)).scalar()
    return version


def _upgrade(connection: sa.Connection) -> None:
    from alembic import command  # noqa: PLC0415 - takes a while to load, and is seldom needed
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
