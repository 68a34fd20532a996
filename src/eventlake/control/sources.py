"""Sources of a workspace."""

import hashlib
import re
import secrets
import string
from collections.abc import Callable
from typing import NamedTuple

import sqlalchemy as sa

from eventlake.control import database as db
from eventlake.errors import InvalidSettingsError, NotFoundError

_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,99}")

# Write keys have no dash: one at the beginning would be taken for an option, by us and by others.
_KEY_LETTERS = string.ascii_letters + string.digits
_KEY_LENGTH = 32


class Source(NamedTuple):
    """One app that sends events."""

    id: str
    slug: str
    name: str
    enabled: bool  # else its events are refused


class WriteKey(NamedTuple):
    """What is known of a write key; the key itself is shown once and never stored."""

    hash: str
    created_at: int


def key_hash(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


class Sources:
    """The sources that a workspace database knows."""

    def __init__(self, engine: sa.Engine, now: Callable[[], int], after_change: Callable[[str], None]) -> None:
        self._engine = engine
        self._now = now
        self._after_change = after_change  # of a source with this id

    def all(self) -> list[Source]:
        with self._engine.connect() as connection:
            rows = connection.execute(sa.select(db.sources).order_by(db.sources.c.slug)).all()
        return [Source(row.id, row.slug, row.name, row.enabled) for row in rows]

    def slugs(self) -> dict[str, str]:
        """Source id → slug."""
        return {source.id: source.slug for source in self.all()}

    def get(self, slug: str) -> Source:
        for source in self.all():
            if slug in (source.slug, source.id):
                return source
        known = ", ".join(source.slug for source in self.all()) or "there is none yet"
        adding = f"`eventlake source add {slug}`, or " if _SLUG.fullmatch(slug) else ""
        raise NotFoundError(f"there is no source {slug!r}", fix=f"{adding}use one of: {known}")

    def new(self, slug: str, *, source_id: str | None = None, name: str | None = None) -> Source:
        """A source that could be added, checked but not saved."""
        if not _SLUG.fullmatch(slug):
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
        taken = {slug, source_id} & {name for other in self.all() for name in (other.slug, other.id)}
        if taken:
            raise InvalidSettingsError(
                f"there is already a source with the slug or id {' and '.join(map(repr, sorted(taken)))}",
                fix="choose another, or see `eventlake source list`",
            )
        return Source(source_id, slug, name or slug, True)

    def insert(self, connection: sa.Connection, source: Source) -> str:
        """Save a new source; its write key, which is not stored and cannot be shown again."""
        self.insert_without_key(connection, source)
        return self._new_key(connection, source.id)

    def insert_without_key(self, connection: sa.Connection, source: Source) -> None:
        connection.execute(db.sources.insert().values(**source._asdict(), created_at=self._now()))

    def add_key(self, slug: str) -> str:
        """Another write key for a source; the others stay valid."""
        source = self.get(slug)
        with self._engine.begin() as connection:
            return self._new_key(connection, source.id)

    def _new_key(self, connection: sa.Connection, source_id: str) -> str:
        key = "".join(secrets.choice(_KEY_LETTERS) for _ in range(_KEY_LENGTH))
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

    def of_records(self) -> frozenset[str]:
        """The ids of sources that send records of a cloud application, as one of their connections says."""
        query = sa.select(db.connections.c.source_id, db.connections.c.settings).where(db.connections.c.connected)
        with self._engine.connect() as connection:
            rows = connection.execute(query).all()
        return frozenset(row.source_id for row in rows if row.settings.get("source_category") == "cloud")

    def enable(self, slug: str, enabled: bool) -> Source:
        """Let the collector take events of a source, or refuse them. What is archived is loaded all the same."""
        source = self.get(slug)._replace(enabled=enabled)
        with self._engine.begin() as connection:
            connection.execute(db.sources.update().where(db.sources.c.id == source.id).values(enabled=enabled))
        self._after_change(source.id)
        return source
