"""What the lake asks of every store: on a disk, on a real S3 server, and on Azure's emulator."""

import errno
import hashlib
import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pytest
from pydantic import SecretStr

from conftest import InProcess, Lake, SetClock, new_bucket, settings_for, track
from crash_job import killed_at
from eventlake.audit.repair import repair
from eventlake.audit.verify import verify
from eventlake.azure.identity import AzureOptions
from eventlake.errors import InvalidSettingsError, PermissionMissingError, TransientError
from eventlake.query import query
from eventlake.runners.spark import SparkRunner
from eventlake.storage.adls import AzureStorage
from eventlake.storage.base import MOST_BYTES_UNDER_WAY, Part, Storage
from eventlake.storage.local import LocalStorage
from eventlake.storage.objects import ObjectStorage
from eventlake.storage.s3 import S3Options, S3Storage
from eventlake.sync import jobs
from servers import AzureServer, S3Server, free_ports
from stand_in_gcs import Google
from stand_in_gcs import gcs as gcs  # noqa: PLC0414 - a fixture
from test_crash import filled, state


@pytest.fixture(
    params=["local", *(kind + more for kind in ("s3", "azure", "gcs") for more in ("", " without a prefix"))]
)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "local":
        return LocalStorage(str(tmp_path / "lake"))
    server = request.getfixturevalue(request.param.partition(" ")[0])
    return stored_in(server, "" if "without" in request.param else "/some/prefix")


def stored_in(server: S3Server | AzureServer | Google, prefix: str) -> ObjectStorage:
    if isinstance(server, Google):
        return server.storage(prefix)
    name = new_bucket(server)
    if isinstance(server, AzureServer):
        key = SecretStr(server.key)
        return AzureStorage(server.root(name) + prefix, AzureOptions(server.endpoint, account_key=key))
    return S3Storage(f"s3://{name}{prefix}", S3Options(server.endpoint, path_style=True))


def test_what_is_written_is_read_and_listed(storage: Storage) -> None:
    storage.write("a/b/one", b"1")
    storage.write("a/b/one", b"11")
    storage.write("a/two words & ü=%20", b"222")
    storage.write("ab/other", b"")
    assert storage.read("a/b/one") == b"11"
    assert [storage.read("a/two words & ü=%20", limit) for limit in (0, 2, 3, 4)] == [b"", b"22", b"222", b"222"]
    assert [(file.path, file.size) for file in storage.files("a")] == [("a/b/one", 2), ("a/two words & ü=%20", 3)]
    assert list(storage.files("nothing")) == []
    assert storage.folders("a") == ["b"]
    assert storage.folders("nothing") == []
    found = storage.stat("a/b/one")
    assert found
    assert found in list(storage.files("a"))
    assert storage.stat("a/b") is None
    assert storage.stat("a/nothing") is None


def test_another_content_has_another_etag(storage: Storage) -> None:
    storage.write("one", b"1")
    before = storage.stat("one")
    storage.write("one", b"2")
    after = storage.stat("one")
    assert before
    assert after
    assert before.etag != after.etag


def test_a_file_is_there_when_it_is_closed_and_can_be_read_anywhere(storage: Storage) -> None:
    content = bytes(range(256)) * 80_000  # more than one range
    with storage.open_output("folder/large") as sink:
        for start in range(0, len(content), 1_000_000):
            sink.write(content[start : start + 1_000_000])
        assert sink.tell() == len(content)
    with storage.open_input("folder/large") as source:
        assert source.size() == len(content)
        source.seek(10_000_001)
        assert source.read(5) == content[10_000_001:10_000_006]
        assert source.read_at(3, 20) == content[20:23]
    with storage.open_stream("folder/large") as stream:
        assert stream.read() == content
    assert storage.digest("folder/large") == hashlib.blake2b(content, digest_size=16).hexdigest()
    assert storage.digest("folder/nothing") is None


@pytest.mark.parametrize("way", ["read", "open_stream", "open_input"])
def test_a_file_that_is_not_there_is_said_to_be(storage: Storage, way: str) -> None:
    with pytest.raises(FileNotFoundError):
        getattr(storage, way)("nothing")


def test_an_empty_file_is_a_file(storage: Storage) -> None:
    with storage.open_output("empty"):
        pass
    with storage.open_input("empty") as source:
        assert source.read() == b""
    found = storage.stat("empty")
    assert found
    assert found.size == 0


def test_a_move_may_be_repeated_and_replaces_what_is_there(storage: Storage) -> None:
    storage.write("from", b"new")
    storage.write("to/here", b"old")
    for _ in range(2):
        storage.move("from", "to/here")
        assert storage.read("to/here") == b"new"
        assert storage.stat("from") is None
    with pytest.raises(FileNotFoundError):
        storage.move("nothing", "nowhere")


def test_a_move_of_which_half_was_done_is_finished_by_the_next(storage: Storage) -> None:
    """A store without atomic rename copies and then deletes: a crash may come in between."""
    storage.write("from", b"content")
    storage.write("to", b"content")
    storage.move("from", "to")
    assert storage.read("to") == b"content"
    assert storage.stat("from") is None


def test_many_files_are_moved(storage: Storage) -> None:
    moves = [(f"from/{n}", f"to/{n}") for n in range(40)]
    for source, _ in moves:
        storage.write(source, source.encode())
    storage.move_all(moves)
    assert {file.path: storage.read(file.path) for file in storage.files("to")} == {t: s.encode() for s, t in moves}
    storage.move_all(moves)
    assert not list(storage.files("from"))


def test_files_that_are_put_are_all_there_at_the_end(storage: Storage) -> None:
    contents = {f"put/{n % 3}/{n}": bytes([n]) * n * 1000 for n in range(40)}
    with storage.putting() as put:
        for path, content in contents.items():
            put(path, pa.py_buffer(content))
    assert {file.path: storage.read(file.path) for file in storage.files("put")} == contents
    storage.put("put/0/0", b"another")
    assert storage.read("put/0/0") == b"another"


def test_more_may_be_put_than_is_held_at_once(storage: Storage) -> None:
    large = bytes(MOST_BYTES_UNDER_WAY // 2 + 1)
    with storage.putting() as put:
        for number in range(4):
            put(f"put/{number}", large)
    assert [file.size for file in storage.files("put")] == [len(large)] * 4


def test_a_file_that_cannot_be_put_is_told(s3: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = S3Storage(f"s3://{bucket}", S3Options(s3.endpoint, path_style=True))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(PermissionMissingError, match="may not write"), storage.putting() as put:
        put("a", b"1")
    with pytest.raises(ZeroDivisionError), storage.putting() as put:
        1 / 0  # noqa: B018 # it is the error that is wanted


def test_parts_of_files_are_read_together(storage: Storage) -> None:
    contents = {name: bytes(range(256)) * 40 * (place + 1) for place, name in enumerate("abc")}
    for name, content in contents.items():
        storage.write(name, content)
    places = [
        ("a", 0, 10),
        ("b", 5000, 7),
        ("a", 10, 1),
        ("a", 5, 20),
        ("c", 30_000, 720),
        ("b", 0, 20_480),
        ("a", 9, 0),
    ]
    parts = [Part(*place) for place in places if place[2]]
    found = storage.read_parts(parts)
    assert [content.to_pybytes() for content in found] == [
        contents[part.path][part.start : part.start + part.size] for part in parts
    ]
    assert storage.read_parts([]) == []
    with pytest.raises(FileNotFoundError):
        storage.read_parts([Part("a", 0, 1), Part("nothing", 0, 1)])


def test_empty_objects_that_stand_for_folders_are_no_files(s3: S3Server, bucket: str) -> None:
    """Some tools, and the console of AWS, make them."""
    storage = S3Storage(f"s3://{bucket}/lake", S3Options(s3.endpoint, path_style=True))
    client = boto3.client("s3", endpoint_url=s3.endpoint)
    for key in ("lake/raw/", "lake/raw/day/"):
        client.put_object(Bucket=bucket, Key=key, Body=b"")
    for path in ("raw/day/one", "raw/day/two", "raw/empty", "raw/last"):
        storage.write(path, b"" if path == "raw/empty" else b"x")
    assert [file.path for file in storage.files("raw")] == ["raw/day/one", "raw/day/two", "raw/empty", "raw/last"]


def test_one_of_many_creates_a_file(storage: Storage) -> None:
    won: list[int] = []

    def create(number: int) -> None:
        if storage.create("only/one", f"content {number}".encode()):
            won.append(number)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert storage.read("only/one") == f"content {won[0]}".encode()
    assert storage.create("only/one", f"content {won[0]}".encode())  # the same once more: an answer may get lost
    assert [file.path for file in storage.files("only")] == ["only/one"]


def test_a_disk_without_links_creates_files_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    storage = LocalStorage(str(tmp_path))
    assert storage.create("one", b"1")
    assert storage.create("one", b"1")
    assert not storage.create("one", b"2")
    assert storage.read("one") == b"1"
    assert [file.path for file in storage.files("")] == ["one"]


def test_deleting_may_be_repeated_and_leaves_neighbours_alone(storage: Storage) -> None:
    for path in ("a/1", "a/b/2", "ab/3"):
        storage.write(path, b"x")
    for _ in range(2):
        storage.delete("a/1")
        assert [file.path for file in storage.files("a")] == ["a/b/2"]
    for _ in range(2):
        storage.delete_folder("a")
        assert list(storage.files("a")) == []
    assert storage.read("ab/3") == b"x"


def test_a_storage_goes_to_other_processes(storage: Storage) -> None:
    storage.write("one", b"1")
    there = pickle.loads(pickle.dumps(storage))
    assert there.read("one") == b"1"
    assert there.timeout == storage.timeout
    assert there.full("one") == storage.full("one")


# What only a server can refuse


def test_a_user_without_rights_is_told_so(s3: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-secret")
    with pytest.raises(PermissionMissingError, match=bucket) as caught:
        S3Storage(f"s3://{bucket}", S3Options(s3.endpoint, path_style=True)).write("a", b"")
    assert "wrong-secret" not in str(caught.value)


def test_a_bucket_that_is_not_there_is_a_wrong_setting(s3: S3Server) -> None:
    with pytest.raises(InvalidSettingsError, match="there is no bucket no-such-bucket"):
        list(S3Storage("s3://no-such-bucket/x", S3Options(s3.endpoint, path_style=True)).files("a"))


@pytest.mark.parametrize(("root", "endpoint"), [("s3://Not A Bucket/x", None), ("s3://bucket/x", "localhost:9000")])
def test_what_cannot_be_an_address_is_a_wrong_setting(s3: S3Server, root: str, endpoint: str | None) -> None:
    with pytest.raises(InvalidSettingsError):
        S3Storage(root, S3Options(endpoint or s3.endpoint, path_style=True)).read("a")


@pytest.fixture(params=["s3", "azure", "gcs"])
def far(request: pytest.FixtureRequest) -> ObjectStorage:
    """A storage in an object store."""
    return stored_in(request.getfixturevalue(request.param), "/lake")


def test_more_files_than_fit_on_a_page_are_listed_and_deleted(far: ObjectStorage) -> None:
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda n: far.write(f"many/{n:05}", b""), range(1100)))
    assert [file.path for file in far.files("many")] == [f"many/{n:05}" for n in range(1100)]
    far.delete_folder("many")
    assert not list(far.files("many"))


def test_many_folders_are_listed_at_once_and_in_order(far: ObjectStorage) -> None:
    paths = sorted(
        [f"raw/src/{day}/{hour}/{n}" for day in range(7) for hour in range(5) for n in range(32)]
        + ["raw/src/first", "raw/src/3-between", "raw/src/3/between", "raw/zz/last"]
    )
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda path: far.write(path, b""), paths))
    assert len(paths) > 1000  # more than a page
    assert [file.path for file in far.files("raw")] == paths


def test_a_server_that_does_not_answer_is_worth_another_attempt(far: ObjectStorage) -> None:
    (port,) = free_ports(1)
    away = type(far)(far.root, far.options._replace(endpoint=f"http://127.0.0.1:{port}/x"), timeout=20)
    with pytest.raises(TransientError):
        away.write("a", b"")


# A whole lake in a bucket


@pytest.mark.long
def test_a_lake_in_a_bucket_is_the_same_lake(s3: S3Server, bucket: str, tmp_path: Path, spark: SparkRunner) -> None:
    lines: list[Any] = [track("A", "m1", properties={"price": 1}), track("A", "m1"), track("B", "m2"), b"broken"]
    here = Lake(tmp_path / "here", spark, clock=SetClock())
    there = Lake(tmp_path / "there", spark, clock=SetClock(), settings=settings_for(s3, bucket))
    for lake in (here, there):
        lake.sync_of(*lines)
        lake.sync_of(track("A", "m3", properties={"price": 2.5}), track("A", "m1"))
    assert state(there) == state(here)
    assert verify(there.workspace, there.connection, spark) == []

    (file, *_) = [file for file in there.place.ledger.data_files("src1") if file.table_key == "track_b"]
    there.place.storage.delete(file.path)
    found = verify(there.workspace, there.connection, spark)
    assert "data_file_gone" in {finding.kind for finding in found}
    repair(there.workspace, there.connection, found, spark)
    assert verify(there.workspace, there.connection, spark) == []
    assert state(there)[0] == state(here)[0]  # type: ignore[index]
    told = query(there.place, "select count(*) as n from __segment_datalake.sync_reports where type = 'source'")
    assert told.to_pylist() == [{"n": 3}]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.long, id="all"), pytest.param(9, id="every ninth")])
def test_killed_while_it_writes_to_a_bucket_the_next_sync_ends_in_the_same_state(
    s3: S3Server, bucket: str, tmp_path: Path, step: int
) -> None:
    def ready(name: str) -> Lake:
        return filled(tmp_path / name, settings_for(s3, bucket).replace("/lake", f"/{name}"))

    lake = ready("undisturbed")
    changes = killed_at(lake.workspace.folder, "sync", -1).changes
    expected = state(lake)
    for point in range(0, changes, step):
        lake = ready(str(point))
        killed_at(lake.workspace.folder, "sync", point)
        lake.sync()
        assert state(lake) == expected, f"killed before change {point}"
        assert verify(lake.workspace, lake.connection, InProcess()) == [], f"killed before change {point}"
        assert not list(lake.place.storage.files("segment-stage"))


def test_a_replay_from_a_bucket_changes_nothing(s3: S3Server, bucket: str, tmp_path: Path) -> None:
    lake = filled(tmp_path / "workspace", settings_for(s3, bucket))
    lake.sync()
    before = lake.rows("track_a"), lake.rows("track_b")
    lake.run(jobs.replay(lake.connection, None, None))
    assert (lake.rows("track_a"), lake.rows("track_b")) == before
    client = boto3.client("s3", endpoint_url=s3.endpoint)
    kept = {item["Key"].split("/")[1] for item in client.list_objects_v2(Bucket=bucket)["Contents"]}
    assert kept == {"segment-data", "segment-logs"}
