"""A workspace: one installation with its settings, its lake, its catalog and its database."""

import os
import re
import secrets
import time
import tomllib
from functools import cached_property
from pathlib import Path
from typing import Literal

import sqlalchemy as sa
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from eventlake.aws.session import AwsOptions
from eventlake.catalog.base import Catalog
from eventlake.catalog.embedded import EmbeddedCatalog
from eventlake.catalog.glue import GlueCatalog
from eventlake.catalog.mirrored import MirroredCatalog
from eventlake.control import database
from eventlake.control.admission import Admission
from eventlake.control.leases import Leases
from eventlake.control.ledger import Ledger
from eventlake.control.runs import Runs
from eventlake.control.sources import Sources
from eventlake.errors import ConfigurationError, InvalidSettingsError, NotFoundError
from eventlake.storage import private
from eventlake.storage.base import TIMEOUT, Storage
from eventlake.storage.local import LocalStorage
from eventlake.storage.s3 import S3Options, S3Storage

CONFIG = "eventlake.toml"
_ROLE_ARN = r"^arn:aws(-cn|-us-gov)?:iam::\d{12}:role/[a-zA-Z0-9_+=,.@/-]+$"
_S3_ROOT = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(/.*)?")


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

    @field_validator("root")
    @classmethod
    def _known_place(cls, root: str) -> str:
        if "://" in root and not _S3_ROOT.fullmatch(root):
            raise ValueError("neither a folder nor s3://bucket/prefix, with a bucket name that S3 allows")
        return root


class AwsSettings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    region: str | None = Field(
        None,
        pattern=r"^(us(-gov)?|af|ap|ca|cn|eu|il|me|mx|sa)-(central|(north|south)?(east|west)?)-\d$",
        description="Region of bucket, catalog and cluster; by default as AWS tools find it.",
    )
    role_arn: str | None = Field(
        None,
        pattern=_ROLE_ARN,
        description="Role that is assumed for everything on AWS.",
    )
    external_id: str | None = Field(
        None,
        min_length=2,
        max_length=1224,
        pattern=r"^[a-zA-Z0-9_+=,.@:/-]+$",
        description="What the role's trust policy asks for as sts:ExternalId.",
    )

    @property
    def options(self) -> AwsOptions:
        return AwsOptions(**self.model_dump())


class S3Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    endpoint: str | None = Field(None, description="URL of the server, if it is not Amazon's own.")
    path_style: bool = Field(False, description="Address buckets by path; most servers other than Amazon's need it.")
    encryption: Literal["AES256", "aws:kms", "aws:kms:dsse"] | None = Field(
        None, description="Server-side encryption of new objects; by default as the bucket does it."
    )
    kms_key_id: str | None = Field(None, description="Key for aws:kms; by default the account's own for S3.")

    @model_validator(mode="after")
    def _key_needs_kms(self) -> "S3Settings":
        if self.kms_key_id and self.encryption not in ("aws:kms", "aws:kms:dsse"):
            raise ValueError("kms_key_id needs encryption = aws:kms")
        return self


class CatalogSettings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: Literal["embedded", "glue"] = Field(
        "embedded", description="glue: tables are registered in the Glue Data Catalog as well."
    )
    glue_catalog_id: str | None = Field(
        None, pattern=r"^\d{12}$", description="Account of the Glue catalog; by default the one that is used."
    )


class SparkSettings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    master: str = Field("local[*]", description="Where Spark runs: local[*], spark://host:7077, yarn, k8s://…")
    conf: dict[str, str] = Field(default_factory=dict, description="Any further Spark configuration.")
    patience: float = Field(6 * 3600, gt=0, description="Seconds after which a step in which no task ends is given up.")


class EmrSettings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    cluster_id: str | None = Field(
        None, pattern=r"^j-[A-Za-z0-9]+$", description="Cluster that takes the steps; replays run on one like it."
    )
    application_id: str | None = Field(
        None, pattern=r"^[a-z0-9]+$", description="Application of EMR Serverless that takes the job runs."
    )
    execution_role_arn: str | None = Field(
        None, pattern=_ROLE_ARN, description="Role in which job runs of EMR Serverless act."
    )
    python: str = Field("python3.11", pattern=r"^\S*python3\.\d+$", description="Interpreter on the nodes.")
    machine: Literal["x86_64", "aarch64"] = Field("x86_64", description="Processor of the nodes; aarch64: Graviton.")


class Settings(BaseSettings):
    """The workspace's settings: `eventlake.toml`, overridden by EVENTLAKE_… variables."""

    model_config = SettingsConfigDict(env_prefix="EVENTLAKE_", env_nested_delimiter="__", frozen=True, extra="forbid")

    workspace_id: str = Field(description="Identifies this installation in reports.")
    database: str = Field("sqlite:///eventlake.db", description="URL of the workspace database, for SQLAlchemy.")
    runner: Literal["spark", "emr", "emr-serverless"] = Field(
        "spark", description="Where Spark's driver runs: here, or submitted to EMR."
    )
    lake: LakeSettings = LakeSettings()
    aws: AwsSettings = AwsSettings()
    s3: S3Settings = S3Settings()
    catalog: CatalogSettings = CatalogSettings()
    spark: SparkSettings = SparkSettings()
    emr: EmrSettings = EmrSettings()

    @model_validator(mode="after")
    def _complete(self) -> "Settings":
        """What one setting asks of others."""
        for setting in ("catalog.kind = glue", f"runner = {self.runner}"):
            asks = self.catalog.kind == "glue" if setting.startswith("catalog") else self.runner != "spark"
            if asks and not self.lake.root.startswith("s3://"):
                raise ValueError(f"{setting} needs a lake in a bucket: lake.root = s3://bucket/prefix")
        needed = {"emr": ["cluster_id"], "emr-serverless": ["application_id", "execution_role_arn"]}
        for name in needed.get(self.runner, ()):
            if getattr(self.emr, name) is None:
                raise ValueError(f'runner = {self.runner}: "emr.{name}": field is required')
        return self

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
        private.make_folder(folder)
        private.make_file(config)
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
            # What is wrong between several settings has no place of its own.
            told = [
                (".".join(map(str, one["loc"])), one["msg"].removeprefix("Value error, ")) for one in error.errors()
            ]
            problems = "; ".join(f"{where}: {what}" if where else what for where, what in told)
            raise ConfigurationError(
                f"{CONFIG}: {problems}", fix="correct the file or the EVENTLAKE_… variable"
            ) from error

    @cached_property
    def storage(self) -> Storage:
        root, timeout = self.settings.lake.root, self.settings.lake.timeout
        if "://" not in root:
            return LocalStorage(os.fspath(self.folder / root), timeout=timeout)
        options = S3Options(**self.settings.s3.model_dump(), aws=self.settings.aws.options)
        return S3Storage(root, options, timeout=timeout)

    @property
    def where(self) -> dict[str, str]:
        """What reports tell of the place, with Segment's names."""
        bucket = _S3_ROOT.fullmatch(self.settings.lake.root)
        cluster = self.settings.emr.cluster_id if self.settings.runner == "emr" else None
        return ({"s3_bucket": bucket["bucket"]} if bucket else {}) | ({"emr_cluster_id": cluster} if cluster else {})

    @cached_property
    def engine(self) -> sa.Engine:
        return database.connect(self.settings.database, self.folder)

    @cached_property
    def catalog(self) -> Catalog:
        embedded = EmbeddedCatalog(self.engine)
        if self.settings.catalog.kind == "embedded":
            return embedded
        return MirroredCatalog(embedded, self.glue)

    @cached_property
    def glue(self) -> GlueCatalog:
        settings = self.settings
        return GlueCatalog(
            settings.aws.options,
            settings.lake.root,
            lambda: {source.id: source.settings.database for source in self.sources.all()},
            catalog_id=settings.catalog.glue_catalog_id,
        )

    @cached_property
    def sources(self) -> Sources:
        return Sources(self.engine, self.clock.now)

    @cached_property
    def runs(self) -> Runs:
        return Runs(self.engine, self.clock.now)

    @cached_property
    def ledger(self) -> Ledger:
        return Ledger(self.engine)

    @cached_property
    def leases(self) -> Leases:
        return Leases(self.engine)

    @cached_property
    def admission(self) -> Admission:
        return Admission(self.engine)


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
