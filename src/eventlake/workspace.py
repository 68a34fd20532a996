"""A workspace: one installation with its settings, its database, its raw archive and its lakes."""

import os
import secrets
import time
import tomllib
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self, cast

import sqlalchemy as sa

from eventlake.catalog import choice
from eventlake.catalog.base import Catalog
from eventlake.catalog.embedded import EmbeddedCatalog
from eventlake.catalog.mirrored import MirroredCatalog
from eventlake.control import database
from eventlake.control.admission import Admission
from eventlake.control.alerts import Alerts
from eventlake.control.audit_log import AuditLog
from eventlake.control.collected import Collected
from eventlake.control.connections import Connection, Connections, no_lake
from eventlake.control.leases import Leases
from eventlake.control.ledger import Ledger
from eventlake.control.orders import Orders
from eventlake.control.presence import Presence
from eventlake.control.replays import Replays
from eventlake.control.runs import History, Runs
from eventlake.control.settings import DIALECTS
from eventlake.control.sources import Sources
from eventlake.errors import ConfigurationError, InvalidSettingsError, NotFoundError
from eventlake.lake.layout import Folders
from eventlake.settings import DEFAULT_LAKE, LakeSettings, Settings
from eventlake.settings.file import CONFIG as CONFIG  # noqa: PLC0414 - whoever asks for a workspace asks for it
from eventlake.settings.file import TEMPLATE
from eventlake.settings.file import read_settings as read_settings  # noqa: PLC0414
from eventlake.settings.storage import ABFSS_ROOT, S3_ROOT, StorageSettings, is_on_azure
from eventlake.storage import private
from eventlake.storage.base import Storage
from eventlake.storage.local import LocalStorage

if TYPE_CHECKING:
    from eventlake.catalog.glue import GlueCatalog
    from eventlake.catalog.hive import HiveCatalog
    from eventlake.control.people import People
    from eventlake.control.plans import Plans
    from eventlake.control.suppressions import Suppressions


class Clock:
    """The time; tests bring their own."""

    def now_ns(self) -> int:
        return time.time_ns()

    def now(self) -> int:
        """Microseconds since 1970."""
        return self.now_ns() // 1000


class Workspace:
    def __init__(self, folder: Path, settings: Settings, clock: Clock | None = None) -> None:
        self.folder = folder
        self.settings = settings
        self.clock = clock or Clock()
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
        try:
            values = tomllib.loads((folder / CONFIG).read_text())
        except FileNotFoundError as error:
            raise NotFoundError(
                f"{folder} is not a workspace: it has no {CONFIG}",
                fix="go to a workspace, name one with `eventlake -C DIR …`, or make one with `eventlake init`",
            ) from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InvalidSettingsError(f"{folder / CONFIG}: {error}", fix="correct the file") from error
        return cls(folder, read_settings(values, CONFIG), clock)

    def _refuse_shared_roots(self) -> None:
        """Two lakes in one place would write each other's tables."""
        seen: dict[str, str] = {}
        for name, lake in self.settings.all_lakes.items():
            root = self._full(lake.address)
            if root in seen:
                raise ConfigurationError(
                    f"{CONFIG}: the lakes {seen[root]} and {name} are both in {root}", fix="give each a root of its own"
                )
            seen[root] = name

    def _full(self, root: str) -> str:
        return root.rstrip("/") if "://" in root else os.path.normpath(self.folder / root)

    def storage_of(self, settings: StorageSettings) -> Storage:
        if "://" not in settings.root:
            return LocalStorage(self._full(settings.root), timeout=settings.timeout)
        if is_on_azure(settings.root):
            from eventlake.storage.adls import AzureStorage  # noqa: PLC0415 - most lakes are in folders

            return AzureStorage(settings.address, settings.azure.options, timeout=settings.timeout)
        from eventlake.storage.s3 import S3Options, S3Storage  # noqa: PLC0415

        options = S3Options(**settings.s3.model_dump(), aws=settings.aws.options)
        return S3Storage(settings.root, options, timeout=settings.timeout)

    def close(self) -> None:
        """Let go of the database. Whoever asks for it afterwards opens it anew."""
        if (engine := self.__dict__.get("engine")) is not None:  # else nothing asked for it
            engine.dispose()

    @cached_property
    def engine(self) -> sa.Engine:
        return database.connect(self.settings.database, self.folder)

    @cached_property
    def sources(self) -> Sources:
        return Sources(self.engine, self.clock.now)

    @cached_property
    def connections(self) -> Connections:
        return Connections(
            self.engine,
            self.sources,
            {name: lake.dialect for name, lake in self.settings.all_lakes.items()},
            self.clock.now,
        )

    @property
    def archive(self) -> Storage:
        """Where the raw archive is. It belongs to the sources: every lake can be built from it."""
        return self._own_archive or self.lake().storage

    @cached_property
    def _own_archive(self) -> Storage | None:
        return self.storage_of(self.settings.archive) if self.settings.archive else None

    @cached_property
    def lakes(self) -> dict[str, "Lake"]:
        """The default lake first."""
        return {name: Lake(self, name, settings) for name, settings in self.settings.all_lakes.items()}

    def lake(self, name: str = DEFAULT_LAKE) -> "Lake":
        if name not in self.lakes:
            raise no_lake(name, self.lakes)
        return self.lakes[name]

    @cached_property
    def runs(self) -> History:
        """The runs of all lakes."""
        return History(self.engine)

    @cached_property
    def orders(self) -> Orders:
        return Orders(self.engine, self.clock.now)

    @cached_property
    def presence(self) -> Presence:
        return Presence(self.engine)

    @cached_property
    def people(self) -> "People":
        from eventlake.control.people import People  # noqa: PLC0415 - hashing passwords takes its time to load

        return People(self.engine, self.clock.now)

    @cached_property
    def audit_log(self) -> AuditLog:
        return AuditLog(self.engine, self.clock.now)

    @cached_property
    def alerts(self) -> Alerts:
        return Alerts(self.engine, self.clock.now, self.settings.channels)

    @cached_property
    def collected(self) -> Collected:
        return Collected(self.engine)

    @cached_property
    def suppressions(self) -> "Suppressions":
        from eventlake.control.suppressions import Suppressions  # noqa: PLC0415 - numpy takes its time to load

        return Suppressions(self.engine, self.clock.now)

    @cached_property
    def plans(self) -> "Plans":
        from eventlake.control.plans import Plans  # noqa: PLC0415

        return Plans(self.engine, self.clock.now)


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

    @property
    def folders(self) -> Folders:
        return DIALECTS[self.settings.dialect].folders

    @property
    def schema_files(self) -> str | None:
        """The folder with a file for each table that tells its columns: Segment has one on Azure, and nowhere else."""
        return "staging" if is_on_azure(self.settings.root) and self.settings.dialect == "segment" else None

    @property
    def connections(self) -> list[Connection]:
        """The connections whose tables are here."""
        return self.workspace.connections.of_lake(self.name)

    @cached_property
    def storage(self) -> Storage:
        return self.workspace.storage_of(self.settings)

    @property
    def where(self) -> dict[str, str]:
        """What reports tell of the place, with Segment's names."""
        told: dict[str, str] = {}
        if bucket := S3_ROOT.fullmatch(self.settings.address):
            told["s3_bucket"] = bucket["bucket"]
        if container := ABFSS_ROOT.fullmatch(self.settings.address):
            told |= {f"azure_storage_{name}": container[name] for name in ("account", "container")}
        if self.settings.runner.kind == "emr":
            told["emr_cluster_id"] = self.settings.runner.cluster_id
        return told

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
