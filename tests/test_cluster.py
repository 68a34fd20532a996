"""The same sync on a real Spark cluster: a master and two workers, each a process of its own."""

import json
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from clusters import WORKERS, Cluster, environment, executors
from clusters import cluster as cluster  # noqa: PLC0414 - a fixture
from conftest import InProcess
from eventlake.audit.verify import verify
from eventlake.demo.events import Recipe, write_archive
from eventlake.query import query
from eventlake.workspace import Workspace

pytestmark = pytest.mark.long

PROGRAM = Path(sys.executable).with_name("eventlake")


def eventlake(folder: Path, *words: str, **variables: str) -> list[Any]:
    """The JSON values that a command printed; it must succeed."""
    done = subprocess.run(
        [PROGRAM, "-C", folder, *words, "--json"],
        env=environment() | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def unsynced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with raw files that nobody has synced: with copies, broken lines and values of the wrong kind."""
    folder = tmp_path_factory.mktemp("raw")
    place = Workspace.create(folder / "workspace")
    place.connections.add_source("web", source_id="src1")
    recipe = Recipe(
        events=10_000, hours=3, track_types=10, duplicate_share=0.03, conflict_share=0.05, broken_share=0.01
    )
    write_archive(recipe, folder / "raw", files=12)
    eventlake(place.folder, "import", "web", str(folder / "raw"))
    return place.folder


class Synced(NamedTuple):
    workspace: Workspace
    books: dict[str, Any]


@pytest.fixture(scope="module")
def alone(unsynced: Path) -> Synced:
    """The same, synced on one machine."""
    folder = Path(shutil.copytree(unsynced, unsynced.with_name("alone")))
    report = eventlake(folder, "sync", EVENTLAKE_SPARK__MASTER="local[2]")
    return Synced(Workspace.open(folder), report[0]["books"])


@pytest.fixture
def clustered(unsynced: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(unsynced, tmp_path / "clustered"))


def on(cluster: Cluster, events: Path) -> dict[str, str]:
    """Variables that let a command run on the cluster and write down what it did there."""
    events.mkdir()
    conf = {
        "spark.cores.max": str(WORKERS),
        "spark.driver.host": "127.0.0.1",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.enabled": "true",
        "spark.executor.cores": "1",
        "spark.executor.memory": "512m",
        # No task starts before both executors are there: else the first might do all the work.
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    }
    return {"EVENTLAKE_SPARK__MASTER": cluster.master, "EVENTLAKE_SPARK__CONF": json.dumps(conf)}


def test_a_cluster_loads_the_same_rows_as_one_machine_and_shares_the_work(
    cluster: Cluster, clustered: Path, alone: Synced, tmp_path: Path
) -> None:
    events = tmp_path / "events"

    report = eventlake(clustered, "sync", **on(cluster, events))

    books = report[0]["books"]
    parts = ("loaded", "duplicates", "suppressed", "blocked", "quarantined")
    assert books["lines"] == sum(books[part] for part in parts)
    assert books["loaded"] == 10_000 == sum(table["row_count"] for table in report[1:])
    assert books["duplicates"]
    assert books["quarantined"]

    assert sorted(tasks_by_executor(events)) == ["0", "1"]
    application = cluster.state()["completedapps"][0]
    assert (application["name"], application["state"], application["cores"]) == ("eventlake", "FINISHED", WORKERS)
    for number in range(WORKERS):
        (log,) = (cluster.folder / f"worker-{number}").glob(f"{application['id']}/*/stderr")
        assert log.is_file()

    assert books == alone.books
    check_tables(clustered, alone)


def check_tables(clustered: Path, alone: Synced) -> None:
    one, other = alone.workspace, Workspace.open(clustered)
    assert [table.schema for table in other.lake().catalog.tables()] == [
        table.schema for table in one.lake().catalog.tables()
    ]
    for table in one.lake().catalog.tables():
        sql = f'select * from {table.database}."{table.name}" order by message_id, received_at'
        assert query(other.lake(), sql).to_pylist() == query(one.lake(), sql).to_pylist(), table.name
    assert verify(other, other.connections.get("web"), InProcess()) == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("step", "shown_by"), [("stage", "staged-*"), ("publish", "data/*/*.parquet")])
def test_an_executor_killed_in_the_middle_of_a_step_changes_nothing(
    cluster: Cluster, unsynced: Path, alone: Synced, tmp_path: Path, step: str, shown_by: str
) -> None:
    lost: set[str] = set()
    for attempt in range(5):  # the step may be over before the executor is
        clustered = Path(shutil.copytree(unsynced, tmp_path / f"clustered-{attempt}"))
        events = tmp_path / f"events-{attempt}"
        with ThreadPoolExecutor() as other:
            sync = other.submit(eventlake, clustered, "sync", **on(cluster, events))
            deadline = time.monotonic() + 100
            while not list((clustered / "lake" / "segment-stage").glob(f"*/{shown_by}")):  # a task of it is writing
                assert not sync.done(), sync.result()
                assert time.monotonic() < deadline
                time.sleep(0.005)
            executors(cluster)[0].kill()
            report = sync.result()
        assert report[0]["books"] == alone.books
        check_tables(clustered, alone)
        assert not list((clustered / "lake" / "segment-stage").glob("*"))
        lost = lost_tasks(events)
        if lost:
            break
    assert lost == {step}


def lost_tasks(folder: Path) -> set[str]:
    """The steps of which a task was lost with its executor, as Spark wrote it down."""
    steps: dict[int, str] = {}
    lost = set()
    for event in spark_events(folder):
        if event["Event"] == "SparkListenerJobStart":
            steps |= dict.fromkeys(event["Stage IDs"], event["Properties"]["spark.job.description"])
        elif event["Event"] == "SparkListenerTaskEnd" and event["Task End Reason"]["Reason"] == "ExecutorLostFailure":
            lost.add(steps[event["Stage ID"]])
    return lost


def tasks_by_executor(folder: Path) -> Counter[str]:
    """How many tasks each executor finished, as Spark wrote it down."""
    return Counter(
        event["Task Info"]["Executor ID"]
        for event in spark_events(folder)
        if event["Event"] == "SparkListenerTaskEnd" and event["Task End Reason"]["Reason"] == "Success"
    )


def spark_events(folder: Path) -> Iterator[dict[str, Any]]:
    for log in folder.rglob("*"):
        if log.is_file() and log.name.startswith(("events_", "app-")):
            yield from map(json.loads, log.read_text().splitlines())
