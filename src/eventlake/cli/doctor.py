"""`eventlake doctor`: every part that a sync needs, tried one after the other."""

from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, NamedTuple

import typer
from rich.text import Text

from eventlake.cli import (
    aws_checks,
    azure_checks,
    checks,
    connect_checks,
    databricks_checks,
    glue_rights,
    hive_checks,
    output,
    state,
)
from eventlake.cli.checks import SkippedStep
from eventlake.cli.state import JsonFlag
from eventlake.errors import EventLakeError
from eventlake.reports.words import count
from eventlake.settings import DEFAULT_LAKE
from eventlake.workspace import Lake

_MARKS = {"passed": Text("✓", "green"), "failed": Text("✗", "bold red"), "skipped": Text("-", "dim")}


class Step(NamedTuple):
    """Something to try; it is skipped if a step that it needs did not pass."""

    name: str
    attempt: Callable[[Lake], str]
    needs: str | None = None


def doctor(
    quick_start: Annotated[
        bool, typer.Option("--quick-start", help="Make a class cache, from which Spark starts sooner.")
    ] = False,
    expire_staging: Annotated[
        bool, typer.Option("--expire-staging", help="Give the bucket a rule that removes staging files after 14 days.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Check settings, storage, catalog, database, Java and Spark, step by step, each with its fix."""
    results = [
        one | {"step": one["step"] if lake.name == DEFAULT_LAKE else f"{lake.name}: {one['step']}"}
        for lake in state.workspace().lakes.values()
        for one in examined(lake, quick_start=quick_start, expire_staging=expire_staging)
    ]
    show(results, as_json)


def examined(lake: Lake, *, quick_start: bool = False, expire_staging: bool = False) -> list[dict[str, Any]]:
    """What came of every step that a sync into a lake needs."""
    own_archive = (Step("raw archive", checks.raw_archive, "settings"),) if lake.archive is not lake.storage else ()
    steps = [
        *_STORAGE,
        *own_archive,
        *_of_the_place(lake, expire_staging),
        *_HERE,
        *_shown_in(lake),
        *_runner(lake.settings.runner.kind, quick_start=quick_start),
    ]
    return list(_results(lake, steps))


def show(results: list[dict[str, Any]], as_json: bool) -> None:
    """Show what came of steps; the program ends with 1 if one failed."""
    if as_json:
        output.print_json(results)
    else:
        rows = [
            (_MARKS[r["status"]], r["step"], r["detail"], f"Fix: {r['fix']}" if "fix" in r else "") for r in results
        ]
        output.table(None, ("", "step", "", ""), rows)
    if any(result["status"] == "failed" for result in results):
        raise typer.Exit(1)


def _results(place: Lake, steps: Iterable[Step]) -> Iterator[dict[str, Any]]:
    passed = set()
    for name, attempt, needs in steps:
        result: dict[str, Any] = {"step": name, "status": "skipped"}
        if needs and needs not in passed:
            yield result | {"detail": f"needs {needs}"}
            continue
        try:
            result |= {"status": "passed", "detail": attempt(place)}
            passed.add(name)
        except SkippedStep as reason:
            result |= {"detail": str(reason)}
        except EventLakeError as error:
            result |= {"status": "failed", "detail": error.problem, "fix": error.fix, "code": error.code}
        except Exception as error:  # a doctor must not die of the illness
            told = f"{type(error).__name__}: {error}"
            result |= {"status": "failed", "detail": told, "fix": "see the message; `eventlake --verbose` shows more"}
        yield result


_trial = checks.Trial()
_STORAGE = (
    Step("settings", checks.settings),
    Step("storage: upload to staging", _trial.stage, "settings"),
    Step("storage: upload", _trial.write, "settings"),
    Step("storage: download", _trial.read, "storage: upload to staging"),
    Step("storage: list", _trial.list, "storage: upload to staging"),
    Step("storage: conditional create", _trial.create, "storage: upload to staging"),
    Step("storage: delete", _trial.delete, "storage: upload to staging"),
)
_ON_A_DISK = (Step("disk space", checks.space, "settings"),)
_ON_AZURE = (
    Step("azure: key vault", azure_checks.vault, "settings"),
    Step("azure: identity", azure_checks.identity, "settings"),
    Step("storage: namespace", azure_checks.namespace, "storage: upload to staging"),
)
_HERE = (
    Step("database", lambda place: count(len(place.workspace.sources.all()), "source")),
    Step("catalog", lambda place: count(len(place.catalog.tables()), "table"), "database"),
    Step("lake", checks.lake, "database"),
    Step("clock", checks.clock, "database"),
)
_GLUE = {
    "segment": (
        Step("glue: database", aws_checks.glue_database, "database"),
        Step("glue: fetch schema", aws_checks.glue_schema, "database"),
        Step("glue: create table", aws_checks.glue_create, "glue: database"),
        Step("glue: delete table", aws_checks.glue_delete, "glue: create table"),
    ),
    "rudderstack": (
        Step("glue: fetch schema", glue_rights.fetch_schema, "database"),
        Step("glue: database", glue_rights.database, "glue: fetch schema"),
        Step("glue: create table", glue_rights.create_table, "glue: fetch schema"),
        Step("glue: change table", glue_rights.change_table, "glue: fetch schema"),
        Step("glue: create partitions", glue_rights.partitions, "glue: fetch schema"),
        Step("glue: delete table", glue_rights.delete_table),
    ),
}
_HIVE = (
    Step("metastore: reach", hive_checks.reach, "database"),
    Step("metastore: fetch schema", hive_checks.schema, "metastore: reach"),
    Step("metastore: create table", hive_checks.create, "metastore: reach"),
    Step("metastore: compare versions", hive_checks.compare, "metastore: create table"),
    Step("metastore: delete table", hive_checks.delete, "metastore: create table"),
)
_EMR = (
    Step("cluster: job status", aws_checks.cluster_status, "settings"),
    Step("cluster: submit job", checks.spark, "cluster: job status"),
)
_CONNECT = (
    Step("connect: server", connect_checks.server, "settings"),
    Step("connect: run tasks", checks.spark, "connect: server"),
)
_DATABRICKS = (
    Step("databricks: sign in", databricks_checks.sign_in, "settings"),
    Step("databricks: cluster", databricks_checks.cluster, "databricks: sign in"),
    Step("databricks: upload package", databricks_checks.package, "databricks: sign in"),
    Step("databricks: submit job", checks.spark, "databricks: upload package"),
)
_SPARK = (
    Step("java", checks.java),
    Step("spark", checks.spark, "java"),
)


def _shown_in(lake: Lake) -> tuple[Step, ...]:
    """What only the catalog has in which tables are shown."""
    match lake.settings.catalog.kind:
        case "glue":
            return _GLUE[lake.settings.dialect]
        case "hive":
            return _HIVE
        case "embedded":
            return ()


def _of_the_place(lake: Lake, expire_staging: bool) -> tuple[Step, ...]:
    """What only storage of this kind has."""
    if aws_checks.has_bucket(lake):
        return _on_s3(expire_staging)
    return _ON_AZURE if azure_checks.is_on_azure(lake) else _ON_A_DISK


def _on_s3(expire_staging: bool) -> tuple[Step, ...]:
    return (
        Step("aws: identity", aws_checks.identity, "settings"),
        Step(
            "storage: staging expires",
            lambda place: aws_checks.staging_expires(place, make=expire_staging),
            "storage: upload to staging",
        ),
    )


def _runner(kind: str, *, quick_start: bool) -> tuple[Step, ...]:
    if kind == "spark":
        return (*_SPARK, _quick_start(quick_start))
    return {"connect": _CONNECT, "databricks": _DATABRICKS}.get(kind, _EMR)


def _quick_start(make: bool) -> Step:
    return Step("quick start", lambda place: checks.archive(place, make=make), "spark")
