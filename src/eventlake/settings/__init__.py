"""The settings file of a workspace: `eventlake.toml`, overridden by EVENTLAKE_… variables.

Each of storage, catalog and runner is one of several kinds. A kind that is added gets a class beside the others of its
kind, a line in their union, and a case where it is made: storages and catalogs in `workspace`, runners in
`runners.choice`.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr, SecretStr, ValidationError, model_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from eventlake.settings.catalogs import CatalogSection, CatalogSettings, EmbeddedCatalogSettings
from eventlake.settings.runners import EmrSection, RunnerChoice, RunnerSettings, SparkRunnerSettings, SparkSettings
from eventlake.settings.section import Secret
from eventlake.settings.segment_names import in_our_words, with_default_lake_in_our_words
from eventlake.settings.serve import ChannelSettings, ConsoleSettings
from eventlake.settings.storage import (
    ABFSS_ROOT,
    S3_ROOT,
    AwsSettings,
    AzureSettings,
    GcsSettings,
    RootSettings,
    S3Settings,
    StorageSettings,
    is_in_a_cloud,
    is_on_azure,
)
from eventlake.settings.words import in_words

DEFAULT_LAKE = "default"
OF_A_LAKE = "of_a_lake"  # the kind of mistakes that have no place of their own

DialectName = Literal["segment", "rudderstack"]
_ON_AWS = ("glue", "emr", "emr-serverless")
_IN_A_CLOUD = ("databricks",)
_DIALECT = "How events become tables: as in Segment Data Lakes, or as in RudderStack's S3 data lake."


class LakeSection(RootSettings):
    """Where the default lake lies, and what it is like."""

    dialect: DialectName = Field("segment", description=_DIALECT)


class LakeSettings(StorageSettings):
    """A lake: where its tables are, where they are shown, and where Spark works for it."""

    dialect: DialectName = Field("segment", description=_DIALECT)
    catalog: CatalogSettings = EmbeddedCatalogSettings()
    runner: RunnerSettings = SparkRunnerSettings()

    @model_validator(mode="before")
    @classmethod
    def _by_segments_names(cls, section: Any) -> Any:
        return in_our_words(section)

    @model_validator(mode="after")
    def _within_reach(self) -> "LakeSettings":
        """What works in one cloud reaches only what is there."""
        for setting, kind in (("catalog.kind", self.catalog.kind), ("runner", self.runner.kind)):
            if kind in _ON_AWS and not S3_ROOT.fullmatch(self.root):
                raise ValueError(f"{setting} = {kind} needs a lake in a bucket: root = s3://bucket/prefix")
        if self.runner.kind in _IN_A_CLOUD and not is_in_a_cloud(self.root):
            raise ValueError(
                f"runner = {self.runner.kind} needs a lake that its nodes reach: root = abfss://…, s3://… or gs://…"
            )
        return self

    @property
    def schema_files(self) -> str | None:
        """The folder with a file for each table that tells its columns: Segment has one on Azure, and nowhere else."""
        return "staging" if is_on_azure(self.root) and self.dialect == "segment" else None

    @property
    def where(self) -> dict[str, str]:
        """What reports tell of where a lake is, with Segment's names; of where Spark ran, its runner tells."""
        named: dict[str, str] = {}
        if bucket := S3_ROOT.fullmatch(self.address):
            named["s3_bucket"] = bucket["bucket"]
        if container := ABFSS_ROOT.fullmatch(self.address):
            named |= {f"azure_storage_{name}": container[name] for name in ("account", "container")}
        return named

    @property
    def shared_catalog(self) -> tuple[str | None, ...] | None:
        """Which catalog shows the tables to others; other lakes may have the same one."""
        match self.catalog.kind:
            case "glue":
                return "glue", self.catalog.catalog_id or self.aws.role_arn or self.aws.keys_of, self.aws.region
            case "hive":
                return "hive", *sorted(self.catalog.uris)
            case "embedded":
                return None


def wrong_lake(name: str, problem: str) -> PydanticCustomError:
    """A mistake that is a lake's, though it does not stand in one place."""
    return PydanticCustomError(OF_A_LAKE, "{problem}", {"lake": name, "problem": problem})


LakeName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,49}$")]


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="EVENTLAKE_", env_nested_delimiter="__", frozen=True, extra="forbid")

    workspace_id: str = Field(description="Identifies this installation in reports.")
    database: Secret = Field(
        SecretStr("sqlite:///eventlake.db"),
        description="URL of the workspace database, for SQLAlchemy. It may hold a password, so it is a secret.",
    )
    runner: RunnerChoice = Field(
        "spark", description="Where Spark's driver runs: here, or submitted to EMR; or a table with its kind."
    )
    lake: LakeSection = LakeSection()
    aws: AwsSettings = AwsSettings()
    s3: S3Settings = S3Settings()
    azure: AzureSettings = AzureSettings()
    gcs: GcsSettings = GcsSettings()
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
    annexes: dict[LakeName, StorageSettings] = Field(
        default_factory=dict, description="Who acts where raw files are read in place, by name."
    )

    _wrong_lakes: dict[str, str] = PrivateAttr(default_factory=dict)

    @property
    def wrong_lakes(self) -> dict[str, str]:
        """The lakes that are left out because something is wrong in their sections, and what."""
        return self._wrong_lakes

    @model_validator(mode="before")
    @classmethod
    def _by_segments_names(cls, values: Any) -> Any:
        return with_default_lake_in_our_words(values)

    @model_validator(mode="after")
    def _complete(self) -> "Settings":
        """What one setting asks of others."""
        if DEFAULT_LAKE in self.lakes:
            raise ValueError(
                f"lakes.{DEFAULT_LAKE}: the default lake has its settings in [lake] and the sections below it"
            )
        needed = {"emr": ["cluster_id"], "emr-serverless": ["application_id", "execution_role_arn"]}
        for name in needed.get(self.runner, ()) if isinstance(self.runner, str) else ():
            if getattr(self.emr, name) is None:
                raise wrong_lake(DEFAULT_LAKE, f'runner = {self.runner}: "emr.{name}": field is required')
        try:
            lakes = self.all_lakes
        except ValidationError as error:  # each section is right, and they do not go together
            problems = (in_words(one["type"], one.get("ctx", {}), one["msg"]) for one in error.errors())
            raise wrong_lake(DEFAULT_LAKE, "; ".join(problems)) from error
        archive = self.archive or self.lake
        for name, lake in lakes.items():
            if lake.runner.kind in _ON_AWS and not S3_ROOT.fullmatch(archive.root):
                raise wrong_lake(
                    name, f"the runner of the lake {name} needs a raw archive in a bucket: [archive] root = s3://…"
                )
            if lake.runner.kind in _IN_A_CLOUD and not is_in_a_cloud(archive.root):
                raise wrong_lake(
                    name,
                    f"the runner of the lake {name} needs a raw archive that its nodes reach: [archive] root = abfss://…",
                )
        return self

    @property
    def all_lakes(self) -> dict[str, LakeSettings]:
        """The default lake, then the others in the order of the file; without those of which something is wrong."""
        default = {} if DEFAULT_LAKE in self._wrong_lakes else {DEFAULT_LAKE: self._default_lake}
        return default | self.lakes

    @property
    def _default_lake(self) -> LakeSettings:
        return LakeSettings.model_validate(
            {
                **self.lake.model_dump(),
                "aws": self.aws,
                "s3": self.s3,
                "azure": self.azure,
                "gcs": self.gcs,
                "catalog": self.catalog.settings,
                "runner": self._default_runner,
            }
        )

    @property
    def _default_runner(self) -> RunnerSettings | dict[str, Any]:
        """The runner of the default lake, of which the sections below it may tell more."""
        if not isinstance(self.runner, str):
            return self.runner
        runner: dict[str, Any] = {"kind": self.runner, **self.spark.model_dump()}
        if self.runner != "spark":
            del runner["master"]
            runner |= self.emr.model_dump(include={"python", "machine"})
        if self.runner == "emr":
            runner |= self.emr.model_dump(include={"cluster_id", "tag_key", "tag_value", "bootstrap_actions"})
        if self.runner == "emr-serverless":
            runner |= self.emr.model_dump(include={"application_id", "execution_role_arn"})
        return runner

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
