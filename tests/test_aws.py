"""A lake on AWS: bucket, Glue, roles and their rights, and what is told when a right or a setting is missing."""

import json
import os
import pickle
import re
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar, NamedTuple
from unittest import mock

import pytest
from moto.glue.exceptions import GlueClientError
from moto.glue.responses import GlueResponse

from aws import REGION, Aws, rights_checked
from conftest import InProcess, Lake, SetClock, track
from eventlake.audit.repair import repair
from eventlake.audit.verify import verify
from eventlake.aws.session import AwsOptions
from eventlake.errors import EventLakeError, InvalidSettingsError, PermissionMissingError
from eventlake.schema.types import ColumnType
from eventlake.storage.s3 import S3Options, S3Storage
from eventlake.sync import jobs, requests
from eventlake.workspace import Workspace

EXTERNAL_ID = "workspace-1"


class OnAws(NamedTuple):
    """A workspace whose lake and catalog are on AWS; roles can be changed between syncs."""

    aws: Aws
    bucket: str
    folder: Path

    def lake(self, **settings: str) -> Lake:
        path = self.folder / uuid.uuid4().hex
        lake = Lake(path, InProcess(), clock=SetClock(), settings=self.settings(**settings))
        lake.workspace.connections.change("web", {"database": f"web_{path.name}"})
        return lake

    def settings(self, **aws: str) -> str:
        lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in aws.items())
        return (
            f'[lake]\nroot = "s3://{self.bucket}/lake"\n[s3]\nendpoint = "{self.aws.endpoint}"\npath_style = true\n'
            f'[catalog]\nkind = "glue"\n[aws]\nregion = "{REGION}"\n{lines}'
        )

    def again(self, lake: Lake, **settings: str) -> Lake:
        """The same workspace with other settings."""
        place = lake.workspace
        (place.folder / "eventlake.toml").write_text(f'workspace_id = "test"\n{self.settings(**settings)}')
        lake.workspace = Workspace.open(place.folder, place.clock)
        return lake


@pytest.fixture
def on_aws(aws: Aws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OnAws:
    user = aws.user()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", user.key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", user.secret)
    bucket = f"lake-{uuid.uuid4().hex}"
    aws.client("s3").create_bucket(Bucket=bucket)
    return OnAws(aws, bucket, tmp_path)


def test_a_sync_on_aws_shows_its_tables_in_glue(on_aws: OnAws) -> None:
    lake = on_aws.lake(role_arn=on_aws.aws.role(external_id=EXTERNAL_ID), external_id=EXTERNAL_ID)
    lake.sync_of(track("A", "m1", properties={"price": 1}), track("A", "m1"), track("B", "m2"))
    lake.sync_of(track("A", "m3", receivedAt="2026-11-15T11:00:00Z", properties={"price": 2, "name": "x"}))
    database = lake.connection.database
    glue = on_aws.aws.client("glue")
    tables = {table["Name"]: table for table in glue.get_tables(DatabaseName=database)["TableList"]}
    assert set(tables) == {"track_a", "track_b"}
    names = [column["Name"] for column in tables["track_a"]["StorageDescriptor"]["Columns"]]
    assert names[-2:] == ["properties_price", "properties_name"]
    partitions = glue.get_partitions(DatabaseName=database, TableName="track_a")["Partitions"]
    assert sorted(partition["Values"] for partition in partitions) == [["2026-11-15", "10"], ["2026-11-15", "11"]]
    client = on_aws.aws.client("s3")
    for partition in partitions:
        prefix = partition["StorageDescriptor"]["Location"].removeprefix(f"s3://{on_aws.bucket}/")
        (file,) = client.list_objects_v2(Bucket=on_aws.bucket, Prefix=f"{prefix}/")["Contents"]
        assert file["Key"].endswith(".parquet")
    reports = glue.get_partitions(DatabaseName="__segment_datalake", TableName="sync_reports")["Partitions"]
    assert ["src1", "2026-11-15"] in [partition["Values"] for partition in reports]
    report = lake.place.runs.latest(1)[0].report
    assert report
    assert report[0]["s3_bucket"] == on_aws.bucket
    assert verify(lake.workspace, lake.connection, InProcess()) == []


def test_what_is_missing_in_glue_is_found_by_verify_and_comes_back(on_aws: OnAws) -> None:
    lake = on_aws.lake()
    lake.sync_of(track("A", "m1", properties={"price": 1}), track("B", "m2"), track("C", "m3"))
    database, glue = lake.connection.database, on_aws.aws.client("glue")
    glue.delete_table(DatabaseName=database, Name="track_a")
    place = {"DatabaseName": database, "TableName": "track_b"}
    glue.batch_delete_partition(**place, PartitionsToDelete=[{"Values": ["2026-11-15", "10"]}])
    found = verify(lake.workspace, lake.connection, InProcess())
    assert [(finding.kind, finding.where, finding.detail) for finding in found] == [
        ("not_in_glue", f"{database}.track_a", "the table is missing"),
        ("not_in_glue", f"{database}.track_b", "1 partitions are missing: 2026-11-15/10, …"),
    ]
    repair(lake.workspace, lake.connection, found, InProcess())
    assert verify(lake.workspace, lake.connection, InProcess()) == []


# Rights


class Denied(NamedTuple):
    code: str
    actions: list[str]
    below: str = "*"  # of the lake
    job: Callable[[Lake], Any] = Lake.sync


def rebuild(lake: Lake) -> None:
    lake.run(jobs.rebuild(lake.workspace.connections.preview("web", {"table_prefix": "new"})))


DENIED = {
    "upload staging": Denied("upload_staging", ["s3:PutObject"], "segment-stage/*"),
    "download": Denied("download_object", ["s3:GetObject"], "segment-logs/*"),
    "upload": Denied("upload_object", ["s3:PutObject"], "segment-data/*"),
    "delete": Denied("delete_object", ["s3:DeleteObject"]),
    "list": Denied("list_bucket", ["s3:ListBucket"]),
    "fetch schema": Denied("fetch_schema", ["glue:GetTables", "glue:GetTable"]),
    "change table": Denied("change_catalog", ["glue:UpdateTable", "glue:CreateTable"]),
    "delete table": Denied("delete_table", ["glue:DeleteTable"], job=rebuild),
}


@pytest.mark.parametrize("what", DENIED)
def test_a_right_that_is_missing_is_named_and_nothing_is_lost(on_aws: OnAws, what: str) -> None:
    code, actions, below, job = DENIED[what]
    lake = on_aws.lake()
    lake.sync_of(track("A", "m1"))
    lake.put(track("A", "m2", properties={"price": 1}), track("B", "m3"))
    resource = below if below == "*" else f"arn:aws:s3:::{on_aws.bucket}/lake/{below}"
    on_aws.again(lake, role_arn=on_aws.aws.role(without=actions, below=resource))

    with rights_checked(), pytest.raises(PermissionMissingError) as caught:
        job(lake)

    assert caught.value.code == f"insufficient_permissions.{code}"
    assert actions[0].split(":")[1] in caught.value.fix
    report = lake.place.runs.latest(1)[0].report
    assert report
    assert (report[0]["status"], report[0]["error_code"]) == ("failed", caught.value.code)

    on_aws.again(lake)
    job(lake)
    lake.sync()
    names = {table.table_key: table.name for table in lake.place.catalog.tables()}
    database = lake.connection.database
    rows = {kind: lake.query(f"select message_id from {database}.{name} order by 1") for kind, name in names.items()}
    assert rows["track_a"] == [{"message_id": "m1"}, {"message_id": "m2"}]
    assert rows["track_b"] == [{"message_id": "m3"}]
    assert verify(lake.workspace, lake.connection, InProcess()) == []


# What Segment's guide lets its role do, beside all that can be done with the bucket.
SEGMENT_GLUE = """
    CreateDatabase CreateTable GetTable GetTables UpdateTable DeleteTable BatchDeleteTable GetTableVersion
    GetTableVersions DeleteTableVersion BatchDeleteTableVersion CreatePartition BatchCreatePartition GetPartition
    GetPartitions BatchGetPartition UpdatePartition DeletePartition BatchDeletePartition
"""


def test_segments_own_policy_is_enough_for_syncs_and_replays(on_aws: OnAws) -> None:
    lake = on_aws.lake()
    rights = ["s3:*", *(f"glue:{action}" for action in SEGMENT_GLUE.split())]
    on_aws.again(lake, role_arn=on_aws.aws.role(only=rights))
    with rights_checked():
        lake.sync_of(track("A", "m1", properties={"price": 1}))
        lake.sync_of(track("A", "m2", properties={"color": "red"}), track("B", "m3", receivedAt="2026-11-16T10:00:00Z"))
        lake.run(jobs.replay(lake.connection, None, None))
        assert verify(lake.workspace, lake.connection, InProcess()) == []
    database = lake.connection.database
    shown = on_aws.aws.client("glue").get_tables(DatabaseName=database)["TableList"]
    columns = {table["Name"]: {one["Name"] for one in table["StorageDescriptor"]["Columns"]} for table in shown}
    assert {"properties_price", "properties_color"} <= columns["track_a"]
    assert set(columns) == {"track_a", "track_b"}


# RudderStack's dialect


RUDDER_GLUE = ("glue:CreateDatabase", "glue:CreateTable", "glue:UpdateTable", "glue:GetTables")


def rudder_lake(on_aws: OnAws, *, role_arn: str = "", **options: str) -> Lake:
    settings = on_aws.settings(**({"role_arn": role_arn} if role_arn else {}))
    settings = settings.replace("[s3]", 'dialect = "rudderstack"\n[s3]', 1)
    path = on_aws.folder / uuid.uuid4().hex
    lake = Lake(path, InProcess(), clock=SetClock(), settings=settings)
    lake.workspace.connections.change("web", {"namespace": f"n{path.name}", **options})
    return lake


def test_four_rights_in_glue_are_enough_for_a_lake_of_rudderstacks_without_partitions(on_aws: OnAws) -> None:
    lake = rudder_lake(on_aws, role_arn=on_aws.aws.role(only=["s3:*", *RUDDER_GLUE]))
    glue, database = on_aws.aws.client("glue"), lake.connection.database
    with rights_checked():
        lake.sync_of(track("A", "m1", properties={"price": 1, "plan": "x"}))
        lake.sync_of(track("A", "m2", properties={"price": "n/a", "new": 0.5}))
        lake.run(jobs.replay(lake.connection, None, None))
    tables = {table["Name"]: table for table in glue.get_tables(DatabaseName=database)["TableList"]}
    assert set(tables) == {"a", "tracks", "rudder_discards"}
    storage = tables["a"]["StorageDescriptor"]
    types = {column["Name"]: column["Type"] for column in storage["Columns"]}
    assert (types["price"], types["plan"], types["new"]) == ("bigint", "varchar(65535)", "double")
    assert (tables["a"]["PartitionKeys"], tables["a"]["TableType"]) == ([], "EXTERNAL_TABLE")
    assert storage["Location"] == f"s3://{on_aws.bucket}/lake/rudder-datalake/{database}/a"
    assert verify(lake.workspace, lake.connection, InProcess()) == []


def test_every_key_of_a_layout_is_a_partition_in_glue(on_aws: OnAws) -> None:
    lake = rudder_lake(on_aws, time_window_layout="year=2006/month=01/day=02/hour=15")
    lake.sync_of(track("A", "m1"), track("A", "m2", receivedAt="2026-11-15T11:00:00Z"))
    glue, place = on_aws.aws.client("glue"), {"DatabaseName": lake.connection.database, "TableName": "a"}
    found = {tuple(one["Values"]): one for one in glue.get_partitions(**place)["Partitions"]}
    assert set(found) == {("2026", "11", "15", "10"), ("2026", "11", "15", "11")}
    place_of_first = found["2026", "11", "15", "10"]["StorageDescriptor"]["Location"]
    assert place_of_first.endswith("/a/year=2026/month=11/day=15/hour=10")
    assert verify(lake.workspace, lake.connection, InProcess()) == []


def test_tables_that_rudderstack_made_in_glue_are_gone_on_with_and_what_users_set_is_kept(on_aws: OnAws) -> None:
    lake = rudder_lake(on_aws)
    database, glue = lake.connection.database, on_aws.aws.client("glue")
    root = f"s3://{on_aws.bucket}/lake/rudder-datalake/{database}"
    columns = [{"Name": "id", "Type": "varchar(65535)"}, {"Name": "price", "Type": "bigint"}]
    theirs = {
        "Name": "a",
        "Parameters": {"owner": "me"},
        "StorageDescriptor": {"Columns": columns, "Location": f"{root}/a"},
    }
    glue.create_database(DatabaseInput={"Name": database})
    glue.create_table(DatabaseName=database, TableInput=theirs)
    with pytest.raises(InvalidSettingsError, match="was not made by eventlake"):
        lake.sync_of(track("A", "m1", properties={"price": 1.5}))
    lake.run(requests.adopt(lake.place, lake.connection))
    lake.sync()
    table = glue.get_table(DatabaseName=database, Name="a")["Table"]
    types = [(column["Name"], column["Type"]) for column in table["StorageDescriptor"]["Columns"]]
    assert types[:2] == [("id", "varchar(65535)"), ("price", "bigint")]
    assert ("event_text", "varchar(65535)") in types
    assert table["Parameters"]["owner"] == "me"
    assert lake.query(f"select price from {database}.a") == [{"price": 1}]


def test_one_source_fills_a_folder_and_a_bucket_each_in_its_own_dialect_with_its_own_books(on_aws: OnAws) -> None:
    """One lake that is down does not hold up the other, and catches up when it is there again."""

    def settings(endpoint: str) -> str:
        place = f'root = "s3://{on_aws.bucket}/lake"\ns3 = {{ endpoint = "{endpoint}", path_style = true }}\n'
        shown = f'dialect = "rudderstack"\ncatalog = {{ kind = "glue" }}\naws = {{ region = "{REGION}" }}\n'
        return f"[lakes.aws]\n{place}{shown}"

    lake = Lake(on_aws.folder / "place", InProcess(), clock=SetClock(), settings=settings(on_aws.aws.endpoint))
    wanted = {"namespace": f"n{uuid.uuid4().hex}", "time_window_layout": "dt=2006-01-02"}
    namespace = lake.workspace.connections.connect("web", "aws", wanted).database

    def synced(name: str, *lines: dict[str, Any]) -> dict[str, Any]:
        if lines:
            lake.put(*lines)
        books: dict[str, Any] = lake.run(jobs.sync(lake.workspace.connections.get(name)))[0]["books"]
        return books

    lake.put(track("A", "m1", properties={"n": 1}), track("A", "m1"), b"no event")
    assert [synced(name)["loaded"] for name in ("web", "web/aws")] == [1, 1]
    config = lake.workspace.folder / "eventlake.toml"
    config.write_text(config.read_text().replace(on_aws.aws.endpoint, "http://127.0.0.1:9", 1))
    lake.workspace = Workspace.open(lake.workspace.folder, lake.workspace.clock)
    with pytest.raises(EventLakeError):
        synced("web/aws")
    assert synced("web", track("B", "m2"))["loaded"] == 1
    config.write_text(config.read_text().replace("http://127.0.0.1:9", on_aws.aws.endpoint, 1))
    lake.workspace = Workspace.open(lake.workspace.folder, lake.workspace.clock)
    assert synced("web/aws")["loaded"] == 1
    shown = on_aws.aws.client("glue").get_tables(DatabaseName=namespace)["TableList"]
    assert {table["Name"] for table in shown} == {"tracks", "a", "b"}
    assert lake.tables() == ["track_a", "track_b"]
    for one in lake.workspace.connections.find("web"):
        assert verify(lake.workspace, one, lake.runner) == []


def retype(lake: Lake) -> None:
    lake.run(jobs.retype(lake.connection, "track_a", "properties_price", ColumnType.STRING))


def lay_out_anew(lake: Lake) -> None:
    lake.run(jobs.rebuild(lake.workspace.connections.preview("web", {"date_partition": "day"})))


def trim(lake: Lake) -> None:
    assert lake.place.glue.trim_versions(lake.connection.database, "track_a", keep=1) > 0


def drop(lake: Lake) -> None:
    lake.run(jobs.drop(lake.connection, "track_a"))


def check(lake: Lake) -> None:
    assert verify(lake.workspace, lake.connection, InProcess()) == []


class Feature(NamedTuple):
    """What can be done, and the rights that it needs beside those of a sync."""

    do: Callable[[Lake], Any]
    rights: frozenset[str] = frozenset()


SYNC = frozenset(
    {
        *("s3:ListBucket", "s3:GetObject", "s3:PutObject", "s3:DeleteObject"),
        *("glue:GetTables", "glue:GetTable", "glue:CreateTable", "glue:UpdateTable", "glue:BatchCreatePartition"),
    }
)
FEATURES = {
    "syncs and replays": Feature(Lake.sync),
    "`verify`": Feature(check, frozenset({"glue:GetPartitions"})),
    "`retype`": Feature(retype, frozenset({"glue:GetPartitions", "glue:BatchUpdatePartition"})),
    "replays that change the layout": Feature(
        lay_out_anew, frozenset({"glue:GetPartitions", "glue:BatchDeletePartition"})
    ),
    "replays that change names": Feature(rebuild, frozenset({"glue:DeleteTable"})),
    "`drop`": Feature(drop, frozenset({"glue:DeleteTable"})),
    "`catalog trim`": Feature(trim, frozenset({"glue:GetTableVersions", "glue:DeleteTableVersion"})),
}


@pytest.mark.long
@pytest.mark.parametrize("name", FEATURES)
def test_the_page_lists_the_rights_that_a_feature_needs_and_no_more(on_aws: OnAws, name: str) -> None:
    do, own = FEATURES[name]
    page = (Path(__file__).parent.parent / "docs" / "aws.md").read_text()
    (row,) = [line for line in page.splitlines() if line.startswith(f"| {name} |")]
    assert set(re.findall(r"`((?:s3|glue):\w+)`", row)) == (own or SYNC)

    def done(rights: frozenset[str]) -> None:
        here = on_aws._replace(bucket=f"lake-{uuid.uuid4().hex}")
        here.aws.client("s3").create_bucket(Bucket=here.bucket)
        lake = here.lake()
        lake.sync_of(track("A", "m1", properties={"price": 1}))
        lake.sync_of(track("A", "m2", properties={"color": "red"}))
        lake.put(track("A", "m3", properties={"size": 1}), track("B", "m4", receivedAt="2026-11-16T10:00:00Z"))
        here.again(lake, role_arn=here.aws.role(only=sorted(rights)))
        with rights_checked():
            do(lake)

    done(SYNC | own)
    for right in own or SYNC:
        with pytest.raises(PermissionMissingError) as caught:
            done((SYNC | own) - {right})
        assert right in caught.value.fix


# Limits of Glue


def refusing(*names: str) -> Any:
    """Glue, as it is when there is no room for tables with these names."""
    make = GlueResponse.create_table

    def made(self: Any) -> Any:
        if self.parameters["TableInput"]["Name"] in names:
            raise GlueClientError("ResourceNumberLimitExceededException", "Number of TABLE exceeds the account limit")
        return make(self)

    return mock.patch.object(GlueResponse, "create_table", made)


def test_a_limit_of_glue_keeps_new_tables_out_and_nothing_else(on_aws: OnAws) -> None:
    lake = on_aws.lake()
    lake.sync_of(track("A", "m1"))
    glue, database = on_aws.aws.client("glue"), lake.connection.database
    with refusing("track_b", "track_c"):
        for number, event in enumerate("BC"):
            head = lake.sync_of(track(event, f"n{number}"), track("A", f"a{number}"))[0]
            (notice, *more) = head["notices"]
            assert f"{database}.track_{event.lower()} is not as it should be in Glue" in " ".join(head["notices"])
            assert "exceeds the account limit" in notice
            assert len(more) == number  # tried again: the one before is still missing
            assert lake.place.runs.get(None).report[0]["notices"] == head["notices"]  # type: ignore[index]
        assert {table["Name"] for table in glue.get_tables(DatabaseName=database)["TableList"]} == {"track_a"}
        assert lake.query(f"select count(*) as n from {database}.track_a") == [{"n": 3}]
        assert lake.query(f"select message_id from {database}.track_b") == [{"message_id": "n0"}]
        found = verify(lake.workspace, lake.connection, InProcess())
        assert {finding.kind for finding in found} == {"not_in_glue"}
    assert "notices" not in lake.sync_of(track("A", "a9"))[0]
    assert {table["Name"] for table in glue.get_tables(DatabaseName=database)["TableList"]} == {
        *("track_a", "track_b", "track_c")
    }
    assert verify(lake.workspace, lake.connection, InProcess()) == []


@pytest.mark.parametrize(
    ("given", "code"), [({"external_id": "another"}, "external_id_invalid"), ({}, "external_id_not_set")]
)
def test_an_external_id_that_is_wrong_or_missing_is_told_apart(on_aws: OnAws, given: dict[str, str], code: str) -> None:
    lake = on_aws.lake()
    lake.sync_of(track("A", "m1"))
    lake.put(track("A", "m2"))
    on_aws.again(lake, role_arn=on_aws.aws.role(external_id=EXTERNAL_ID), **given)
    with pytest.raises(InvalidSettingsError) as caught:
        lake.sync()
    assert caught.value.code == f"invalid_settings.{code}"
    assert "aws.external_id" in caught.value.fix
    ended = lake.place.runs.latest(1)[0]
    assert ended.report
    assert (ended.status, ended.report[0]["error_code"]) == ("failed", caught.value.code)


def test_a_database_that_may_not_be_made_but_is_there_is_used(on_aws: OnAws) -> None:
    lake = on_aws.lake()
    lake.put(track("A", "m1"))
    glue = on_aws.aws.client("glue")
    for database in (lake.connection.database, "__segment_datalake"):
        if database not in {found["Name"] for found in glue.get_databases()["DatabaseList"]}:
            glue.create_database(DatabaseInput={"Name": database})
    on_aws.again(lake, role_arn=on_aws.aws.role(without=["glue:CreateDatabase"]))
    with rights_checked():
        lake.sync()
    assert lake.tables() == ["track_a"]


def test_a_table_that_is_partitioned_in_another_way_is_reported(on_aws: OnAws) -> None:
    lake = on_aws.lake()
    lake.sync_of(track("A", "m1"))
    database, glue = lake.connection.database, on_aws.aws.client("glue")
    table = glue.get_table(DatabaseName=database, Name="track_a")["Table"]
    right = {key: table[key] for key in ("Name", "StorageDescriptor", "PartitionKeys", "TableType", "Parameters")}
    glue.update_table(DatabaseName=database, TableInput=right | {"PartitionKeys": [{"Name": "date", "Type": "string"}]})
    lake.put(track("A", "m2"))
    with pytest.raises(InvalidSettingsError, match="partitioned by date"):
        lake.sync()
    ended = lake.place.runs.latest(1)[0]
    assert ended.report
    assert (ended.status, ended.report[0]["error_code"]) == ("failed", "invalid_settings.date_partition")

    glue.update_table(DatabaseName=database, TableInput=right)
    lake.sync()
    assert lake.query(f"select message_id from {database}.track_a order by 1") == [
        {"message_id": "m1"},
        {"message_id": "m2"},
    ]


def test_a_table_of_somebody_else_is_not_written_to(on_aws: OnAws) -> None:
    lake = on_aws.lake()
    database = lake.connection.database
    glue = on_aws.aws.client("glue")
    glue.create_database(DatabaseInput={"Name": database})
    glue.create_table(DatabaseName=database, TableInput={"Name": "track_a"})
    lake.put(track("A", "m1"))
    with pytest.raises(InvalidSettingsError, match="not made by eventlake"):
        lake.sync()
    assert "Parameters" not in glue.get_table(DatabaseName=database, Name="track_a")["Table"]


# Settings


@pytest.mark.parametrize(
    ("setting", "wrong", "right"),
    [
        ("aws.region", "europe", "eu-central-1"),
        ("aws.region", "us-east-1; drop", "us-gov-west-1"),
        ("aws.role_arn", "my-role", "arn:aws:iam::123456789012:role/lake/eventlake"),
        ("aws.external_id", "not allowed", "workspace-1"),
        ("catalog.glue_catalog_id", "12345", "123456789012"),
        ("catalog.kind", "iceberg", "glue"),
        ("lake.root", "s3://My_Bucket/x", "s3://my-bucket/x"),
        ("s3.encryption", "rot13", "aws:kms"),
    ],
)
def test_a_setting_that_cannot_be_right_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, wrong: str, right: str
) -> None:
    Workspace.create(tmp_path)
    monkeypatch.setenv("EVENTLAKE_LAKE__ROOT", "s3://bucket/x")
    variable = f"EVENTLAKE_{setting.upper().replace('.', '__')}"
    monkeypatch.setenv(variable, right)
    Workspace.open(tmp_path)
    monkeypatch.setenv(variable, wrong)
    with pytest.raises(InvalidSettingsError, match=setting.replace(".", r"\.")) as caught:
        Workspace.open(tmp_path)
    assert caught.value.code == "invalid_settings.configuration"


def test_glue_needs_a_bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Workspace.create(tmp_path)
    monkeypatch.setenv("EVENTLAKE_CATALOG__KIND", "glue")
    with pytest.raises(InvalidSettingsError, match="needs a lake in a bucket"):
        Workspace.open(tmp_path)


# Storage


def test_objects_are_encrypted_as_asked(on_aws: OnAws) -> None:
    key = on_aws.aws.client("kms").create_key()["KeyMetadata"]["Arn"]
    options = S3Options(on_aws.aws.endpoint, True, "aws:kms", key, AwsOptions(REGION))
    storage = S3Storage(f"s3://{on_aws.bucket}/lake", options)
    storage.write("written", b"1")
    storage.create("created", b"1")
    with storage.open_output("streamed") as sink:
        sink.write(b"1")
    storage.write("before", b"1")
    storage.move("before", "moved")
    client = on_aws.aws.client("s3")
    for name in ("written", "created", "streamed", "moved"):
        head = client.head_object(Bucket=on_aws.bucket, Key=f"lake/{name}")
        assert (head["ServerSideEncryption"], head["SSEKMSKeyId"]) == ("aws:kms", key), name


def test_a_role_is_assumed_in_other_processes_too(on_aws: OnAws) -> None:
    """Spark's workers get the storage, not its credentials."""
    options = S3Options(
        on_aws.aws.endpoint,
        path_style=True,
        aws=AwsOptions(REGION, on_aws.aws.role(external_id=EXTERNAL_ID), EXTERNAL_ID),
    )
    storage = S3Storage(f"s3://{on_aws.bucket}/lake", options)
    storage.write("one", b"content")
    program = "import pickle, sys; sys.stdout.buffer.write(pickle.load(sys.stdin.buffer).read('one'))"
    done = subprocess.run(
        [sys.executable, "-c", program], input=pickle.dumps(storage), capture_output=True, timeout=60, check=True
    )
    assert done.stdout == b"content"


def test_a_lake_acts_with_the_access_keys_of_its_profile(
    on_aws: OnAws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {name: os.environ[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
    (tmp_path / "credentials").write_text(
        f"[lake]\naws_access_key_id = {keys['AWS_ACCESS_KEY_ID']}\n"
        f"aws_secret_access_key = {keys['AWS_SECRET_ACCESS_KEY']}\n"
    )
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    for name in keys:
        monkeypatch.delenv(name)
    options = S3Options(on_aws.aws.endpoint, path_style=True, aws=AwsOptions(REGION, profile="lake"))
    storage = S3Storage(f"s3://{on_aws.bucket}/lake", options)
    storage.write("one", b"content")
    assert storage.read("one") == b"content"
    assert keys["AWS_SECRET_ACCESS_KEY"] not in repr(storage.options)
    assert keys["AWS_SECRET_ACCESS_KEY"].encode() not in pickle.dumps(storage)
    nobody = S3Options(on_aws.aws.endpoint, path_style=True, aws=AwsOptions(REGION, profile="nobody"))
    with pytest.raises(InvalidSettingsError, match="there is no AWS profile 'nobody'"):
        S3Storage(f"s3://{on_aws.bucket}/lake", nobody).read("one")


class Overloaded(BaseHTTPRequestHandler):
    """An S3 that refuses two requests, as S3 does while it makes room for a higher rate of them."""

    requests: ClassVar[list[str]]

    def do_GET(self) -> None:
        self.requests.append(self.path)
        if len(self.requests) <= 2:
            self.answer(503, b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>")
        else:
            self.answer(200, b"content")

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Not into the output of the tests."""


def test_a_bucket_that_slows_us_down_is_asked_again(on_aws: OnAws) -> None:
    Overloaded.requests = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Overloaded) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        options = S3Options(f"http://127.0.0.1:{server.server_port}", path_style=True, aws=AwsOptions(REGION))
        try:
            assert S3Storage("s3://bucket/lake", options).read("one") == b"content"
        finally:
            server.shutdown()
    assert Overloaded.requests == ["/bucket/lake/one"] * 3


# Commands


def command(lake: Lake, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("eventlake")
    return subprocess.run(
        [str(program), "-C", str(lake.workspace.folder), *words],
        env=os.environ | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def test_all_tables_are_shown_in_glue_on_demand(on_aws: OnAws) -> None:
    lake = on_aws.lake()
    lake.sync_of(track("A", "m1"), track("B", "m2"))
    database, glue = lake.connection.database, on_aws.aws.client("glue")
    glue.delete_table(DatabaseName=database, Name="track_a")
    assert "2 tables" in command(lake, "catalog", "publish").stderr
    assert json.loads(command(lake, "catalog", "publish", "--json").stdout) == {"tables": 2}
    assert {table["Name"] for table in glue.get_tables(DatabaseName=database)["TableList"]} == {"track_a", "track_b"}
    partitions = glue.get_partitions(DatabaseName=database, TableName="track_a")["Partitions"]
    assert [partition["Values"] for partition in partitions] == [["2026-11-15", "10"]]


def test_old_versions_are_trimmed_on_demand(on_aws: OnAws) -> None:
    lake = on_aws.lake()
    lake.sync_of(track("A", "m1"))
    database, glue = lake.connection.database, on_aws.aws.client("glue")
    table = glue.get_table(DatabaseName=database, Name="track_a")["Table"]
    keep = ("Name", "StorageDescriptor", "PartitionKeys", "TableType", "Parameters")
    for number in range(5):
        edited = {key: table[key] for key in keep} | {"Description": str(number)}
        glue.update_table(DatabaseName=database, TableInput=edited)
    count = len(glue.get_table_versions(DatabaseName=database, TableName="track_a")["TableVersions"])
    told = json.loads(command(lake, "catalog", "trim", "--keep", "2", "--json").stdout)
    assert told == {"deleted": {f"{database}.track_a": count - 2}}
    assert len(glue.get_table_versions(DatabaseName=database, TableName="track_a")["TableVersions"]) == 2
    assert glue.get_table(DatabaseName=database, Name="track_a")["Table"]["Description"] == "4"
    assert "0 old versions of 1 table" in command(lake, "catalog", "trim").stderr


def test_tables_are_shown_in_no_glue_that_is_not_set(tmp_path: Path) -> None:
    done = command(Lake(tmp_path / "workspace", InProcess()), "catalog", "publish")
    assert done.returncode == 2
    assert 'kind = "glue"' in done.stderr


def test_a_setting_that_is_wrong_is_told_with_its_code(on_aws: OnAws) -> None:
    done = command(on_aws.lake(), "sync", EVENTLAKE_AWS__REGION="europe")
    assert done.returncode == 2
    assert "aws.region" in done.stderr
    assert "invalid_settings.configuration" in done.stderr


NO_SPARK = {"EVENTLAKE_SPARK__MASTER": "nowhere"}


def doctor(lake: Lake, *options: str, **variables: str) -> dict[str, dict[str, Any]]:
    told = command(lake, "doctor", "--json", *options, **variables).stdout
    return {step["step"]: step for step in json.loads(told)}


def test_the_doctor_tries_every_right_by_name(on_aws: OnAws) -> None:
    lake = on_aws.lake(role_arn=on_aws.aws.role())
    before = glue_tables(on_aws)
    told = doctor(lake, "--expire-staging")
    assert [step for step in told.values() if step["status"] == "failed"] == []
    assert "assumed-role" in told["aws: identity"]["detail"]
    (rule,) = on_aws.aws.client("s3").get_bucket_lifecycle_configuration(Bucket=on_aws.bucket)["Rules"]
    assert rule["Filter"]["Prefix"] == "lake/segment-stage/"
    assert rule["Expiration"] == {"Days": 14}
    assert rule["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 14}
    assert "Contents" not in on_aws.aws.client("s3").list_objects_v2(Bucket=on_aws.bucket)
    assert glue_tables(on_aws) == before  # nothing is left behind, not even a database


def glue_tables(on_aws: OnAws) -> dict[str, list[str]]:
    """The tables of each database in Glue."""
    glue = on_aws.aws.client("glue")
    names = [database["Name"] for database in glue.get_databases()["DatabaseList"]]
    return {name: sorted(table["Name"] for table in glue.get_tables(DatabaseName=name)["TableList"]) for name in names}


@pytest.mark.parametrize(
    ("step", "code", "actions"),
    [
        ("storage: upload to staging", "upload_staging", ["s3:PutObject"]),
        ("storage: download", "download_object", ["s3:GetObject"]),
        ("storage: delete", "delete_object", ["s3:DeleteObject"]),
        ("glue: fetch schema", "fetch_schema", ["glue:GetTables"]),
        ("glue: create table", "change_catalog", ["glue:CreateTable"]),
        ("glue: delete table", "delete_table", ["glue:DeleteTable"]),
    ],
)
def test_the_doctor_names_the_right_that_is_missing(on_aws: OnAws, step: str, code: str, actions: list[str]) -> None:
    lake = on_aws.lake(role_arn=on_aws.aws.role(without=actions))
    with rights_checked():
        told = doctor(lake, **NO_SPARK)
    assert told[step]["status"] == "failed"
    assert told[step]["code"] == f"insufficient_permissions.{code}"
    assert actions[0] in told[step]["fix"]


def checked(lake: Lake, **variables: str) -> dict[str, dict[str, Any]]:
    """What `eventlake connection check` says of each step."""
    done = command(lake, "connection", "check", "web", "--json", **variables)
    told = json.loads(done.stdout)
    assert done.returncode == any(step["status"] == "failed" for step in told)
    return {step["step"]: step for step in told}


def in_glue(told: dict[str, dict[str, Any]]) -> dict[str, str]:
    return {step.removeprefix("glue: "): one["status"] for step, one in told.items() if step.startswith("glue: ")}


@pytest.fixture
def default_database(on_aws: OnAws) -> Iterator[None]:
    """As it is in accounts that have used Glue."""
    glue = on_aws.aws.client("glue")
    glue.create_database(DatabaseInput={"Name": "default"})
    yield
    glue.delete_database(Name="default")


def test_a_connection_is_checked_with_rudderstacks_four_rights_before_its_first_sync(on_aws: OnAws) -> None:
    lake = rudder_lake(on_aws, role_arn=on_aws.aws.role(only=["s3:*", *RUDDER_GLUE]))
    before, namespace = glue_tables(on_aws), lake.connection.database
    with rights_checked():
        told = checked(lake)
    assert [step for step in told.values() if step["status"] == "failed"] == []
    assert in_glue(told) == {
        "fetch schema": "passed",
        "database": "skipped",
        "create table": "passed",
        "change table": "passed",
        "create partitions": "skipped",
        "delete table": "skipped",
    }
    assert told["glue: database"]["detail"].startswith(f"not tried: {namespace} is not there")
    assert "glue:CreateDatabase" in told["glue: database"]["detail"]
    assert told["glue: delete table"]["detail"].startswith("not tried")
    assert glue_tables(on_aws) == before  # nothing is left behind, not even a database


def test_a_connection_is_checked_with_rudderstacks_four_rights_after_a_sync(on_aws: OnAws) -> None:
    lake = rudder_lake(on_aws, role_arn=on_aws.aws.role(only=["s3:*", *RUDDER_GLUE]))
    glue, namespace = on_aws.aws.client("glue"), lake.connection.database
    with rights_checked():
        lake.sync_of(track("A", "m1"))
    before = glue_tables(on_aws), glue.get_table(DatabaseName=namespace, Name="a")["Table"]
    with rights_checked():
        told = checked(lake, **NO_SPARK)
    passed = [step for step, status in in_glue(told).items() if status == "passed"]
    assert passed == ["fetch schema", "database", "create table", "change table"]
    assert told["glue: fetch schema"]["detail"] == "2 tables"
    assert re.search(rf"{namespace}\.(a|tracks), which is there", told["glue: create table"]["detail"])
    assert (glue_tables(on_aws), glue.get_table(DatabaseName=namespace, Name="a")["Table"]) == before


@pytest.mark.usefixtures("default_database")
@pytest.mark.parametrize(
    ("right", "step"),
    [
        ("glue:GetTables", "fetch schema"),
        ("glue:CreateDatabase", "database"),
        ("glue:CreateTable", "create table"),
        ("glue:UpdateTable", "change table"),
    ],
)
def test_the_one_of_rudderstacks_four_rights_that_is_missing_is_named(on_aws: OnAws, right: str, step: str) -> None:
    given = [one for one in RUDDER_GLUE if one != right]
    lake = rudder_lake(on_aws, role_arn=on_aws.aws.role(only=["s3:*", *given]))
    before = glue_tables(on_aws)
    with rights_checked():
        told = checked(lake, **NO_SPARK)
    assert [name for name, status in in_glue(told).items() if status == "failed"] == [step]
    assert right in told[f"glue: {step}"]["fix"]
    assert told[f"glue: {step}"]["code"].startswith("insufficient_permissions.")
    assert glue_tables(on_aws) == before


@pytest.mark.usefixtures("default_database")
def test_that_a_namespace_may_be_made_is_tried_on_a_database_that_is_there(on_aws: OnAws) -> None:
    lake = rudder_lake(on_aws, role_arn=on_aws.aws.role(only=["s3:*", *RUDDER_GLUE]))
    before = glue_tables(on_aws)
    with rights_checked():
        told = checked(lake, **NO_SPARK)["glue: database"]
    assert (told["status"], "tried on default" in told["detail"]) == ("passed", True)
    assert glue_tables(on_aws) == before


@pytest.mark.usefixtures("default_database")
def test_rights_on_the_own_namespace_alone_are_not_called_missing(on_aws: OnAws) -> None:
    lake, ask = rudder_lake(on_aws), GlueResponse.get_tables

    def for_the_namespace(self: Any) -> Any:
        if self.parameters["DatabaseName"] == "default":
            raise GlueClientError("AccessDeniedException", "not authorized to perform: glue:GetTables on default")
        return ask(self)

    with mock.patch.object(GlueResponse, "get_tables", for_the_namespace):
        statuses = in_glue(checked(lake, **NO_SPARK))
    assert (statuses["database"], statuses["create table"]) == ("skipped", "passed")


def test_a_database_without_tables_stays_without(on_aws: OnAws) -> None:
    """Who may not make databases needs them to be there: the check does not ask for the right then."""
    given = [one for one in RUDDER_GLUE if one != "glue:CreateDatabase"]
    lake = rudder_lake(on_aws, role_arn=on_aws.aws.role(only=["s3:*", *given]))
    on_aws.aws.client("glue").create_database(DatabaseInput={"Name": lake.connection.database})
    before = glue_tables(on_aws)
    with rights_checked():
        told = checked(lake, **NO_SPARK)
    statuses = in_glue(told)
    assert (statuses["database"], statuses["create table"], statuses["change table"]) == ("passed", "skipped", "passed")
    assert "glue:CreateTable" in told["glue: create table"]["detail"]
    assert glue_tables(on_aws) == before


@pytest.mark.parametrize(("right", "status"), [("glue:BatchCreatePartition", "passed"), (None, "failed")])
def test_with_keys_in_the_layout_the_right_to_make_partitions_is_tried(
    on_aws: OnAws, right: str | None, status: str
) -> None:
    rights = ["s3:*", *RUDDER_GLUE, *([right] if right else [])]
    lake = rudder_lake(on_aws, role_arn=on_aws.aws.role(only=rights), time_window_layout="dt=2006-01-02")
    with rights_checked():
        told = checked(lake, **NO_SPARK)["glue: create partitions"]
    assert told["status"] == status
    assert ("glue:BatchCreatePartition" in told.get("fix", "")) is (right is None)


def test_a_table_that_came_about_by_trying_is_named(on_aws: OnAws) -> None:
    """A sync of another process may make the database in the very moment of the trial."""
    lake = rudder_lake(on_aws)
    namespace, make = lake.connection.database, GlueResponse.create_table

    def overtaken(self: Any) -> Any:
        self.glue_backend.create_database(namespace, {"Name": namespace}, tags=None)
        return make(self)

    with mock.patch.object(GlueResponse, "create_table", overtaken):
        told = checked(lake, **NO_SPARK)["glue: create table"]
    (left,) = glue_tables(on_aws)[namespace]
    assert (told["status"], f"{namespace}.{left} was made" in told["detail"]) == ("failed", True)


def test_a_lake_of_rudderstacks_without_sources_says_what_its_check_needs(on_aws: OnAws) -> None:
    lake = rudder_lake(on_aws)
    other = on_aws.folder / "empty"
    settings = (lake.workspace.folder / "eventlake.toml").read_text()
    other.mkdir()
    (other / "eventlake.toml").write_text(settings)
    lake.workspace = Workspace.open(other)
    told = doctor(lake, **NO_SPARK)
    assert told["glue: fetch schema"]["detail"] == "needs a source that is connected to this lake"
    assert set(in_glue(told).values()) == {"skipped"}


def test_rules_of_the_bucket_stay_when_staging_gets_one(on_aws: OnAws) -> None:
    client = on_aws.aws.client("s3")
    theirs = {"ID": "theirs", "Status": "Enabled", "Filter": {"Prefix": "tmp/"}, "Expiration": {"Days": 3}}
    client.put_bucket_lifecycle_configuration(Bucket=on_aws.bucket, LifecycleConfiguration={"Rules": [theirs]})
    options = S3Options(on_aws.aws.endpoint, path_style=True, aws=AwsOptions(REGION))
    storage = S3Storage(f"s3://{on_aws.bucket}/lake", options)
    assert not storage.expires("segment-stage", 14)
    for _ in range(2):
        storage.expire("segment-stage", 14)
        rules = client.get_bucket_lifecycle_configuration(Bucket=on_aws.bucket)["Rules"]
        assert [rule["ID"] for rule in rules] == ["theirs", "eventlake: lake/segment-stage"]
    assert storage.expires("segment-stage", 14)
    assert not storage.expires("segment-data", 14)


def test_no_secret_reaches_what_is_shown(on_aws: OnAws) -> None:
    lake = on_aws.lake(role_arn=on_aws.aws.role(without=["s3:PutObject"]))
    with rights_checked(), pytest.raises(EventLakeError) as caught:
        lake.put(track("A", "m1"))
    shown = f"{caught.value!r}{caught.value}{lake.place.storage!r}{lake.workspace.settings!r}"
    assert os.environ["AWS_SECRET_ACCESS_KEY"] not in shown
