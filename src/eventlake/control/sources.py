"""Sources of a workspace."""

import hashlib
import re
import secrets
from collections.abc import Callable
from typing import NamedTuple

import sqlalchemy as sa

from eventlake.control import database as db
from eventlake.control.settings import FIXED_ONCE_LOADED, SourceSettings, changed
from eventlake.errors import InvalidSettingsError, NotFoundError
from eventlake.lake.layout import LakeRules
from eventlake.schema.names import RESERVED_DATABASES, database_name


class Source(NamedTuple):
    """One app that sends events."""

    id: str
    slug: str
    name: str
    enabled: bool
    settings: SourceSettings

    @property
    def rules(self) -> LakeRules:
        settings = self.settings
        return LakeRules(
            source_folder=self.slug if settings.partition_by_slug else self.id,
            database=settings.database,
            table_prefix=settings.table_prefix,
            date_partition=settings.date_partition,
            naming=settings.table_naming,
        )


class WriteKey(NamedTuple):
    """What is known of a write key; the key itself is shown once and never stored."""

    hash: str
    created_at: int


def key_hash(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


class Sources:
    """The sources that a workspace database knows."""

    def __init__(self, engine: sa.Engine, now: Callable[[], int]) -> None:
        self._engine = engine
        self._now = now

    def all(self) -> list[Source]:
        with self._engine.connect() as connection:
            rows = connection.execute(sa.select(db.sources).order_by(db.sources.c.slug)).all()
        return [_source(row) for row in rows]

    def get(self, slug: str) -> Source:
        for source in self.all():
            if slug in (source.slug, source.id):
                return source
        known = ", ".join(source.slug for source in self.all()) or "there is none yet"
        raise NotFoundError(
            f"there is no source {slug!r}", fix=f"`eventlake source add {slug}`, or use one of: {known}"
        )

    def add(self, slug: str, *, source_id: str | None = None, name: str | None = None) -> tuple[Source, str]:
        """A new source and its write key, which is not stored and cannot be shown again."""
        if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,99}", slug):
            raise InvalidSettingsError(
                f"{slug!r} is not a slug",
                fix="use up to 100 of a-z, 0-9, - and _, beginning with a letter or a digit",
            )
        source_id = source_id or secrets.token_hex(8)
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", source_id):
            raise InvalidSettingsError(
                f"{source_id!r} is not a source id",
                fix="use up to 100 letters, digits, - and _, as it names a folder",
            )
        others = self.all()
        taken = {slug, source_id} & {name for other in others for name in (other.slug, other.id)}
        if taken:
            raise InvalidSettingsError(
                f"there is already a source with the slug or id {' and '.join(map(repr, sorted(taken)))}",
                fix="choose another, or see `eventlake source list`",
            )
        settings = SourceSettings(database=database_name(slug))
        source = Source(source_id, slug, name or slug, True, settings)
        _check_name(settings.database)
        _check_database(source, others)
        with self._engine.begin() as connection:
            row = source._asdict() | {"settings": settings.model_dump(mode="json"), "created_at": self._now()}
            connection.execute(db.sources.insert().values(row))
            key = self._new_key(connection, source_id)
        return source, key

    def add_key(self, slug: str) -> str:
        """Another write key for a source; the others stay valid."""
        source = self.get(slug)
        with self._engine.begin() as connection:
            return self._new_key(connection, source.id)

    def _new_key(self, connection: sa.Connection, source_id: str) -> str:
        key = secrets.token_urlsafe(24)
        row = {"key_hash": key_hash(key), "source_id": source_id, "created_at": self._now()}
        connection.execute(db.write_keys.insert().values(row))
        return key

    def keys(self, slug: str) -> list[WriteKey]:
        """The write keys of a source, oldest first."""
        table = db.write_keys
        query = sa.select(table).where(table.c.source_id == self.get(slug).id).order_by(table.c.created_at)
        with self._engine.connect() as connection:
            return [WriteKey(row.key_hash, row.created_at) for row in connection.execute(query)]

    def revoke_key(self, slug: str, name: str) -> WriteKey:
        """Take a write key back, given itself or the beginning of its hash."""
        found = [key for key in self.keys(slug) if key.hash.startswith(name.lower()) or key.hash == key_hash(name)]
        if len(found) != 1 or not name:
            raise NotFoundError(
                f"{'more than one key' if len(found) > 1 else 'no key'} of {slug!r} is meant by that",
                fix=f"give the key itself or the beginning of its hash, see `eventlake source keys {slug}`",
            )
        with self._engine.begin() as connection:
            connection.execute(db.write_keys.delete().where(db.write_keys.c.key_hash == found[0].hash))
        return found[0]

    def key_hashes(self) -> dict[str, Source]:
        """The source of each write key, by the key's hash."""
        sources = {source.id: source for source in self.all()}
        with self._engine.connect() as connection:
            rows = connection.execute(sa.select(db.write_keys.c.key_hash, db.write_keys.c.source_id)).all()
        return {row.key_hash: sources[row.source_id] for row in rows if row.source_id in sources}

    def change(self, slug: str, changes: dict[str, str]) -> Source:
        """Change settings; one that would break the tables that exist is refused."""
        source, wanted = self.get(slug), self.preview(slug, changes)
        breaking = [
            name for name in FIXED_ONCE_LOADED if getattr(wanted.settings, name) != getattr(source.settings, name)
        ]
        if breaking and self._has_data(source):
            given = " ".join(f"--set {name}={changes[name]}" for name in breaking)
            raise InvalidSettingsError(
                f"changing {', '.join(breaking)} of {slug!r} would break its existing tables",
                fix=f"`eventlake replay {slug} --all {given}` writes all tables anew from the raw archive",
            )
        self.save(wanted)
        return wanted

    def preview(self, slug: str, changes: dict[str, str]) -> Source:
        """The source as it would be with other settings, checked but not saved."""
        source = self.get(slug)
        wanted = source._replace(settings=changed(source.settings, changes))
        if wanted.settings.database != source.settings.database:
            _check_name(wanted.settings.database)
        _check_database(wanted, [other for other in self.all() if other.id != source.id])
        return wanted

    def enable(self, slug: str, enabled: bool) -> Source:
        source = self.get(slug)._replace(enabled=enabled)
        self.save(source)
        return source

    def save(self, source: Source) -> None:
        row = source._asdict() | {"settings": source.settings.model_dump(mode="json")}
        with self._engine.begin() as connection:
            connection.execute(db.sources.update().where(db.sources.c.id == source.id).values(row))

    def _has_data(self, source: Source) -> bool:
        query = sa.select(db.data_files.c.path).where(db.data_files.c.source_id == source.id).limit(1)
        with self._engine.connect() as connection:
            return connection.execute(query).first() is not None


def _source(row: sa.Row[tuple[object, ...]]) -> Source:
    fields = row._mapping
    settings = SourceSettings.model_validate(fields["settings"])
    return Source(fields["id"], fields["slug"], fields["name"], fields["enabled"], settings)


def _check_name(database: str) -> None:
    if database in RESERVED_DATABASES:
        raise InvalidSettingsError(
            f"the database cannot be called {database!r}: DuckDB keeps that name for itself",
            fix=f"choose any other name than {', '.join(sorted(RESERVED_DATABASES))}; the database of a new source is "
            "called like its slug",
        )


def _check_database(source: Source, others: list[Source]) -> None:
    """Two sources may share a database only if no table of one can have the name of a table of the other."""
    mine = source.settings.table_prefix
    for other in others:
        theirs = other.settings.table_prefix
        if other.settings.database != source.settings.database:
            continue
        apart = mine and theirs and not f"{mine}_".startswith(f"{theirs}_") and not f"{theirs}_".startswith(f"{mine}_")
        if not apart:
            raise InvalidSettingsError(
                f"the database {source.settings.database!r} belongs to the source {other.slug!r}",
                fix="choose another database, or give both sources table prefixes that do not begin alike",
            )
