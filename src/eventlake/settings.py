"""The settings file of a workspace: `eventlake.toml`, overridden by EVENTLAKE_… variables.

Each of storage, catalog and runner is one of several kinds. A kind that is added gets a class here, a line in its
union, and a case where it is made: storages and catalogs in `workspace`, runners in `runners.choice`.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from eventlake.aws.session import AwsOptions
from eventlake.settings_serve import ChannelSettings, ConsoleSettings
from eventlake.storage.base import TIMEOUT

DEFAULT_LAKE = "default"
_ROLE_ARN = r"^arn:aws(-cn|-us-gov)?:iam::\d{12}:role/[a-zA-Z0-9_+=,.@/-]+$"
S3_ROOT = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(/.*)?")


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class AwsSettings(_Section):
    region: str | None = Field(
        None,
        pattern=r"^(us(-gov)?|af|ap|ca|cn|eu|il|me|mx|sa)-(central|(north|south)?(east|west)?)-\d$",
        description="Region of bucket, catalog and cluster; by default as AWS tools find it.",
    )
    profile: str | None = Field(
        None,
        min_length=1,
        max_length=200,
        description="Profile of the files in which AWS tools keep access keys; by default as they find them.",
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


class S3Settings(_Section):
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


class RootSettings(_Section):
    """Where something lies."""

    root: str = Field("lake", description="Folder, in the workspace or absolute, or s3://bucket/prefix.")
    timeout: float = Field(TIMEOUT, gt=0, description="Seconds after which a call to the storage is given up.")

    @field_validator("root")
    @classmethod
    def _known_place(cls, root: str) -> str:
        if "://" in root and not S3_ROOT.fullmatch(root):
            raise ValueError("neither a folder nor s3://bucket/prefix, with a bucket name that S3 allows")
        return root


DialectName = Literal["segment", "rudderstack"]
_DIALECT = "How events become tables: as in Segment Data Lakes, or as in RudderStack's S3 data lake."


class LakeSection(RootSettings):
    """Where the default lake lies, and what it is like."""

    dialect: DialectName = Field("segment", description=_DIALECT)


class StorageSettings(RootSettings):
    """Where something lies, and who acts there."""

    root: str = Field(description="Folder, in the workspace or absolute, or s3://bucket/prefix.")
    aws: AwsSettings = AwsSettings()
    s3: S3Settings = S3Settings()


# What a lake's tables are shown in


class EmbeddedCatalogSettings(_Section):
    kind: Literal["embedded"] = "embedded"


class GlueCatalogSettings(_Section):
    kind: Literal["glue"] = "glue"
    catalog_id: str | None = Field(
        None, pattern=r"^\d{12}$", description="Account of the Glue catalog; by default the one that is used."
    )


# Where Spark's driver runs


class SparkSettings(_Section):
    master: str = Field("local[*]", description="Where Spark runs: local[*], spark://host:7077, yarn, k8s://…")
    conf: dict[str, str] = Field(default_factory=dict, description="Any further Spark configuration.")
    patience: float = Field(6 * 3600, gt=0, description="Seconds after which a step in which no task ends is given up.")


class SparkRunnerSettings(SparkSettings):
    kind: Literal["spark"] = "spark"


class _Nodes(_Section):
    python: str = Field("python3.11", pattern=r"^\S*python3\.\d+$", description="Interpreter on the nodes.")
    machine: Literal["x86_64", "aarch64"] = Field("x86_64", description="Processor of the nodes; aarch64: Graviton.")


class _OnEmr(_Nodes):
    conf: dict[str, str] = Field(default_factory=dict, description="Any further Spark configuration.")
    patience: float = Field(6 * 3600, gt=0, description="Seconds after which a step in which no task ends is given up.")


class EmrRunnerSettings(_OnEmr):
    kind: Literal["emr"] = "emr"
    cluster_id: str = Field(
        pattern=r"^j-[A-Za-z0-9]+$", description="Cluster that takes the steps; replays run on one like it."
    )


class EmrServerlessRunnerSettings(_OnEmr):
    kind: Literal["emr-serverless"] = "emr-serverless"
    application_id: str = Field(
        pattern=r"^[a-z0-9]+$", description="Application of EMR Serverless that takes the job runs."
    )
    execution_role_arn: str = Field(pattern=_ROLE_ARN, description="Role in which job runs of EMR Serverless act.")


def _kind(default: str) -> Discriminator:
    def kind_of(value: Any) -> str:
        return str(value.get("kind", default) if isinstance(value, Mapping) else getattr(value, "kind", default))

    return Discriminator(kind_of)


CatalogSettings = Annotated[
    Annotated[EmbeddedCatalogSettings, Tag("embedded")] | Annotated[GlueCatalogSettings, Tag("glue")],
    _kind("embedded"),
]
RunnerSettings = Annotated[
    Annotated[SparkRunnerSettings, Tag("spark")]
    | Annotated[EmrRunnerSettings, Tag("emr")]
    | Annotated[EmrServerlessRunnerSettings, Tag("emr-serverless")],
    _kind("spark"),
]


class LakeSettings(StorageSettings):
    """A lake: where its tables are, where they are shown, and where Spark works for it."""

    dialect: DialectName = Field("segment", description=_DIALECT)
    catalog: CatalogSettings = EmbeddedCatalogSettings()
    runner: RunnerSettings = SparkRunnerSettings()

    @model_validator(mode="after")
    def _in_a_bucket(self) -> "LakeSettings":
        for setting, needs_bucket in (
            (f"catalog.kind = {self.catalog.kind}", self.catalog.kind == "glue"),
            (f"runner = {self.runner.kind}", self.runner.kind != "spark"),
        ):
            if needs_bucket and not S3_ROOT.fullmatch(self.root):
                raise ValueError(f"{setting} needs a lake in a bucket: root = s3://bucket/prefix")
        return self


# The default lake has sections of its own, as most workspaces have no other


class CatalogSection(_Section):
    kind: Literal["embedded", "glue"] = Field(
        "embedded", description="glue: tables are registered in the Glue Data Catalog as well."
    )
    glue_catalog_id: str | None = Field(
        None, pattern=r"^\d{12}$", description="Account of the Glue catalog; by default the one that is used."
    )


class EmrSection(_Nodes):
    cluster_id: str | None = Field(
        None, pattern=r"^j-[A-Za-z0-9]+$", description="Cluster that takes the steps; replays run on one like it."
    )
    application_id: str | None = Field(
        None, pattern=r"^[a-z0-9]+$", description="Application of EMR Serverless that takes the job runs."
    )
    execution_role_arn: str | None = Field(
        None, pattern=_ROLE_ARN, description="Role in which job runs of EMR Serverless act."
    )


LakeName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,49}$")]


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="EVENTLAKE_", env_nested_delimiter="__", frozen=True, extra="forbid")

    workspace_id: str = Field(description="Identifies this installation in reports.")
    database: str = Field("sqlite:///eventlake.db", description="URL of the workspace database, for SQLAlchemy.")
    runner: Literal["spark", "emr", "emr-serverless"] = Field(
        "spark", description="Where Spark's driver runs: here, or submitted to EMR."
    )
    lake: LakeSection = LakeSection()
    aws: AwsSettings = AwsSettings()
    s3: S3Settings = S3Settings()
    catalog: CatalogSection = CatalogSection()
    spark: SparkSettings = SparkSettings()
    emr: EmrSection = EmrSection()
    lakes: dict[LakeName, LakeSettings] = Field(default_factory=dict, description="Further lakes, by name.")
    channels: dict[LakeName, ChannelSettings] = Field(
        default_factory=dict, description="Where alerts go, by name: kind = email, webhook or slack."
    )
    console: ConsoleSettings = ConsoleSettings()
    archive: StorageSettings | None = Field(
        None, description="Where the raw archive is; by default with the default lake."
    )

    @model_validator(mode="after")
    def _complete(self) -> "Settings":
        """What one setting asks of others."""
        needed = {"emr": ["cluster_id"], "emr-serverless": ["application_id", "execution_role_arn"]}
        for name in needed.get(self.runner, ()):
            if getattr(self.emr, name) is None:
                raise ValueError(f'runner = {self.runner}: "emr.{name}": field is required')
        if DEFAULT_LAKE in self.lakes:
            raise ValueError(
                f"lakes.{DEFAULT_LAKE}: the default lake has its settings in [lake] and the sections below it"
            )
        for name, lake in self.all_lakes.items():
            archive = self.archive or self.lake
            if lake.runner.kind != "spark" and not S3_ROOT.fullmatch(archive.root):
                raise ValueError(
                    f"the runner of the lake {name} needs a raw archive in a bucket: [archive] root = s3://…"
                )
        return self

    @property
    def all_lakes(self) -> dict[str, LakeSettings]:
        """The default lake, then the others in the order of the file."""
        return {DEFAULT_LAKE: self._default_lake, **self.lakes}

    @property
    def _default_lake(self) -> LakeSettings:
        catalog: dict[str, Any] = {"kind": self.catalog.kind}
        if self.catalog.kind == "glue":
            catalog["catalog_id"] = self.catalog.glue_catalog_id
        runner: dict[str, Any] = {"kind": self.runner, **self.spark.model_dump()}
        if self.runner != "spark":
            del runner["master"]
            runner |= self.emr.model_dump(include={"python", "machine"})
        if self.runner == "emr":
            runner["cluster_id"] = self.emr.cluster_id
        if self.runner == "emr-serverless":
            runner |= self.emr.model_dump(include={"application_id", "execution_role_arn"})
        return LakeSettings.model_validate(
            {**self.lake.model_dump(), "aws": self.aws, "s3": self.s3, "catalog": catalog, "runner": runner}
        )

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
