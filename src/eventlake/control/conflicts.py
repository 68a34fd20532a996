"""What two connections of a lake, or a connection and its lake, must not disagree about."""

from typing import TYPE_CHECKING

from eventlake.control.settings import ConnectionSettings
from eventlake.errors import InvalidSettingsError
from eventlake.schema.names import RESERVED_DATABASES
from eventlake.settings import LakeSettings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from eventlake.control.connection import Connection


def copied(origin: "Connection", target: "Connection") -> ConnectionSettings:
    """The settings of one connection for another. What a database is called belongs to its source."""
    theirs, mine = origin.settings.dialect_name, target.settings.dialect_name
    if theirs != mine:
        raise InvalidSettingsError(
            f"the settings of {origin.name} are for the dialect {theirs}, those of {target.name} for {mine}",
            fix="give the settings one by one: KEY=VALUE…",
        )
    if origin.source.id == target.source.id:
        return origin.settings
    own = {origin.settings.names_database: target.database}
    if origin.settings.warehouse:
        own["warehouse_database"] = target.settings.warehouse
    return origin.settings.model_copy(update=own)


def check_names(wanted: "Connection", before: "Connection | None") -> None:
    """Refuse names of databases that queries could not use."""
    for name in {wanted.database, wanted.settings.warehouse} & RESERVED_DATABASES:
        if before is None or before.database != name:
            raise InvalidSettingsError(
                f"the database cannot be called {name!r}: DuckDB keeps that name for itself",
                fix=f"choose any other name than {', '.join(sorted(RESERVED_DATABASES))}; the database of a new "
                "source is called like its slug",
            )


def check_runner(wanted: "Connection", lake: LakeSettings | None) -> None:
    """Refuse a cluster for a connection of a lake that does not run on EMR."""
    if wanted.settings.emr_cluster_id and lake and lake.runner.kind != "emr":
        raise InvalidSettingsError(
            f"the lake {wanted.lake!r} does not run on EMR, but with runner = {lake.runner.kind}",
            fix="leave emr_cluster_id empty, or give the lake a cluster in eventlake.toml",
            fields={"emr_cluster_id": "the lake does not run on EMR"},
        )


def check_fixed(wanted: "Connection", before: "Connection", *, is_connected: bool) -> None:
    """Refuse settings by which tables that are there would not be found any more."""
    old, new = before.settings.model_dump(mode="json"), wanted.settings.model_dump(mode="json")
    breaking = [name for name in wanted.settings.fixed_once_loaded if new[name] != old[name]]
    if breaking:
        given = " ".join(f"--set {name}={_text(new[name])}" for name in breaking)
        anew = f"`eventlake replay {wanted.name} --all {given}` writes all tables anew from the raw archive"
        as_it_was = f"connect it as it was (`eventlake connect {wanted.source.slug} {wanted.lake}`); then "
        raise InvalidSettingsError(
            f"changing {', '.join(breaking)} of {wanted.name!r} would break its existing tables",
            fix=anew if is_connected else as_it_was + anew,
        )


def _text(value: object) -> str:
    """A setting as it is given on the command line."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def check_dialect(found: "Connection", dialect: str) -> None:
    """Refuse a lake whose dialect was changed in the settings file: what is there would not be understood any more."""
    if dialect != found.settings.dialect_name:
        raise InvalidSettingsError(
            f"in the lake {found.lake!r}, the connection of {found.source.slug!r} is in the dialect "
            f"{found.settings.dialect_name}, and eventlake.toml says dialect = {dialect!r}",
            fix=f'put dialect = "{found.settings.dialect_name}" back, and give the other dialect a lake of its own',
        )


def check_warehouse(wanted: "Connection", others: "Iterable[Connection]") -> None:
    """Refuse a database of views in which there is, or can be, anything else."""
    others = [other for other in others if other.source.id != wanted.source.id]
    of_tables = {other.database: other for other in (*others, wanted)}
    of_views = {other.settings.warehouse: other for other in others if other.settings.warehouse}
    views = wanted.settings.warehouse
    for name, taken in ((views, of_tables | of_views), (wanted.database, of_views)):
        if name and name in taken:
            raise InvalidSettingsError(
                f"the database {name!r} belongs to the source {taken[name].source.slug!r}",
                fix="a database of views has nothing else in it: choose another",
                fields={"warehouse_database": "this database has something else in it"} if name == views else None,
            )


def check_apart(wanted: "Connection", others: "Iterable[Connection]") -> None:
    """Refuse a connection if one of its tables could have the name of a table of another in the same catalog."""
    mine = wanted.settings.prefix
    for other in others:
        theirs = other.settings.prefix
        is_itself = (other.source.id, other.lake) == (wanted.source.id, wanted.lake)
        if is_itself or other.database != wanted.database:
            continue
        apart = mine and theirs and not f"{mine}_".startswith(f"{theirs}_") and not f"{theirs}_".startswith(f"{mine}_")
        if not apart:
            where = "" if other.lake == wanted.lake else ", whose lake is shown in the same catalog"
            raise InvalidSettingsError(
                f"the database {wanted.database!r} of {wanted.full_name} belongs to the connection "
                f"{other.full_name}{where}",
                fix="choose another database, or give both sources table prefixes that do not begin alike"
                if wanted.settings.has_prefix
                else f"choose another {wanted.settings.names_database}",
            )
