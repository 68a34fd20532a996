"""Raw files that are read where they are: archives of others, in folders, buckets and containers."""

import gzip
import json
import shutil
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from aws import REGION, Aws, rights_checked
from conftest import InProcess, Lake, SetClock, new_bucket, settings_for, track
from eventlake.archive import annexes
from eventlake.audit.restore import restore as restore_lake
from eventlake.audit.verify import verify
from eventlake.errors import DamagedError, InvalidSettingsError, NotFoundError, PermissionMissingError
from eventlake.library.annexes import add_annex, forget_annex, notes_of
from eventlake.library.plans import events_sent
from eventlake.runners.base import no_progress
from eventlake.settings.file import CONFIG
from eventlake.sync import jobs, requests
from eventlake.sync.run import run
from eventlake.workspace import Workspace
from servers import AzureServer

NOVEMBER_15 = 1_794_700_800_000  # in milliseconds


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "place", InProcess(), clock=SetClock(), settings='[lake]\nroot = "lake"\n')


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """An archive of Segment's."""
    return tmp_path / "theirs" / "segment-logs"


def written(
    archive: Path, name: str, *events: dict[str, Any], source: str = "src1", day: str = f"{NOVEMBER_15}"
) -> Path:
    path = archive / source / day / f"{name}.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(b"\n".join(json.dumps(event).encode() for event in events)))
    return path


def ids(lake: Lake) -> list[str]:
    return [row["message_id"] for row in lake.rows("track_a")] if "track_a" in lake.tables() else []


def checked(lake: Lake) -> list[str]:
    return [finding.kind for finding in verify(lake.workspace, lake.connection, lake.runner)]


def test_raw_files_are_loaded_from_where_they_are_and_stay_there(lake: Lake, theirs: Path) -> None:
    first = written(theirs, "one", track("A", "m1"), track("A", "m2"))
    written(theirs, "others", track("A", "x"), source="src2")
    lake.put(track("A", "m2"), track("A", "m3"))
    found = add_annex(lake.workspace, "web", str(theirs), follow=False)
    assert found == (str(theirs / "src1"), 1, first.stat().st_size)
    report = lake.sync()[0]
    assert (report["books"]["loaded"], report["books"]["duplicates"], report["files_read"]) == (3, 1, 2)
    assert ids(lake) == ["m1", "m2", "m3"]
    assert set(lake.place.ledger.raw_files("src1")) == {"segment-logs/src1/1794700800000/1.gz", str(first)}
    assert checked(lake) == []
    assert lake.sync()[0]["notices"] == ["No data found"]
    again = lake.run(requests.replay(lake.place, lake.connection, None, None, None))[0]
    assert (again["rewritten"], again["carried_over"]) == (3, 0)
    assert ids(lake) == ["m1", "m2", "m3"]


def test_files_that_come_later_are_found_if_that_is_asked_for(lake: Lake, theirs: Path) -> None:
    written(theirs, "one", track("A", "m1"))
    add_annex(lake.workspace, "web", str(theirs), follow=False)
    lake.sync()
    written(theirs, "two", track("A", "m2"))
    assert "No data found" in lake.sync()[0]["notices"]
    add_annex(lake.workspace, "web", str(theirs), follow=True)
    lake.sync()
    written(theirs, "three", track("A", "m3"))
    lake.sync()
    assert ids(lake) == ["m1", "m2", "m3"]
    assert [note.files for note in notes_of(lake.workspace, "web")] == [None]
    (theirs / "src1" / f"{NOVEMBER_15}" / ".hidden").write_text("no raw file")
    assert "No data found" in lake.sync()[0]["notices"]


def test_a_place_may_be_empty_yet_if_it_is_followed(lake: Lake, theirs: Path) -> None:
    (theirs / "src1").mkdir(parents=True)
    with pytest.raises(NotFoundError, match="no raw files in"):
        add_annex(lake.workspace, "web", str(theirs), follow=False)
    assert add_annex(lake.workspace, "web", str(theirs), follow=True).files == 0
    assert "No data found" in lake.sync()[0]["notices"]


def test_naming_a_place_again_takes_what_came_and_forgets_nothing(lake: Lake, theirs: Path) -> None:
    one = written(theirs, "one", track("A", "m1"))
    add_annex(lake.workspace, "web", str(theirs), follow=False)
    kept = one.read_bytes()
    one.unlink()
    written(theirs, "two", track("A", "m2"))
    add_annex(lake.workspace, "web", str(theirs), follow=False)
    report = lake.sync()[0]
    assert report["failed_files"] == [{"file": str(one), "error": f"{one} is gone"}]
    assert ids(lake) == ["m2"]
    one.write_bytes(kept)
    assert "failed_files" not in lake.sync()[0]
    assert ids(lake) == ["m1", "m2"]


def test_rows_of_a_raw_file_that_is_gone_are_carried_over(lake: Lake, theirs: Path) -> None:
    one = written(theirs, "one", track("A", "m1"))
    written(theirs, "two", track("A", "m2"))
    add_annex(lake.workspace, "web", str(theirs), follow=False)
    lake.sync()
    one.unlink()
    report = lake.run(requests.replay(lake.place, lake.connection, None, None, None))[0]
    assert (report["rewritten"], report["carried_over"]) == (1, 1)
    assert ids(lake) == ["m1", "m2"]
    assert checked(lake) == ["raw_file_gone"]


def test_a_place_that_is_away_does_not_hold_up_the_source(lake: Lake, theirs: Path) -> None:
    written(theirs, "one", track("A", "m1"))
    add_annex(lake.workspace, "web", str(theirs), follow=True)
    shutil.move(theirs / "src1", aside := theirs / "aside")
    report = lake.sync_of(track("A", "m2"))[0]
    assert report["failed_files"] == [{"file": f"{theirs}/src1", "error": f"there is no folder {theirs}/src1"}]
    assert report["notices"] == [
        "1 place with raw files could not be looked into (failed_files); the next sync tries again"
    ]
    assert ids(lake) == ["m2"]
    shutil.move(aside, theirs / "src1")
    assert "failed_files" not in lake.sync()[0]
    assert ids(lake) == ["m1", "m2"]


def test_a_replay_waits_for_a_place_that_is_away(lake: Lake, theirs: Path) -> None:
    """It would take every row from there for one whose raw file is gone, and policies could not be carried out."""
    written(theirs, "one", track("A", "m1"))
    add_annex(lake.workspace, "web", str(theirs), follow=True)
    lake.sync()
    shutil.rmtree(theirs)
    with pytest.raises(NotFoundError, match="there is no folder"):
        lake.run(requests.replay(lake.place, lake.connection, None, None, None))
    assert ids(lake) == ["m1"]


def test_every_lake_of_the_source_reads_them(lake: Lake, theirs: Path) -> None:
    with (lake.workspace.folder / CONFIG).open("a") as file:
        file.write('[lakes.second]\nroot = "second"\n')
    place = Workspace.open(lake.workspace.folder, SetClock())
    written(theirs, "one", track("A", "m1"))
    add_annex(place, "web", str(theirs), follow=False)
    lake.sync()
    place.connections.connect("web", "second")
    report = run(place, jobs.sync(place.connections.get("web/second")), InProcess())
    assert report[0]["books"]["loaded"] == 1


def test_a_lost_database_does_not_lose_them(lake: Lake, theirs: Path) -> None:
    written(theirs, "one", track("A", "m1"))
    add_annex(lake.workspace, "web", str(theirs), follow=True)
    lake.sync()
    written(theirs, "two", track("A", "m2"))
    lake.workspace.close()
    for file in lake.workspace.folder.glob("eventlake.db*"):
        file.unlink()
    lake.workspace = Workspace.open(lake.workspace.folder, SetClock())
    restore_lake(lake.workspace, "default", no_progress)
    assert lake.sync()[0]["books"]["loaded"] == 1
    assert ids(lake) == ["m1", "m2"]


def test_a_note_that_is_damaged_is_told_with_its_file(lake: Lake, theirs: Path) -> None:
    written(theirs, "one", track("A", "m1"))
    add_annex(lake.workspace, "web", str(theirs), follow=True)
    (note,) = lake.workspace.archive.files("segment-logs/_annexes")
    whole = lake.workspace.archive.read(note.path)
    for broken in (b"", whole[:-9], gzip.compress(b"[]"), b"no gzip"):
        lake.workspace.archive.write(note.path, broken)
        with pytest.raises(DamagedError, match="does not tell which raw files") as told:
            lake.sync()
        assert note.path in told.value.problem
        assert lake.workspace.all_annexes() == []  # which other sources can do without
    lake.workspace.archive.write(note.path, whole)
    assert lake.sync()[0]["books"]["loaded"] == 1


def test_archives_of_several_sources_and_of_rudderstack(lake: Lake, tmp_path: Path) -> None:
    theirs = tmp_path / "bucket" / "rudder-logs"
    written(theirs, "one", track("A", "m1"), day="11-15-2026")
    assert add_annex(lake.workspace, "web", str(tmp_path / "bucket"), follow=False).address == str(theirs / "src1")
    assert add_annex(lake.workspace, "web", str(theirs), follow=False).address == str(theirs / "src1")
    shutil.move(theirs / "src1", theirs / "2XyZ")
    with pytest.raises(NotFoundError, match="no folder src1 in ") as told:
        add_annex(lake.workspace, "web", str(theirs), follow=False)
    assert "2XyZ" in told.value.fix
    forget_annex(lake.workspace, "web", str(theirs / "src1"))
    add_annex(lake.workspace, "web", f"{theirs}/2XyZ/", follow=False)
    lake.sync()
    assert ids(lake) == ["m1"]


def test_an_event_that_does_not_tell_when_it_was_received_is_of_the_day_of_its_folder(
    lake: Lake, tmp_path: Path
) -> None:
    event = track("A", "m1")
    del event["receivedAt"]
    for name, day in (("segment-logs", f"{NOVEMBER_15}"), ("rudder-logs", "11-15-2026")):
        written(tmp_path / name, name, event | {"messageId": name}, day=day)
        add_annex(lake.workspace, "web", str(tmp_path / name), follow=False)
    lake.sync()
    assert {(row["message_id"], row["day"]) for row in lake.rows("track_a")} == {
        ("segment-logs", "2026-11-15"),
        ("rudder-logs", "2026-11-15"),
    }


def test_what_cannot_be_read_in_place_is_refused(lake: Lake, theirs: Path, tmp_path: Path) -> None:
    lake.sync_of(track("A", "m1"))
    for own in (lake.root, lake.root / "segment-logs", lake.root / "segment-data" / "data", tmp_path):
        with pytest.raises((InvalidSettingsError, NotFoundError)):
            add_annex(lake.workspace, "web", str(own), follow=True)
    path = theirs / "src1" / "1.gz"
    path.parent.mkdir(parents=True)
    path.write_text("no JSON\n")
    with pytest.raises(InvalidSettingsError, match=r"1\.gz holds no JSON"):
        add_annex(lake.workspace, "web", str(theirs), follow=False)
    for address in ("ftp://host/x", "s3://UPPER/x", "abfss://x@y/z", "gopher://"):
        with pytest.raises(InvalidSettingsError):
            add_annex(lake.workspace, "web", address, follow=False)
    with pytest.raises(NotFoundError, match="no source"):
        add_annex(lake.workspace, "nobody", str(theirs), follow=False)
    assert notes_of(lake.workspace, "web") == []
    assert annexes.addresses(lake.workspace.archive) == []


def test_what_is_read_no_more_stays_in_the_lake(lake: Lake, theirs: Path) -> None:
    written(theirs, "one", track("A", "m1"))
    add_annex(lake.workspace, "web", str(theirs), follow=True)
    lake.sync()
    with pytest.raises(NotFoundError, match="nothing of web is read in") as told:
        forget_annex(lake.workspace, "web", "/somewhere/else")
    assert str(theirs / "src1") in told.value.fix
    forget_annex(lake.workspace, "web", str(theirs / "src1"))
    written(theirs, "two", track("A", "m2"))
    assert "No data found" in lake.sync()[0]["notices"]
    report = lake.run(requests.replay(lake.place, lake.connection, None, None, None))[0]
    assert (report["rewritten"], report["carried_over"]) == (0, 1)
    assert ids(lake) == ["m1"]


def test_plans_are_inferred_from_them_too(lake: Lake, theirs: Path) -> None:
    written(theirs, "one", track("A", "m1"))
    lake.put(track("A", "m2"))
    add_annex(lake.workspace, "web", str(theirs), follow=True)
    found = {sent.event["messageId"] for sent in events_sent(lake.workspace, "src1", None, None, 10)}
    assert found == {"m1", "m2"}


def test_in_a_bucket_of_another_account_another_role_reads(
    aws: Aws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = aws.user()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", user.key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", user.secret)
    own, bucket = (f"{name}-{uuid.uuid4().hex}" for name in ("own", "theirs"))
    for name in (own, bucket):
        aws.client("s3").create_bucket(Bucket=name)
    line = json.dumps(track("A", "m1")).encode()
    key = f"exports/segment-logs/src1/{NOVEMBER_15}/one.gz"
    aws.client("s3").put_object(Bucket=bucket, Key=key, Body=gzip.compress(line))
    ours = aws.role(without=["s3:*"], below=f"arn:aws:s3:::{bucket}*")
    reader = aws.role(only=["s3:GetObject", "s3:ListBucket"], external_id="them")
    server = f'endpoint = "{aws.endpoint}", path_style = true'
    settings = (
        f'[lake]\nroot = "s3://{own}/lake"\n[s3]\nendpoint = "{aws.endpoint}"\npath_style = true\n'
        f'[aws]\nregion = "{REGION}"\nrole_arn = "{ours}"\n'
    )
    lake = Lake(tmp_path / "place", InProcess(), clock=SetClock(), settings=settings)
    with rights_checked():
        with pytest.raises(PermissionMissingError):
            add_annex(lake.workspace, "web", f"s3://{bucket}/exports/segment-logs", follow=True)
        with (lake.workspace.folder / CONFIG).open("a") as file:
            file.write(
                f'[annexes.theirs]\nroot = "s3://{bucket}/exports"\ns3 = {{ {server} }}\n'
                f'aws = {{ region = "{REGION}", role_arn = "{reader}", external_id = "them" }}\n'
            )
        lake.workspace = Workspace.open(lake.workspace.folder, SetClock())
        add_annex(lake.workspace, "web", f"s3://{bucket}/exports/segment-logs", follow=True)
        lake.sync()
        assert ids(lake) == ["m1"]
        assert checked(lake) == []
    assert set(lake.place.ledger.raw_files("src1")) == {f"s3://{bucket}/{key}"}
    objects = aws.client("s3").list_objects_v2(Bucket=bucket)["Contents"]
    assert [one["Key"] for one in objects] == [key]  # nothing was written there


def test_in_a_container_on_azure(azure: AzureServer, tmp_path: Path) -> None:
    """The lake and its archive are there, too, and act with the same key."""
    container = new_bucket(azure)
    lake = Lake(tmp_path / "place", InProcess(), clock=SetClock(), settings=settings_for(azure, container))
    address = f"{azure.root(container)}/export"
    elsewhere = lake.workspace.storage_at(address)
    elsewhere.write(f"{NOVEMBER_15}/one.gz", gzip.compress(json.dumps(track("A", "m1")).encode()))
    add_annex(lake.workspace, "web", address, follow=True)
    lake.sync()
    assert ids(lake) == ["m1"]
    assert checked(lake) == []
    assert set(lake.place.ledger.raw_files("src1")) == {f"{address}/{NOVEMBER_15}/one.gz"}


def test_on_the_command_line(lake: Lake, theirs: Path) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "eventlake", "-C", str(lake.workspace.folder), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    path = written(theirs, "one", track("A", "m1"))
    assert "give --in-place" in run("import", "web").stderr
    assert "give --in-place" in run("import", "web", str(path), "--in-place", str(theirs)).stderr
    assert "--follow is for --in-place" in run("import", "web", str(path), "--follow").stderr
    assert "All raw files of web are in the archive." in run("source", "in-place", "web").stderr
    done = run("import", "web", "--in-place", str(theirs), "--follow")
    told = " ".join(done.stderr.split())
    assert "1 raw file (" in told
    assert told.endswith(", read in place, and syncs look for more. Next: eventlake sync"), told
    assert done.returncode == 0
    shown = run("source", "in-place", "web")
    assert "all, at every sync" in shown.stdout
    assert json.loads(run("source", "in-place", "web", "--json").stdout) == [
        {"address": str(theirs / "src1"), "follow": True}
    ]
    lake.sync()
    assert ids(lake) == ["m1"]
    assert "No more raw files of web" in run("source", "in-place", "web", "--forget", str(theirs / "src1")).stderr
    assert json.loads(run("source", "in-place", "web", "--json").stdout) == []
    noted = [(one.action, one.target) for one in lake.workspace.audit_log.latest(9)]
    assert noted == [("forget raw files in place", "web"), ("read raw files in place", "web")]
