"""What two connections of a lake, or a connection and its lake, must not disagree about."""

from typing import TYPE_CHECKING

from eventlake.errors import InvalidSettingsError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from eventlake.control.connections import Connection


def check_dialect(found: "Connection", dialect: str | None) -> None:
    """Refuse a lake whose dialect was changed in the settings file: what is there would not be understood any more."""
    if dialect not in (None, found.settings.dialect_name):  # a lake that is no longer in the settings has none
        raise InvalidSettingsError(
            f"in the lake {found.lake!r}, the connection of {found.source.slug!r} is in the dialect "
            f"{found.settings.dialect_name}, and eventlake.toml says dialect = {dialect!r}",
            fix=f'put dialect = "{found.settings.dialect_name}" back, and give the other dialect a lake of its own',
        )


def check_apart(wanted: "Connection", others: "Iterable[Connection]") -> None:
    """Refuse a connection if one of its tables could have the name of a table of another."""
    mine = wanted.settings.prefix
    for other in others:
        theirs = other.settings.prefix
        if other.source.id == wanted.source.id or other.database != wanted.database:
            continue
        apart = mine and theirs and not f"{mine}_".startswith(f"{theirs}_") and not f"{theirs}_".startswith(f"{mine}_")
        if not apart:
            raise InvalidSettingsError(
                f"the database {wanted.database!r} of {wanted.name!r} belongs to the source {other.source.slug!r}",
                fix="choose another database, or give both sources table prefixes that do not begin alike"
                if wanted.settings.has_prefix
                else f"choose another {wanted.settings.names_database}",
            )
