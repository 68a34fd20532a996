"""Every part that a sync needs, tried one after the other, each with its fix."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from eventlake.doctor import everywhere, in_hive, on_aws, on_azure, on_databricks, over_connect, rudder_in_glue
from eventlake.doctor.step import SkippedStep, Step
from eventlake.errors import EventLakeError, InvalidSettingsError
from eventlake.library.runners import Around, logged
from eventlake.reports.words import count
from eventlake.settings.storage import is_in_a_cloud
from eventlake.workspace import Lake


def steps_of(
    lake: Lake, around: Around = logged, *, quick_start: bool = False, expire_staging: bool = False
) -> list[Step]:
    """All that a sync into a lake needs."""
    own_archive = (Step("raw archive", everywhere.raw_archive, "settings"),) if lake.archive is not lake.storage else ()
    return [
        *_STORAGE,
        *own_archive,
        *(_VAULT if on_azure.kept_in_vaults(lake) else ()),
        *_of_the_place(lake, expire_staging),
        *_HERE,
        *_shown_in(lake),
        *_runner(lake.settings.runner.kind, around, quick_start=quick_start),
    ]


def of_parts(steps: Sequence[Step], parts: Sequence[str]) -> list[Step]:
    """The steps of some parts and of those that they need; all if none is named.

    A part is taken as a whole: what one of its steps makes to try it, another removes.
    """
    wanted: set[str] = set()
    left = list(parts) or [step.part for step in steps]
    while left:
        part = left.pop()
        wanted.add(part)
        needed = {step.needs.partition(":")[0] for step in steps if step.part == part and step.needs}
        left += needed - wanted
    return [step for step in steps if step.part in wanted]


def refuse_unknown_parts(steps: Iterable[Step], parts: Sequence[str]) -> None:
    known = list(dict.fromkeys(step.part for step in steps))
    for one in parts:
        if one not in known:
            raise InvalidSettingsError(f"there is no part {one!r}", fix=f"choose from {', '.join(known)}")


def examined(lake: Lake, steps: Iterable[Step]) -> Iterator[dict[str, Any]]:
    """What came of each step, as soon as it is known."""
    passed = set()
    for name, attempt, needs in steps:
        result: dict[str, Any] = {"step": name, "status": "skipped"}
        if needs and needs not in passed:
            yield result | {"detail": f"needs {needs}"}
            continue
        try:
            result |= {"status": "passed", "detail": attempt(lake)}
            passed.add(name)
        except SkippedStep as reason:
            result |= {"detail": str(reason)}
        except EventLakeError as error:
            result |= {"status": "failed", "detail": error.problem, "fix": error.fix, "code": error.code}
        except Exception as error:  # a doctor must not die of the illness
            told = f"{type(error).__name__}: {error}"
            result |= {"status": "failed", "detail": told, "fix": "see the message; `eventlake --verbose` shows more"}
        yield result


_trial = everywhere.Trial()
_STORAGE = (
    Step("settings", everywhere.settings),
    Step("storage: upload to staging", _trial.stage, "settings"),
    Step("storage: upload", _trial.write, "settings"),
    Step("storage: download", _trial.read, "storage: upload to staging"),
    Step("storage: list", _trial.list, "storage: upload to staging"),
    Step("storage: conditional create", _trial.create, "storage: upload to staging"),
    Step("storage: move", _trial.move, "storage: upload to staging"),
    Step("storage: delete", _trial.delete, "storage: upload to staging"),
)
_ON_A_DISK = (Step("disk space", everywhere.space, "settings"),)
_VAULT = (Step("azure: key vault", on_azure.vault, "settings"),)
_ON_AZURE = (
    Step("azure: identity", on_azure.identity, "settings"),
    Step("storage: namespace", on_azure.namespace, "storage: upload to staging"),
)
_HERE = (
    Step("database", lambda lake: count(len(lake.workspace.sources.all()), "source")),
    Step("connections", everywhere.connections, "database"),
    Step("catalog", lambda lake: count(len(lake.catalog.tables()), "table"), "database"),
    Step("lake", everywhere.lake, "database"),
    Step("clock", everywhere.clock, "database"),
)
_GLUE = {
    "segment": (
        Step("glue: database", on_aws.glue_database, "database"),
        Step("glue: fetch schema", on_aws.glue_schema, "database"),
        Step("glue: create table", on_aws.glue_create, "glue: database"),
        Step("glue: delete table", on_aws.glue_delete, "glue: create table"),
    ),
    "rudderstack": (
        Step("glue: fetch schema", rudder_in_glue.fetch_schema, "database"),
        Step("glue: database", rudder_in_glue.database, "glue: fetch schema"),
        Step("glue: create table", rudder_in_glue.create_table, "glue: fetch schema"),
        Step("glue: change table", rudder_in_glue.change_table, "glue: fetch schema"),
        Step("glue: create partitions", rudder_in_glue.partitions, "glue: fetch schema"),
        Step("glue: delete table", rudder_in_glue.delete_table),
    ),
}
_HIVE = (
    Step("metastore: reach", in_hive.reach, "database"),
    Step("metastore: fetch schema", in_hive.schema, "metastore: reach"),
    Step("metastore: create table", in_hive.create, "metastore: reach"),
    Step("metastore: compare versions", in_hive.compare, "metastore: create table"),
    Step("metastore: delete table", in_hive.delete, "metastore: create table"),
)


def _shown_in(lake: Lake) -> tuple[Step, ...]:
    """What only the catalog has in which tables are shown."""
    match lake.settings.catalog.kind:
        case "glue":
            return (Step("glue: account", on_aws.glue_account, "aws: identity"), *_GLUE[lake.settings.dialect])
        case "hive":
            return _HIVE
        case "embedded":
            return ()


def _of_the_place(lake: Lake, expire_staging: bool) -> tuple[Step, ...]:
    """What only storage of this kind has."""
    if on_aws.has_bucket(lake):
        return _on_s3(expire_staging)
    if on_azure.is_on_azure(lake):
        return _ON_AZURE
    return () if is_in_a_cloud(lake.settings.root) else _ON_A_DISK


def _on_s3(expire_staging: bool) -> tuple[Step, ...]:
    return (
        Step("aws: identity", on_aws.identity, "settings"),
        Step("aws: regions", on_aws.regions, "settings"),
        Step(
            "storage: staging expires",
            partial(on_aws.staging_expires, make=expire_staging),
            "storage: upload to staging",
        ),
    )


def _runner(kind: str, around: Around, *, quick_start: bool) -> tuple[Step, ...]:
    spark = partial(everywhere.spark, around=around)
    match kind:
        case "spark":
            return (
                Step("java", everywhere.java),
                Step("spark", spark, "java"),
                Step("quick start", partial(everywhere.class_cache, make=quick_start), "spark"),
            )
        case "connect":
            return (
                Step("connect: server", partial(over_connect.server, around=around), "settings"),
                Step("connect: run tasks", spark, "connect: server"),
            )
        case "databricks":
            return (
                Step("databricks: sign in", partial(on_databricks.sign_in, around=around), "settings"),
                Step("databricks: cluster", partial(on_databricks.cluster, around=around), "databricks: sign in"),
                Step(
                    "databricks: upload package", partial(on_databricks.package, around=around), "databricks: sign in"
                ),
                Step("databricks: submit job", spark, "databricks: upload package"),
            )
        case _:
            return (
                Step("cluster: job status", on_aws.cluster_status, "settings"),
                Step("cluster: submit job", spark, "cluster: job status"),
            )
