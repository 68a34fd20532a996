"""A lake on AWS: bucket, Glue, roles and their rights, and what is told when a right or a setting is missing."""

import contextlib
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
from moto.sts.responses import TokenResponse

from aws import ACCOUNT, REGION, Aws, rights_checked
from commands import command, examination
from conftest import InProcess, Lake, SetClock, track
from eventlake.audit.repair import repair
from eventlake.audit.verify import verify
from eventlake.aws.session import AwsOptions
from eventlake.catalog.mirrored import MirroredCatalog
from eventlake.doctor.on_aws import regions
from eventlake.errors import (
    ConfigurationError,
    EventLakeError,
    InvalidSettingsError,
    PermissionMissingError,
    TransientError,
)
from eventlake.reports import report
from eventlake.schema.types import ColumnType
from eventlake.storage.s3 import S3Options, S3Storage
from eventlake.sync import jobs, requests
from eventlake.workspace import Workspace, read_settings

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
        assert verify(lake.workspace, lake.connection, InProcess()) == []
        job = requests.retype(lake.place, f"{database}.a", "new", "string")
        assert job
        lake.run(job)
    tables = {table["Name"]: table for table in glue.get_tables(DatabaseName=database)["TableList"]}
    assert set(tables) == {"a", "tracks", "rudder_discards"}
    storage = tables["a"]["StorageDescriptor"]
    types = {column["Name"]: column["Type"] for column in storage["Columns"]}
    assert (types["price"], types["plan"], types["new"]) == ("bigint", "varchar(65535)", "varchar(65535)")
    assert (tables["a"]["PartitionKeys"], tables["a"]["TableType"]) == ([], "EXTERNAL_TABLE")
    assert storage["Location"] == f"s3://{on_aws.bucket}/lake/rudder-datalake/{database}/a"
    assert verify(lake.workspace, lake.connection, InProcess()) == []


def test_a_table_whose_name_is_a_pattern_for_glue_is_found_again(on_aws: OnAws) -> None:
    lake = rudder_lake(on_aws)
    as_sent = {"S3_DATALAKE": {"options": {"useBlendoCasing": True}}}
    for number, name in enumerate(("Price $", "Price $", "a\\b", "a\\b", "Price", "price.*")):
        lake.sync_of(track(name, f"m{number}", integrations=as_sent, properties={f"x{number}": 1}))
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


class Theirs(NamedTuple):
    """A table in Glue that somebody else made, with partitions, where a connection would make its own."""

    lake: Lake
    glue: Any
    place: dict[str, str]
    column: str  # of theirs

    def table(self) -> Any:
        return self.glue.get_table(DatabaseName=self.place["DatabaseName"], Name=self.place["TableName"])["Table"]

    def partitions(self) -> dict[tuple[str, ...], Any]:
        found = self.glue.get_partitions(**self.place)["Partitions"]
        return {tuple(one["Values"]): one["StorageDescriptor"] for one in found}

    @property
    def name(self) -> str:
        return ".".join(self.place.values())


@pytest.fixture(params=["rudderstack", "segment"])
def theirs(on_aws: OnAws, request: pytest.FixtureRequest) -> Theirs:
    is_segment = request.param == "segment"
    lake = on_aws.lake() if is_segment else rudder_lake(on_aws, time_window_layout="dt=2006-01-02")
    dialect, glue = lake.connection.dialect, on_aws.aws.client("glue")
    key, ident, price = ("track_a", "message_id", "properties_price") if is_segment else ("a", "id", "price")
    location, keys = f"s3://{on_aws.bucket}/lake/{dialect.location(key)}", dialect.date_partition.keys
    odd = {"Name": "odd", "Type": "array<string>"}  # which neither dialect writes
    columns = [{"Name": ident, "Type": "string"}, {"Name": price, "Type": "bigint"}, odd]
    lake.workspace.connections.change("web", {"select": f"-{key}:odd"})
    place = {"DatabaseName": dialect.database, "TableName": dialect.table_name(key)}
    table = {
        "Name": place["TableName"],
        "PartitionKeys": [{"Name": name, "Type": "string"} for name in keys],
        "StorageDescriptor": {"Columns": columns, "Location": location},
    }
    glue.create_database(DatabaseInput={"Name": dialect.database})
    glue.create_table(DatabaseName=dialect.database, TableInput=table)
    for day in ("2026-10-01", "2026-10-02"):
        values = [day, "09"][: len(keys)]
        storage = {"Columns": columns, "Location": f"{location}/as-they-like/{day}"}
        glue.create_partition(**place, PartitionInput={"Values": values, "StorageDescriptor": storage})
    found = Theirs(lake, glue, place, price)
    lake.run(requests.adopt(lake.place, lake.connection))
    return found


def test_partitions_of_a_table_that_was_taken_over_stay_whatever_becomes_of_ours(theirs: Theirs) -> None:
    lake, before = theirs.lake, theirs.partitions()
    lake.sync_of(
        track("A", "m1", userId="ann", properties={"new": 1}),
        track("A", "m2", userId="bob", receivedAt="2026-11-16T10:00:00Z"),
    )
    assert len(theirs.partitions()) == 4
    lake.workspace.suppressions.add(["bob"])
    lake.run(jobs.replay(lake.connection, None, None))
    assert theirs.partitions().items() >= before.items()
    lake.run(jobs.rebuild(lake.connection))
    assert theirs.partitions().items() >= before.items()
    own = theirs.column.replace("price", "new")
    job = requests.retype(lake.place, theirs.name, own, "string")
    assert job
    lake.run(job)
    assert theirs.partitions().items() >= before.items()
    ours = [
        {c["Name"]: c["Type"] for c in one["Columns"]}
        for values, one in theirs.partitions().items()
        if values not in before
    ]
    assert lake.types(theirs.place["TableName"])[own] == "string"
    assert (
        ours[0][own] == {c["Name"]: c["Type"] for c in theirs.table()["StorageDescriptor"]["Columns"]}[own] != "bigint"
    )
    assert verify(lake.workspace, lake.connection, InProcess()) == []


@pytest.mark.parametrize("theirs", ["rudderstack"], indirect=True)
def test_a_column_of_a_type_that_nobody_here_writes_stays_theirs(theirs: Theirs) -> None:
    lake = theirs.lake

    def shown() -> dict[str, str]:
        return {column["Name"]: column["Type"] for column in theirs.table()["StorageDescriptor"]["Columns"]}

    lake.sync_of(track("A", "m1", properties={"odd": "x", "price": 1}))
    assert "odd" not in lake.types("a")
    assert (shown()["odd"], shown()["price"]) == ("array<string>", "bigint")
    lake.workspace.connections.change("web", {"select": ""})
    lake.sync_of(track("A", "m2", properties={"odd": "x"}))
    assert lake.query(f"select odd from {theirs.name} where id = 'm2'") == [{"odd": "x"}]
    assert shown()["odd"] == "array<string>", "the files that were there have it so"
    (found,) = verify(lake.workspace, lake.connection, InProcess())
    assert (found.kind, found.detail) == ("not_in_glue", "columns are missing, or have other types")


def test_a_table_that_was_taken_over_is_neither_retyped_nor_dropped_nor_laid_out_anew(theirs: Theirs) -> None:
    lake, before = theirs.lake, (theirs.table(), theirs.partitions())
    lake.sync_of(track("B", "m1"))

    def refused(ask: Callable[[], Any]) -> str:
        with pytest.raises(InvalidSettingsError, match="was taken over") as caught:
            ask()
        return caught.value.fix

    assert "into another database" in refused(lambda: requests.retype(lake.place, theirs.name, theirs.column, "string"))
    assert "select=-" in refused(lambda: requests.drop(lake.place, theirs.name))
    name = lake.connection.settings.names_layout
    layout = "day" if name == "date_partition" else "year=2006/month=01/day=02"
    other = lake.workspace.connections.preview("web", {name: layout})
    assert f"keep {name} as it is" in refused(lambda: lake.run(jobs.rebuild(other)))
    assert (theirs.table(), theirs.partitions()) == before


def test_tables_that_were_taken_over_are_given_back_when_ours_get_other_names(theirs: Theirs) -> None:
    lake, before = theirs.lake, theirs.partitions()
    lake.sync_of(track("A", "m1", properties={"price": 1, "new": 2}))
    settings = {lake.connection.settings.names_database: f"{lake.connection.database}_2"}
    lake.run(jobs.rebuild(lake.workspace.connections.preview("web", settings)))
    assert lake.query(f"select count(*) as n from {lake.connection.database}.{theirs.place['TableName']}") == [{"n": 1}]
    assert theirs.partitions().items() >= before.items()
    table = theirs.table()
    assert [column["Name"] for column in table["StorageDescriptor"]["Columns"]][1] == theirs.column
    assert "eventlake" not in json.dumps(table, default=str), "nothing says that it is ours"
    assert verify(lake.workspace, lake.connection, InProcess()) == []


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


def take_out(lake: Lake) -> None:
    lake.workspace.suppressions.add(["m1", "m2"], "messageId")
    lake.run(jobs.replay(lake.connection, None, None))


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
    "replays that empty a partition": Feature(take_out, frozenset({"glue:BatchDeletePartition"})),
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


NO_ROOM = "ResourceNumberLimitExceededException"


def refusing(*names: str, code: str = NO_ROOM) -> Any:
    """Glue, as it is when there is no room for tables with these names."""
    make = GlueResponse.create_table

    def made(self: Any) -> Any:
        if self.parameters["TableInput"]["Name"] in names:
            raise GlueClientError(code, "Number of TABLE exceeds the account limit")
        return make(self)

    return mock.patch.object(GlueResponse, "create_table", made)


def test_names_that_are_too_long_for_glue_are_left_out_of_it_and_nothing_else(on_aws: OnAws) -> None:
    lake = rudder_lake(on_aws)
    database, glue = lake.connection.database, on_aws.aws.client("glue")
    long = "y" * 256
    notices = lake.sync_of(track("A", "m1", properties={long: 1, "x" * 255: 2}), track(long, "m2"))[0]["notices"]
    assert notices == [
        f"Glue has names of tables of up to 255 characters, and leaves out 1: {f'{database}.{long}'[:60]}…",
        f"Glue has names of columns of up to 255 characters, and leaves out 1: {f'{database}.a.{long}'[:60]}…",
    ]
    report = lake.sync_of(track("A", "m3", properties={"later": 1}), track("B", "m4"))
    assert "notices" not in report[0]
    tables = {table["Name"]: table for table in glue.get_tables(DatabaseName=database)["TableList"]}
    assert set(tables) == {"a", "b", "tracks"}
    assert {"x" * 255, "later"} <= {column["Name"] for column in tables["a"]["StorageDescriptor"]["Columns"]}
    assert lake.query(f"select {long} as y, later from {database}.a order by id") == [
        {"y": 1, "later": None},
        {"y": None, "later": 1},
    ]
    assert lake.query(f"select id from {database}.{long}") == [{"id": "m2"}]
    assert isinstance(lake.place.catalog, MirroredCatalog)
    assert lake.place.catalog.publish(run_id="publish", at=1) == (3, notices)
    assert verify(lake.workspace, lake.connection, InProcess()) == []


@pytest.mark.parametrize("code", [NO_ROOM, "InvalidInputException", "ValidationException"])
def test_a_limit_of_glue_keeps_new_tables_out_and_nothing_else(on_aws: OnAws, code: str) -> None:
    lake = on_aws.lake()
    lake.sync_of(track("A", "m1"))
    glue, database = on_aws.aws.client("glue"), lake.connection.database
    with refusing("track_b", "track_c", code=code):
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
        assert isinstance(lake.place.catalog, MirroredCatalog)
        shown, refused = lake.place.catalog.publish(run_id="publish", at=1)
        assert (shown, [told.split()[0] for told in refused]) == (1, [f"{database}.track_b", f"{database}.track_c"])
    assert "notices" not in lake.sync_of(track("A", "a9"))[0]
    assert {table["Name"] for table in glue.get_tables(DatabaseName=database)["TableList"]} == {
        *("track_a", "track_b", "track_c")
    }
    assert verify(lake.workspace, lake.connection, InProcess()) == []


def test_what_is_missing_in_glue_is_tried_again_by_a_sync_without_anything_new(on_aws: OnAws) -> None:
    lake = on_aws.lake()
    lake.sync_of(track("A", "m1"))
    glue, database = on_aws.aws.client("glue"), lake.connection.database

    def shown() -> set[str]:
        return {table["Name"] for table in glue.get_tables(DatabaseName=database)["TableList"]}

    with refusing("track_b"):
        lake.sync_of(track("B", "m2"))
        (notice, nothing) = lake.sync()[0]["notices"]
        assert "track_b is not as it should be in Glue" in notice + nothing
    assert shown() == {"track_a"}
    lake.sync()
    assert shown() == {"track_a", "track_b"}
    glue.delete_table(DatabaseName=database, Name="track_a")
    lake.sync()
    assert shown() == {"track_a", "track_b"}
    assert verify(lake.workspace, lake.connection, InProcess()) == []


def past_a_limit(method: str, refuses: Callable[[dict[str, Any]], bool]) -> Any:
    """Glue, as it is when there is no room for some of what is asked for."""
    answer = getattr(GlueResponse, method)

    def answered(self: Any) -> Any:
        if refuses(self.parameters):
            raise GlueClientError("ResourceNumberLimitExceededException", "The number exceeds the account limit")
        return answer(self)

    return mock.patch.object(GlueResponse, method, answered)


def test_a_limit_of_databases_keeps_tables_out_of_glue_and_no_event_out_of_the_lake(on_aws: OnAws) -> None:
    lake = on_aws.lake()
    glue, database = on_aws.aws.client("glue"), lake.connection.database
    with past_a_limit("create_database", lambda asked: asked["DatabaseInput"]["Name"] == database):
        for number in range(2):
            head = lake.sync_of(track("A", f"m{number}"))[0]
            assert head["status"] == "finished"
            (notice,) = head["notices"]
            assert f"{database}.track_a is not as it should be in Glue" in notice
            assert "exceeds the account limit" in notice
        told = json.loads(command(lake.workspace.folder, "tables", "--json").stdout)
        assert [table["table"] for table in told] == ["track_a"]
    assert "notices" not in lake.sync_of(track("A", "m3"))[0]
    assert [table["Name"] for table in glue.get_tables(DatabaseName=database)["TableList"]] == ["track_a"]
    assert verify(lake.workspace, lake.connection, InProcess()) == []
    assert lake.query(f"select count(*) as n from {database}.track_a") == [{"n": 3}]


def test_a_limit_of_partitions_keeps_them_out_until_there_is_room(on_aws: OnAws) -> None:
    lake = on_aws.lake()
    lake.sync_of(track("A", "m1"), track("B", "m2"))
    glue, place = on_aws.aws.client("glue"), {"DatabaseName": lake.connection.database, "TableName": "track_a"}
    with past_a_limit("batch_create_partition", lambda asked: asked["TableName"] == "track_a"):
        for hour in (11, 12):
            events = [track(event, f"{event}{hour}", receivedAt=f"2026-11-15T{hour}:00:00Z") for event in "AB"]
            (notice,) = lake.sync_of(*events)[0]["notices"]
            assert f"{place['DatabaseName']}.track_a is not as it should be in Glue" in notice
        assert len(glue.get_partitions(**place | {"TableName": "track_b"})["Partitions"]) == 3
        assert [one["Values"][1] for one in glue.get_partitions(**place)["Partitions"]] == ["10"]
    assert "notices" not in lake.sync_of(track("B", "m9"))[0]  # which brings what was missing of the other
    assert sorted(one["Values"][1] for one in glue.get_partitions(**place)["Partitions"]) == ["10", "11", "12"]
    assert verify(lake.workspace, lake.connection, InProcess()) == []


@pytest.mark.parametrize(
    ("method", "refuses"),
    [
        ("batch_create_partition", lambda asked: asked["TableName"] == "sync_reports"),
        ("create_table", lambda asked: asked["TableInput"]["Name"] == "sync_reports"),
        ("create_database", lambda asked: asked["DatabaseInput"]["Name"] == "__segment_datalake"),
    ],
)
def test_a_limit_that_keeps_reports_out_of_glue_halts_no_source(on_aws: OnAws, method: str, refuses: Any) -> None:
    lake = on_aws.lake()
    glue, where = on_aws.aws.client("glue"), {"DatabaseName": "__segment_datalake"}
    with contextlib.suppress(glue.exceptions.EntityNotFoundException):  # what other tests left
        glue.delete_table(**where, Name="sync_reports")
        glue.delete_database(Name="__segment_datalake")
    days, clock = [], lake.workspace.clock
    assert isinstance(clock, SetClock)
    with past_a_limit(method, refuses):
        for number in range(2):
            lines = lake.sync_of(track("A", f"m{number}"))
            assert "the report is not shown in the catalog" in lines[0]["notices"][0]
            run = lake.place.runs.latest(1)[0]
            assert (run.status, run.report) == ("finished", lines)
            kept = lake.place.storage.read(report.path(lake.place.folders, lines[0]))
            assert json.loads(kept.splitlines()[0]) == lines[0]
            days.append(report.day(lines[0]))
            clock.forward(hours=24)
    assert "notices" not in lake.sync_of(track("A", "m9"))[0]
    shown = glue.get_partitions(**where, TableName="sync_reports")["Partitions"]
    assert sorted(one["Values"][1] for one in shown) == [*days, "2026-11-17"]
    assert lake.query(f"select count(*) as n from {lake.connection.database}.track_a") == [{"n": 3}]


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


@pytest.mark.parametrize("method", ["get_tables", "create_table", "batch_create_partition"])
def test_a_session_that_ends_in_the_middle_of_a_run_is_told_and_nothing_is_lost(on_aws: OnAws, method: str) -> None:
    lake = on_aws.lake()
    lake.put(track("A", "m1"))

    def ended(_: Any) -> Any:
        raise GlueClientError("ExpiredTokenException", "The security token included in the request is expired")

    with mock.patch.object(GlueResponse, method, ended), pytest.raises(PermissionMissingError) as caught:
        lake.sync()
    assert caught.value.code == "insufficient_permissions.sign_in"
    assert "the session has ended" in caught.value.problem
    assert "sign in again" in caught.value.fix
    assert "glue:" not in caught.value.fix  # no right is missing
    told = lake.place.runs.latest(1)[0].report
    assert told
    assert told[0]["error_code"] == caught.value.code
    lake.sync()
    assert lake.query(f"select message_id from {lake.connection.database}.track_a") == [{"message_id": "m1"}]
    assert verify(lake.workspace, lake.connection, InProcess()) == []


def test_an_access_key_that_aws_does_not_know_is_told_as_such(on_aws: OnAws, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = on_aws.lake()
    lake.sync_of(track("A", "m1"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIANOBODY")
    on_aws.again(lake)
    with rights_checked(), pytest.raises(PermissionMissingError, match="does not know who this is") as caught:
        lake.place.storage.read("segment-data/x")
    assert caught.value.code == "insufficient_permissions.sign_in"


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


def test_a_lake_acts_with_access_keys_of_its_own_and_shows_them_nowhere(
    on_aws: OnAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = on_aws.aws.user()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    lake = on_aws.lake(access_key_id=user.key, secret_access_key=user.secret, role_arn=on_aws.aws.role())
    with rights_checked():
        lake.sync_of(track("A", "m1"))
    settings, storage = lake.workspace.settings, lake.place.storage
    assert isinstance(storage, S3Storage)
    shown = [repr(settings), settings.model_dump_json(), repr(storage.__dict__), repr(storage.options)]
    files = [path.read_bytes().decode(errors="replace") for path in lake.workspace.folder.rglob("*") if path.is_file()]
    stored = [storage.read(file.path).decode(errors="replace") for file in storage.files("")]
    for secret in (user.key, user.secret):
        assert sum(secret in text for text in [*shown, *files, *stored]) == 1  # where it was written: the settings file
    on_aws.again(lake, access_key_id="AKIAWRONG", secret_access_key="wr0ng-secret")
    lake.put(track("A", "m2"))
    with rights_checked(), pytest.raises(PermissionMissingError) as caught:
        lake.sync()
    assert "wr0ng-secret" not in str(caught.value) + json.dumps(lake.place.runs.latest(1)[0].report)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"access_key_id": "AKIA1"}, "go together"),
        ({"secret_access_key": "s3cr3t"}, "go together"),
        ({"access_key_id": "AKIA1", "secret_access_key": "s3cr3t", "profile": "own"}, "are different ways in"),
        ({"access_key_id": "AKIA1", "secret_access_key": "keyvault://acme/s3cr3t"}, "not a key of AWS, as it is"),
        ({"access_key_id": "AKIA1", "secret_access_key": "s3cr3t and more"}, "not a key of AWS, as it is"),
    ],
)
def test_access_keys_that_are_no_way_in_are_refused_without_being_shown(
    on_aws: OnAws, given: dict[str, str], told: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        on_aws.lake(**given)
    assert told in caught.value.problem
    assert "s3cr3t" not in str(caught.value) + caught.value.fix


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


@pytest.mark.parametrize(
    ("status", "code", "kind", "fix"),
    [
        (503, "SlowDown", TransientError, "takes no more requests now"),
        (403, "RequestTimeTooSkewed", PermissionMissingError, "set the clock"),
        (400, "ExpiredToken", PermissionMissingError, "sign in again"),
    ],
)
def test_what_a_bucket_goes_on_refusing_is_told_with_what_to_do(
    on_aws: OnAws, status: int, code: str, kind: type[Exception], fix: str
) -> None:
    class Refusing(Overloaded):
        def do_GET(self) -> None:
            self.answer(status, f"<Error><Code>{code}</Code><Message>told so</Message></Error>".encode())

    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        options = S3Options(f"http://127.0.0.1:{server.server_port}", path_style=True, aws=AwsOptions(REGION))
        try:
            with pytest.raises(kind) as caught:
                S3Storage("s3://bucket/lake", options).read("one")
        finally:
            server.shutdown()
    assert fix in caught.value.fix  # type: ignore[attr-defined]


def slowed_down(service: Any, method: str, times: int, refuse: Callable[[], Any]) -> Any:
    """A service, as it is when it takes no more requests for a moment."""
    answer, left = getattr(service, method), [times]

    def answered(self: Any) -> Any:
        if left[0] > 0:
            left[0] -= 1
            return refuse()
        return answer(self)

    return mock.patch.object(service, method, answered)


def too_many_for_glue() -> Any:
    raise GlueClientError("ThrottlingException", "Rate exceeded")


def too_many_for_sts() -> tuple[int, dict[str, str], str]:
    told = "<Type>Sender</Type><Code>Throttling</Code><Message>Rate exceeded</Message>"
    return 400, {"status": "400"}, f"<ErrorResponse><Error>{told}</Error></ErrorResponse>"


@pytest.mark.parametrize("method", ["get_tables", "create_table"])
def test_a_catalog_that_slows_us_down_is_asked_again(on_aws: OnAws, method: str) -> None:
    lake = on_aws.lake()
    with slowed_down(GlueResponse, method, 2, too_many_for_glue):
        assert lake.sync_of(track("A", "m1"))[0]["books"]["loaded"] == 1
    with (
        slowed_down(GlueResponse, method, 100, too_many_for_glue),
        pytest.raises(TransientError, match="Rate exceeded") as caught,
    ):
        lake.sync_of(track("B", "m2"))
    assert "takes no more requests now" in caught.value.fix
    lake.sync()
    assert lake.query(f"select count(*) as n from {lake.connection.database}.track_b") == [{"n": 1}]


def test_who_a_role_is_is_asked_again_when_there_are_too_many_requests(on_aws: OnAws) -> None:
    """STS, which answers for S3 and Glue alike."""
    lake, role = on_aws.lake(), {"role_arn": on_aws.aws.role()}
    lake.put(track("A", "m1"))
    on_aws.again(lake, **role)
    with slowed_down(TokenResponse, "assume_role", 2, too_many_for_sts):
        assert lake.sync()[0]["books"]["loaded"] == 1
    lake.put(track("B", "m2"))
    on_aws.again(lake, **role)
    with (
        slowed_down(TokenResponse, "assume_role", 1000, too_many_for_sts),
        pytest.raises(TransientError, match="Rate exceeded") as caught,
    ):
        lake.sync()
    assert "takes no more requests now" in caught.value.fix
    on_aws.again(lake, **role)
    lake.sync()
    assert lake.query(f"select count(*) as n from {lake.connection.database}.track_b") == [{"n": 1}]


# Commands


def test_all_tables_are_shown_in_glue_on_demand(on_aws: OnAws) -> None:
    lake = on_aws.lake()
    lake.sync_of(track("A", "m1"), track("B", "m2"))
    database, glue = lake.connection.database, on_aws.aws.client("glue")
    glue.delete_table(DatabaseName=database, Name="track_a")
    assert "2 tables" in command(lake.workspace.folder, "catalog", "publish").stderr
    assert json.loads(command(lake.workspace.folder, "catalog", "publish", "--json").stdout) == {
        "tables": 2,
        "not_shown": [],
    }
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
    told = json.loads(command(lake.workspace.folder, "catalog", "trim", "--keep", "2", "--json").stdout)
    assert told == {"deleted": {f"{database}.track_a": count - 2}}
    assert len(glue.get_table_versions(DatabaseName=database, TableName="track_a")["TableVersions"]) == 2
    assert glue.get_table(DatabaseName=database, Name="track_a")["Table"]["Description"] == "4"
    assert "0 old versions of 1 table" in command(lake.workspace.folder, "catalog", "trim").stderr


def test_tables_are_shown_in_no_glue_that_is_not_set(tmp_path: Path) -> None:
    done = command(Lake(tmp_path / "workspace", InProcess()).workspace.folder, "catalog", "publish")
    assert done.returncode == 2
    assert 'kind = "glue"' in done.stderr


def test_a_setting_that_is_wrong_is_told_with_its_code(on_aws: OnAws) -> None:
    done = command(on_aws.lake().workspace.folder, "sync", EVENTLAKE_AWS__REGION="europe")
    assert done.returncode == 2
    assert "aws.region" in done.stderr
    assert "invalid_settings.configuration" in done.stderr


def test_the_doctor_tries_every_right_by_name(on_aws: OnAws) -> None:
    lake = on_aws.lake(role_arn=on_aws.aws.role())
    before = glue_tables(on_aws)
    told = steps_told(lake, "doctor", "--expire-staging")
    assert [step for step in told.values() if step["status"] == "failed"] == []
    assert "assumed-role" in told["aws: identity"]["detail"]
    (rule,) = on_aws.aws.client("s3").get_bucket_lifecycle_configuration(Bucket=on_aws.bucket)["Rules"]
    assert rule["Filter"]["Prefix"] == "lake/segment-stage/"
    assert rule["Expiration"] == {"Days": 14}
    assert rule["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 14}
    left = on_aws.aws.client("s3").list_objects_v2(Bucket=on_aws.bucket)["Contents"]
    assert [one["Key"] for one in left] == ["lake/segment-data/connections/source=src1.json"]  # there before
    assert glue_tables(on_aws) == before  # nothing is left behind, not even a database


def test_the_doctor_compares_accounts_and_regions(on_aws: OnAws, monkeypatch: pytest.MonkeyPatch) -> None:
    role = on_aws.aws.role()
    lake = on_aws.lake(role_arn=role)
    told = examination(lake.place, "glue")
    assert (told["glue: account"]["status"], told["glue: account"]["detail"]) == ("passed", ACCOUNT)
    monkeypatch.setenv("EVENTLAKE_CATALOG__GLUE_CATALOG_ID", "999999999999")
    told = examination(on_aws.again(lake, role_arn=role).place, "glue")
    assert told["glue: account"]["status"] == "passed"  # it may be meant
    assert f"999999999999, another account's than that of who acts, {ACCOUNT}" in told["glue: account"]["detail"]

    elsewhere = f"far-{uuid.uuid4().hex}"
    far = {"LocationConstraint": "eu-west-1"}
    on_aws.aws.client("s3").create_bucket(Bucket=elsewhere, CreateBucketConfiguration=far)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", on_aws.aws.endpoint)

    def region_of(bucket: str) -> str:
        values = {"workspace_id": "w", "lake": {"root": f"s3://{bucket}"}, "aws": {"region": REGION}}
        return regions(Workspace(on_aws.folder, read_settings(values | {"catalog": {"kind": "glue"}}, "test")).lake())

    assert region_of(on_aws.bucket) == REGION
    with pytest.raises(InvalidSettingsError, match="the bucket is in eu-west-1, but Glue and EMR are asked in us-east"):
        region_of(elsewhere)


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
        told = examination(lake.place, "storage", "glue")
    assert told[step]["status"] == "failed"
    assert told[step]["code"] == f"insufficient_permissions.{code}"
    assert actions[0] in told[step]["fix"]


def steps_told(lake: Lake, *words: str) -> dict[str, dict[str, Any]]:
    """What a command says of each step."""
    done = command(lake.workspace.folder, *words, "--json")
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
        told = steps_told(lake, "connection", "check", "web")
    assert [step for step in told.values() if step["status"] == "failed"] == []
    assert in_glue(told) == {
        "account": "passed",
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
        told = examination(lake.place, "glue")
    passed = [step for step, status in in_glue(told).items() if status == "passed"]
    assert passed == ["account", "fetch schema", "database", "create table", "change table"]
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
        told = examination(lake.place, "glue")
    assert [name for name, status in in_glue(told).items() if status == "failed"] == [step]
    assert right in told[f"glue: {step}"]["fix"]
    assert told[f"glue: {step}"]["code"].startswith("insufficient_permissions.")
    assert glue_tables(on_aws) == before


@pytest.mark.usefixtures("default_database")
def test_that_a_namespace_may_be_made_is_tried_on_a_database_that_is_there(on_aws: OnAws) -> None:
    lake = rudder_lake(on_aws, role_arn=on_aws.aws.role(only=["s3:*", *RUDDER_GLUE]))
    before = glue_tables(on_aws)
    with rights_checked():
        told = examination(lake.place, "glue")["glue: database"]
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
        statuses = in_glue(examination(lake.place, "glue"))
    assert (statuses["database"], statuses["create table"]) == ("skipped", "passed")


def test_a_database_without_tables_stays_without(on_aws: OnAws) -> None:
    """Who may not make databases needs them to be there: the check does not ask for the right then."""
    given = [one for one in RUDDER_GLUE if one != "glue:CreateDatabase"]
    lake = rudder_lake(on_aws, role_arn=on_aws.aws.role(only=["s3:*", *given]))
    on_aws.aws.client("glue").create_database(DatabaseInput={"Name": lake.connection.database})
    before = glue_tables(on_aws)
    with rights_checked():
        told = examination(lake.place, "glue")
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
        told = examination(lake.place, "glue")["glue: create partitions"]
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
        told = examination(lake.place, "glue")["glue: create table"]
    (left,) = glue_tables(on_aws)[namespace]
    assert (told["status"], f"{namespace}.{left} was made" in told["detail"]) == ("failed", True)


def test_a_lake_of_rudderstacks_without_sources_says_what_its_check_needs(on_aws: OnAws) -> None:
    lake = rudder_lake(on_aws)
    other = on_aws.folder / "empty"
    settings = (lake.workspace.folder / "eventlake.toml").read_text()
    other.mkdir()
    (other / "eventlake.toml").write_text(settings)
    lake.workspace = Workspace.open(other)
    told = examination(lake.place, "glue")
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
