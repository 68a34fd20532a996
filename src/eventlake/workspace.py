"""A workspace: one installation with its settings, its database, its raw archive and its lakes."""

import os
import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cached_property, partial
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Self, cast

from eventlake.archive import annexes
from eventlake.archive import layout as archive
from eventlake.archive.annexes import Annex
from eventlake.archive.whole import WholeArchive
from eventlake.catalog import choice
from eventlake.catalog.base import Catalog, CatalogTable
from eventlake.catalog.embedded import EmbeddedCatalog
from eventlake.catalog.mirrored import MirroredCatalog
from eventlake.catalog.warehouse import View, views
from eventlake.clock import Clock
from eventlake.control.admission import Admission
from eventlake.control.conflicts import check_dialect
from eventlake.control.connections import Connection, Connections
from eventlake.control.leases import Leases
from eventlake.control.ledger import Ledger
from eventlake.control.replays import Replays
from eventlake.control.runs import History, Runs
from eventlake.control.settings import DIALECTS
from eventlake.control.sources import Sources
from eventlake.control.stores import Stores
from eventlake.errors import ConfigurationError, EventLakeError, InvalidSettingsError
from eventlake.lake import kept_connection
from eventlake.lake.layout import Folders
from eventlake.lake.segment import SegmentDialect
from eventlake.settings import DEFAULT_LAKE, LakeSettings, Settings, storages
from eventlake.settings.file import CONFIG as CONFIG  # noqa: PLC0414 - whoever asks for a workspace asks for it
from eventlake.settings.file import TEMPLATE, read_file
from eventlake.settings.file import read_settings as read_settings  # noqa: PLC0414
from eventlake.settings.storage import StorageSettings
from eventlake.storage import private
from eventlake.storage.base import Storage

if TYPE_CHECKING:
    from eventlake.catalog.glue import GlueCatalog
    from eventlake.catalog.hive import HiveCatalog

PATIENCE_WITH_NOTES = 5.0  # seconds: whoever changes a connection shall not wait for a lake that is down


class Workspace(Stores):
    def __init__(self, folder: Path, settings: Settings, clock: Clock | None = None) -> None:
        super().__init__(folder, settings, clock or Clock())
        self._refuse_shared_roots()

    @classmethod
    def create(cls, folder: Path, dialect: str = "segment") -> Self:
        """Make a workspace, with a default lake in a dialect; refuses a folder that has one."""
        config = folder / CONFIG
        if config.exists():
            raise InvalidSettingsError(
                f"{folder} is a workspace already", fix="use it as it is, or choose another folder"
            )
        private.make_folder(folder)
        private.make_file(config)
        chosen = "" if dialect == "segment" else f'dialect = "{dialect}"\n'
        config.write_text(TEMPLATE.format(workspace_id=secrets.token_hex(8), dialect=chosen))
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path, clock: Clock | None = None) -> Self:
        folder = folder.resolve()
        return cls(folder, read_settings(read_file(folder), CONFIG), clock)

    def _refuse_shared_roots(self) -> None:
        """Two lakes in one place, or one in the data of another, would take each other's files for their own."""
        lakes = self.settings.all_lakes
        roots = {name: self._full(lake.address) for name, lake in lakes.items()}
        for (one, root), (other, deeper) in permutations(roots.items(), 2):
            tops = {*DIALECTS[lakes[one].dialect].folders.tops, archive.ROOT, lakes[one].schema_files}
            if deeper == root or deeper.removeprefix(f"{root}/").partition("/")[0] in tops:
                both = f"are both in {root}" if deeper == root else f"lie one in the other: {deeper} is in {root}"
                raise ConfigurationError(
                    f"{CONFIG}: the lakes {one} and {other} {both}", fix="give each a root of its own"
                )

    def _full(self, root: str) -> str:
        return root.rstrip("/") if "://" in root else os.path.realpath(self.folder / root)

    def storage_of(self, settings: StorageSettings) -> Storage:
        return storages.storage_of(settings, self._full(settings.address))

    @cached_property
    def sources(self) -> Sources:
        return Sources(self.engine, self.clock.now, lambda source_id: self._note(self.connections.of_source(source_id)))

    @cached_property
    def connections(self) -> Connections:
        return Connections(
            self.engine,
            self.sources,
            self.settings,
            self.clock.now,
            lambda changed: self._note([changed]),
        )

    def _note(self, changed: Iterable[Connection]) -> None:
        """Let lakes note connections that changed. One that does not answer soon learns it with its next run."""
        for connection in changed:
            with suppress(EventLakeError):
                lake = self.lake(connection.lake)
                patience = min(lake.settings.timeout, PATIENCE_WITH_NOTES)
                lake.note(connection, self.storage_of(lake.settings.model_copy(update={"timeout": patience})))

    @property
    def archive(self) -> Storage:
        """Where the raw archive is. It belongs to the sources: every lake can be built from it."""
        return self._own_archive or self.lake().storage

    @cached_property
    def _own_archive(self) -> Storage | None:
        return self.storage_of(self.settings.archive) if self.settings.archive else None

    def annexes(self, source_id: str) -> list[Annex]:
        """Where else raw files of a source are."""
        return annexes.annexes(self.archive, source_id, self.storage_at)

    def all_annexes(self) -> list[Storage]:
        """Where else raw files of any source are."""
        return [self.storage_at(address) for address in annexes.addresses(self.archive)]

    def storage_at(self, address: str) -> Storage:
        """A place whose address somebody gave. Who acts there is told by the settings of what is nearest to it."""
        return self.storage_of(storages.nearest(self.settings, address).at(address))

    @property
    def named_lakes(self) -> list[str]:
        """All lakes of the settings, also those that cannot be used because something is wrong there."""
        return [*self.lakes, *self.settings.wrong_lakes]

    @cached_property
    def lakes(self) -> dict[str, "Lake"]:
        """Those that can be used, the default one first."""
        return {name: Lake(self, name, settings) for name, settings in self.settings.all_lakes.items()}

    def history(self, lake: str = "") -> History:
        """The runs of a lake, also of one that cannot be used because something is wrong there; or of all."""
        if not lake:
            return self.runs
        return History(self.engine, lake) if lake in self.settings.wrong_lakes else self.lake(lake).runs

    def lake(self, name: str = DEFAULT_LAKE) -> "Lake":
        if name not in self.lakes:
            raise self.connections.no_lake(name)
        return self.lakes[name]


class Lake:
    """A place where tables live, with the books of what is in it."""

    def __init__(self, workspace: Workspace, name: str, settings: LakeSettings) -> None:
        self.workspace = workspace
        self.name = name
        self.settings = settings

    @property
    def clock(self) -> Clock:
        return self.workspace.clock

    @property
    def workspace_id(self) -> str:
        return self.workspace.settings.workspace_id

    @property
    def archive(self) -> Storage:
        return self.workspace.archive

    def whole_archive(self, source_id: str) -> WholeArchive:
        return annexes.whole_archive(self.archive, self.workspace.annexes(source_id))

    @property
    def folders(self) -> Folders:
        return DIALECTS[self.settings.dialect].folders

    @property
    def connections(self) -> list[Connection]:
        """The connections whose tables are here. Refused if they are not in the dialect of the lake."""
        for one in (found := self.workspace.connections.of_lake(self.name)):
            check_dialect(one, self.settings.dialect)
        return found

    @cached_property
    def storage(self) -> Storage:
        return self.workspace.storage_of(self.settings)

    def note(self, connection: Connection, storage: Storage | None = None) -> None:
        """Write down in the lake how a source is connected to it, for `eventlake restore`.

        Not if the lake has runs of the source and the database has none: what it lost is restored from the note.
        """
        source_id, folders, storage = connection.source.id, connection.dialect.folders, storage or self.storage
        if self.runs.ids_of(source_id) or not any(storage.files(f"{folders.commits}/source={source_id}")):
            path = kept_connection.path_of(folders, source_id)
            current = partial(self.workspace.connections.kept, connection, self.workspace_id)
            kept_connection.keep(storage, path, self.workspace_id, current)

    @cached_property
    def catalog(self) -> Catalog:
        embedded = EmbeddedCatalog(self.workspace.engine, self.name)
        return MirroredCatalog(embedded, self.shown_in) if self.shown_in else embedded

    @cached_property
    def shown_in(self) -> "GlueCatalog | HiveCatalog | None":
        """The catalog that shows the tables to others."""
        return choice.shown_in(
            self.settings,
            self.storage.root,
            lambda: {one.source.id: one.database for one in self.connections},
            self.folders,
        )

    @property
    def glue(self) -> "GlueCatalog":
        """The same, where it is known that it is Glue."""
        return cast("GlueCatalog", self.shown_in)

    @property
    def hive(self) -> "HiveCatalog":
        return cast("HiveCatalog", self.shown_in)

    def warehouse_views(self, of: Connection, over: Sequence[CatalogTable] | None = None) -> list[View]:
        """Views like the tables of a warehouse over some or all tables of a connection, if it asks for them."""
        if not (of.settings.warehouse and isinstance(of.dialect, SegmentDialect)):
            return []
        return views(self.catalog.tables(of.source.id) if over is None else over, of.dialect)

    @cached_property
    def runs(self) -> Runs:
        return Runs(self.workspace.engine, self.clock.now, self.name)

    @cached_property
    def ledger(self) -> Ledger:
        return Ledger(self.workspace.engine, self.name)

    @cached_property
    def replays(self) -> Replays:
        return Replays(self.workspace.engine, self.name)

    @cached_property
    def leases(self) -> Leases:
        return Leases(self.workspace.engine, self.name)

    @cached_property
    def admission(self) -> Admission:
        return Admission(self.workspace.engine, self.name)
