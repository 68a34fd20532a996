"""What `eventlake doctor` tries on AWS."""

import uuid
from contextlib import suppress

from eventlake.aws.service import Service
from eventlake.aws.session import session
from eventlake.catalog.base import SYSTEM_DATABASE, TableChange
from eventlake.doctor.step import SkippedStep
from eventlake.errors import CatalogLimitError, CatalogWriteDeniedError, EventLakeError, InvalidSettingsError
from eventlake.reports.words import count
from eventlake.runners.emr import Emr, check_cluster
from eventlake.runners.emr_serverless import Serverless
from eventlake.storage.s3 import S3Storage
from eventlake.workspace import Lake

STAGING_DAYS = 14

_trial = TableChange(
    SYSTEM_DATABASE, f"doctor_{uuid.uuid4().hex}", "doctor", "doctor", "segment-data/data/doctor", ("day",)
)

_made: dict[str, bool] = {}  # lakes for which the database was made to try it


def has_bucket(lake: Lake) -> bool:
    return isinstance(lake.storage, S3Storage)


def identity(lake: Lake) -> str:
    """Who acts: shows that credentials are there, and that the role can be assumed."""
    if lake.settings.s3.endpoint and not lake.settings.aws.role_arn:
        raise SkippedStep("is for Amazon's own servers")
    found = Service("sts", lake.settings.aws.options).ask("get_caller_identity", "ask STS who this is")
    return str(found["Arn"])


def regions(lake: Lake) -> str:
    """Where bucket, catalog and cluster are: Athena and EMR read from their own region only."""
    settings = lake.settings
    if settings.s3.endpoint:
        raise SkippedStep("is for Amazon's own servers")
    assert isinstance(lake.storage, S3Storage)  # noqa: S101 - the step is for buckets
    bucket, asked = lake.storage.region(), session(settings.aws.options).region_name
    if bucket != asked and (settings.catalog.kind == "glue" or settings.runner.kind in ("emr", "emr-serverless")):
        raise InvalidSettingsError(
            f"the bucket is in {bucket}, but Glue and EMR are asked in {asked}",
            fix=f"set aws.region to {bucket}, if they are there; bucket, catalog and cluster must be in one region",
        )
    return bucket


def glue_account(lake: Lake) -> str:
    """Whose catalog it is. Mostly that of who acts, as Segment's guide has it; but it may be another account's."""
    assert lake.settings.catalog.kind == "glue"  # noqa: S101 - the step is for Glue
    wanted = lake.settings.catalog.catalog_id
    found = Service("sts", lake.settings.aws.options).ask("get_caller_identity", "ask STS who this is")
    if wanted in (None, found["Account"]):
        return str(found["Account"])
    return f"{wanted}, another account's than that of who acts, {found['Account']}: is that what is meant?"


def staging_expires(lake: Lake, *, make: bool) -> str:
    """Runs clean up after themselves; this removes what a lost worker left."""
    assert isinstance(lake.storage, S3Storage)  # noqa: S101 - the step is for buckets
    stage = lake.folders.stage
    rule = f"files below {lake.storage.full(stage)} are removed after {STAGING_DAYS} days"
    if lake.storage.expires(stage, STAGING_DAYS):
        return rule
    if not make:
        raise SkippedStep(f"`eventlake doctor --expire-staging` gives the bucket a rule: {rule}")
    lake.storage.expire(stage, STAGING_DAYS)
    return rule


def glue_database(lake: Lake) -> str:
    try:
        _made[lake.name] = lake.glue.make_database(SYSTEM_DATABASE)
    except CatalogWriteDeniedError:
        lake.glue.prepare(SYSTEM_DATABASE)  # who may not make it needs it to be there
    return f"{SYSTEM_DATABASE} is there"


def glue_schema(lake: Lake) -> str:
    return count(len(lake.glue.tables()), "table")


def glue_create(lake: Lake) -> str:
    for refused in lake.glue.apply([_trial], run_id="doctor", at=lake.clock.now()):
        raise CatalogLimitError(refused, fix="ask AWS for a higher limit, or make room: new tables are not shown")
    return f"{_trial.database}.{_trial.table}"


def glue_delete(lake: Lake) -> str:
    lake.glue.drop(_trial.database, _trial.table)
    if _made.pop(lake.name, False):  # for this trial: a sync makes it again if it needs it
        with suppress(EventLakeError):  # not everybody may
            lake.glue.drop_database(SYSTEM_DATABASE)
    return f"{_trial.database}.{_trial.table}"


def cluster_status(lake: Lake) -> str:
    settings = lake.settings
    if settings.runner.kind == "emr-serverless":
        return Serverless(settings.aws.options, settings.runner.application_id).state()
    assert settings.runner.kind == "emr"  # noqa: S101 - the step is for EMR
    cluster = check_cluster(Emr(settings.aws.options), settings.runner.cluster_id)
    return f"{cluster['Id']} is {cluster['Status']['State'].lower()}, {cluster.get('ReleaseLabel', 'of no release')}"
