"""Where Spark's driver runs."""

import re
from typing import Annotated, Literal

from pydantic import Field, Tag, field_validator

from eventlake.settings.section import BY_NAME, Secret, Section, by_kind
from eventlake.settings.storage import ROLE_ARN

_CONNECT_URL = re.compile(r"sc://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?(/(;[A-Za-z0-9._-]+=[^;=\s]+)*)?")


class SparkSettings(Section):
    master: str = Field("local[*]", description="Where Spark runs: local[*], spark://host:7077, yarn, k8s://…")
    conf: dict[str, str] = Field(default_factory=dict, description="Any further Spark configuration.")
    patience: float = Field(6 * 3600, gt=0, description="Seconds after which a step in which no task ends is given up.")


class SparkRunnerSettings(SparkSettings):
    kind: Literal["spark"] = "spark"


class _Nodes(Section):
    python: str = Field("python3.11", pattern=r"^\S*python3\.\d+$", description="Interpreter on the nodes.")
    machine: Literal["x86_64", "aarch64"] = Field("x86_64", description="Processor of the nodes; aarch64: Graviton.")


class _Submitted(_Nodes):
    conf: dict[str, str] = Field(default_factory=dict, description="Any further Spark configuration.")
    patience: float = Field(6 * 3600, gt=0, description="Seconds after which a step in which no task ends is given up.")


class EmrRunnerSettings(_Submitted):
    kind: Literal["emr"] = "emr"
    cluster_id: str = Field(
        pattern=r"^j-[A-Za-z0-9]+$", description="Cluster that takes the steps; replays run on one like it."
    )


class EmrServerlessRunnerSettings(_Submitted):
    kind: Literal["emr-serverless"] = "emr-serverless"
    application_id: str = Field(
        pattern=r"^[a-z0-9]+$", description="Application of EMR Serverless that takes the job runs."
    )
    execution_role_arn: str = Field(pattern=ROLE_ARN, description="Role in which job runs of EMR Serverless act.")


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


_AnyRunner = (
    Annotated[SparkRunnerSettings, Tag("spark")]
    | Annotated[EmrRunnerSettings, Tag("emr")]
    | Annotated[EmrServerlessRunnerSettings, Tag("emr-serverless")]
    | Annotated[ConnectRunnerSettings, Tag("connect")]
)
RunnerSettings = Annotated[_AnyRunner, by_kind("spark")]
RunnerName = Literal["spark", "emr", "emr-serverless"]
RunnerChoice = Annotated[Annotated[RunnerName, Tag(BY_NAME)] | _AnyRunner, by_kind("spark", or_name=True)]
"""The runner of the default lake: a table, or the name of one that sections of their own tell about."""


class EmrSection(_Nodes):
    """EMR as the default lake uses it."""

    cluster_id: str | None = Field(
        None, pattern=r"^j-[A-Za-z0-9]+$", description="Cluster that takes the steps; replays run on one like it."
    )
    application_id: str | None = Field(
        None, pattern=r"^[a-z0-9]+$", description="Application of EMR Serverless that takes the job runs."
    )
    execution_role_arn: str | None = Field(
        None, pattern=ROLE_ARN, description="Role in which job runs of EMR Serverless act."
    )
