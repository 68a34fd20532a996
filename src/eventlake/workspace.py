"""A workspace: one installation with its settings, its lake, its catalog and its database."""

import os
import re
import secrets
import time
import tomllib
from functools import cached_property
from pathlib import Path

import sqlalchemy as sa
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from eventlake.catalog.base import Catalog
from eventlake.catalog.embedded import EmbeddedCatalog
from eventlake.control import database
from eventlake.control.ledger import Ledger
from eventlake.control.runs import Runs
from eventlake.control.sources import Sources
from eventlake.errors import InvalidSettingsError, NotFoundError
from eventlake.storage.base import TIMEOUT, Storage
from eventlake.storage.local import LocalStorage
from eventlake.storage.s3 import S3Options, S3Storage

CONFIG = "eventlake.toml"


class Clock:
    """The time; tests bring their own."""

    def now_ns(self) -> int:
        return time.time_ns()

    def now(self) -> int:
        """Microseconds since 1970."""
        return self.now_ns() // 1000


class LakeSettings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    root: str = Field("lake", description="Folder of the lake, in the workspace or absolute, or s3://bucket/prefix.")
    timeout: float = Field(TIMEOUT, gt=0, description="Seconds after which a call to the storage is given up.")


class S3Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    endpoint: str | None = Field(None, description="URL of the server, if it is not Amazon's own.")
    region: str | None = Field(None, description="Region of the bucket; by default as AWS tools find it.")
    path_style: bool = Field(False, description="Address buckets by path; most servers other than Amazon's need it.")


class SparkSettings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    master: str = Field("local[*]", description="Where Spark runs: local[*], spark://host:7077, yarn, k8s://…")
    conf: dict[str, str] = Field(default_factory=dict, description="Any further Spark configuration.")
    patience: float = Field(6 * 3600, gt=0, description="Seconds after which a step in which no task ends is given up.")


class Settings(BaseSettings):
    """The workspace's settings: `eventlake.toml`, overridden by EVENTLAKE_… variables."""

    model_config = SettingsConfigDict(env_prefix="EVENTLAKE_", env_nested_delimiter="__", frozen=True, extra="forbid")

    workspace_id: str = Field(description="Identifies this installation in reports.")
    database: str = Field("sqlite:///eventlake.db", description="URL of the workspace database, for SQLAlchemy.")
    lake: LakeSettings = LakeSettings()
    s3: S3Settings = S3Settings()
    spark: SparkSettings = SparkSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        del settings_cls, dotenv_settings, file_secret_settings
        return env_settings, init_settings  # the file is given to __init__; the environment wins over it


class Workspace:
    def __init__(self, folder: Path, settings: Settings, clock: Clock | None = None) -> None:
        self.folder = folder
        self.settings = settings
        self.clock = clock or Clock()

    @classmethod
    def create(cls, folder: Path) -> "Workspace":
        """Make a workspace; refuses a folder that has one."""
        config = folder / CONFIG
        if config.exists():
            raise InvalidSettingsError(
                f"{folder} is a workspace already", fix="use it as it is, or choose another folder"
            )
        folder.mkdir(parents=True, exist_ok=True)
        config.write_text(_TEMPLATE.format(workspace_id=secrets.token_hex(8)))
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path, clock: Clock | None = None) -> "Workspace":
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
        try:
            return cls(folder, Settings(**values), clock)
        except ValidationError as error:
            problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            raise InvalidSettingsError(
                f"{CONFIG}: {problems}", fix="correct the file or the EVENTLAKE_… variable"
            ) from error

    @cached_property
    def storage(self) -> Storage:
        root = self.settings.lake.root
        if "://" not in root:
            return LocalStorage(os.fspath(self.folder / root), timeout=self.settings.lake.timeout)
        if re.match(r"s3://[^/]+", root):
            options = S3Options(**self.settings.s3.model_dump())
            return S3Storage(root, options, timeout=self.settings.lake.timeout)
        raise InvalidSettingsError(
            f"lake root {root!r} is neither a folder nor s3://bucket/prefix", fix="correct lake.root in the settings"
        )

    @cached_property
    def engine(self) -> sa.Engine:
        url = sa.make_url(self.settings.database)
        if url.drivername.startswith("sqlite") and url.database:
            url = url.set(database=os.fspath(self.folder / url.database))
        return database.connect(url.render_as_string(hide_password=False))

    @cached_property
    def catalog(self) -> Catalog:
        return EmbeddedCatalog(self.engine)

    @cached_property
    def sources(self) -> Sources:
        return Sources(self.engine, self.clock.now)

    @cached_property
    def runs(self) -> Runs:
        return Runs(self.engine, self.clock.now)

    @cached_property
    def ledger(self) -> Ledger:
        return Ledger(self.engine)


_TEMPLATE = """\
# Settings of this eventlake workspace. Every value can be overridden by an environment variable,
# for example EVENTLAKE_SPARK__MASTER=spark://host:7077.
workspace_id = "{workspace_id}"
# database = "sqlite:///eventlake.db"

[lake]
root = "lake"

[spark]
master = "local[*]"
# conf = {{ "spark.executor.memory" = "4g" }}
"""
