"""The runner that a lake's settings ask for."""

import math
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eventlake.aws.session import AwsOptions
from eventlake.azure.identity import AzureOptions
from eventlake.errors import InvalidSettingsError
from eventlake.runners.cluster_driver import described
from eventlake.runners.connect import ConnectRunner, Way
from eventlake.runners.connect_session import Given, Opened, Server
from eventlake.runners.connect_worker import NEEDED
from eventlake.runners.databricks import Databricks, DatabricksOptions, DatabricksRun, Job, Volume
from eventlake.runners.emr import Emr, EmrStep, TransientCluster
from eventlake.runners.emr_serverless import Serverless, ServerlessJob
from eventlake.runners.node_storage import LIBRARIES, node_storage
from eventlake.runners.package import LakeShelf, Package, Shelf, Target, provide
from eventlake.runners.remote import Launcher, RemoteRunner
from eventlake.runners.spark import SparkRunner
from eventlake.runners.submission import Submission
from eventlake.runners.wire import Steps
from eventlake.settings.runners import (
    ConnectRunnerSettings,
    DatabricksRunnerSettings,
    EmrRunnerSettings,
    EmrServerlessRunnerSettings,
    RunnerSettings,
)
from eventlake.storage.base import Storage
from eventlake.storage.s3 import S3Storage

OnEmr = EmrRunnerSettings | EmrServerlessRunnerSettings
Submitted = OnEmr | DatabricksRunnerSettings


@dataclass(frozen=True)
class Surroundings:
    """What runners need of the lake that they work for and of the workspace around it."""

    storage: Storage
    archive: Storage
    annexes: Callable[[], Iterable[Storage]]  # where else raw files are, at the moment
    stage: str  # the folder of the lake below which what is under way is put down
    aws: AwsOptions
    azure: AzureOptions
    folder: Path  # of the workspace
    spark_log: Path | None = None  # where Spark and its Java write; else to standard error
    talk: Callable[[str], None] = lambda _text: None
    busy: Callable[[str], AbstractContextManager[object]] = nullcontext  # shows that something takes long
    gives_way: bool = False  # a Spark of this machine, to all else that runs on it


def runner_of(
    settings: RunnerSettings, around: Surroundings, steps: Steps, *, transient: bool = False
) -> SparkRunner | ConnectRunner | RemoteRunner:
    """A runner that starts when the first task comes; `transient`: if it is on EMR, on a cluster made for it."""
    if settings.kind == "spark":
        return SparkRunner(
            settings.master, settings.conf, around.spark_log, patience=settings.patience, gives_way=around.gives_way
        )
    if settings.kind == "connect":
        way = Opened(server_of(settings, around.folder), needed_for(around))
        return _over_connect(way, around, steps, patience=settings.patience)
    return RemoteRunner(
        around.storage,
        _launcher(settings, around, transient=transient),
        steps,
        stage=around.stage,
        talk=around.talk,
        patience=settings.patience,
    )


def runner_in(session: Any, around: Surroundings, steps: Steps) -> ConnectRunner:
    """A runner in a session of Spark Connect that somebody else has opened, and closes."""
    return _over_connect(Given(session, needed_for(around)), around, steps)


def server_of(settings: ConnectRunnerSettings, folder: Path) -> Server:
    packed = Target(settings.python, settings.machine) if settings.libraries == "sent" else None
    return Server(settings.url, settings.token, settings.conf, packed, folder / "packages")


def needed_for(around: Surroundings) -> list[str]:
    """What workers elsewhere must be able to import; our code at last."""
    places = [node_storage(one) for one in (around.storage, around.archive, *around.annexes())]
    libraries = {*NEEDED, *(name for place in places for name in LIBRARIES[type(place)])}
    return [*sorted(libraries), "eventlake.tasks.registry"]


def _over_connect(way: Way, around: Surroundings, steps: Steps, *, patience: float = math.inf) -> ConnectRunner:
    return ConnectRunner(
        way,
        around.storage,
        around.archive,
        steps,
        annexes=around.annexes,
        stage=around.stage,
        patience=patience,
        talk=around.talk,
    )


def databricks_of(settings: DatabricksRunnerSettings, around: Surroundings) -> Databricks:
    """The workspace. Who acts there is whoever the runner names, or else whoever acts on the lake's storage."""
    azure = around.azure
    if settings.client_id:
        azure = AzureOptions(tenant_id=settings.tenant_id, authority=azure.authority)
    return Databricks(
        DatabricksOptions(settings.host, settings.client_id, settings.client_secret, settings.token, azure)
    )


def provided(settings: Submitted, around: Surroundings) -> Package:
    """What a cluster needs, where it finds it; built and uploaded if it is not there."""
    shelf: Shelf
    if settings.kind == "databricks":
        shelf = Volume(databricks_of(settings, around), settings.volume)
    else:
        shelf = LakeShelf(_bucket(around.storage))
    with around.busy("looking for the package, or building it…"):
        return provide(shelf, Target(settings.python, settings.machine), around.folder / "packages")


def _launcher(settings: Submitted, around: Surroundings, *, transient: bool) -> Launcher:
    if settings.kind == "databricks":
        new = settings.job_cluster.spec if settings.job_cluster else None
        describe = _describing(around.storage, around.archive, around)
        job = Job(provided(settings, around), settings.cluster_id, new, describe)
        return DatabricksRun(databricks_of(settings, around), job)
    storage = _bucket(around.storage)
    submission = Submission(
        provided(settings, around),
        settings.conf,
        settings.python,
        _describing(storage, _bucket(around.archive), around),
    )
    if settings.kind == "emr-serverless":
        application = Serverless(around.aws, settings.application_id)
        return ServerlessJob(application, settings.execution_role_arn, submission, logs=storage.full("logs/"))
    emr = Emr(around.aws)
    if transient:
        tags = {settings.tag_key: settings.tag_value}
        return TransientCluster(emr, settings.cluster_id, submission, tags, settings.bootstrap_actions)
    return EmrStep(emr, settings.cluster_id, submission)


def _describing(lake: Storage, archive: Storage, around: Surroundings) -> Callable[[str], str]:
    """A function that tells a driver of a session; of annexes it tells of those that there are then."""
    return lambda session: described(lake, archive, session, annexes=around.annexes())


def _bucket(storage: Storage) -> S3Storage:
    if not isinstance(storage, S3Storage):
        raise InvalidSettingsError(f"{storage.root} is not in a bucket", fix="set its root to s3://bucket/prefix")
    return storage
