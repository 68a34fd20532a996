"""Connections: which sources go to which lakes, and how."""

from collections.abc import Callable, Iterable

import sqlalchemy as sa

from eventlake.control import database as db
from eventlake.control.conflicts import (
    check_apart,
    check_dialect,
    check_fixed,
    check_names,
    check_runner,
    check_warehouse,
    copied,
)
from eventlake.control.connection import Connection as Connection  # noqa: PLC0414 - who asks for these asks for it
from eventlake.control.settings import ConnectionSettings, as_stored, changed, default_settings
from eventlake.control.sources import Source, Sources
from eventlake.errors import ConfigurationError, InvalidSettingsError, NotFoundError, SetupError
from eventlake.lake.kept_connection import KeptConnection
from eventlake.settings import DEFAULT_LAKE, Settings


class Connections:
    """The connections that a workspace database knows, to the lakes of the settings."""

    def __init__(
        self,
        engine: sa.Engine,
        sources: Sources,
        settings: Settings,
        now: Callable[[], int],
        after_change: Callable[[Connection], None],
    ) -> None:
        self._engine = engine
        self._sources = sources
        self._lakes = settings.all_lakes
        self._wrong = settings.wrong_lakes
        self._now = now
        self._after_change = after_change

    def all(self) -> list[Connection]:
        """In order of sources, the default lake first."""
        return self._select(db.connections.c.connected)

    def of_lake(self, lake: str) -> list[Connection]:
        """Also those that were disconnected: their tables are still there."""
        return self._select(db.connections.c.lake == lake)

    def of_source(self, source_id: str) -> list[Connection]:
        """Also those that were disconnected."""
        return self._select(db.connections.c.source_id == source_id)

    def find(self, name: str) -> list[Connection]:
        """SOURCE: all connections of a source. SOURCE/LAKE: that one."""
        slug, slash, lake = name.partition("/")
        source = self._sources.get(slug)
        of_source = [connection for connection in self.all() if connection.source.id == source.id]
        found = [connection for connection in of_source if not slash or connection.lake == lake]
        if not found:
            if slash:
                self._check_lake(lake)
            connected = ", ".join(connection.lake for connection in of_source)
            raise NotFoundError(
                f"{source.slug} is not connected to {f'the lake {lake!r}' if slash else 'any lake'}",
                fix=f"`eventlake connect {source.slug}{f' {lake}' if slash else ''}`"
                + (f"; it is connected to: {connected}" if connected else ""),
            )
        return found

    def meant(self, names: Iterable[str] | None) -> list[Connection]:
        """All that these names mean, each once; without any, all that there are."""
        found = [one for name in names for one in self.find(name)] if names else self.all()
        return list({(one.source.id, one.lake): one for one in found}.values())

    def get(self, name: str) -> Connection:
        """The one connection that is meant; of a source that has several, the one to the default lake."""
        found = self.find(name)
        if len(found) > 1 and found[0].lake != DEFAULT_LAKE:  # which comes first
            raise InvalidSettingsError(
                f"{name} is connected to {len(found)} lakes",
                fix="name one: " + " or ".join(f"{one.source.slug}/{one.lake}" for one in found),
            )
        return found[0]

    def of_table(self, lake: str, source_id: str) -> Connection:
        """The connection whose tables these are, connected or not."""
        return next(one for one in self.of_lake(lake) if one.source.id == source_id)

    def add_source(
        self, slug: str, *, source_id: str | None = None, name: str | None = None, lake: str = DEFAULT_LAKE
    ) -> tuple[Connection, str]:
        """A new source, connected to a lake, and its write key, which is not stored and cannot be shown again."""
        source = self._sources.new(slug, source_id=source_id, name=name)
        self._check_lake(lake)
        wanted = self._new(source, lake)
        self._check(wanted, None)
        with self._engine.begin() as connection:
            key = self._sources.insert(connection, source)
            self._put(connection, wanted)
        self._after_change(wanted)
        return wanted, key

    def connect(
        self, slug: str, lake: str = DEFAULT_LAKE, changes: dict[str, str] | None = None, *, like: str | None = None
    ) -> Connection:
        """Connect a source to a lake, with the settings of another connection if it shall be like that.

        A source that was in the lake before goes on where it ended.
        """
        wanted, before = self.planned(slug, lake, changes, like=like)
        with self._engine.begin() as connection:
            self._put(connection, wanted, is_there=before is not None)
        self._after_change(wanted)
        return wanted

    def planned(
        self, slug: str, lake: str, changes: dict[str, str] | None = None, *, like: str | None = None
    ) -> tuple[Connection, Connection | None]:
        """The connection that `connect` would make, and what was there before; what it would refuse is refused."""
        source = self._sources.get(slug)
        self._check_lake(lake)
        before = next((one for one in self.of_lake(lake) if one.source.id == source.id), None)
        if before and before in self.all():
            raise InvalidSettingsError(
                f"{source.slug} is connected to the lake {lake!r} already",
                fix=f"`eventlake connection set {before.name} KEY=VALUE…` changes its settings",
            )
        base = before or self._new(source, lake)
        settings = copied(self.get(like), base) if like else base.settings
        wanted = base._replace(enabled=True, settings=changed(settings, changes or {}))
        self._check(wanted, before)
        return wanted, before

    def kept(self, of: Connection, workspace_id: str) -> KeptConnection | None:
        """What a lake is to keep of a connection, as it is now; None if it was removed."""
        with self._engine.connect() as connection:
            connected = connection.scalar(sa.select(db.connections.c.connected).where(_here(of)))
        found = self._select(_here(of))
        return found[0].kept(self._now(), workspace_id, connected=bool(connected)) if found else None

    def restore(self, source_id: str, lake: str, slug: str, name: str, settings: ConnectionSettings) -> Connection:
        """Put a connection back that the database had lost, with its source if that is lost, too."""
        for known in self.of_lake(lake):
            if known.source.id == source_id:
                return self.put_back(known._replace(settings=settings))
        sources = [source for source in self._sources.all() if source.id == source_id]
        source = sources[0] if sources else self._sources.new(slug, source_id=source_id, name=name)
        wanted = Connection(source, lake, True, settings)
        with self._engine.begin() as connection:
            if not sources:
                self._sources.insert_without_key(connection, wanted.source)
            self._put(connection, wanted)
        return wanted

    def put_back(self, wanted: Connection, *, connected: bool = True) -> Connection:
        """Let a connection that is there, and its source, be as they were."""
        row = {"enabled": wanted.enabled, "connected": connected, "settings": wanted.settings.model_dump(mode="json")}
        with self._engine.begin() as connection:
            connection.execute(db.connections.update().where(_here(wanted)).values(row))
            of_source = db.sources.c.id == wanted.source.id
            connection.execute(db.sources.update().where(of_source).values(enabled=wanted.source.enabled))
        return wanted

    def disconnect(self, name: str) -> Connection:
        """Load nothing of a source into a lake any more. Its tables stay; so do its books, for when it comes back."""
        found = self.get(name)
        with self._engine.begin() as connection:
            here = _here(found)
            if self._has(db.runs, found):
                connection.execute(db.connections.update().where(here).values(connected=False, enabled=False))
            else:
                connection.execute(db.connections.delete().where(here))
        self._after_change(found)
        return found

    def change(self, name: str, changes: dict[str, str]) -> Connection:
        """Change settings; one that would break the tables that exist is refused."""
        before, wanted = self.get(name), self.preview(name, changes)
        self._check(wanted, before)
        self._save(wanted)
        return wanted

    def copy(self, origin: str, name: str) -> Connection:
        """Give a connection the settings of another."""
        before = self.get(name)
        wanted = before._replace(settings=copied(self.get(origin), before))
        self._check(wanted, before)
        self._save(wanted)
        return wanted

    def preview(self, name: str, changes: dict[str, str]) -> Connection:
        """The connection as it would be with other settings, checked but not saved; it may break existing tables."""
        before = self.get(name)
        wanted = before._replace(settings=changed(before.settings, changes))
        self._check_database(wanted, before)
        return wanted

    def enable(self, name: str, enabled: bool) -> Connection:
        wanted = self.get(name)._replace(enabled=enabled)
        self._save(wanted)
        return wanted

    def _new(self, source: Source, lake: str) -> Connection:
        settings = default_settings(self._lakes[lake].dialect, source.slug, source.name)
        return Connection(source, lake, True, settings)

    def _put(self, connection: sa.Connection, wanted: Connection, *, is_there: bool = False) -> None:
        row = {"enabled": wanted.enabled, "connected": True, "settings": wanted.settings.model_dump(mode="json")}
        if is_there:  # with the last run that it knows
            connection.execute(db.connections.update().where(_here(wanted)).values(row))
        else:
            key = {"source_id": wanted.source.id, "lake": wanted.lake, "created_at": self._now()}
            connection.execute(db.connections.insert().values(row | key))

    def no_lake(self, name: str) -> SetupError:
        """What there is to say of a lake that the settings do not have, or not as it could be used."""
        if name in self._wrong:
            others = "" if name == DEFAULT_LAKE else "; the other lakes do without this one"
            return ConfigurationError(
                self._wrong[name], fix=f"correct the settings file or the EVENTLAKE_… variable{others}"
            )
        known = ", ".join(self._lakes)
        left = [one.full_name for one in self.of_lake(name) if one in self.all()]
        if not left:
            fix = f"use one of {known}; a new one gets a section [lakes.NAME] in eventlake.toml"
        else:
            ways = " and ".join(f"`eventlake disconnect {one}`" for one in left)
            fix = f"put [lakes.{name}] back into eventlake.toml, under the name it had; or give it up: {ways}"
        return NotFoundError(f"there is no lake {name!r} in eventlake.toml", fix=fix)

    def _check_lake(self, lake: str) -> None:
        if lake not in self._lakes:
            raise self.no_lake(lake)

    def _check(self, wanted: Connection, before: Connection | None) -> None:
        self._check_database(wanted, before)
        if before is not None and (self._has(db.data_files, before) or self._has(db.runs, before, kind="adopt")):
            check_fixed(wanted, before, is_connected=before in self.all())

    def _check_database(self, wanted: Connection, before: Connection | None) -> None:
        """Two connections of a lake share a database only if no table of one can have the name of one of the other."""
        check_names(wanted, before)
        check_runner(wanted, self._lakes.get(wanted.lake))
        in_lake = self.of_lake(wanted.lake)
        for one in in_lake if wanted.lake in self._lakes else ():
            check_dialect(one, self._lakes[wanted.lake].dialect)
        check_apart(wanted, in_lake)
        check_warehouse(wanted, in_lake)
        is_as_before = before is not None and before in self.all() and wanted.database == before.database
        if not is_as_before:  # those that are there already have found their way
            self._check_lake(wanted.lake)
            check_apart(wanted, self._shown_beside(wanted.lake))

    def _shown_beside(self, lake: str) -> list[Connection]:
        """The connections of other lakes whose tables are shown in the same catalog as those of a lake."""
        catalog = self._lakes[lake].shared_catalog
        others = {
            name for name, other in self._lakes.items() if catalog and other.shared_catalog == catalog and name != lake
        }
        return [one for one in self.all() if one.lake in others]

    def _save(self, wanted: Connection) -> None:
        row = {"enabled": wanted.enabled, "settings": wanted.settings.model_dump(mode="json")}
        with self._engine.begin() as connection:
            connection.execute(db.connections.update().where(_here(wanted)).values(row))
        self._after_change(wanted)

    def _has(self, table: sa.Table, found: Connection, **those: str) -> bool:
        like = (table.c[name] == value for name, value in those.items())
        here = sa.and_(table.c.lake == found.lake, table.c.source_id == found.source.id, *like)
        with self._engine.connect() as connection:
            return bool(connection.scalar(sa.select(sa.exists().where(here))))

    def _select(self, condition: sa.ColumnElement[bool]) -> list[Connection]:
        sources = {source.id: source for source in self._sources.all()}
        with self._engine.connect() as connection:
            rows = connection.execute(sa.select(db.connections).where(condition)).all()
        found = []
        for row in rows:
            found.append(Connection(sources[row.source_id], row.lake, row.enabled, as_stored(row.settings)))
        return sorted(found, key=lambda one: (one.source.slug, one.lake != DEFAULT_LAKE, one.lake))


def _here(found: Connection) -> sa.ColumnElement[bool]:
    return sa.and_(db.connections.c.source_id == found.source.id, db.connections.c.lake == found.lake)
