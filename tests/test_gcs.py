"""A lake on Google Cloud Storage: who is let in, what is refused, and a whole lake."""

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

from conftest import InProcess, Lake, SetClock, track
from eventlake import errors
from eventlake.audit.verify import verify
from eventlake.cli.main import app
from eventlake.errors import ConfigurationError, EventLakeError, InvalidSettingsError, PermissionMissingError
from eventlake.query import query
from eventlake.runners.node_storage import node_storage
from eventlake.storage.gcs import GcsOptions, GcsStorage
from eventlake.sync import jobs
from eventlake.workspace import CONFIG, Workspace
from stand_in_gcs import BUCKET, Google, Objects
from stand_in_gcs import gcs as gcs  # noqa: PLC0414 - a fixture
from test_storage import stored_in


def test_a_service_account_is_let_in_by_its_key_or_by_the_file_of_it(
    gcs: Google, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored_in(gcs, "/lake").write("a", b"1")
    file = tmp_path / "key.json"
    file.write_text(gcs.place.service_account)
    by_file = GcsStorage(f"gs://{BUCKET}/lake", GcsOptions(gcs.endpoint, str(file)))
    assert pickle.loads(pickle.dumps(by_file)).read("a") == b"1"
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))  # as Google's own tools find it
    assert GcsStorage(f"gs://{BUCKET}/lake", GcsOptions(gcs.endpoint)).read("a") == b"1"


def test_nodes_are_told_of_a_bucket_without_its_key(
    gcs: Google, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = stored_in(gcs, "/lake")
    storage.write("a", b"1")
    assert "PRIVATE KEY" not in repr(node_storage(storage)) + repr(storage.options) + repr(storage)
    (tmp_path / "key.json").write_text(gcs.place.service_account)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "key.json"))
    assert node_storage(storage).storage().read("a") == b"1"


def test_a_wrong_key_is_told_and_not_shown(gcs: Google) -> None:
    another = Objects().service_account
    storage = GcsStorage(f"gs://{BUCKET}", GcsOptions(gcs.endpoint, service_account_key=SecretStr(another)))
    with pytest.raises(PermissionMissingError, match="does not believe who this is") as caught:
        storage.read("a")
    assert "gcs.service_account_key" in caught.value.fix
    assert json.loads(another)["private_key"] not in str(caught.value)


def test_a_machine_that_gets_no_token_at_the_moment_is_no_missing_right(
    gcs: Google, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("GCE_METADATA_HOST", "GCE_METADATA_IP"):
        monkeypatch.setenv(variable, gcs.endpoint.removeprefix("http://"))
    with pytest.raises(errors.TransientError, match="503"):
        GcsStorage(f"gs://{BUCKET}", GcsOptions(gcs.endpoint), timeout=60).read("a")


@pytest.mark.parametrize(
    "options", [{"service_account_key": SecretStr("s3cr3t")}, {"service_account_path": "/no/file"}]
)
def test_what_is_no_key_is_a_wrong_setting(gcs: Google, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettingsError, match="the key of the service account cannot be read") as caught:
        GcsStorage(f"gs://{BUCKET}", GcsOptions(gcs.endpoint, **options)).read("a")
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize(
    ("method", "call", "error", "right"),
    [
        ("PUT", lambda s: s.write("new", b"1"), errors.UploadDeniedError, "storage.objects.create"),
        ("PUT", lambda s: s.move("there", "new"), errors.UploadDeniedError, "storage.objects.get"),
        ("GET", lambda s: s.read("there"), errors.DownloadDeniedError, "storage.objects.get"),
        ("GET", lambda s: list(s.files("")), errors.ListDeniedError, "storage.objects.list"),
        ("DELETE", lambda s: s.delete("there"), errors.DeleteDeniedError, "storage.objects.delete"),
    ],
)
def test_a_right_that_is_missing_is_named(
    gcs: Google, method: str, call: Any, error: type[EventLakeError], right: str
) -> None:
    storage = stored_in(gcs, "/lake")
    storage.write("there", b"1")
    gcs.place.denied.add(method)
    with pytest.raises(error, match="AccessDenied") as caught:
        call(storage)
    assert f"grant {right}" in caught.value.fix


def test_a_bucket_that_is_not_there_is_a_wrong_setting(gcs: Google) -> None:
    key = SecretStr(gcs.place.service_account)
    with pytest.raises(InvalidSettingsError, match="there is no bucket another"):
        list(GcsStorage("gs://another/x", GcsOptions(gcs.endpoint, service_account_key=key)).files("a"))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ('[lake]\nroot = "gs://Acme/lake"', "with a bucket name that is allowed there"),
        (
            '[lake]\nroot = "gs://acme/lake"\n[gcs]\nservice_account_path = "key.json"',
            "must be the whole path of a file",
        ),
        (
            '[lake]\nroot = "gs://acme/lake"\n[gcs]\nservice_account_path = "/k"\nservice_account_key = "s3cr3t"',
            "are different ways in",
        ),
        ('[lake]\nroot = "gs://acme/lake"\n[catalog]\nkind = "glue"', "needs a lake in a bucket: root = s3://"),
    ],
)
def test_settings_that_cannot_be_right_are_named(tmp_path: Path, settings: str, told: str) -> None:
    (tmp_path / CONFIG).write_text(f'workspace_id = "w"\n{settings}\n')
    with pytest.raises(ConfigurationError) as caught:
        Workspace.open(tmp_path).lake()
    assert told in caught.value.problem
    assert "s3cr3t" not in str(caught.value)


def test_a_lake_on_google_cloud_is_the_same_lake(gcs: Google, tmp_path: Path) -> None:
    here = Lake(tmp_path / "here", InProcess(), clock=SetClock(), settings='[lake]\nroot = "lake"\n')
    there = Lake(tmp_path / "there", InProcess(), clock=SetClock(), settings=gcs.settings)
    for lake in (here, there):
        lake.sync_of(track("A", "m1", properties={"price": 1}), track("A", "m1"), track("B", "m2"), b"broken")
        lake.sync_of(track("A", "m3", properties={"price": 2.5}), track("A", "m1"))
        lake.run(jobs.replay(lake.connection, None, None, None))
    wanted = "select message_id, properties_price from web.track_a order by 1"
    assert query(there.place, wanted).to_pylist() == query(here.place, wanted).to_pylist()
    assert [row["message_id"] for row in query(there.place, wanted).to_pylist()] == ["m1", "m3"]
    assert verify(there.workspace, there.connection, InProcess()) == []
    assert not list(there.place.storage.files("segment-stage"))

    steps = {
        one["step"]: one["status"]
        for one in json.loads(CliRunner().invoke(app, ["-C", str(there.workspace.folder), "doctor", "--json"]).stdout)
    }
    assert {steps[name] for name in steps if name.startswith("storage")} == {"passed"}
    assert "disk space" not in steps
    shown = [
        repr(there.workspace.settings),
        there.workspace.settings.model_dump_json(),
        repr(there.place.storage.__dict__),
    ]
    assert not [text for text in shown if "PRIVATE KEY" in text]
