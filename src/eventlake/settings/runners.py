"""Where Spark's driver runs."""

import re
from typing import Annotated, Any, Literal

from pydantic import Field, Tag, field_validator, model_validator

from eventlake.settings.section import BY_NAME, Secret, Section, by_kind
from eventlake.settings.storage import Guid, RoleArn
from eventlake.settings.words import matching

_CONNECT_URL = re.compile(r"sc://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?(/(;[A-Za-z0-9._-]+=[^;=\s]+)*)?")

_HOST = re.compile(r"(https://)?[A-Za-z0-9.-]+\.[a-z]+(:\d+)?/?|http://127\.0\.0\.1:\d+")


CLUSTER_ID = r"j-[A-Za-z0-9]+"
EmrCluster = Annotated[str, matching(CLUSTER_ID, "the id of an EMR cluster, such as j-2AXXXXXXGAPLF")]
Script = Annotated[
    str, matching(r"(s3://|/|file:)\S+( \S+)*", "a script and its words, such as s3://bucket/python.sh 3.11")
]
EmrApplication = Annotated[str, matching(r"[a-z0-9]+", "the id of an application of EMR Serverless")]
DatabricksCluster = Annotated[
    str, matching(r"[0-9]{4}-[0-9]{6}-[a-z0-9-]+", "the id of a cluster, such as 0123-456789-abcdefgh")
]
Volume = Annotated[
    str, matching(r"/Volumes(/[^/\s]+){3,}", "a folder of a volume, such as /Volumes/catalog/schema/volume")
]
Interpreter = Annotated[str, matching(r"\S*python3\.\d+", "an interpreter with its version, such as python3.11")]
TagKey = Annotated[str, matching(r"(?!(?i:aws:))[\w .:/=+@-]{1,128}", "the key of a tag, such as vendor")]
TagValue = Annotated[str, matching(r"[\w .:/=+@-]{0,256}", "the value of a tag, such as segment")]


class SparkSettings(Section):
    master: str = Field("local[*]", description="Where Spark runs: local[*], spark://host:7077, yarn, k8s://…")
    conf: dict[str, str] = Field(default_factory=dict, description="Any further Spark configuration.")
    patience: float = Field(6 * 3600, gt=0, description="Seconds after which a step in which no task ends is given up.")


class SparkRunnerSettings(SparkSettings):
    kind: Literal["spark"] = "spark"


class _Nodes(Section):
    python: Interpreter = Field("python3.11", description="Interpreter on the nodes.")
    machine: Literal["x86_64", "aarch64"] = Field("x86_64", description="Processor of the nodes; aarch64: Graviton.")


class _Submitted(_Nodes):
    conf: dict[str, str] = Field(default_factory=dict, description="Any further Spark configuration.")
    patience: float = Field(6 * 3600, gt=0, description="Seconds after which a step in which no task ends is given up.")


class _Tag(Section):
    """What policies may ask of a cluster; Segment's asks for the default."""

    tag_key: TagKey = Field("vendor", description="Tag of a replay's cluster, if the one it is like has no such key.")
    tag_value: TagValue = Field("segment", description="The tag's value.")


_BOOTSTRAP = Field((), description="Scripts that prepare a cluster made for a replay; by default those of cluster_id.")


class EmrRunnerSettings(_Submitted, _Tag):
    kind: Literal["emr"] = "emr"
    cluster_id: EmrCluster = Field(description="Cluster that takes the steps; replays run on one like it.")
    bootstrap_actions: tuple[Script, ...] = _BOOTSTRAP


class EmrServerlessRunnerSettings(_Submitted):
    kind: Literal["emr-serverless"] = "emr-serverless"
    application_id: EmrApplication = Field(description="Application of EMR Serverless that takes the job runs.")
    execution_role_arn: RoleArn = Field(description="Role in which job runs of EMR Serverless act.")


class ConnectRunnerSettings(_Submitted):
    kind: Literal["connect"] = "connect"
    url: str = Field(description="Spark Connect server: sc://host:15002, or sc://host:443/;use_ssl=true;key=value.")
    token: Secret | None = Field(None, description="Token that the server asks for; is sent over TLS only.")
    libraries: Literal["server", "sent"] = Field(
        "server", description="Where workers find eventlake's libraries: installed there, or sent along."
    )

    @field_validator("url")
    @classmethod
    def _known_form(cls, url: str) -> str:
        if not _CONNECT_URL.fullmatch(url):
            raise ValueError("not sc://host:port, or sc://host:port/;key=value;key=value")
        if ";token=" in url:
            raise ValueError("a token does not belong into the url, which is shown: there is a setting of its own")
        return url


class JobClusterSettings(Section):
    """A cluster of Databricks that is made for each run, and ended with it."""

    spark_version: str = Field("16.4.x-scala2.12", description="Databricks runtime; 15.4 or newer.")
    node_type_id: str = Field("Standard_DS4_v2", description="Kind of machine, for the driver and for workers.")
    min_workers: int = Field(2, ge=1, description="Workers at least.")
    max_workers: int = Field(8, ge=1, description="Workers at most.")
    spark_conf: dict[str, str] = Field(default_factory=dict, description="Spark configuration of the cluster.")
    env: dict[str, str] = Field(
        default_factory=dict,
        description="Environment of its nodes; a value may be {{secrets/scope/key}}, which Databricks fills in.",
    )
    policy_id: str | None = Field(None, description="Cluster policy.")
    tags: dict[str, str] = Field(default_factory=dict, description="Tags of the cluster, for its cost.")

    @model_validator(mode="after")
    def _more_than_least(self) -> "JobClusterSettings":
        if self.max_workers < self.min_workers:
            raise ValueError("max_workers is less than min_workers")
        return self

    @property
    def spec(self) -> dict[str, Any]:
        """As Databricks' API takes it."""
        spec = {
            "spark_version": self.spark_version,
            "node_type_id": self.node_type_id,
            "autoscale": {"min_workers": self.min_workers, "max_workers": self.max_workers},
            "data_security_mode": "SINGLE_USER",
            "spark_conf": self.spark_conf,
            "spark_env_vars": self.env,
            "policy_id": self.policy_id,
            "custom_tags": self.tags,
        }
        return {key: value for key, value in spec.items() if value}


class DatabricksRunnerSettings(Section):
    kind: Literal["databricks"] = "databricks"
    host: str = Field(description="Workspace: adb-1234567890123456.7.azuredatabricks.net, with or without https://.")
    cluster_id: DatabricksCluster | None = Field(None, description="Cluster that takes the runs; started if it is not.")
    job_cluster: JobClusterSettings | None = Field(None, description="Or what a cluster for each run is like.")
    volume: Volume = Field(description="Folder of a volume, where the package is put: /Volumes/catalog/schema/volume.")
    client_id: Guid | None = Field(None, description="Service principal that acts in the workspace.")
    client_secret: Secret | None = Field(None, description="Its OAuth secret; with tenant_id, its secret of Entra.")
    tenant_id: Guid | None = Field(None, description="Directory of a service principal of Entra.")
    token: Secret | None = Field(None, description="Access token, instead of a service principal.")
    machine: Literal["x86_64", "aarch64"] = Field("x86_64", description="Processor of the nodes.")
    python: Interpreter = Field("python3.12", description="Interpreter of the Databricks runtime.")
    patience: float = Field(6 * 3600, gt=0, description="Seconds after which a step in which no task ends is given up.")

    @field_validator("host")
    @classmethod
    def _https(cls, host: str) -> str:
        if not _HOST.fullmatch(host):
            raise ValueError("not the host of a workspace, like adb-1234567890123456.7.azuredatabricks.net")
        return host.rstrip("/") if "://" in host else f"https://{host}"

    @model_validator(mode="after")
    def _one_of_each(self) -> "DatabricksRunnerSettings":
        if (self.cluster_id is None) == (self.job_cluster is None):
            raise ValueError("give either cluster_id, a cluster that is there, or job_cluster, one for each run")
        if self.token and (self.client_id or self.client_secret or self.tenant_id):
            raise ValueError("token and a service principal are different ways in: keep one of them")
        if (self.client_secret or self.tenant_id) and not (self.client_secret and self.client_id):
            raise ValueError("a service principal needs client_id and client_secret")
        return self


_AnyRunner = (
    Annotated[SparkRunnerSettings, Tag("spark")]
    | Annotated[EmrRunnerSettings, Tag("emr")]
    | Annotated[EmrServerlessRunnerSettings, Tag("emr-serverless")]
    | Annotated[ConnectRunnerSettings, Tag("connect")]
    | Annotated[DatabricksRunnerSettings, Tag("databricks")]
)
RunnerSettings = Annotated[_AnyRunner, by_kind("spark")]
RunnerName = Literal["spark", "emr", "emr-serverless"]
RunnerChoice = Annotated[Annotated[RunnerName, Tag(BY_NAME)] | _AnyRunner, by_kind("spark", or_name=True)]
"""The runner of the default lake: a table, or the name of one that sections of their own tell about."""


class EmrSection(_Nodes, _Tag):
    """EMR as the default lake uses it."""

    cluster_id: EmrCluster | None = Field(None, description="Cluster that takes the steps; replays run on one like it.")
    bootstrap_actions: tuple[Script, ...] = _BOOTSTRAP
    application_id: EmrApplication | None = Field(
        None, description="Application of EMR Serverless that takes the job runs."
    )
    execution_role_arn: RoleArn | None = Field(None, description="Role in which job runs of EMR Serverless act.")
