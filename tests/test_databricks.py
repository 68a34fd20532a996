"""Runs on Databricks, against a stand-in that really executes what is submitted to it."""

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from azures import SECRET as ENTRA_SECRET
from azures import TENANT, Directory, directory, identity, settings_of_principal
from azures import account as account  # noqa: PLC0414 - a fixture, as are the next
from azures import entra as entra  # noqa: PLC0414
from azures import trusted as trusted  # noqa: PLC0414
from certificates import certificate
from conftest import InProcess, new_bucket, settings_for
from eventlake import errors
from eventlake import open as open_lake
from eventlake.audit.verify import verify
from eventlake.azure import vault
from eventlake.azure.identity import AzureOptions
from eventlake.demo.events import Recipe, write_archive
from eventlake.errors import EventLakeError
from eventlake.query.answer import query
from eventlake.runners.databricks import Databricks, DatabricksOptions, DatabricksRun, Job, Volume
from eventlake.runners.package import Package, Target, provide
from eventlake.runners.remote import State
from eventlake.settings.runners import DatabricksRunnerSettings
from eventlake.workspace import Workspace
from servers import AzureServer, S3Server
from stand_in import wait_until
from stand_in_databricks import CLIENT, CLUSTER, SECRET, TOKEN, VOLUME, Place, databricks_workspace
from stand_in_databricks import Databricks as Server

PROGRAM = str(Path(sys.executable).with_name("eventlake"))
VERSION = f"python3.{sys.version_info.minor}"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What nodes need, made once: a folder with the volume it is in, and what its maker wrote down."""
    folder = tmp_path_factory.mktemp("databricks")
    with databricks_workspace(folder) as server:
        shelf = Volume(Databricks(DatabricksOptions(server.url, token=SecretStr(TOKEN))), VOLUME)
        assert provide(shelf, Target(VERSION), folder / "records").is_new
        assert not provide(shelf, Target(VERSION), folder / "records").is_new
    return folder


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "there").mkdir()
    with databricks_workspace(tmp_path / "there") as server:
        yield server


@pytest.fixture
def folder(server: Server, s3: S3Server, package: Path, tmp_path: Path) -> Path:
    """A workspace with raw files that nobody has synced, and a runner on Databricks."""
    way_in = f'[aws]\nregion = "eu-west-1"\n{runner_settings(server)}token = "{TOKEN}"\n'
    return filled(server, package, tmp_path, settings_for(s3, new_bucket(s3)) + way_in)


def filled(server: Server, package: Path, tmp_path: Path, settings: str) -> Path:
    (server.place.folder / "Volumes").symlink_to(package / "Volumes")
    place = Workspace.create(tmp_path / "workspace").folder
    (place / "packages").symlink_to(package / "records")
    (place / "eventlake.toml").write_text(f'workspace_id = "test"\n{settings}')
    write_archive(Recipe(events=2000, hours=2, track_types=5, duplicate_share=0.05), tmp_path / "raw", files=4)
    Workspace.open(place).connections.add_source("web", source_id="src1")
    done = eventlake(place, "import", "web", str(tmp_path / "raw"))
    assert done.returncode == 0, done.stderr
    return place


def runner_settings(server: Server) -> str:
    return (
        f'[runner]\nkind = "databricks"\nhost = "{server.url}"\ncluster_id = "{CLUSTER}"\nvolume = "{VOLUME}"\n'
        f'python = "{VERSION}"\n'
    )


def eventlake(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, "-C", str(place), *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_sync_and_a_replay_on_databricks(server: Server, folder: Path) -> None:
    done = eventlake(folder, "sync")
    assert done.returncode == 0, done.stderr + server.place.log()
    assert f"{server.url}/jobs/runs/1000" in done.stderr, "whoever waits can look at it"
    (run,) = server.place.runs.values()
    assert (run.code, run.task["existing_cluster_id"]) == ("SUCCESS", CLUSTER)
    assert TOKEN not in json.dumps(run.task) + done.stdout + done.stderr
    assert os.environ["AWS_SECRET_ACCESS_KEY"] not in json.dumps(run.task)
    place = Workspace.open(folder)
    tables = place.lake().catalog.tables()
    rows = sum(len(query(place.lake(), f'select 1 from web."{table.name}"')) for table in tables)
    assert rows == 2000
    assert eventlake(folder, "replay", "web", "--all").returncode == 0, server.place.log()
    assert verify(place, place.connections.get("web"), InProcess()) == []
    assert not list(place.lake().storage.files("segment-stage"))


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_lake_on_azure_whose_nodes_act_in_their_own_identity(
    server: Server, account: AzureServer, entra: Directory, package: Path, tmp_path: Path
) -> None:
    """All of it as one has it there: tokens of Entra for storage and workspace, and no secret on its way."""
    settings = settings_of_principal(account, new_bucket(account), entra) + runner_settings(server)
    folder = filled(server, package, tmp_path, settings)
    denied = eventlake(folder, "sync")
    assert denied.returncode
    assert "nothing was published" in denied.stderr, "nobody told the nodes who they are"
    server.place.environment |= identity(entra)
    done = eventlake(folder, "sync", "--json")
    assert done.returncode == 0, done.stderr + server.place.log()
    assert json.loads(done.stdout.splitlines()[0])["books"]["loaded"] == 2000
    assert ENTRA_SECRET not in json.dumps([run.task for run in server.place.runs.values()]) + done.stdout + done.stderr
    place = Workspace.open(folder)
    assert verify(place, place.connections.get("web"), InProcess()) == []
    lake = place.lake()
    assert lake.settings.schema_files
    assert {file.path.rpartition("/")[2] for file in lake.storage.files(lake.settings.schema_files)} == {
        f"{table.table_key}.json" for table in lake.catalog.tables()
    }


@pytest.mark.long
@pytest.mark.timeout(300)
def test_the_doctor_tries_every_step_of_a_run(server: Server, folder: Path) -> None:
    def steps() -> dict[str, dict[str, Any]]:
        done = eventlake(folder, "doctor", "--json")
        return {step["step"]: step for step in json.loads(done.stdout) if step["step"].startswith("databricks")}

    assert {name: step["status"] for name, step in steps().items()} == {
        "databricks: sign in": "passed",
        "databricks: cluster": "passed",
        "databricks: upload package": "passed",
        "databricks: submit job": "passed",
    }, server.place.log()
    server.place.denied.add("/api/2.2/jobs/runs/submit")
    server.place.clusters.clear()
    told = steps()
    assert told["databricks: submit job"]["code"] == "insufficient_permissions.submit_job"
    assert told["databricks: cluster"]["code"] == "invalid_settings"


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("how", ["cancelled", "cluster"])
def test_a_run_that_ends_before_its_time_publishes_nothing(server: Server, folder: Path, how: str) -> None:
    server.place.is_lazy = True
    heed = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
    words = [sys.executable, "-c", heed, PROGRAM, "-C", str(folder), "sync"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as sync:
        wait_until(lambda: server.place.runs, "the run is taken")
        (run,) = server.place.runs.values()
        if how == "cancelled":
            sync.send_signal(signal.SIGINT)
        else:
            run.end("CLUSTER_ERROR", "Cluster was terminated during the run (cluster state message: Inactivity)")
        _, told = sync.communicate(timeout=100)
    if how == "cancelled":
        assert (sync.returncode, run.code) == (130, "USER_CANCELED"), told
    else:
        assert "cluster_terminated" in json.dumps(Workspace.open(folder).runs.latest(1)[0].report), told
        assert "Inactivity" in told
    server.place.is_lazy = False
    done = eventlake(folder, "sync", "--json")
    assert done.returncode == 0, done.stderr + server.place.log()
    assert json.loads(done.stdout.splitlines()[0])["books"]["loaded"] == 2000


# What Databricks may answer


def job(new_cluster: dict[str, Any] | None = None) -> Job:
    package = Package(f"{VOLUME}/a.tar.gz", f"{VOLUME}/a.py", "0123", is_new=False)
    return Job(package, None if new_cluster else CLUSTER, new_cluster, lambda session: f"told of {session}")


def launched(server: Server, **options: Any) -> DatabricksRun:
    return DatabricksRun(Databricks(DatabricksOptions(server.url, patience=1, **options)), job())


@pytest.fixture
def run(server: Server) -> DatabricksRun:
    server.place.is_lazy = True
    return launched(server, token=SecretStr(TOKEN))


def test_what_is_submitted_says_where_and_what(server: Server, run: DatabricksRun) -> None:
    assert run.status().state is State.FAILED, "nothing was started"
    told = run.start("segment-stage/1")
    assert told == f"run 1000 to {CLUSTER}, see {server.url}/jobs/runs/1000"
    (made,) = server.place.runs.values()
    assert made.task["spark_python_task"] == {
        "python_file": f"{VOLUME}/a.py",
        "parameters": ["0123", "told of segment-stage/1", f"{VOLUME}/a.tar.gz"],
    }
    assert (run.status().state, run.status().detail) == (State.WAITING, "run 1000 is pending")
    made.state = "RUNNING"
    assert run.status().state is State.RUNNING
    run.stop()
    assert made.code == "USER_CANCELED"
    run.stop()
    made.code = "SUCCESS"
    assert run.status().state is State.ENDED


def test_a_cluster_for_the_run_is_asked_for_as_the_settings_say(server: Server) -> None:
    server.place.is_lazy = True
    spec = {"spark_version": "16.4.x-scala2.12", "autoscale": {"min_workers": 2, "max_workers": 8}}
    workspace = Databricks(DatabricksOptions(server.url, token=SecretStr(TOKEN)))
    assert "a cluster that is made for it" in DatabricksRun(workspace, job(spec)).start("s")
    (made,) = server.place.runs.values()
    assert made.task["new_cluster"] == spec
    assert "existing_cluster_id" not in made.task


@pytest.mark.parametrize(
    ("code", "message", "kind"),
    [
        ("CLUSTER_ERROR", "it was terminated", errors.ClusterLostError),
        ("CLOUD_FAILURE", "AZURE_QUOTA_EXCEEDED_EXCEPTION: no more cores", errors.QuotaExceededError),
        ("WORKSPACE_RUN_LIMIT_EXCEEDED", "", errors.QuotaExceededError),
        ("UNAUTHORIZED_ERROR", "no access to the volume", errors.SubmitDeniedError),
        ("INVALID_CLUSTER_REQUEST", "no such node type", errors.InvalidSettingsError),
        ("RUN_EXECUTION_ERROR", "exit code 1", type(None)),
    ],
)
def test_a_run_that_failed_tells_what_that_means(
    server: Server, run: DatabricksRun, code: str, message: str, kind: type[Any]
) -> None:
    run.start("s")
    server.place.runs[1000].end(code, message)
    status = run.status()
    assert (status.state, type(status.problem)) == (State.FAILED, kind)
    assert f"{code} {message}".strip() in status.detail
    assert status.logs.endswith("/jobs/runs/1000")


@dataclasses.dataclass
class Refused:
    """Something that Databricks does not let happen, and what comes of it."""

    code: str
    words: str
    denied: str = ""
    refusal: tuple[int, str, str] | None = None
    unknown_cluster: bool = False

    def happens(self, place: Place) -> None:
        place.denied |= {self.denied} if self.denied else set()
        place.refusals += [self.refusal] * 9 if self.refusal else []  # it is asked again
        if self.unknown_cluster:
            place.clusters.clear()


@pytest.mark.parametrize(
    "refused",
    [
        Refused("insufficient_permissions.submit_job", "may not submit to cluster", denied="/api/2.2/jobs/runs/submit"),
        Refused("invalid_settings", f"Cluster {CLUSTER} does not exist", unknown_cluster=True),
        Refused("quota_exceeded", "quota", refusal=(429, "RESOURCE_EXHAUSTED", "the quota of jobs is used up")),
        Refused("service_unavailable", "broken", refusal=(500, "INTERNAL_ERROR", "something is broken there")),
    ],
    ids=lambda refused: refused.code,
)
def test_each_refusal_has_a_code_and_a_fix_of_its_own(server: Server, run: DatabricksRun, refused: Refused) -> None:
    refused.happens(server.place)
    with pytest.raises(EventLakeError, match=refused.words) as caught:
        run.start("s")
    assert caught.value.code == refused.code
    assert caught.value.fix
    assert TOKEN not in f"{caught.value} {caught.value.fix}"


def test_a_run_whose_state_cannot_be_seen_is_told_and_cancelled_nevertheless(
    server: Server, run: DatabricksRun
) -> None:
    server.place.denied.add("/api/2.2/jobs/runs/get")
    assert run.start("s") == f"run 1000 to {CLUSTER}"
    with pytest.raises(errors.JobStatusDeniedError, match="may not look at run 1000"):
        run.status()
    run.stop()
    assert server.place.runs[1000].code == "USER_CANCELED"


def test_what_a_volume_has_lost_is_put_there_again(server: Server, package: Path, tmp_path: Path) -> None:
    shelf = Volume(Databricks(DatabricksOptions(server.url, token=SecretStr(TOKEN))), VOLUME)
    with pytest.raises(FileNotFoundError):
        shelf.read("nothing", 1)
    records = Path(shutil.copytree(package / "records", tmp_path / "records"))
    made = provide(shelf, Target(VERSION), records)  # it was made for another volume; this one is empty
    assert made.is_new
    there = {server.place.local(path) for path in (made.tarball, made.entry)}
    assert all(path.is_file() for path in there)
    assert not provide(shelf, Target(VERSION), records).is_new


def test_a_volume_that_may_not_be_written_to_is_told(server: Server) -> None:
    server.place.denied.add("/api/2.0/fs/files")
    shelf = Volume(Databricks(DatabricksOptions(server.url, token=SecretStr(TOKEN))), VOLUME)
    with (
        pytest.raises(errors.StagingDeniedError, match=f"may not write {VOLUME}/a"),
        (Path(__file__)).open("rb") as file,
    ):
        shelf.upload("a", file)


# Who acts


def who(server: Server, **options: Any) -> str:
    return Databricks(DatabricksOptions(server.url, **options)).cluster(CLUSTER)


def test_a_service_principal_signs_in_with_its_secret(server: Server) -> None:
    assert who(server, client_id=CLIENT, client_secret=SecretStr(SECRET)) == "RUNNING"
    assert "POST /oidc/v1/token" in server.place.asked


@pytest.mark.parametrize(
    "options",
    [{"client_id": CLIENT, "client_secret": SecretStr("wrong-one")}, {"token": SecretStr("wrong-one")}],
    ids=["secret", "token"],
)
def test_a_wrong_secret_has_its_own_code_and_is_not_told(server: Server, options: dict[str, Any]) -> None:
    with pytest.raises(errors.SignInDeniedError) as caught:
        who(server, **options)
    assert caught.value.code == "insufficient_permissions.sign_in"
    assert "client_secret" in caught.value.fix
    assert "wrong-one" not in f"{caught.value} {caught.value.fix}"


def test_a_secret_that_was_changed_in_its_vault_is_taken_without_a_restart(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = certificate(tmp_path)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(shown.authority))
    for name, value in (("TENANT_ID", TENANT), ("CLIENT_ID", CLIENT), ("CLIENT_SECRET", ENTRA_SECRET)):
        monkeypatch.setenv(f"AZURE_{name}", value)
    with directory(shown) as entra:
        monkeypatch.setenv("AZURE_AUTHORITY_HOST", entra.url)
        monkeypatch.setenv(vault.URL_VARIABLE, entra.url)
        vault.forget()
        entra.secrets["databricks"] = "of-yesterday"
        workspace = Databricks(DatabricksOptions(server.url, token=SecretStr("keyvault://acme/databricks")))
        with pytest.raises(errors.SignInDeniedError):
            workspace.cluster(CLUSTER)
        entra.secrets["databricks"] = TOKEN
        assert workspace.cluster(CLUSTER) == "RUNNING"


def test_what_goes_wrong_here_is_not_blamed_on_who_acts(server: Server) -> None:
    workspace = Databricks(DatabricksOptions(server.url, token=SecretStr(TOKEN)))
    with pytest.raises(ValueError, match="of our own"), workspace.asking("look", errors.JobStatusDeniedError):
        raise ValueError("of our own")


def test_a_service_principal_of_entra_is_believed(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = certificate(tmp_path)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(shown.authority))
    with directory(shown) as entra:
        azure = AzureOptions(tenant_id=TENANT, authority=entra.url)
        assert who(server, client_id=CLIENT, client_secret=SecretStr(ENTRA_SECRET), azure=azure) == "RUNNING"
        with pytest.raises(errors.PermissionMissingError, match="AADSTS7000215"):
            who(server, client_id=CLIENT, client_secret=SecretStr("wrong"), azure=azure)


def test_what_the_environment_says_of_databricks_decides_nothing(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABRICKS_TOKEN", "of-somebody-else")
    monkeypatch.setenv("DATABRICKS_CLIENT_ID", "of-somebody-else")
    assert who(server, token=SecretStr(TOKEN)) == "RUNNING"


def test_a_workspace_that_is_not_there_is_told() -> None:
    with pytest.raises(errors.TransientError, match="could not look at cluster"):
        Databricks(DatabricksOptions("http://127.0.0.1:9", token=SecretStr(TOKEN), patience=1)).cluster(CLUSTER)


# Settings

RUNNER = {
    "kind": "databricks",
    "host": "adb-1234567890123456.7.azuredatabricks.net",
    "cluster_id": CLUSTER,
    "volume": VOLUME,
    "token": "s3cr3t",
}
PRINCIPAL = {"token": None, "client_id": CLIENT}


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"host": "http://adb-1234567890123456.7.azuredatabricks.net"}, "runner.host: not the host of a workspace"),
        ({"host": "my workspace"}, "runner.host: not the host of a workspace"),
        ({"cluster_id": "my cluster"}, "runner.cluster_id: must be the id of a cluster, such as"),
        ({"cluster_id": None}, "runner: give either cluster_id"),
        ({"job_cluster": {}}, "runner: give either cluster_id"),
        ({"volume": "/tmp/x"}, "runner.volume: must be a folder of a volume, such as"),
        ({"client_id": CLIENT}, "runner: token and a service principal are different ways in"),
        (PRINCIPAL | {"tenant_id": TENANT}, "runner: a service principal needs client_id and client_secret"),
        (PRINCIPAL | {"client_secret": "keyvault://x"}, "runner.client_secret: not keyvault://vault/name"),
        (
            {"cluster_id": None, "job_cluster": {"min_workers": 3, "max_workers": 2}},
            "runner.job_cluster: max_workers is less than min_workers",
        ),
        ({"clster_id": "x"}, "runner.clster_id: there is no such setting; perhaps cluster_id"),
    ],
)
def test_settings_that_cannot_be_right_are_named(changed: dict[str, Any], problem: str) -> None:
    given = {key: value for key, value in (RUNNER | changed).items() if value is not None}
    settings = {"workspace_id": "x", "lake": {"root": "s3://some-bucket/lake"}, "runner": given}
    with pytest.raises(errors.ConfigurationError) as caught:
        open_lake(settings=settings)
    assert caught.value.problem.startswith(f"settings: {problem}")
    assert "s3cr3t" not in str(caught.value)


def test_a_folder_of_this_machine_is_not_for_databricks() -> None:
    with pytest.raises(errors.ConfigurationError, match="needs a lake that its nodes reach"):
        open_lake(settings={"workspace_id": "x", "runner": RUNNER})


def test_the_host_may_be_written_as_segment_writes_it() -> None:
    given = {key: value for key, value in RUNNER.items() if key != "kind"}
    assert DatabricksRunnerSettings.model_validate(given).host == "https://adb-1234567890123456.7.azuredatabricks.net"
    assert "s3cr3t" not in repr(DatabricksRunnerSettings.model_validate(given))
