"""Putting a run on EMR: its package, its launcher, and `eventlake package`."""

import functools

from eventlake.cli import output, state
from eventlake.cli.state import JsonFlag
from eventlake.errors import InvalidSettingsError
from eventlake.runners.cluster_driver import described
from eventlake.runners.emr import Emr, EmrStep, TransientCluster
from eventlake.runners.emr_serverless import Serverless, ServerlessJob
from eventlake.runners.package import Package, Target, provide
from eventlake.runners.remote import Launcher
from eventlake.runners.submission import Submission
from eventlake.storage.s3 import S3Storage
from eventlake.workspace import Workspace


def package(as_json: JsonFlag = False) -> None:
    """Build what a cluster needs and upload it to the lake, once per version.

    The archive holds eventlake and its libraries as they are built for the cluster's Linux (`emr.python`,
    `emr.machine`). A sync on EMR does this by itself when it is needed.
    """
    place = state.workspace()
    storage = _bucket(place)
    made = _provided(place, storage)
    told = {"archive": storage.full(made.archive), "entry": storage.full(made.entry), "uploaded": made.is_new}
    if as_json:
        output.print_json(told)
    else:
        output.talk.print(f"{'Uploaded' if made.is_new else 'It is there:'} {told['archive']}")


def launcher(place: Workspace, *, transient: bool) -> Launcher:
    """What submits to the place that the settings name; `transient`: to a cluster that is made for it."""
    settings, storage = place.settings, _bucket(place)
    made = _provided(place, storage)
    submission = Submission(
        made,
        storage.full,
        settings.spark.conf,
        settings.emr.python,
        functools.partial(described, storage),
    )
    options = settings.aws.options
    if settings.runner == "emr-serverless":
        application = Serverless(options, str(settings.emr.application_id))
        role = str(settings.emr.execution_role_arn)
        return ServerlessJob(application, role, submission, logs=storage.full("logs/"))
    kind = TransientCluster if transient else EmrStep
    return kind(Emr(options), str(settings.emr.cluster_id), submission)


def _provided(place: Workspace, storage: S3Storage) -> Package:
    target = Target(place.settings.emr.python, place.settings.emr.machine)
    with output.talk.status("looking for the package, or building it…"):
        return provide(storage, target, place.folder / "packages")


def _bucket(place: Workspace) -> S3Storage:
    if not isinstance(place.storage, S3Storage):
        raise InvalidSettingsError("the lake is not in a bucket", fix="set lake.root to s3://bucket/prefix")
    return place.storage
