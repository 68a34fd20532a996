"""What runs ask of every catalog; then what is special about Glue. What is special about Hive is in test_hive.py."""

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aws import ACCOUNT, REGION, Aws
from conftest import new_database
from eventlake.aws.session import AwsOptions
from eventlake.catalog import described
from eventlake.catalog.base import Catalog, TableChange
from eventlake.catalog.embedded import EmbeddedCatalog
from eventlake.catalog.glue import GlueCatalog
from eventlake.catalog.hive import HiveCatalog
from eventlake.catalog.hive_client import Metastore
from eventlake.catalog.mirrored import MirroredCatalog
from eventlake.catalog.spread import within_limits
from eventlake.control.database import connect
from eventlake.errors import CatalogLimitError, InvalidSettingsError, PartitionMismatchError
from eventlake.lake.layout import DatePartition
from eventlake.lake.report_columns import REPORT_COLUMNS
from eventlake.schema.evolve import Column
from eventlake.schema.types import ColumnType
from metastores import HiveServer

ROOT = "s3://bucket/prefix"
ID = Column("message_id", ColumnType.STRING, "/messageId")
PRICE = Column("properties_price", ColumnType.BIGINT, "/properties/price")
NAME = Column("properties_name", ColumnType.STRING, "/properties/name")
HOURS = (("2026-11-15", "10"), ("2026-11-15", "11"))


@pytest.fixture
def database() -> str:
    return f"web_{uuid.uuid4().hex}"


@pytest.fixture
def embedded(tmp_path: Path) -> EmbeddedCatalog:
    return EmbeddedCatalog(connect(new_database(), tmp_path), "default")


@pytest.fixture
def glue(aws: Aws, database: str) -> GlueCatalog:
    return GlueCatalog(AwsOptions(REGION), ROOT, lambda: dict.fromkeys(["src0", "src1"], database))


@pytest.fixture
def hive(metastore: HiveServer, database: str, tmp_path: Path) -> HiveCatalog:
    server = Metastore([metastore.uri], timeout=60)
    return HiveCatalog(server, f"file://{tmp_path}/lake", lambda: dict.fromkeys(["src0", "src1"], database))


@pytest.fixture(
    params=["embedded", "glue", "hive", "mirrored in glue", pytest.param("mirrored in hive", marks=pytest.mark.long)]
)
def catalog(request: pytest.FixtureRequest) -> Catalog:
    kind, _, other = request.param.partition(" in ")
    if other:
        return MirroredCatalog(request.getfixturevalue("embedded"), request.getfixturevalue(other))
    found: Catalog = request.getfixturevalue(kind)
    return found


@pytest.fixture
def change(database: str) -> TableChange:
    return TableChange(
        database,
        "track_a",
        "src1",
        "track_a",
        "segment-data/data/src1/segment_type=track_a",
        ("day", "hr"),
        added=(ID, PRICE),
        partitions=HOURS[:1],
    )


def test_a_table_is_told_as_it_was_made(catalog: Catalog, change: TableChange) -> None:
    assert catalog.tables() == []
    assert catalog.prepare(change.database) == frozenset()
    for run in ("1", "2"):  # the second has no effect
        catalog.apply([change], run_id=run, at=int(run))
        (table,) = catalog.tables()
        assert (table.database, table.name, table.source_id) == (change.database, "track_a", "src1")
        assert (table.table_key, table.location) == ("track_a", change.location)
        assert table.partition_keys == ("day", "hr")
        assert table.schema.columns == (ID, PRICE)
        assert catalog.partitions(change.database, "track_a") == [HOURS[0]]
    assert {(event.column, event.change, event.run_id) for event in catalog.history(change.database, "track_a")} == {
        ("message_id", "added", "1"),
        ("properties_price", "added", "1"),
    }


def test_columns_are_appended_and_types_change_only_on_demand(catalog: Catalog, change: TableChange) -> None:
    catalog.apply([change], run_id="1", at=1)
    other = Column("properties_price", ColumnType.STRING, "/properties/price")
    catalog.apply([replace(change, added=(NAME, other), partitions=HOURS)], run_id="2", at=2)
    (table,) = catalog.tables("src1")
    assert table.schema.columns == (ID, PRICE, NAME)
    assert catalog.partitions(change.database, "track_a") == list(HOURS)
    retyped = replace(change, added=(), retyped=(("properties_price", ColumnType.STRING),))
    for run in ("3", "4"):
        catalog.apply([retyped], run_id=run, at=int(run))
    (table,) = catalog.tables("src1")
    assert table.schema.columns == (ID, other, NAME)
    last = catalog.history(change.database, "track_a")[-1]
    assert (last.column, last.change, last.type, last.old_type, last.run_id) == (
        "properties_price",
        "retyped",
        "string",
        "bigint",
        "3",
    )


@pytest.mark.parametrize("layout", DatePartition)
def test_partitions_of_all_layouts(
    catalog: Catalog, change: TableChange, layout: DatePartition, tmp_path: Path
) -> None:
    values = tuple(layout.values(number) for number in range(490_000, 490_250))
    for number in range(490_000, 490_250):  # as when files are there: else a metastore makes folders, which takes long
        (tmp_path / "lake" / change.location / layout.folder(number)).mkdir(parents=True)
    catalog.apply([replace(change, partition_keys=layout.keys, partitions=values)], run_id="1", at=1)
    assert catalog.partitions(change.database, "track_a") == sorted(values)
    others = [layout.values(number) for number in range(480_000, 481_000)]  # with more names than a query takes
    assert catalog.partitions(change.database, "track_a", {*values[-3:], *others}) == sorted(values[-3:])
    assert catalog.partitions(change.database, "track_a", ()) == []


def test_partitions_written_anew_replace_the_old(catalog: Catalog, change: TableChange) -> None:
    catalog.apply([replace(change, partitions=HOURS)], run_id="1", at=1)
    days = (("2026-11-15",), ("2026-11-16",))
    catalog.apply([replace(change, partition_keys=("day",), partitions=days)], run_id="2", at=2)
    assert catalog.partitions(change.database, "track_a") == list(days)
    (table,) = catalog.tables()
    assert table.partition_keys == ("day",)


def test_partitions_that_are_forgotten_go_and_the_others_stay(catalog: Catalog, change: TableChange) -> None:
    catalog.apply([replace(change, partitions=HOURS)], run_id="1", at=1)
    later = ("2026-11-15", "12")
    for run in ("2", "3"):  # the second has no effect
        catalog.apply([replace(change, partitions=(later,), forgotten=HOURS[:1])], run_id=run, at=int(run))
        assert catalog.partitions(change.database, "track_a") == [HOURS[1], later]


def test_of_many_tables_that_a_catalog_does_not_take_some_are_told_and_the_rest_is_counted(change: TableChange) -> None:
    def apply(one: TableChange) -> None:
        if one.table != "b":
            raise CatalogLimitError("no room", fix="make some")

    def told(tables: int) -> list[str]:
        changes = [replace(change, table=name) for name in ("b", *(f"a{n}" for n in range(tables)))]
        return within_limits(changes, apply, "Glue", threads=2)

    assert told(1) == [f"{change.database}.a0 is not as it should be in Glue: no room"]
    assert len(told(10)) == 10
    assert told(200)[10:] == ["190 more tables are not as they should be in Glue"]


def test_tables_are_told_by_source_and_forgotten(catalog: Catalog, change: TableChange) -> None:
    names = [f"track_{n}" for n in range(5)]
    changes = [replace(change, table=name, table_key=name, source_id=f"src{n % 2}") for n, name in enumerate(names)]
    catalog.apply(changes, run_id="1", at=1)
    assert [table.name for table in catalog.tables()] == names
    assert [table.name for table in catalog.tables("src1")] == ["track_1", "track_3"]
    for _ in range(2):
        catalog.drop(change.database, "track_1")
        assert [table.name for table in catalog.tables("src1")] == ["track_3"]
        assert catalog.partitions(change.database, "track_1") == []
        assert catalog.history(change.database, "track_1") == []


def test_runs_at_once_lose_nothing(catalog: Catalog, change: TableChange) -> None:
    columns = [Column(f"properties_{n}", ColumnType.STRING, f"/properties/{n}") for n in range(6)]
    catalog.apply([change], run_id="0", at=0)

    def run(number: int) -> None:
        catalog.apply([replace(change, added=(columns[number],), partitions=HOURS)], run_id=str(number), at=number)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(run, range(6)))
    (table,) = catalog.tables()
    assert table.schema.columns[:2] == (ID, PRICE)
    assert set(table.schema.columns[2:]) == set(columns)
    assert catalog.partitions(change.database, "track_a") == list(HOURS)


# Glue


def told(aws: Aws, change: TableChange) -> dict[str, Any]:
    table: dict[str, Any] = aws.client("glue").get_table(DatabaseName=change.database, Name=change.table)["Table"]
    return table


def test_glue_has_tables_that_athena_reads(aws: Aws, glue: GlueCatalog, change: TableChange) -> None:
    glue.apply([change], run_id="1", at=1)
    table = told(aws, change)
    storage = table["StorageDescriptor"]
    assert table["TableType"] == "EXTERNAL_TABLE"
    assert table["Parameters"]["EXTERNAL"] == "TRUE"
    assert storage["Location"] == "s3://bucket/prefix/segment-data/data/src1/segment_type=track_a"
    assert storage["InputFormat"] == "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"
    assert storage["OutputFormat"] == "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat"
    assert storage["SerdeInfo"] == {
        "SerializationLibrary": "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
        "Parameters": {"serialization.format": "1"},
    }
    assert [(column["Name"], column["Type"]) for column in storage["Columns"]] == [
        ("message_id", "string"),
        ("properties_price", "bigint"),
    ]
    assert [(key["Name"], key["Type"]) for key in table["PartitionKeys"]] == [("day", "string"), ("hr", "string")]
    client = aws.client("glue")
    (partition,) = client.get_partitions(DatabaseName=change.database, TableName="track_a")["Partitions"]
    assert partition["Values"] == ["2026-11-15", "10"]
    assert partition["StorageDescriptor"]["Location"] == f"{storage['Location']}/day=2026-11-15/hr=10"
    database = client.get_database(Name=change.database)["Database"]
    assert database["LocationUri"] == "s3://bucket/prefix/segment-data/"


def test_what_people_add_to_a_table_stays(aws: Aws, glue: GlueCatalog, change: TableChange) -> None:
    glue.apply([change], run_id="1", at=1)
    table = told(aws, change)
    theirs = {key: table[key] for key in ("Name", "StorageDescriptor", "PartitionKeys", "TableType", "Parameters")}
    theirs["Description"] = "All clicks"
    theirs["Parameters"]["team"] = "growth"
    theirs["StorageDescriptor"]["Columns"][1]["Comment"] = "in cents"
    theirs["StorageDescriptor"]["Columns"].append({"Name": "theirs", "Type": "array<string>"})
    theirs["PartitionKeys"][0]["Comment"] = "UTC"
    aws.client("glue").update_table(DatabaseName=change.database, TableInput=theirs)

    glue.apply([replace(change, added=(NAME,))], run_id="2", at=2)

    table = told(aws, change)
    assert table["Description"] == "All clicks"
    assert table["Parameters"]["team"] == "growth"
    columns = table["StorageDescriptor"]["Columns"]
    assert [column["Name"] for column in columns] == ["message_id", "properties_price", "theirs", "properties_name"]
    assert columns[1]["Comment"] == "in cents"
    assert table["PartitionKeys"][0]["Comment"] == "UTC"
    assert [table.schema.columns for table in glue.tables()] == [(ID, PRICE, NAME)]


def test_nothing_is_written_to_glue_if_nothing_changed(aws: Aws, glue: GlueCatalog, change: TableChange) -> None:
    glue.apply([change], run_id="1", at=1)
    before = told(aws, change)["VersionId"]
    glue.apply([replace(change, partitions=HOURS)], run_id="2", at=2)
    assert told(aws, change)["VersionId"] == before


def test_partitions_have_the_new_type_too(aws: Aws, glue: GlueCatalog, change: TableChange) -> None:
    glue.apply([replace(change, partitions=HOURS)], run_id="1", at=1)
    glue.apply([replace(change, retyped=(("properties_price", ColumnType.STRING),))], run_id="2", at=2)
    found = aws.client("glue").get_partitions(DatabaseName=change.database, TableName="track_a")["Partitions"]
    assert len(found) == 2
    for partition in found:
        types = {column["Name"]: column["Type"] for column in partition["StorageDescriptor"]["Columns"]}
        assert types["properties_price"] == "string"


def test_tables_of_others_are_named_and_left_alone(aws: Aws, glue: GlueCatalog, change: TableChange) -> None:
    glue.apply([change], run_id="1", at=1)
    aws.client("glue").create_table(DatabaseName=change.database, TableInput={"Name": "identify"})
    assert glue.prepare(change.database) == {"identify"}
    assert [table.name for table in glue.tables()] == ["track_a"]


@pytest.mark.parametrize("theirs", [{"Name": "track_a"}, "another lake"])
def test_a_table_of_others_is_neither_changed_nor_dropped(
    aws: Aws, glue: GlueCatalog, database: str, change: TableChange, theirs: Any
) -> None:
    glue.prepare(database)
    if theirs == "another lake":
        other = GlueCatalog(AwsOptions(REGION), "s3://another/lake", lambda: {"src1": database})
        other.apply([change], run_id="1", at=1)
    else:
        aws.client("glue").create_table(DatabaseName=database, TableInput=theirs)
    before = told(aws, change)
    assert glue.prepare(database) == {"track_a"}
    with pytest.raises(InvalidSettingsError, match="not made by this lake"):
        glue.apply([change], run_id="2", at=2)
    glue.drop(database, "track_a")
    assert told(aws, change) == before


def test_a_table_whose_making_was_interrupted_is_not_taken_for_whole(
    aws: Aws, embedded: EmbeddedCatalog, glue: GlueCatalog, change: TableChange
) -> None:
    mirrored = MirroredCatalog(embedded, glue)
    embedded.apply([replace(change, partitions=HOURS)], run_id="1", at=1)
    glue.prepare(change.database)
    half = described.changed(None, replace(change, partitions=HOURS), f"{ROOT}/{change.location}", run_id="1", at=1)
    aws.client("glue").create_table(DatabaseName=change.database, TableInput=half)  # and then it died
    assert glue.tables() == []
    mirrored.apply([replace(change, added=(), partitions=())], run_id="2", at=2)
    assert [table.name for table in glue.tables()] == ["track_a"]
    assert glue.partitions(change.database, "track_a") == list(HOURS)


def test_reports_of_somebody_else_stay_theirs(aws: Aws, glue: GlueCatalog, database: str) -> None:
    glue.register_report("src1", "2026-11-15", "1")
    other = GlueCatalog(AwsOptions(REGION), "s3://another/lake", lambda: {"src1": database})
    other.register_report("srcX", "2026-11-15", "1")
    found = aws.client("glue").get_partitions(DatabaseName="__segment_datalake", TableName="sync_reports")
    assert "srcX" not in {partition["Values"][0] for partition in found["Partitions"]}


def test_old_versions_are_trimmed(aws: Aws, glue: GlueCatalog, change: TableChange) -> None:
    for number in range(6):
        column = Column(f"properties_{number}", ColumnType.STRING, "")
        glue.apply([replace(change, added=(column,))], run_id=str(number), at=number)
    place = {"DatabaseName": change.database, "TableName": "track_a"}

    def versions() -> int:
        return len(aws.client("glue").get_table_versions(**place)["TableVersions"])

    before = versions()
    assert before > 2
    assert glue.trim_versions(change.database, "track_a", keep=2) == before - 2
    assert versions() == 2
    assert len(glue.tables()[0].schema.columns) == 6
    assert glue.trim_versions(change.database, "track_a", keep=2) == 0
    assert glue.trim_versions(change.database, "no_such_table", keep=2) == 0


def test_reports_have_their_table(aws: Aws, glue: GlueCatalog) -> None:
    source, client = uuid.uuid4().hex, aws.client("glue")
    glue.make_database("__segment_datalake")
    with suppress(
        client.exceptions.EntityNotFoundException
    ):  # another test's lake may have made it for its own reports
        client.delete_table(DatabaseName="__segment_datalake", Name="sync_reports")
    for _ in range(2):
        glue.register_report(source, "2026-11-15", "1")
    table = client.get_table(DatabaseName="__segment_datalake", Name="sync_reports")["Table"]
    assert [key["Name"] for key in table["PartitionKeys"]] == ["source_id", "day"]
    assert table["StorageDescriptor"]["SerdeInfo"]["SerializationLibrary"] == "org.openx.data.jsonserde.JsonSerDe"
    assert table["StorageDescriptor"]["Location"] == f"{ROOT}/segment-data/reports"
    names = [column["Name"] for column in table["StorageDescriptor"]["Columns"] + table["PartitionKeys"]]
    assert sorted(names) == sorted(column.name for column in REPORT_COLUMNS if column.duckdb != "JSON")
    found = client.get_partition(
        DatabaseName="__segment_datalake", TableName="sync_reports", PartitionValues=[source, "2026-11-15"]
    )["Partition"]
    assert found["StorageDescriptor"]["Location"] == f"{ROOT}/segment-data/reports/day=2026-11-15/source={source}"


# Both


@pytest.fixture
def mirrored(embedded: EmbeddedCatalog, glue: GlueCatalog) -> MirroredCatalog:
    return MirroredCatalog(embedded, glue)


@pytest.mark.parametrize("heal", [lambda catalog, change: catalog.apply([change], run_id="2", at=2), None])
def test_a_table_lost_in_glue_comes_back_whole(
    mirrored: MirroredCatalog, glue: GlueCatalog, change: TableChange, heal: Callable[..., None] | None
) -> None:
    mirrored.apply([replace(change, partitions=HOURS)], run_id="1", at=1)
    glue.drop(change.database, "track_a")
    if heal:
        heal(mirrored, replace(change, added=(), partitions=()))
    else:
        assert mirrored.publish(run_id="publish", at=2) == (1, [])
    (table,) = glue.tables()
    assert table.schema.columns == (ID, PRICE)
    assert glue.partitions(change.database, "track_a") == list(HOURS)


def test_what_happens_in_glue_does_not_change_how_events_are_read(
    aws: Aws, mirrored: MirroredCatalog, change: TableChange
) -> None:
    mirrored.apply([change], run_id="1", at=1)
    table = told(aws, change)
    table["StorageDescriptor"]["Columns"][1]["Type"] = "double"
    keep = ("Name", "StorageDescriptor", "PartitionKeys", "TableType", "Parameters")
    aws.client("glue").update_table(DatabaseName=change.database, TableInput={key: table[key] for key in keep})
    assert [table.schema.columns for table in mirrored.tables()] == [(ID, PRICE)]
    mirrored.apply([change], run_id="2", at=2)
    assert told(aws, change)["StorageDescriptor"]["Columns"][1]["Type"] == "bigint"


def test_a_table_with_other_partitions_is_noticed_before_anything_is_written(
    aws: Aws, mirrored: MirroredCatalog, change: TableChange
) -> None:
    mirrored.apply([change], run_id="1", at=1)
    table = told(aws, change)
    keep = ("Name", "StorageDescriptor", "TableType", "Parameters")
    wrong = {key: table[key] for key in keep} | {"PartitionKeys": [{"Name": "date", "Type": "string"}]}
    aws.client("glue").update_table(DatabaseName=change.database, TableInput=wrong)
    with pytest.raises(PartitionMismatchError, match="partitioned by date"):
        mirrored.prepare(change.database)


def test_another_account_can_be_named(aws: Aws, database: str, change: TableChange) -> None:
    glue = GlueCatalog(AwsOptions(REGION), ROOT, lambda: dict.fromkeys(["src0", "src1"], database), catalog_id=ACCOUNT)
    glue.apply([change], run_id="1", at=1)
    assert [table.name for table in glue.tables()] == ["track_a"]
