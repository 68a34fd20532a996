"""Runs on EMR: submitted as a step or a job run, followed, cancelled; on a real Spark of either line."""

import base64
import calendar
import functools
import gzip
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from moto.core.exceptions import AccessDeniedError, JsonRESTError
from moto.emr.models import emr_backends
from moto.emr.responses import ElasticMapReduceResponse

from aws import ACCOUNT, REGION, Aws, rights_checked
from conftest import InProcess, track
from eventlake.audit.verify import verify
from eventlake.aws.session import AwsOptions
from eventlake.demo.events import Recipe, write_archive
from eventlake.errors import (
    CancelledError,
    InternalError,
    InvalidSettingsError,
    PermissionMissingError,
    SetupError,
    TransientError,
    VersionMismatchError,
)
from eventlake.library.runners import Runners
from eventlake.query import query
from eventlake.runners import entry
from eventlake.runners.cluster_driver import described
from eventlake.runners.emr import Emr, EmrStep, TransientCluster, check_cluster, like
from eventlake.runners.emr_states import state_of
from eventlake.runners.entry import tree_digest
from eventlake.runners.mailbox import Mailbox
from eventlake.runners.package import FOLDER, LOCK, LakeShelf, Package, Target, build, pinned, provide
from eventlake.runners.remote import RemoteRunner, State, Status
from eventlake.runners.submission import Submission
from eventlake.runners.wire import Failure, Greeting, Step, registry
from eventlake.storage.local import LocalStorage
from eventlake.storage.s3 import S3Options, S3Storage
from eventlake.sync import jobs
from eventlake.sync.run import run
from eventlake.tasks.registry import STEPS
from eventlake.workspace import Workspace
from needs import not_there
from servers import S3Server
from stand_in import NODE_PYTHON, Cluster, no_policy, wait_until
from test_aws import SEGMENT_GLUE, slowed_down

PROGRAM = str(Path(sys.executable).with_name("eventlake"))
SPARK_35 = Path(__file__).parent.parent / "requirements" / "spark35.txt"


@pytest.fixture(scope="module", params=["4", "3.5"])
def spark_home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Spark of each line that EMR has."""
    if request.param == "4":
        return Path(pyspark.__file__).parent
    folder = Path.home() / ".cache" / "eventlake-tests" / "spark-3.5"
    if not (folder / "pyspark" / "bin" / "spark-submit").exists():
        words = [sys.executable, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--no-deps"]
        done = subprocess.run(
            [*words, "--require-hashes", "--upgrade", "--target", str(folder), "-r", str(SPARK_35)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            not_there("Spark 3.5", done.stderr[-500:])
    return folder / "pyspark"


class Lake(NamedTuple):
    """A workspace on AWS with raw files that nobody has synced, and one like it that was synced here."""

    folder: Path
    alone: Path
    bucket: str


def eventlake(folder: Path, *words: str) -> list[Any]:
    done = subprocess.run(
        [PROGRAM, "-C", str(folder), *words, "--json"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def doctor(folder: Path) -> dict[str, dict[str, Any]]:
    words = [PROGRAM, "-C", str(folder), "doctor", "--json"]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=200, check=False)
    return {step["step"]: step for step in json.loads(done.stdout)}


@pytest.fixture(scope="module")
def bucket(s3: S3Server) -> str:
    """One for all tests here, so that the package is made once."""
    name = f"emr-{uuid.uuid4().hex}"
    boto3.client("s3", endpoint_url=s3.endpoint).create_bucket(Bucket=name)
    return name


class Made(NamedTuple):
    """A package, the folder of the bucket that it is in, and what its maker wrote down."""

    package: Package
    folder: str
    records: Path


@pytest.fixture(scope="module")
def package(s3: S3Server, bucket: str, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """What nodes need, made once."""
    records = tmp_path_factory.mktemp("packages")
    made = provide(LakeShelf(S3Storage(f"s3://{bucket}/made", options_for(s3))), Target(NODE_PYTHON), records)
    assert made.is_new
    return Made(made, "made", records)


def options_for(s3: S3Server) -> S3Options:
    return S3Options(s3.endpoint, path_style=True, aws=AwsOptions(REGION))


@pytest.fixture
def lake(aws: Aws, s3: S3Server, bucket: str, package: Made, tmp_path: Path) -> Lake:
    recipe = Recipe(events=3000, hours=3, track_types=8, duplicate_share=0.05, conflict_share=0.05, broken_share=0.01)
    write_archive(recipe, tmp_path / "raw", files=6)
    places = []
    for name in ("there", "alone"):
        place = Workspace.create(tmp_path / name)
        database = f"web_{uuid.uuid4().hex}"
        prefix = uuid.uuid4().hex
        where = f"s3://{bucket}/{prefix}" if name == "there" else "lake"
        shutil.copytree(package.records, place.folder / "packages")
        for part in (package.package.tarball, package.package.entry):
            made = {"Bucket": bucket, "Key": part.removeprefix(f"s3://{bucket}/")}
            copy = f"{prefix}/{FOLDER}/{Path(part).name}"
            boto3.client("s3", endpoint_url=s3.endpoint).copy(made, bucket, copy)
        (place.folder / "eventlake.toml").write_text(
            f'workspace_id = "test"\n[lake]\nroot = "{where}"\n'
            f'[s3]\nendpoint = "{s3.endpoint}"\npath_style = true\n[aws]\nregion = "{REGION}"\n'
        )
        place = Workspace.open(place.folder)
        place.connections.add_source("web", source_id="src1")
        place.connections.change("web", {"database": database})
        eventlake(place.folder, "import", "web", str(tmp_path / "raw"))
        places.append(place.folder)
    there, alone = places
    return Lake(there, alone, bucket)


def rows(folder: Path) -> dict[str, list[dict[str, Any]]]:
    place = Workspace.open(folder)
    return {
        table.name: query(
            place.lake(), f'select * from {table.database}."{table.name}" order by message_id, received_at'
        ).to_pylist()
        for table in place.lake().catalog.tables()
    }


def a_cluster(aws: Aws, *, vendor: str = "segment", release: str = "emr-7.5.0", **more: Any) -> str:
    made = aws.client("emr").run_job_flow(
        Name="lake",
        ReleaseLabel=release,
        LogUri="s3://lake/logs/",
        JobFlowRole="instance-profile",
        ServiceRole="service-role",
        Applications=[{"Name": "Spark"}],
        Tags=[{"Key": "vendor", "Value": vendor}],
        Instances={
            "InstanceGroups": [
                {"InstanceRole": "MASTER", "InstanceType": "m5.xlarge", "InstanceCount": 1},
                {"InstanceRole": "CORE", "InstanceType": "m5.xlarge", "InstanceCount": 2},
            ],
            "KeepJobFlowAliveWhenNoSteps": True,
        },
        **more,
    )
    return str(made["JobFlowId"])


def on_emr(lake: Lake, cluster_id: str, glue: bool = False) -> None:
    text = (lake.folder / "eventlake.toml").read_text()
    catalog = '[catalog]\nkind = "glue"\n' if glue else ""
    emr = f'[emr]\ncluster_id = "{cluster_id}"\npython = "{NODE_PYTHON}"\ntag_key = "team"\ntag_value = "events"\n'
    (lake.folder / "eventlake.toml").write_text(f'runner = "emr"\n{text}{catalog}{emr}')


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_sync_and_a_replay_on_emr(aws: Aws, s3: S3Server, lake: Lake, spark_home: Path, tmp_path: Path) -> None:
    """The main scenario, on each line of Spark: a step of the cluster, then a cluster of its own for a replay."""
    cluster_id = a_cluster(aws)
    on_emr(lake, cluster_id, glue=True)
    (tmp_path / "nodes").mkdir()
    with Cluster(tmp_path / "nodes", spark_home, s3.endpoint).running() as nodes:
        report = eventlake(lake.folder, "sync")
        (step,) = aws.client("emr").list_steps(ClusterId=cluster_id)["Steps"]
        assert step["Status"]["State"] == "COMPLETED", nodes.log()
        assert step["Config"]["Args"][:3] == ["spark-submit", "--deploy-mode", "cluster"]
        assert report[0]["emr_cluster_id"] == cluster_id
        assert report[0]["s3_bucket"] == lake.bucket

        alone = eventlake(lake.alone, "sync")
        assert report[0]["books"] == alone[0]["books"]
        assert report[0]["books"]["loaded"] == 3000
        assert rows(lake.folder) == rows(lake.alone)

        before = set(emr_backends[ACCOUNT][REGION].clusters)
        replayed = eventlake(lake.folder, "replay", "web", "--all")
        (made,) = set(emr_backends[ACCOUNT][REGION].clusters) - before
        cluster = aws.client("emr").describe_cluster(ClusterId=made)["Cluster"]
        assert cluster["Status"]["State"] == "TERMINATED"
        assert cluster["ReleaseLabel"] == "emr-7.5.0"
        assert {line["emr_cluster_id"] for line in replayed} == {made}
        tags = {tag["Key"]: tag["Value"] for tag in cluster["Tags"]}
        assert tags == {"vendor": "segment", "team": "events"}
        assert rows(lake.folder) == rows(lake.alone)

        own = a_cluster(aws)
        Workspace.open(lake.folder).connections.change("web", {"emrClusterId": own})
        (tmp_path / "more.json").write_text(json.dumps(track("More", "m1")))
        eventlake(lake.folder, "import", "web", str(tmp_path / "more.json"))
        (head, *_) = eventlake(lake.folder, "sync")
        assert (head["emr_cluster_id"], head["books"]["loaded"]) == (own, 1)
        assert len(aws.client("emr").list_steps(ClusterId=cluster_id)["Steps"]) == 1
        eventlake(lake.alone, "import", "web", str(tmp_path / "more.json"))
        eventlake(lake.alone, "sync")
    place = Workspace.open(lake.folder)
    assert verify(place, place.connections.get("web"), InProcess()) == []
    assert not list(place.lake().storage.files("segment-stage"))
    shown = {table["Name"] for table in aws.client("glue").get_tables(DatabaseName=report[0]["database"])["TableList"]}
    assert shown == set(rows(lake.alone))


@pytest.mark.long
@pytest.mark.timeout(400)
def test_another_cluster_takes_over_while_a_run_ends_on_the_one_before(
    aws: Aws, s3: S3Server, lake: Lake, tmp_path: Path
) -> None:
    """An upgrade: only the cluster's id is changed, and nobody has to wait for anything."""
    old, new = a_cluster(aws), a_cluster(aws)
    on_emr(lake, old)
    (tmp_path / "nodes").mkdir()
    with Cluster(tmp_path / "nodes", Path(pyspark.__file__).parent, s3.endpoint).running() as nodes:
        with begun([PROGRAM, "-C", str(lake.folder), "sync", "--json"]) as sync:
            wait_until(lambda: nodes.commands, "the step is taken")
            config = lake.folder / "eventlake.toml"
            config.write_text(config.read_text().replace(old, new))
            out, told = sync.communicate(timeout=200)
        assert sync.returncode == 0, told
        head = json.loads(out.splitlines()[0])
        assert (head["emr_cluster_id"], head["books"]["loaded"]) == (old, 3000)
        (tmp_path / "more.json").write_text(json.dumps(track("More", "m1")))
        eventlake(lake.folder, "import", "web", str(tmp_path / "more.json"))
        head = eventlake(lake.folder, "sync")[0]
        assert (head["emr_cluster_id"], head["books"]["loaded"]) == (new, 1)
    for cluster_id in (old, new):
        (step,) = aws.client("emr").list_steps(ClusterId=cluster_id)["Steps"]
        assert step["Status"]["State"] == "COMPLETED"


def segments_own(client: Any, bucket: str, prefix: str, tmp_path: Path) -> list[str]:
    """What Segment leaves behind after half a year: an archive, and a lake that it has loaded from it; all lines."""
    recipe = Recipe(events=160, hours=180 * 24, track_types=4, duplicate_share=0.05)
    texts = [line for file in write_archive(recipe, tmp_path / "sent", files=1) for line in gunzipped(file)]
    days, tables = defaultdict(list), defaultdict(list)
    seen = set()
    for text in texts:
        event = json.loads(text)
        received = datetime.fromisoformat(event["receivedAt"])
        days[received.date()].append(text)
        if event["messageId"] in seen:
            continue
        seen.add(event["messageId"])
        called = event["event"].lower().replace(" ", "_") if event["type"] == "track" else event["type"]
        row = {"message_id": event["messageId"], "received_at": received, "user_id": event.get("userId")}
        tables[called, f"day={received:%Y-%m-%d}/hr={received:%H}"].append(row)
    for day, lines in days.items():
        name = f"{calendar.timegm(day.timetuple()) * 1000}/{uuid.uuid4().hex}.gz"
        key = f"{prefix}/segment-logs/src1/{name}"
        client.put_object(Bucket=bucket, Key=key, Body=gzip.compress("\n".join(lines).encode()))
    for (table, partition), rows in tables.items():
        file = tmp_path / "part.parquet"
        pq.write_table(pa.Table.from_pylist(rows), file)
        key = f"{prefix}/segment-data/data/src1/segment_type={table}/{partition}/part-00000.parquet"
        client.upload_file(str(file), bucket, key)
    return texts


def gunzipped(file: Path) -> list[str]:
    return gzip.decompress(file.read_bytes()).decode().splitlines()


@pytest.mark.long
@pytest.mark.timeout(600)
def test_half_a_year_of_segments_archive_is_loaded_on_a_cluster_of_its_own_and_nothing_is_missing(
    aws: Aws, s3: S3Server, lake: Lake, tmp_path: Path
) -> None:
    """Moving over, as documented: the archive stays where it is, the main cluster is left alone."""
    client = boto3.client("s3", endpoint_url=s3.endpoint)
    theirs = f"theirs-{uuid.uuid4().hex}"
    texts = segments_own(client, lake.bucket, theirs, tmp_path)
    cluster_id = a_cluster(aws)
    on_emr(lake, cluster_id)
    place = Workspace.open(lake.folder)
    for file in place.archive.files("segment-logs/src1"):  # nothing but what Segment has archived
        place.archive.delete(file.path)
    place.close()
    words = [PROGRAM, "-C", str(lake.folder)]
    eventlake(lake.folder, "import", "web", "--in-place", f"s3://{lake.bucket}/{theirs}/segment-logs")
    before = set(emr_backends[ACCOUNT][REGION].clusters)
    (tmp_path / "nodes").mkdir()
    with Cluster(tmp_path / "nodes", Path(pyspark.__file__).parent, s3.endpoint).running():
        report = eventlake(lake.folder, "sync", "--own-cluster")
        assert report[0]["books"]["lines"] == len(texts)
        assert report[0]["books"]["loaded"] == 160
        first, last = min(texts, key=received_of), max(texts, key=received_of)
        again = eventlake(lake.folder, "replay", "web", "--from", received_of(first), "--to", received_of(last))
        # What came in the last instant is not in the period.
        assert sum(line["rewritten"] for line in again if "kind" in line) >= 159
    made = set(emr_backends[ACCOUNT][REGION].clusters) - before
    states = [aws.client("emr").describe_cluster(ClusterId=one)["Cluster"]["Status"]["State"] for one in made]
    assert states == ["TERMINATED", "TERMINATED"]
    assert aws.client("emr").list_steps(ClusterId=cluster_id)["Steps"] == []
    address = f"s3://{lake.bucket}/{theirs}/segment-data/data/src1"
    parity = subprocess.run([*words, "parity", "web", address, "--json"], capture_output=True, text=True, check=False)
    assert parity.returncode == 0, parity.stderr
    found = json.loads(parity.stdout)
    assert sum(hour["theirs"] for hour in found["hours"]) == 160
    assert sum(hour["missing"] + hour["extra"] for hour in found["hours"]) == 0
    assert (found["differences"], found["only_theirs"], found["only_ours"]) == ([], [], [])
    place = Workspace.open(lake.folder)
    assert verify(place, place.connections.get("web"), InProcess()) == []


def received_of(text: str) -> str:
    return str(json.loads(text)["receivedAt"])


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_sync_on_emr_serverless(aws: Aws, s3: S3Server, lake: Lake, tmp_path: Path) -> None:
    client = aws.client("emr-serverless")
    application = client.create_application(name="lake", releaseLabel="emr-7.5.0", type="SPARK")["applicationId"]
    text = (lake.folder / "eventlake.toml").read_text()
    emr = (
        f'[emr]\napplication_id = "{application}"\npython = "{NODE_PYTHON}"\n'
        'execution_role_arn = "arn:aws:iam::123456789012:role/job"\n'
    )
    (lake.folder / "eventlake.toml").write_text(f'runner = "emr-serverless"\n{text}{emr}')
    (tmp_path / "nodes").mkdir()
    with Cluster(tmp_path / "nodes", Path(pyspark.__file__).parent, s3.endpoint).running() as nodes:
        steps = doctor(lake.folder)
        assert application in steps["cluster: job status"]["detail"]
        assert steps["cluster: submit job"]["status"] == "passed", steps["cluster: submit job"]
        report = eventlake(lake.folder, "sync")
        runs = client.list_job_runs(applicationId=application)["jobRuns"]
        assert [run["state"] for run in runs] == ["SUCCESS", "SUCCESS"], nodes.log()
    assert report[0]["books"] == eventlake(lake.alone, "sync")[0]["books"]
    assert rows(lake.folder) == rows(lake.alone)


@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_step_that_no_run_needs_any_more_is_ended(aws: Aws, s3: S3Server, lake: Lake, tmp_path: Path) -> None:
    """What stays, as `eventlake serve` does, holds no place on a cluster between syncs."""
    cluster_id = a_cluster(aws)
    on_emr(lake, cluster_id)
    (tmp_path / "nodes").mkdir()

    def states() -> list[str]:
        steps = aws.client("emr").list_steps(ClusterId=cluster_id)["Steps"]
        return [step["Status"]["State"] for step in steps]

    place = Workspace.open(lake.folder)
    with (
        Cluster(tmp_path / "nodes", Path(pyspark.__file__).parent, s3.endpoint).running() as nodes,
        Runners(place, idle=2.0) as runners,
    ):
        with runners.of("default") as runner:
            (head, *_) = run(place, jobs.sync(place.connections.get("web")), runner)
        assert head["status"] == "finished", nodes.log()
        assert states() == ["RUNNING"]
        wait_until(lambda: states() == ["COMPLETED"], "the step has ended")


def begun(words: list[str]) -> subprocess.Popen[str]:
    """A command that heeds Ctrl-C, also if whoever started the tests does not, as nohup."""
    heed = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
    words = [sys.executable, "-c", heed, *words]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def stopped(process: subprocess.Popen[str], nodes: Cluster, kind: signal.Signals) -> tuple[str, str]:
    """Stop a run as soon as its step is taken; what it said."""
    try:
        wait_until(lambda: nodes.commands, "the step is taken")
        process.send_signal(kind)
        return process.communicate(timeout=100)
    finally:
        process.kill()


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_cancels_its_step(
    aws: Aws, s3: S3Server, lake: Lake, tmp_path: Path, kind: signal.Signals
) -> None:
    cluster_id = a_cluster(aws)
    on_emr(lake, cluster_id)
    with Cluster(tmp_path, Path(pyspark.__file__).parent, s3.endpoint, lazy=True).running() as nodes:
        words = [PROGRAM, "-C", str(lake.folder), "sync"]
        with begun(words) as sync:
            _, told = stopped(sync, nodes, kind)
        assert sync.returncode == 130, told
        (step,) = aws.client("emr").list_steps(ClusterId=cluster_id)["Steps"]
        assert step["Status"]["State"] == "CANCELLED"
    ended = Workspace.open(lake.folder).runs.latest(1)[0]
    assert ended.status == "failed"


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_replay_that_is_stopped_ends_its_cluster(aws: Aws, s3: S3Server, lake: Lake, tmp_path: Path) -> None:
    on_emr(lake, a_cluster(aws))
    before = set(emr_backends[ACCOUNT][REGION].clusters)
    with Cluster(tmp_path, Path(pyspark.__file__).parent, s3.endpoint, lazy=True).running() as nodes:
        words = [PROGRAM, "-C", str(lake.folder), "replay", "web", "--all"]
        with begun(words) as replay:
            stopped(replay, nodes, signal.SIGINT)
    (made,) = set(emr_backends[ACCOUNT][REGION].clusters) - before
    assert aws.client("emr").describe_cluster(ClusterId=made)["Cluster"]["Status"]["State"] == "TERMINATED"


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_step_that_fails_is_told_and_the_next_sync_loads_all(
    aws: Aws, s3: S3Server, lake: Lake, tmp_path: Path
) -> None:
    on_emr(lake, a_cluster(aws))
    broken = tmp_path / "spark" / "bin" / "spark-submit"
    broken.parent.mkdir(parents=True)
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    with Cluster(tmp_path, tmp_path / "spark", s3.endpoint).running():
        words = [PROGRAM, "-C", str(lake.folder), "sync"]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 1
    assert "is failed" in done.stderr
    assert "s3://lake/logs/" in done.stderr
    (lake.folder / "eventlake.toml").write_text(
        (lake.folder / "eventlake.toml").read_text().replace('"emr"', '"spark"')
    )
    assert eventlake(lake.folder, "sync")[0]["books"]["loaded"] == 3000


@pytest.fixture
def storage(s3: S3Server, bucket: str) -> S3Storage:
    return S3Storage(f"s3://{bucket}/{uuid.uuid4().hex}", options_for(s3))


@pytest.mark.timeout(120)
def test_a_driver_whose_run_died_gives_up(storage: S3Storage) -> None:
    """Else it would hold the cluster for ever."""
    Mailbox(storage, "segment-stage/1", STEPS).show_alive(1)
    program = (
        "import sys; from eventlake.runners.cluster_driver import main; from eventlake.tasks.registry import STEPS; "
        "main(sys.argv[1], STEPS)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, described(storage, storage, "segment-stage/1", silence=5)],
        env=os.environ | {"PYSPARK_SUBMIT_ARGS": "--master local[1] pyspark-shell", "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 1
    assert "no sign of life" in done.stderr


# What is submitted


@pytest.mark.long
def test_the_package_is_made_once_and_has_all_but_spark(lake: Lake, aws: Aws, package: Made, tmp_path: Path) -> None:
    on_emr(lake, a_cluster(aws))
    (told,) = eventlake(lake.folder, "package")
    assert told["uploaded"] is False  # as it was made before
    assert Path(told["archive"]).name == Path(package.package.tarball).name
    place = Workspace.open(lake.folder)
    archive = tmp_path / "package.tar.gz"
    archive.write_bytes(place.lake().storage.read(told["archive"].removeprefix(f"{place.lake().storage.root}/")))
    with tarfile.open(archive) as tar:
        names = {name.split("/")[1] for name in tar.getnames() if name.startswith("lib/") and "/" in name}
    assert {"eventlake", "pyarrow", "duckdb", "boto3", "msgspec"} <= names
    assert not {"pyspark", "py4j"} & names


def test_the_package_has_the_versions_of_the_lock_each_with_its_hashes() -> None:
    found = pinned(Target("python3.11"), LOCK.read_text())
    names = {line.partition("==")[0] for line in found}
    assert f"boto3=={boto3.__version__}" in {line.partition(" ")[0] for line in found}
    assert {"duckdb", "msgspec", "numpy", "packaging", "pyarrow", "uvloop"} <= names
    assert not {"pyspark", "py4j", "colorama"} & names  # what the cluster has, and what is for other systems
    assert all(" --hash=sha256:" in line for line in found)


def test_what_the_lock_has_for_other_systems_and_versions_is_left_out() -> None:
    lock = (
        "# a comment\nanywhere==1 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n    # via x\n"
        "old==2 ; python_full_version < '3.12' \\\n    --hash=sha256:cc\n"
        "graviton==3 ; platform_machine == 'aarch64' \\\n    --hash=sha256:dd\n"
        "windows==4 ; sys_platform == 'win32' \\\n    --hash=sha256:ee\n"
    )
    anywhere = "anywhere==1 --hash=sha256:aa --hash=sha256:bb"
    assert pinned(Target("python3.11"), lock) == [anywhere, "old==2 --hash=sha256:cc"]
    assert pinned(Target("python3.12", "aarch64"), lock) == [anywhere, "graviton==3 --hash=sha256:dd"]


def test_a_library_with_another_hash_than_the_lock_has_is_not_packed(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="someone may have tampered with them"):
        build(tmp_path / "package.tar.gz", Target(NODE_PYTHON), [f"six==1.17.0 --hash=sha256:{'0' * 64}"])
    assert not (tmp_path / "package.tar.gz").exists()


@pytest.mark.long
def test_an_entry_that_somebody_else_wrote_is_not_submitted(storage: S3Storage, package: Made) -> None:
    entry = f"{FOLDER}/{Path(package.package.entry).name}"
    storage.write(entry, b"import os; os.system('true')")
    with pytest.raises(InternalError, match=re.escape(storage.full(entry))) as caught:
        provide(LakeShelf(storage), Target(NODE_PYTHON), package.records)
    assert "who else may write" in caught.value.fix


@pytest.mark.parametrize("change", ["another content", "one more file", "a link", "nothing"])
def test_a_package_that_was_replaced_is_not_loaded(tmp_path: Path, change: str) -> None:
    """The script that a cluster starts, in a folder as Spark makes it, with a package that tells if it is loaded."""
    lib = tmp_path / "environment" / "lib" / "eventlake"
    (lib / "runners").mkdir(parents=True)
    (lib / "tasks").mkdir()
    (lib / "runners" / "cluster_driver.py").write_text("def main(told, steps): print('loaded', told, steps)")
    (lib / "tasks" / "registry.py").write_text("STEPS = 'steps'")
    submitted = tree_digest(tmp_path / "environment")
    if change == "another content":
        (lib / "tasks" / "registry.py").write_text("STEPS = 'other'")
    elif change == "one more file":
        (lib / "__init__.py").write_text("print('loaded')")
    elif change == "a link":
        (lib / "__init__.py").symlink_to("tasks/registry.py")
    done = subprocess.run(
        [NODE_PYTHON, entry.__file__, submitted, "session"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    if change == "nothing":
        assert (done.returncode, done.stdout) == (0, "loaded session steps\n")
    else:
        assert done.returncode == 1
        assert "loaded" not in done.stdout


@pytest.mark.parametrize("python", ["python", "python2.7", "/usr/bin/env"])
def test_an_interpreter_without_a_version_is_refused(python: str) -> None:
    with pytest.raises(InvalidSettingsError, match=r"python3\.11"):
        _ = Target(python).version


def test_a_cluster_for_a_replay_is_like_the_one_it_stands_for_but_ends() -> None:
    model = {
        "Name": "lake",
        "ReleaseLabel": "emr-7.5.0",
        "Applications": [{"Name": "Spark", "Version": "3.5.2"}],
        "ServiceRole": "service",
        "Ec2InstanceAttributes": {"Ec2SubnetId": "subnet-1", "IamInstanceProfile": "profile", "Ec2KeyName": ""},
        "Tags": [{"Key": "cost", "Value": "lake"}, {"Key": "aws:cloudformation:stack-id", "Value": "x"}],
        "TerminationProtected": True,
    }
    disk = {"VolumeSpecification": {"VolumeType": "gp3", "SizeInGB": 64}, "Device": "/dev/sdb"}
    groups = [
        {
            "Name": "core",
            "InstanceGroupType": "CORE",
            "InstanceType": "m6g.xlarge",
            "RequestedInstanceCount": 3,
            "EbsBlockDevices": [disk],
            "BidPrice": "",
        },
        {"InstanceGroupType": "TASK", "InstanceType": "m6g.xlarge", "RequestedInstanceCount": 0},
    ]
    scaling = {"ComputeLimits": {"UnitType": "Instances", "MinimumCapacityUnits": 2, "MaximumCapacityUnits": 8}}
    parts = {
        "InstanceGroups": groups,
        "BootstrapActions": [{"Name": "python", "ScriptPath": "s3://b/bootstrap.sh", "Args": []}],
        "ManagedScalingPolicy": scaling,
    }
    wanted = like(model | parts, {"Name": "step"}, {"vendor": "segment"})
    assert wanted["BootstrapActions"] == [{"Name": "python", "ScriptBootstrapAction": {"Path": "s3://b/bootstrap.sh"}}]
    assert wanted["ManagedScalingPolicy"] == scaling
    assert wanted["Instances"]["KeepJobFlowAliveWhenNoSteps"] is False
    assert wanted["Instances"]["TerminationProtected"] is False
    assert wanted["Instances"]["Ec2SubnetId"] == "subnet-1"
    assert "Ec2KeyName" not in wanted["Instances"]
    assert wanted["Instances"]["InstanceGroups"] == [
        {
            "Name": "core",
            "InstanceRole": "CORE",
            "InstanceType": "m6g.xlarge",
            "InstanceCount": 3,
            "EbsConfiguration": {
                "EbsBlockDeviceConfigs": [
                    {"VolumeSpecification": {"VolumeType": "gp3", "SizeInGB": 64}, "VolumesPerInstance": 1}
                ]
            },
        }
    ]
    assert wanted["JobFlowRole"] == "profile"
    assert wanted["Tags"] == [{"Key": "vendor", "Value": "segment"}, {"Key": "cost", "Value": "lake"}]
    assert wanted["Applications"] == [{"Name": "Spark"}]


def test_a_tag_of_the_cluster_that_is_there_wins_over_that_of_the_settings() -> None:
    model = {"Name": "lake", "Tags": [{"Key": "vendor", "Value": "acme"}]}
    assert like(model, {"Name": "step"}, {"vendor": "segment"})["Tags"] == [{"Key": "vendor", "Value": "acme"}]


def test_a_cluster_of_fleets_is_copied_too() -> None:
    kind = {"InstanceType": "m6g.xlarge", "WeightedCapacity": 4, "EbsBlockDevices": []}
    fleet = {"InstanceFleetType": "CORE", "TargetOnDemandCapacity": 8, "TargetSpotCapacity": 0}
    model = {
        "Name": "lake",
        "Ec2InstanceAttributes": {"RequestedEc2SubnetIds": ["subnet-1", "subnet-2"], "Ec2SubnetId": "subnet-2"},
        "InstanceFleets": [fleet | {"InstanceTypeSpecifications": [kind], "ProvisionedOnDemandCapacity": 8}],
    }
    instances = like(model, {"Name": "step"}, {})["Instances"]
    assert instances["Ec2SubnetIds"] == ["subnet-1", "subnet-2"]
    assert "Ec2SubnetId" not in instances
    assert instances["InstanceFleets"] == [
        {
            "InstanceFleetType": "CORE",
            "TargetOnDemandCapacity": 8,
            "TargetSpotCapacity": 0,
            "InstanceTypeConfigs": [{"InstanceType": "m6g.xlarge", "WeightedCapacity": 4}],
        }
    ]


def a_submission(storage: S3Storage) -> Submission:
    tarball, entry = (storage.full(f"{FOLDER}/a.{kind}") for kind in ("tar.gz", "py"))
    package = Package(tarball, entry, "0123", is_new=False)
    return Submission(package, {}, "python3.11", functools.partial(described, storage, storage))


def test_nodes_act_in_their_own_role() -> None:
    options = S3Options("http://x", aws=AwsOptions(REGION, "arn:aws:iam::123456789012:role/job", "external"))
    lake, archive = S3Storage("s3://bucket/lake", options), S3Storage("s3://archive", options)
    told = json.loads(base64.urlsafe_b64decode(described(lake, archive, "segment-stage/1")))
    assert (told["lake"]["root"], told["archive"]["root"]) == ("s3://bucket/lake", "s3://archive")
    assert "role" not in json.dumps(told)
    assert "external" not in json.dumps(told)
    assert REGION in json.dumps(told)


def test_the_driver_is_told_the_digest_of_its_package_and_is_started_by_the_nodes_own_interpreter(
    storage: S3Storage,
) -> None:
    words = a_submission(storage).on_yarn("segment-stage/1")
    assert words[-3:-1] == [storage.full("segment-data/packages/a.py"), "0123"]
    assert "spark.pyspark.driver.python=python3.11" in words


def test_yarn_finds_nothing_to_replace_in_the_command(storage: S3Storage) -> None:
    """It takes {{…}} and $ in a command for its own."""
    submission = a_submission(storage)
    for word in submission.on_yarn("segment-stage/1"):
        assert not set("{}$\\'") & set(word)


def test_no_credentials_are_submitted(storage: S3Storage) -> None:
    submission = a_submission(storage)
    *words, told = submission.on_yarn("segment-stage/1")
    submitted = " ".join(words) + base64.urlsafe_b64decode(told).decode()
    assert storage.root in submitted
    assert os.environ["AWS_SECRET_ACCESS_KEY"] not in submitted
    assert os.environ["AWS_ACCESS_KEY_ID"] not in submitted


# Rights


@pytest.mark.parametrize(
    ("action", "code"),
    [
        ("elasticmapreduce:AddJobFlowSteps", "submit_job"),
        ("elasticmapreduce:DescribeStep", "job_status"),
        ("elasticmapreduce:DescribeCluster", "job_status"),
    ],
)
def test_a_right_on_the_cluster_that_is_missing_is_named(
    aws: Aws, storage: S3Storage, monkeypatch: pytest.MonkeyPatch, action: str, code: str
) -> None:
    cluster_id, user = a_cluster(aws), aws.user()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", user.key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", user.secret)
    emr = Emr(AwsOptions(REGION, aws.role(without=[action])))
    step = EmrStep(emr, cluster_id, a_submission(storage))

    def submit_and_follow() -> None:
        step.start("segment-stage/1")
        step.status()

    with rights_checked(), pytest.raises(PermissionMissingError) as caught:
        submit_and_follow()
    assert caught.value.code == f"insufficient_permissions.{code}"
    assert action in caught.value.fix


def too_many_for_emr() -> Any:
    raise JsonRESTError("ThrottlingException", "Rate exceeded")


@pytest.mark.parametrize("method", ["describe_cluster", "add_job_flow_steps", "describe_step"])
def test_an_emr_that_slows_us_down_is_asked_again(aws: Aws, storage: S3Storage, method: str) -> None:
    cluster_id = a_cluster(aws)

    def followed() -> Status:
        step = EmrStep(Emr(AwsOptions(REGION)), cluster_id, a_submission(storage))
        step.start("segment-stage/1")
        return step.status()

    with slowed_down(ElasticMapReduceResponse, method, 2, too_many_for_emr):
        assert followed().state in (State.WAITING, State.RUNNING)
    with (
        slowed_down(ElasticMapReduceResponse, method, 100, too_many_for_emr),
        pytest.raises(TransientError, match="Rate exceeded") as caught,
    ):
        followed()
    assert "takes no more requests now" in caught.value.fix


SEGMENT_EMR = "AddJobFlowSteps CancelSteps DescribeCluster DescribeStep RunJobFlow TerminateJobFlows AddTags"


def by_the_book(aws: Aws) -> str:
    """The role of Segment's guide, with all that it may do."""
    rights = [f"elasticmapreduce:{action}" for action in SEGMENT_EMR.split()]
    return aws.role(only=[*rights, "iam:PassRole", "s3:*", *(f"glue:{action}" for action in SEGMENT_GLUE.split())])


@contextmanager
def only_with_the_tag() -> Iterator[None]:
    """The condition of Segment's policy, which the server of the tests does not know: the tag of the cluster."""

    def guarded(method: str) -> Any:
        answer = getattr(ElasticMapReduceResponse, method)

        def answered(self: Any) -> Any:
            clusters = [*self._get_param("JobFlowIds", []), self._get_param("JobFlowId"), self._get_param("ClusterId")]
            known = [self.backend.clusters[name].tags for name in clusters if name]
            for tags in known or [self._get_param("Tags", [])]:
                if {"Key": "vendor", "Value": "segment"} not in tags:
                    raise AccessDeniedError("somebody", f"elasticmapreduce:{method}")
            return answer(self)

        return mock.patch.object(ElasticMapReduceResponse, method, answered)

    with ExitStack() as stack:
        for method in (
            "add_job_flow_steps",
            "describe_cluster",
            "describe_step",
            "run_job_flow",
            "terminate_job_flows",
        ):
            stack.enter_context(guarded(method))
        stack.enter_context(rights_checked())
        yield


def test_segments_own_policy_is_enough_for_a_step_and_for_a_cluster_of_its_own(
    aws: Aws, storage: S3Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_id, other, user = a_cluster(aws), a_cluster(aws, vendor="other"), aws.user()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", user.key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", user.secret)
    emr = Emr(AwsOptions(REGION, by_the_book(aws)))
    step = EmrStep(emr, cluster_id, a_submission(storage))
    script = "s3://lake/python.sh 3.11"
    alone = TransientCluster(emr, cluster_id, a_submission(storage), {}, [script])
    before = set(emr_backends[ACCOUNT][REGION].clusters)
    with only_with_the_tag():
        step.start("segment-stage/1")
        assert step.status().state in (State.WAITING, State.RUNNING)
        assert "bootstrap" not in alone.start("segment-stage/2")
        assert alone.status().state in (State.WAITING, State.RUNNING)
        alone.stop()
        assert alone.status().state is State.FAILED
        with pytest.raises(PermissionMissingError):  # the condition counts
            EmrStep(emr, other, a_submission(storage)).start("segment-stage/3")
        bare = TransientCluster(emr, cluster_id, a_submission(storage), {})
        assert "its bootstrap actions may not be seen: set bootstrap_actions" in bare.start("segment-stage/4")
        bare.stop()
    made = alone.where["emr_cluster_id"]
    assert made in set(emr_backends[ACCOUNT][REGION].clusters) - before
    groups = aws.client("emr").list_instance_groups(ClusterId=made)["InstanceGroups"]
    machines = {
        group["InstanceGroupType"]: (group["InstanceType"], group["RequestedInstanceCount"]) for group in groups
    }
    assert machines == {"MASTER": ("m5.xlarge", 1), "CORE": ("m5.xlarge", 2), "TASK": ("m5.xlarge", 2)}
    (action,) = aws.client("emr").list_bootstrap_actions(ClusterId=made)["BootstrapActions"]
    assert (action["ScriptPath"], action["Args"]) == ("s3://lake/python.sh", ["3.11"])


def by_segments_guide(
    aws: Aws, s3: S3Server, package: Made, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Workspace:
    """A workspace with 300 events to import, for a user who assumes the role of Segment's guide."""
    there, name = boto3.client("s3", endpoint_url=s3.endpoint), f"book-{uuid.uuid4().hex}"
    user = aws.user()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", user.key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", user.secret)
    here = aws.client("s3")
    here.create_bucket(Bucket=name)
    for part in (package.package.tarball, package.package.entry):
        content = there.get_object(Bucket=bucket, Key=part.removeprefix(f"s3://{bucket}/"))["Body"].read()
        here.put_object(Bucket=name, Key=f"{FOLDER}/{Path(part).name}", Body=content)
    place = Workspace.create(tmp_path / "place")
    shutil.copytree(package.records, place.folder / "packages")
    (place.folder / "eventlake.toml").write_text(
        f'workspace_id = "test"\nrunner = "emr"\n[lake]\nroot = "s3://{name}"\n[catalog]\nkind = "glue"\n'
        f'[s3]\nendpoint = "{aws.endpoint}"\npath_style = true\n'
        f'[aws]\nregion = "{REGION}"\nrole_arn = "{by_the_book(aws)}"\n'
        f'[emr]\ncluster_id = "{a_cluster(aws)}"\npython = "{NODE_PYTHON}"\n'
        f'bootstrap_actions = ["s3://{name}/python.sh"]\n'
    )
    place = Workspace.open(place.folder)
    place.connections.add_source("web", source_id="src1")
    place.connections.change("web", {"database": f"web_{uuid.uuid4().hex}"})
    write_archive(Recipe(events=300, hours=2, track_types=3), tmp_path / "raw", files=2)
    return place


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_sync_and_a_whole_replay_under_segments_own_policy(
    aws: Aws, s3: S3Server, package: Made, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a set-up by Segment's guide has: the role with its policy, and a cluster with the tag."""
    place = by_segments_guide(aws, s3, package, bucket, tmp_path, monkeypatch)
    (tmp_path / "nodes").mkdir()
    nodes = Cluster(tmp_path / "nodes", Path(pyspark.__file__).parent, aws.endpoint)
    with nodes.running(), only_with_the_tag():
        eventlake(place.folder, "import", "web", str(tmp_path / "raw"))
        assert eventlake(place.folder, "sync")[0]["books"]["loaded"] == 300, nodes.log()
        (head, *_) = eventlake(place.folder, "replay", "web", "--all")
        assert (head["replay"], head["status"]) == (True, "finished")
    made = aws.client("emr").describe_cluster(ClusterId=head["emr_cluster_id"])["Cluster"]
    assert made["Id"] != place.settings.emr.cluster_id
    assert made["Status"]["State"] == "TERMINATED"
    (action,) = aws.client("emr").list_bootstrap_actions(ClusterId=made["Id"])["BootstrapActions"]
    assert (action["ScriptPath"],) == place.settings.emr.bootstrap_actions


@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.parametrize(("action", "code"), [("AddJobFlowSteps", "submit_job"), ("DescribeStep", "job_status")])
def test_what_a_connection_may_not_do_on_its_cluster_holds_up_no_other(
    aws: Aws,
    s3: S3Server,
    package: Made,
    bucket: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    action: str,
    code: str,
) -> None:
    place = by_segments_guide(aws, s3, package, bucket, tmp_path, monkeypatch)
    settings = place.folder / "eventlake.toml"
    role = aws.role(without=[f"elasticmapreduce:{action}"])
    text = re.sub('role_arn = ".*"', f'role_arn = "{role}"', settings.read_text())
    way_in = f's3 = {{ endpoint = "{aws.endpoint}", path_style = true }}\naws = {{ region = "{REGION}" }}\n'
    root = re.search('root = "(.*)"', text)
    assert root
    settings.write_text(
        f'{text}\n[archive]\nroot = "{root[1]}"\n{way_in}\n[lakes.healthy]\nroot = "{root[1]}/healthy"\n{way_in}'
    )
    eventlake(place.folder, "connect", "web", "healthy")
    eventlake(place.folder, "import", "web", str(tmp_path / "raw"))
    (tmp_path / "nodes").mkdir()
    with (
        Cluster(tmp_path / "nodes", Path(pyspark.__file__).parent, aws.endpoint, lazy=True).running(),
        rights_checked(),
    ):
        done = subprocess.run(
            [PROGRAM, "-C", str(place.folder), "sync", "--json"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert done.returncode == 3, done.stderr
    heads = [line for line in map(json.loads, done.stdout.splitlines()) if line["type"] == "source"]
    assert [(head["status"], head.get("error_code")) for head in heads] == [
        ("failed", f"insufficient_permissions.{code}"),
        ("finished", None),
    ]
    assert heads[1]["books"]["loaded"] == 300
    assert f"elasticmapreduce:{action}" in heads[0]["fix"]


@pytest.mark.parametrize("label", ["emr-5.33.0", "emr-6.5.0"])
def test_a_cluster_of_an_old_release_is_told_before_anything_is_done(aws: Aws, storage: S3Storage, label: str) -> None:
    """Segment's guide has 5.33, its Terraform module 6.5."""
    cluster_id, emr = a_cluster(aws, release=label), Emr(AwsOptions(REGION))
    before = set(emr_backends[ACCOUNT][REGION].clusters)
    for launcher in (
        EmrStep(emr, cluster_id, a_submission(storage)),
        TransientCluster(emr, cluster_id, a_submission(storage), {}),
    ):
        with pytest.raises(VersionMismatchError, match=f"is of the release {label}") as caught:
            launcher.start("segment-stage/1")
        assert "emr-7" in caught.value.fix
    assert aws.client("emr").list_steps(ClusterId=cluster_id)["Steps"] == []
    assert set(emr_backends[ACCOUNT][REGION].clusters) == before
    assert check_cluster(emr, a_cluster(aws, release="emr-7.12.0"))


def test_policies_that_may_not_be_given_are_left_out(aws: Aws, storage: S3Storage) -> None:
    """Amazon asks for rights of their own for them; the server of the tests does not."""
    run_job_flow = ElasticMapReduceResponse.run_job_flow
    asked: list[bool] = []

    def strict(self: Any) -> Any:
        asked.append(self._get_param("AutoTerminationPolicy") is not None)
        if asked[-1]:
            raise AccessDeniedError("somebody", "elasticmapreduce:PutAutoTerminationPolicy")
        return run_job_flow(self)

    alone = TransientCluster(Emr(AwsOptions(REGION)), a_cluster(aws), a_submission(storage), {})
    with (
        mock.patch.object(ElasticMapReduceResponse, "run_job_flow", strict),
        mock.patch.object(ElasticMapReduceResponse, "get_managed_scaling_policy", no_policy, create=True),
    ):
        alone.start("segment-stage/1")
    assert asked == [True, False]
    alone.stop()


@pytest.mark.parametrize(
    ("told", "reason", "state"),
    [
        ("STARTING", "", State.WAITING),
        ("BOOTSTRAPPING", "", State.WAITING),
        ("RUNNING", "", State.RUNNING),
        ("WAITING", "", State.RUNNING),
        ("TERMINATING", "ALL_STEPS_COMPLETED", State.ENDED),
        ("TERMINATED", "ALL_STEPS_COMPLETED", State.ENDED),
        ("TERMINATED_WITH_ERRORS", "BOOTSTRAP_FAILURE", State.FAILED),
        ("TERMINATED", "USER_REQUEST", State.FAILED),
    ],
)
def test_a_cluster_that_was_made_for_a_run_ends_with_it(told: str, reason: str, state: State) -> None:
    assert state_of({"State": told, "StateChangeReason": {"Code": reason} if reason else {}}) is state


def test_a_cluster_that_is_gone_is_a_wrong_setting(aws: Aws, storage: S3Storage) -> None:
    cluster_id = a_cluster(aws)
    aws.client("emr").terminate_job_flows(JobFlowIds=[cluster_id])
    step = EmrStep(Emr(AwsOptions(REGION)), cluster_id, a_submission(storage))
    with pytest.raises(InvalidSettingsError, match="is terminated"):
        step.start("segment-stage/1")


@pytest.mark.long
def test_the_doctor_does_not_submit_to_a_cluster_that_is_gone(aws: Aws, lake: Lake) -> None:
    cluster_id = a_cluster(aws)
    on_emr(lake, cluster_id)
    aws.client("emr").terminate_job_flows(JobFlowIds=[cluster_id])
    steps = doctor(lake.folder)
    status, submitted = steps["cluster: job status"], steps["cluster: submit job"]
    assert (status["status"], status["code"]) == ("failed", "invalid_settings")
    assert "emr.cluster_id" in status["fix"]
    assert (submitted["status"], submitted["detail"]) == ("skipped", "needs cluster: job status")
    assert aws.client("emr").list_steps(ClusterId=cluster_id)["Steps"] == []


@pytest.mark.parametrize(
    ("settings", "missing"),
    [
        ({"RUNNER": "emr"}, "emr.cluster_id"),
        ({"RUNNER": "emr-serverless", "EMR__APPLICATION_ID": "00abc"}, "emr.execution_role_arn"),
        ({"RUNNER": "emr", "EMR__CLUSTER_ID": "my-cluster"}, "emr.cluster_id"),
        ({"RUNNER": "emr", "EMR__CLUSTER_ID": "j-1", "EMR__TAG_KEY": "aws:vendor"}, "emr.tag_key"),
    ],
)
def test_a_setting_that_a_runner_needs_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], missing: str
) -> None:
    Workspace.create(tmp_path)
    for name, value in ({"LAKE__ROOT": "s3://bucket/x"} | settings).items():
        monkeypatch.setenv(f"EVENTLAKE_{name}", value)
    with pytest.raises(InvalidSettingsError, match=missing) as caught:
        Workspace.open(tmp_path)
    assert caught.value.code == "invalid_settings.configuration"


# The way between a run and its driver


def double(context: int, task: int) -> int:
    return context * task


def anything(context: int, task: int, result: int) -> None:
    """What every result passes."""


DOUBLE = registry(Step(double, anything))


class Told:
    """A launcher that tells what a test wants."""

    def __init__(self, *states: State) -> None:
        self.where: dict[str, str] = {}
        self.states = list(states)
        self.stopped = 0

    def start(self, session: str) -> str:
        return session

    def status(self) -> Status:
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return Status(state, f"it is {state.value}", "s3://logs/")

    def stop(self) -> None:
        self.stopped += 1


def test_a_driver_that_ends_before_it_answers_is_an_error_with_its_logs(tmp_path: Path) -> None:
    launcher = Told(State.WAITING, State.RUNNING, State.FAILED)
    runner = RemoteRunner(LocalStorage(str(tmp_path)), launcher, DOUBLE, stage="segment-stage", patience=60, poll=0.01)
    with pytest.raises(TransientError, match="it is failed") as caught:
        runner.run(double, 2, [1])
    assert "s3://logs/" in caught.value.fix
    runner.close()
    assert launcher.stopped
    assert not list(tmp_path.rglob("segment-stage/*/*"))


def test_a_driver_that_died_is_replaced_for_the_next_source(tmp_path: Path) -> None:
    launcher = Told(State.FAILED)
    runner = RemoteRunner(LocalStorage(str(tmp_path)), launcher, DOUBLE, stage="segment-stage", patience=60, poll=0.01)
    with pytest.raises(TransientError, match="it is failed"):
        runner.run(double, 2, [1])

    def start(session: str) -> str:
        there = Mailbox(LocalStorage(str(tmp_path)), session, DOUBLE)
        there.greet(Greeting(3, "4.3.0"))
        there.answer(1, [2])
        return session

    launcher.states, launcher.start = [State.RUNNING], start  # type: ignore[method-assign]
    assert runner.run(double, 2, [1]) == [2]
    launcher.states = [State.ENDED]
    runner.close()


def test_a_step_that_goes_on_is_not_given_up_and_trouble_on_the_way_is_borne(tmp_path: Path) -> None:
    launcher = Told(State.RUNNING)
    runner = RemoteRunner(LocalStorage(str(tmp_path)), launcher, DOUBLE, stage="segment-stage", patience=3, poll=0.01)
    done: list[int] = []

    def start(session: str) -> str:
        there = Mailbox(LocalStorage(str(tmp_path)), session, DOUBLE)
        there.greet(Greeting(3, "4.3.0"))

        def work() -> None:
            for number in range(1, 13):
                time.sleep(0.3)
                there.tell_progress(1, number)
            there.answer(1, [0] * 12)

        threading.Thread(target=work, daemon=True).start()
        return session

    calm, calls = launcher.status, itertools.count()

    def status() -> Status:
        if next(calls) % 3 == 1:
            raise TransientError("throttled", fix="wait")
        return calm()

    launcher.start, launcher.status = start, status  # type: ignore[method-assign]
    assert runner.run(double, 2, list(range(12)), done.append) == [0] * 12
    assert done[-1] >= 11
    launcher.states = [State.ENDED]
    runner.close()


def test_a_step_on_a_cluster_can_be_cancelled_and_the_driver_ends(tmp_path: Path) -> None:
    launcher = Told(State.RUNNING)
    runner = RemoteRunner(LocalStorage(str(tmp_path)), launcher, DOUBLE, stage="segment-stage", patience=60, poll=0.01)

    def start(session: str) -> str:
        Mailbox(LocalStorage(str(tmp_path)), session, DOUBLE).greet(Greeting(3, "4.3.0"))
        return session

    def enough(done: int) -> None:
        raise CancelledError(f"after {done} tasks", fix="nothing")

    launcher.start = start  # type: ignore[method-assign]
    with pytest.raises(CancelledError, match="after 0 tasks"):
        runner.run(double, 2, [1], enough)
    assert launcher.stopped
    assert next(tmp_path.rglob("bye")).exists()


def test_threads_share_a_driver(tmp_path: Path) -> None:
    launcher = Told(State.RUNNING)
    runner = RemoteRunner(LocalStorage(str(tmp_path)), launcher, DOUBLE, stage="segment-stage", patience=60, poll=0.01)

    def start(session: str) -> str:
        time.sleep(0.3)  # in which another thread asks
        there = Mailbox(LocalStorage(str(tmp_path)), session, DOUBLE)
        there.greet(Greeting(3, "4.3.0"))
        for number in range(1, 5):
            there.answer(number, [number])
        return session

    launcher.start = start  # type: ignore[method-assign]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda number: runner.run(double, 2, [number]), range(4)))
    assert sorted(found) == [[1], [2], [3], [4]]
    launcher.states = [State.ENDED]
    runner.close()


def test_a_cluster_that_never_starts_is_given_up(tmp_path: Path) -> None:
    runner = RemoteRunner(
        LocalStorage(str(tmp_path)), Told(State.WAITING), DOUBLE, stage="segment-stage", patience=0.1, poll=0.01
    )
    with pytest.raises(TransientError, match=r"nothing happened for 0\.1 seconds"):
        runner.run(double, 2, [1])
    runner.close()


def test_a_step_that_hangs_is_ended_and_the_next_source_gets_another(tmp_path: Path) -> None:
    launcher = Told(State.RUNNING)
    runner = RemoteRunner(LocalStorage(str(tmp_path)), launcher, DOUBLE, stage="segment-stage", patience=0.1, poll=0.01)
    for stopped in (1, 2):
        with pytest.raises(TransientError, match=r"nothing happened for 0\.1 seconds, and it is running"):
            runner.run(double, 2, [1])
        assert launcher.stopped == stopped


def end(cluster_id: str, message: str) -> None:
    """A cluster as EMR has it when it ended by itself, with whatever was under way."""
    cluster = emr_backends[ACCOUNT][REGION].clusters[cluster_id]
    cluster.state = "TERMINATED_WITH_ERRORS"
    cluster.last_state_change_reason = message  # type: ignore[attr-defined]
    for step in cluster.steps:
        step.state = "CANCELLED"


@pytest.mark.parametrize("kind", ["its own", "the lake's"])
@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("On the master instance (i-1), the node was terminated", "cluster_terminated"),
        ("Terminated by user request", "cluster_terminated"),
        ("Insufficient instance capacity in this Availability Zone", "quota_exceeded"),
        ("The number of vCPUs exceeds your EC2 vCPU quota", "quota_exceeded"),
    ],
)
def test_a_cluster_that_ends_in_the_middle_of_a_step_is_told_with_its_reason(
    aws: Aws, storage: S3Storage, kind: str, message: str, code: str
) -> None:
    emr, model = Emr(AwsOptions(REGION)), a_cluster(aws)
    submission = a_submission(storage)
    own = TransientCluster(emr, model, submission, {})
    launcher = own if kind == "its own" else EmrStep(emr, model, submission)
    with mock.patch.object(ElasticMapReduceResponse, "get_managed_scaling_policy", no_policy, create=True):
        launcher.start("segment-stage/1")
    assert launcher.status().problem is None
    end(launcher.where["emr_cluster_id"], message)
    problem = launcher.status().problem
    assert problem
    assert problem.code == code
    assert message in problem.problem
    assert launcher.where["emr_cluster_id"] in problem.problem
    launcher.stop()  # which is over already


@pytest.fixture
def answering(tmp_path: Path) -> Iterator[tuple[RemoteRunner, Told]]:
    launcher = Told(State.RUNNING)
    runner = RemoteRunner(LocalStorage(str(tmp_path)), launcher, DOUBLE, stage="segment-stage", patience=60, poll=0.01)
    yield runner, launcher
    runner.close()


def test_an_error_of_a_task_comes_back_as_what_it_was(answering: tuple[RemoteRunner, Told], tmp_path: Path) -> None:
    runner, launcher = answering
    started: list[str] = []

    def start(session: str) -> str:
        started.append(session)
        there = Mailbox(LocalStorage(str(tmp_path)), session, DOUBLE)
        there.greet(Greeting(3, "4.3.0"))
        there.answer(1, Failure("UploadDeniedError", "may not", "grant s3:PutObject"))
        return session

    launcher.start = start  # type: ignore[method-assign]
    with pytest.raises(PermissionMissingError) as caught:
        runner.run(double, 2, [1])
    assert caught.value.code == "insufficient_permissions.upload_object"
    assert runner.parallelism == 3
    assert started[0].startswith("segment-stage/")
