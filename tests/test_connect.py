"""Runs over Spark Connect: the same steps on a real Connect server, and what becomes of them when it fails."""

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest
from pydantic import SecretStr
from pyspark.sql.connect.session import SparkSession

import eventlake
from azures import Directory, settings_of_principal
from azures import account as account  # noqa: PLC0414 - a fixture, as are the next
from azures import entra as entra  # noqa: PLC0414
from azures import signed_in as signed_in  # noqa: PLC0414
from azures import trusted as trusted  # noqa: PLC0414
from clusters import WORKERS, Cluster, executors
from clusters import cluster as cluster  # noqa: PLC0414 - a fixture, as is the next
from conftest import InProcess, Lake, SetClock, new_bucket, settings_for, track
from connect_steps import STEPS, code_of, denied, dies_once, liar, puzzled, size_of, slow, thrice, without_room
from connects import ConnectServer, Pretender, connect_server
from connects import connect as connect  # noqa: PLC0414
from eventlake.archive.importer import find_raw_files, import_file
from eventlake.audit.verify import verify
from eventlake.aws.session import AwsOptions
from eventlake.azure.identity import AzureOptions
from eventlake.demo.events import Recipe, write_archive
from eventlake.errors import (
    CancelledError,
    ConfigurationError,
    InternalError,
    InvalidSettingsError,
    NoSpaceError,
    SignInDeniedError,
    TransientError,
    UploadDeniedError,
    VersionMismatchError,
)
from eventlake.library.runners import Runners, quietly
from eventlake.runners import wire
from eventlake.runners.choice import runner_of
from eventlake.runners.connect import ConnectRunner
from eventlake.runners.connect_session import Opened, Server, check_version
from eventlake.runners.connect_worker import NEEDED
from eventlake.runners.node_storage import NodeStorage, node_storage
from eventlake.settings.runners import ConnectRunnerSettings
from eventlake.storage.adls import AzureStorage
from eventlake.storage.base import Storage
from eventlake.storage.local import LocalStorage
from eventlake.storage.s3 import S3Options, S3Storage
from eventlake.sync import jobs
from eventlake.tasks import registry
from eventlake.workspace import CONFIG
from servers import AzureServer, S3Server, free_ports
from stand_in import NODE_PYTHON, wait_until

PROGRAM = str(Path(sys.executable).with_name("eventlake"))
TOKEN = "s3cr3t-t0ken"


def a_runner(server: Server | str, storage: Storage, **more: Any) -> ConnectRunner:
    server = Server(server) if isinstance(server, str) else server
    way = Opened(server, [*NEEDED, "eventlake.tasks.registry"])
    return ConnectRunner(way, storage, storage, STEPS, stage="segment-stage", **{"patience": math.inf, **more})


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> LocalStorage:
    return LocalStorage(str(tmp_path_factory.mktemp("lake")))


@pytest.fixture(scope="module")
def runner(connect: ConnectServer, storage: LocalStorage) -> Iterator[ConnectRunner]:
    """One session for all tests that do not harm it."""
    runner = a_runner(connect.url, storage)
    yield runner
    runner.close()


def left(storage: LocalStorage) -> list[str]:
    return [file.path for file in storage.files("segment-stage")]


# Steps


def test_results_come_in_the_order_of_the_tasks(runner: ConnectRunner, storage: LocalStorage) -> None:
    numbers = [7, 3, 11, 3, 0, *range(20)]
    assert runner.run(thrice, 2, numbers) == [6 * number for number in numbers]
    assert runner.run(thrice, 2, []) == []
    assert runner.parallelism == 2
    assert left(storage) == []


def test_workers_run_the_code_that_was_sent_and_not_what_is_installed_there(runner: ConnectRunner) -> None:
    for path, _, reads in runner.run(code_of, "", ["a", "b"]):
        assert re.search(r"/eventlake-0\.1\.0-[0-9a-f]{12}/lib/eventlake/runners/connect_worker\.py$", path)
        assert reads == "in C"  # the library is where it can be loaded


def test_what_tasks_share_may_be_larger_than_any_message(runner: ConnectRunner, storage: LocalStorage) -> None:
    size = 140 << 20
    assert runner.run(size_of, "x" * size, [1, 2, 3]) == [size + 1, size + 2, size + 3]
    assert left(storage) == []


def test_threads_share_a_session(runner: ConnectRunner) -> None:
    told: dict[int, list[int]] = {number: [] for number in range(3)}

    def run(number: int) -> list[int]:
        return runner.run(thrice, number, list(range(4)), told[number].append)

    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(run, range(3))) == [[3 * n * task for task in range(4)] for n in range(3)]


def test_progress_is_told(runner: ConnectRunner, tmp_path: Path) -> None:
    told: list[int] = []
    runner.run(slow, str(tmp_path), [0.6] * 6, told.append)
    assert told == sorted(told)
    assert told[0] == 0
    assert {2, 3, 4} & set(told)
    assert max(told) <= 6


# Errors


def test_an_error_of_ours_is_what_it_was(runner: ConnectRunner, storage: LocalStorage) -> None:
    with pytest.raises(UploadDeniedError, match="Spark could not denied: may not upload a file 1") as caught:
        runner.run(denied, "a file", [1])
    assert caught.value.fix == "grant s3:PutObject"
    assert left(storage) == []


def test_an_error_of_the_system_says_who_must_act(runner: ConnectRunner) -> None:
    with pytest.raises(NoSpaceError, match="No space left on device"):
        runner.run(without_room, "/lake", [1])


def test_any_other_error_is_told_with_what_it_says(runner: ConnectRunner, connect: ConnectServer) -> None:
    with pytest.raises(TransientError, match="Spark could not puzzled: ZeroDivisionError: who knows 1") as caught:
        runner.run(puzzled, "who knows", [1])
    assert connect.url in caught.value.fix
    assert runner.run(thrice, 1, [1]) == [3]


def test_a_result_that_cannot_be_is_refused(runner: ConnectRunner) -> None:
    with pytest.raises(InternalError, match="it is less than nothing"):
        runner.run(liar, 1, [1])


def test_a_worker_that_is_killed_is_replaced_and_its_tasks_are_done_again(
    runner: ConnectRunner, tmp_path: Path
) -> None:
    assert runner.run(dies_once, str(tmp_path), [1, 2, 3]) == [1, 2, 3]
    assert len(list(tmp_path.glob("tried-*"))) == 3


def shown(folder: Path) -> dict[str, str]:
    """What tasks that go on show, by process."""
    return {path.name: path.read_text() for path in folder.iterdir()}


def has_stopped(folder: Path) -> bool:
    before = shown(folder)
    time.sleep(0.5)
    return before == shown(folder) and bool(before)


def test_a_step_that_is_cancelled_ends_there(runner: ConnectRunner, storage: LocalStorage, tmp_path: Path) -> None:
    def enough(done: int) -> None:
        if list(tmp_path.iterdir()):
            raise CancelledError(f"after {done}", fix="nothing")

    began = time.monotonic()
    with pytest.raises(CancelledError, match="after 0"):
        runner.run(slow, str(tmp_path), [60.0] * 4, enough)
    assert time.monotonic() - began < 20
    wait_until(lambda: has_stopped(tmp_path), "its tasks end")
    assert left(storage) == []
    assert runner.run(thrice, 1, [1]) == [3]


@pytest.mark.long
def test_a_step_in_which_no_task_ends_is_given_up(connect: ConnectServer, storage: Storage, tmp_path: Path) -> None:
    runner = a_runner(connect.url, storage, patience=1)
    with pytest.raises(TransientError, match="no task ended for 1 seconds"):
        runner.run(slow, str(tmp_path), [60.0])
    runner.close()
    wait_until(lambda: has_stopped(tmp_path), "its tasks end")


STOPPED = """
import sys
from pathlib import Path
import test_connect
from eventlake.storage.local import LocalStorage
runner = test_connect.a_runner(sys.argv[1], LocalStorage(sys.argv[2]))
try:
    runner.run(test_connect.slow, sys.argv[3], [60.0] * 2)
except KeyboardInterrupt:
    print("stopped")
finally:
    runner.close()
"""


@pytest.mark.long
def test_a_run_that_is_stopped_by_hand_stops_its_tasks(connect: ConnectServer, tmp_path: Path) -> None:
    (tmp_path / "shown").mkdir()
    heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    words = [sys.executable, "-c", heed + STOPPED, connect.url, str(tmp_path / "lake"), str(tmp_path / "shown")]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            wait_until(lambda: list((tmp_path / "shown").iterdir()), "its tasks begin")
            process.send_signal(signal.SIGINT)
            said, _ = process.communicate(timeout=30)
        finally:
            process.kill()
    assert said == "stopped\n"
    wait_until(lambda: has_stopped(tmp_path / "shown"), "its tasks end")


# The server


def test_a_server_that_is_not_there_is_told_within_seconds(storage: LocalStorage) -> None:
    (port,) = free_ports(1)
    began = time.monotonic()
    with pytest.raises(TransientError, match=rf"sc://127\.0\.0\.1:{port} does not answer") as caught:
        a_runner(f"sc://127.0.0.1:{port}", storage).run(thrice, 1, [1])
    assert time.monotonic() - began < 15
    assert "url" in caught.value.fix
    assert left(storage) == []


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_server_that_dies_is_told_within_seconds_and_the_next_one_is_used(tmp_path: Path, storage: Storage) -> None:
    (tmp_path / "shown").mkdir()
    with connect_server(tmp_path) as server:
        runner = a_runner(server.url, storage)
        with ThreadPoolExecutor(1) as other:
            step = other.submit(runner.run, slow, str(tmp_path / "shown"), [60.0] * 2)
            wait_until(lambda: list((tmp_path / "shown").iterdir()), "its tasks begin")
            for process in [*server.process.children(recursive=True), server.process]:
                process.kill()
            began = time.monotonic()
            with pytest.raises(TransientError, match="does not answer"):
                step.result(timeout=60)
        assert time.monotonic() - began < 20
    with connect_server(tmp_path, port=server.port):
        assert runner.run(thrice, 1, [1]) == [3]
        runner.close()


@pytest.mark.long
def test_a_session_that_the_server_has_ended_is_replaced(connect: ConnectServer, storage: Storage) -> None:
    """As after an hour in which nothing was to do."""
    runner = a_runner(connect.url, storage)
    assert runner.run(thrice, 1, [1]) == [3]
    assert runner._session
    before = runner._session.spark
    before.client.release_session()
    assert runner.run(thrice, 1, [2]) == [6]
    assert runner._session.spark is not before
    runner.close()


def test_a_server_that_is_older_is_refused_before_any_work(connect: ConnectServer, storage: LocalStorage) -> None:
    pretender = Pretender(connect, spark="4.0.5")
    with (
        pretender.listening() as url,
        pytest.raises(VersionMismatchError, match=r"runs Spark 4\.0\.5, which is older than PySpark") as caught,
    ):
        a_runner(url, storage).run(thrice, 1, [1])
    assert caught.value.fix == "pip install 'pyspark==4.0.*' here, or upgrade the server"
    assert set(pretender.asked) <= {"AnalyzePlan", "ReleaseSession"}


@pytest.mark.long
def test_a_server_that_is_newer_is_told_and_used(connect: ConnectServer, storage: LocalStorage) -> None:
    told: list[str] = []
    with Pretender(connect, spark="4.99.0").listening() as url:
        runner = a_runner(url, storage, talk=told.append)
        assert runner.run(thrice, 1, [1]) == [3]
        runner.close()
    assert told == [
        "Spark 4.99.0 runs there, 2 tasks at once",
        "Spark 4.99.0 is newer than PySpark here: if a step fails, that may be why",
    ]


@pytest.mark.parametrize("version", ["3.5.9", "2.4.0", "unknown"])
def test_a_server_that_is_too_old_for_any_client_is_to_be_upgraded(version: str) -> None:
    with pytest.raises(VersionMismatchError) as caught:
        check_version(version)
    assert caught.value.fix == "upgrade the server"


def test_settings_that_a_session_may_not_have_are_named_without_their_values(
    connect: ConnectServer, storage: LocalStorage
) -> None:
    for key, value in {"spark.driver.memory": "9g", "spark.sql.shuffle.partitions": "s3cr3t"}.items():
        with pytest.raises(InvalidSettingsError, match=re.escape(key)) as caught:
            a_runner(Server(connect.url, conf={key: value}), storage).run(thrice, 1, [1])
        assert value not in str(caught.value)


@pytest.mark.long
def test_a_token_is_asked_for_and_shown_nowhere(tmp_path: Path, storage: Storage) -> None:
    with connect_server(tmp_path, conf={"spark.connect.authenticate.token": TOKEN}) as server:
        url = f"sc://localhost:{server.port}"  # to which it is sent without TLS
        settings = ConnectRunnerSettings.model_validate({"url": url, "token": TOKEN})
        right = Server(url, settings.token)
        runner = a_runner(right, storage)
        assert runner.run(thrice, 1, [1]) == [3]
        runner.close()
        shown = [repr(settings), repr(right), str(settings.model_dump()), " ".join(psutil.Process().cmdline())]
        assert not [text for text in shown if TOKEN in text]
        for token in ("wr0ng", None):
            wrong = ConnectRunnerSettings.model_validate({"url": url, "token": token})
            with pytest.raises(SignInDeniedError) as caught:
                a_runner(Server(url, wrong.token), storage).run(thrice, 1, [1])
            assert "token" in caught.value.fix
            assert "wr0ng" not in str(caught.value)


def test_workers_of_another_python_are_refused_before_any_work(connect: ConnectServer, storage: LocalStorage) -> None:
    pretender = Pretender(connect, python="3.99")
    there = f"3.{sys.version_info.minor}"
    with (
        pretender.listening() as url,
        pytest.raises(VersionMismatchError, match=rf"{url} run Python {there}, and this is 3\.99") as caught,
    ):
        a_runner(url, storage).run(thrice, 1, [1])
    assert (
        caught.value.fix == f"run eventlake with Python {there}, or let PYSPARK_PYTHON of the server be a Python 3.99"
    )
    assert pretender.asked.count("ExecutePlan") == 1


@pytest.mark.long
@pytest.mark.timeout(600)
def test_libraries_that_workers_lack_are_named_or_sent_along(tmp_path: Path) -> None:
    with connect_server(tmp_path, python=NODE_PYTHON) as server:
        lake = Lake(tmp_path / "workspace", InProcess())
        around = quietly(lake.place)
        settings = ConnectRunnerSettings(url=server.url, python=NODE_PYTHON)
        with pytest.raises(InvalidSettingsError, match="lack pyarrow") as caught:
            runner_of(settings, around, registry.STEPS).parallelism  # noqa: B018
        assert 'libraries = "sent"' in caught.value.fix
        lake.runner = runner_of(settings.model_copy(update={"libraries": "sent"}), around, registry.STEPS)
        assert lake.sync_of(track("A", "m1"))[0]["books"]["loaded"] == 1
        lake.runner.close()
        (kept,) = (lake.workspace.folder / "packages").iterdir()
        again = runner_of(settings.model_copy(update={"libraries": "sent"}), around, registry.STEPS)
        made = kept.stat().st_mtime_ns
        assert again.parallelism == 2
        again.close()
        assert kept.stat().st_mtime_ns == made  # once per version


def test_all_that_workers_load_is_looked_for() -> None:
    """In a process of its own: which modules of others a step loads, beside those of Python and of Spark."""
    program = (
        "import sys, sysconfig; before = set(sys.modules); import eventlake.runners.connect_worker, "
        "eventlake.tasks.registry; place = sysconfig.get_paths()['purelib']; "
        "print(*{name.partition('.')[0] for name, module in sys.modules.items() if name not in before "
        "and (getattr(module, '__file__', None) or '').startswith(place)})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) - {"typing_extensions", "eventlake"} == set(NEEDED)


@pytest.mark.long
def test_a_lake_that_workers_do_not_see_is_told_as_that(runner: ConnectRunner, storage: LocalStorage) -> None:
    class Elsewhere(LocalStorage):
        """A folder of another machine that has the same name."""

        def put(self, path: str, content: Any) -> None:
            pass

    there = Elsewhere(storage.root)
    alone = ConnectRunner(runner._way, there, there, STEPS, stage="segment-stage", patience=60)
    with pytest.raises(InvalidSettingsError, match="workers of the Connect server do not see") as caught:
        alone.run(thrice, 1, [1])
    assert "s3://" in caught.value.fix
    alone.close()


# Lakes


def settings_of(server: ConnectServer) -> str:
    return f'runner = {{ kind = "connect", url = "{server.url}" }}\n'


@contextmanager
def on(server: ConnectServer, folder: Path, more: str = "") -> Iterator[Lake]:
    """A lake whose tasks run on a Connect server."""
    lake = Lake(folder, InProcess(), clock=SetClock(), settings=settings_of(server) + more)
    with Runners(lake.workspace) as runners, runners.of("default") as lake.runner:
        assert isinstance(lake.runner, ConnectRunner)
        yield lake


FIRST: list[Any] = [
    track("A", "m1", properties={"n": 1}),
    track("A", "m1"),
    track("B", "m2", properties={"x": "y"}),
    b"broken",
]
LATER = [track("A", "m3", properties={"n": "much", "late": True}), track("A", "m1"), track("C", "m4")]


def story_of(lake: Lake) -> list[Any]:
    """Syncs, columns that come later, values of other kinds, copies, broken lines, and a replay of all that."""
    books = [lake.sync_of(*FIRST)[0]["books"], lake.sync_of(*LATER)[0]["books"]]
    books.append(lake.run(jobs.replay(lake.connection, None, None, None))[0]["books"])
    return [books, {table: (lake.types(table), lake.rows(table)) for table in lake.tables()}]


def test_the_main_scenario_is_the_same_as_without_connect(connect: ConnectServer, tmp_path: Path) -> None:
    with on(connect, tmp_path / "there") as lake:
        found = story_of(lake)
        assert verify(lake.workspace, lake.connection, lake.runner) == []
    (first, later, replayed), tables = found
    assert (first["loaded"], first["duplicates"], first["quarantined"]) == (2, 1, 1)
    assert (later["loaded"], later["duplicates"]) == (2, 1)
    assert replayed["duplicates"] == 6
    assert sorted(tables) == ["track_a", "track_b", "track_c"]
    assert found == story_of(Lake(tmp_path / "alone", InProcess(), clock=SetClock()))
    assert lake.staged() == []


@pytest.mark.long
def test_a_lake_on_azure_whose_workers_act_in_their_own_identity(
    account: AzureServer, entra: Directory, signed_in: None, tmp_path: Path
) -> None:
    """Workers are told no secret: that of the server's environment is theirs."""
    settings = settings_of_principal(account, new_bucket(account), entra)
    with connect_server(tmp_path) as server, on(server, tmp_path / "there", settings) as lake:
        assert lake.sync_of(*FIRST)[0]["books"]["loaded"] == 2
        assert lake.sync_of(*LATER)[0]["books"]["loaded"] == 2
        assert verify(lake.workspace, lake.connection, lake.runner) == []
        assert lake.staged() == []


def test_a_lake_in_a_bucket(connect: ConnectServer, s3: S3Server, bucket: str, tmp_path: Path) -> None:
    with on(connect, tmp_path / "there", settings_for(s3, bucket)) as lake:
        assert lake.sync_of(*FIRST)[0]["books"]["loaded"] == 2
        assert lake.sync_of(*LATER)[0]["books"]["loaded"] == 2
        assert verify(lake.workspace, lake.connection, lake.runner) == []
    assert lake.staged() == []


@pytest.fixture
def session(connect: ConnectServer) -> Iterator[SparkSession]:
    """A session that somebody else has opened."""
    session = SparkSession(connect.url)
    yield session
    session.stop()


def test_a_session_that_is_handed_over_is_used_and_goes_on(session: SparkSession, tmp_path: Path) -> None:
    before = session.conf.get("spark.connect.progress.reportInterval")
    path = tmp_path / "events"
    path.write_text("\n".join(json.dumps(track("A", f"m{n}", properties={"n": n})) for n in range(5)))
    eventlake.create(tmp_path / "lake").close()
    with (tmp_path / "lake" / CONFIG).open("a") as settings:
        settings.write('[lakes.other]\nroot = "other"\n')
    with eventlake.open(tmp_path / "lake", spark=session) as place:
        place.connections.add_source("web", source_id="src1")
        place.connections.connect("web", "other")
        import_file(place.archive, "src1", path, now_micros=place.clock.now())
        assert [report.rows for report in place.sync()] == [5, 5]  # each lake by itself, both in one session
        assert place.verify("web") == {"web": [], "web/other": []}
        assert place.spark_views(session) == ["web.track_a"]
    assert session.sql("select sum(properties_n) as n from web.track_a").collect()[0].n == 10
    assert session.conf.get("spark.connect.progress.reportInterval") == before
    assert session.getTags() == set()
    session.sql("drop database web cascade")


def eventlake_says(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, "-C", str(folder), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


@pytest.mark.long
def test_commands_run_over_connect_and_the_doctor_tries_it(connect: ConnectServer, tmp_path: Path) -> None:
    lake = Lake(tmp_path / "there", InProcess(), settings=settings_of(connect))
    lake.put(*FIRST)
    done = eventlake_says(lake.workspace.folder, "sync")
    assert done.returncode == 0, done.stderr
    assert "Spark Connect: Spark 4" in done.stderr
    assert lake.rows("track_a")
    steps = {
        step["step"]: step for step in json.loads(eventlake_says(lake.workspace.folder, "doctor", "--json").stdout)
    }
    assert steps["connect: server"]["detail"] == f"{connect.url}, 2 tasks at once"
    assert steps["connect: run tasks"]["status"] == "passed"
    (port,) = free_ports(1)
    (lake.workspace.folder / CONFIG).write_text(
        (lake.workspace.folder / CONFIG).read_text().replace(str(connect.port), str(port))
    )
    done = eventlake_says(lake.workspace.folder, "doctor", "--json")
    steps = {step["step"]: step for step in json.loads(done.stdout)}
    assert done.returncode == 1
    assert (steps["connect: server"]["status"], steps["connect: server"]["code"]) == ("failed", "service_unavailable")
    assert steps["connect: run tasks"]["detail"] == "needs connect: server"
    assert eventlake_says(lake.workspace.folder, "package").returncode == 2


@pytest.mark.long
@pytest.mark.timeout(600)
def test_an_executor_killed_in_the_middle_of_a_step_changes_nothing(cluster: Cluster, tmp_path: Path) -> None:
    recipe = Recipe(10_000, hours=3, track_types=10, duplicate_share=0.03, conflict_share=0.05, broken_share=0.01)
    write_archive(recipe, tmp_path / "raw", files=12)
    (tmp_path / "events").mkdir()
    conf = {
        "spark.cores.max": str(WORKERS),
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": (tmp_path / "events").as_uri(),
        "spark.eventLog.enabled": "true",
        "spark.executor.cores": "1",
        "spark.executor.memory": "512m",
    }
    alone = Lake(tmp_path / "alone", InProcess())
    imported(alone, tmp_path / "raw")
    books = alone.sync()[0]["books"]
    with connect_server(tmp_path, master=cluster.master, conf=conf) as server:
        for attempt in range(5):  # the step may be over before the executor is
            with on(server, tmp_path / f"there-{attempt}") as lake:
                imported(lake, tmp_path / "raw")
                assert lake.runner.parallelism == WORKERS
                staging = lake.root / "segment-stage"
                with ThreadPoolExecutor() as other:
                    sync = other.submit(lake.sync)
                    while not sync.done() and not list(staging.glob("*/staged-*")):  # a task of it is writing
                        time.sleep(0.005)
                    executors(cluster)[0].kill()
                    assert sync.result()[0]["books"] == books
                assert verify(lake.workspace, lake.connection, InProcess()) == []
                assert lake.staged() == []
            if any(
                "ExecutorLostFailure" in log.read_text() for log in (tmp_path / "events").rglob("*") if log.is_file()
            ):
                break
            wait_until(lambda: len(executors(cluster)) == WORKERS, "the executor is replaced")
        else:
            pytest.fail("no task was lost in five attempts")
    for table in alone.tables():
        assert lake.rows(table) == alone.rows(table)


def imported(lake: Lake, folder: Path) -> None:
    for path in find_raw_files([folder]):
        import_file(lake.workspace.archive, lake.source.id, path, now_micros=lake.workspace.clock.now())


# Settings


@pytest.mark.parametrize(
    ("runner", "problem"),
    [
        ({"kind": "connect"}, "runner.url: is required"),
        ({"kind": "connect", "url": "host:15002"}, "runner.url: not sc://host:port"),
        ({"kind": "connect", "url": "sc://"}, "runner.url: not sc://host:port"),
        ({"kind": "connect", "url": "sc://host/path"}, "runner.url: not sc://host:port"),
        ({"kind": "connect", "url": "sc://host;use_ssl=true"}, "runner.url: not sc://host:port"),
        ({"kind": "connect", "url": "sc://host/;token=abc"}, "runner.url: a token does not belong into the url"),
        ({"kind": "connect", "url": "sc://host", "token": "keyvault://x"}, "runner.token: not keyvault://vault/name"),
        ({"kind": "connect", "url": "sc://host", "libraries": "mine"}, "runner.libraries: must be 'server' or 'sent'"),
        ({"kind": "connect", "url": "sc://host", "patience": 0}, "runner.patience: must be more than 0"),
        (
            {"kind": "conect"},
            "runner: there is no such kind; use one of spark, emr, emr-serverless, connect, databricks",
        ),
        (
            {"kind": "connect", "url": "sc://host", "tocken": "a"},
            "runner.tocken: there is no such setting; perhaps token",
        ),
        ("connect", "runner: must be 'spark', 'emr' or 'emr-serverless'"),
    ],
)
def test_settings_that_cannot_be_right_are_named(runner: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        eventlake.open(settings={"workspace_id": "x", "runner": runner})
    assert caught.value.problem.startswith(f"settings: {problem}")
    assert "abc" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["sc://host", "sc://host:15002", "sc://10.0.0.1:443/", "sc://[::1]:1", "sc://a.b:443/;use_ssl=true;x-y=1-2"]
)
def test_addresses_that_spark_takes_are_taken(url: str) -> None:
    assert ConnectRunnerSettings(url=url).url == url


def test_nodes_are_told_of_storages_without_secrets() -> None:
    azure = AzureOptions(
        "http://blobs", tenant_id="t", client_id="c", client_secret=SecretStr("s3cr3t"), encryption_scope="scope"
    )
    root = "abfss://lake@account.dfs.core.windows.net/x"
    with_keys = AwsOptions("eu-west-1", access_key_id=SecretStr("s3cr3t-id"), secret_access_key=SecretStr("s3cr3t"))
    storages = [
        LocalStorage("/lake", timeout=7),
        S3Storage(
            "s3://lake/x", S3Options("http://s3", aws=AwsOptions("eu-west-1", "arn:role", "ext", "own")), timeout=7
        ),
        S3Storage("s3://lake/x", S3Options("http://s3", True, "aws:kms", "key", with_keys), timeout=7),
        AzureStorage(root, azure, timeout=7),
    ]
    for storage in storages:
        told = wire.encoded(node_storage(storage))
        assert not re.search(rb"s3cr3t|arn:role|ext\b|own", told)
        again: Any = wire.decoded(told, NodeStorage, "here").storage()  # type: ignore[arg-type]
        assert (type(again), again.root, again.timeout) == (type(storage), storage.root, 7)
        if isinstance(storage, S3Storage):
            assert again.options == storage.options._replace(aws=AwsOptions("eu-west-1"))
    assert again.options == AzureOptions("http://blobs", encryption_scope="scope")
