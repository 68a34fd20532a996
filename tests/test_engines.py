"""The files of a lake speak for themselves: DuckDB, pyarrow and Spark read the same rows and types from them."""

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from conftest import Lake, SetClock
from eventlake.archive.importer import import_file
from eventlake.demo.events import Recipe, write_archive
from eventlake.events import instants
from eventlake.query import query
from eventlake.runners.spark import SparkRunner
from eventlake.sync import jobs

TABLE = "track_measured"
MOST, LEAST = (Decimal(f"{sign}99999999999999999999999999999999.999999") for sign in ("", "-"))
TEXT = "nul \x00, emoji 🎉👩\u200d🚀, right to left \u202e, line\nbreak"
LONG_AGO, FAR_AWAY = "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"

Rows = list[dict[str, Any]]


def measured(message_id: str, received_at: str, properties: str) -> bytes:
    """A line of the raw archive; the properties are given as JSON text, so that numbers stay as they are written."""
    return (
        f'{{"type":"track","event":"Measured","messageId":"{message_id}","receivedAt":"{received_at}",'
        f'"properties":{properties}}}'
    ).encode()


def micros(text: str) -> int:
    instant = instants.parse(text)
    assert instant
    return instant.micros


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, spark: SparkRunner) -> Lake:
    """Three syncs: the second and the third add columns, and hold values that do not fit the columns there are."""
    base = tmp_path_factory.mktemp("engines")
    lake = Lake(base / "workspace", spark, clock=SetClock())
    lake.put(
        measured(
            "m1",
            "2026-11-15T03:20:30.123456Z",
            f'{{"whole":9223372036854775807,"amount":{MOST},"flag":true,"text":{json.dumps(TEXT)},'
            '"at":"1969-07-20T20:17:40.123456Z"}',
        ),
        measured(
            "m2",
            "2026-11-15T10:00:00Z",
            f'{{"whole":-9223372036854775808,"amount":{LEAST},"flag":false,"text":"","at":"{LONG_AGO}"}}',
        ),
        measured("m3", "2026-11-16T00:00:00Z", f'{{"whole":0,"amount":0.000001,"at":"{FAR_AWAY}","tags":[1,"a"]}}'),
        measured("m4", "1969-12-31T23:59:59.999999Z", '{"at":"2262-04-11T23:47:16.854775808Z"}'),
        b"not an event",
    )
    recipe = Recipe(events=400, hours=4, track_types=4, conflict_share=0.05, duplicate_share=0.05)
    for file in write_archive(recipe, base / "raw", files=2):
        import_file(lake.place.storage, lake.source.id, file, now_micros=0)
    lake.sync()
    lake.put(
        measured(
            "m5",
            "2026-11-15T10:30:00Z",
            f'{{"whole":"n/a","amount":1e33,"added":12,"at":"2400-02-29T12:00:00Z","later":"{FAR_AWAY}"}}',
        ),
        measured("m6", "2026-11-15T03:59:59.999999Z", '{"added":-12}'),
    )
    lake.sync()
    lake.put(measured("m7", "2026-11-15T10:31:00Z", '{"flag":"perhaps","aaa":1.5}'))
    lake.sync()
    return lake


EXPECTED_TYPES = {
    "message_id": "string",
    "received_at": "timestamp",
    "properties_whole": "bigint",
    "properties_amount": "decimal(38,6)",
    "properties_flag": "boolean",
    "properties_text": "string",
    "properties_at": "timestamp",
    "properties_tags": "string",
    "properties_added": "bigint",
    "properties_later": "timestamp",
    "properties_aaa": "decimal(38,6)",
    "_rescued_data": "string",
}


def row(message_id: str, received_at: str, day: str, hr: str, **values: Any) -> dict[str, Any]:
    whole = {**dict.fromkeys(EXPECTED_TYPES), "message_id": message_id, "received_at": micros(received_at)}
    rescued = values.pop("rescued", None)
    whole |= {f"properties_{name}": value for name, value in values.items()}
    return {**whole, "_rescued_data": rescued, "day": day, "hr": hr}


EXPECTED = [
    row(
        "m1",
        "2026-11-15T03:20:30.123456Z",
        "2026-11-15",
        "03",
        whole=2**63 - 1,
        amount=MOST,
        flag=True,
        text=TEXT,
        at=micros("1969-07-20T20:17:40.123456Z"),
    ),
    row(
        "m2",
        "2026-11-15T10:00:00Z",
        "2026-11-15",
        "10",
        whole=-(2**63),
        amount=LEAST,
        flag=False,
        text="",
        at=micros(LONG_AGO),
    ),
    row(
        "m3",
        "2026-11-16T00:00:00Z",
        "2026-11-16",
        "00",
        whole=0,
        amount=Decimal("0.000001"),
        at=micros(FAR_AWAY),
        tags='[1,"a"]',
    ),
    row(
        "m4",
        "1969-12-31T23:59:59.999999Z",
        "1969-12-31",
        "23",
        at=2**63 // 1000,  # the first microsecond that nanoseconds since 1970 cannot tell
        rescued={"/properties/at": {"value": "2262-04-11T23:47:16.854775808Z", "reason": "finer than a microsecond"}},
    ),
    row(
        "m5",
        "2026-11-15T10:30:00Z",
        "2026-11-15",
        "10",
        added=12,
        at=micros("2400-02-29T12:00:00Z"),
        later=micros(FAR_AWAY),
        rescued={
            "/properties/whole": {"value": "n/a", "reason": "not a bigint"},
            "/properties/amount": {"value": 1e33, "reason": "does not fit"},
        },
    ),
    row("m6", "2026-11-15T03:59:59.999999Z", "2026-11-15", "03", added=-12),
    row(
        "m7",
        "2026-11-15T10:31:00Z",
        "2026-11-15",
        "10",
        aaa=Decimal("1.5"),
        rescued={"/properties/flag": {"value": "perhaps", "reason": "not a boolean"}},
    ),
]


# Each engine reads a folder of Parquet files by its own means, and knows nothing of the catalog.


def folder_of(lake: Lake, table: str) -> Path:
    return lake.root / "segment-data" / "data" / lake.source.id / f"segment_type={table}"


def files_of(lake: Lake, table: str) -> list[Path]:
    return sorted(folder_of(lake, table).rglob("*.parquet"))


def with_duckdb(lake: Lake, table: str, _: SparkRunner) -> pa.Table:
    """Read by DuckDB, which takes every folder with an equals sign for a column, also the one that is the table."""
    with duckdb.connect(":memory:") as connection:
        connection.execute("SET TimeZone = 'UTC'")
        options = "hive_partitioning=true, hive_types_autocast=false, union_by_name=true"
        return connection.sql(
            f"SELECT * EXCLUDE segment_type FROM read_parquet('{folder_of(lake, table)}/**/*.parquet', {options})"
        ).to_arrow_table()


def with_pyarrow(lake: Lake, table: str, _: SparkRunner) -> pa.Table:
    found = files_of(lake, table)
    keys = pa.schema([("day", pa.string()), ("hr", pa.string())])
    schema = pa.unify_schemas([*(pq.read_schema(file) for file in found), keys])
    return ds.dataset(folder_of(lake, table), schema, partitioning=ds.partitioning(keys, flavor="hive")).to_table()


def with_pyarrow_file_by_file(lake: Lake, table: str, _: SparkRunner) -> pa.Table:
    parts = []
    for file in files_of(lake, table):
        part = pq.ParquetFile(file).read()
        for key in ("day", "hr"):
            value = next(p.partition("=")[2] for p in file.parts if p.startswith(f"{key}="))
            part = part.append_column(key, pa.array([value] * part.num_rows, pa.string()))
        parts.append(part)
    return pa.concat_tables(parts, promote_options="default")


def with_spark(lake: Lake, table: str, spark: SparkRunner) -> pa.Table:
    """Read by Spark, and brought here as plain numbers, text and decimals: no client may bend a time on the way."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    assert spark._context
    session = SparkSession.builder.getOrCreate().newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    frame = session.read.option("mergeSchema", True).parquet(str(folder_of(lake, table)))
    of_spark = {
        "bigint": pa.int64(),
        "boolean": pa.bool_(),
        "decimal(38,6)": pa.decimal128(38, 6),
        "string": pa.string(),
        "timestamp": pa.timestamp("us", tz="UTC"),
    }
    schema = pa.schema([(f.name, of_spark[f.dataType.simpleString()]) for f in frame.schema.fields])
    times = [name for name, kind in frame.dtypes if kind == "timestamp"]
    rows = frame.withColumns({name: F.unix_micros(name) for name in times}).collect()
    return pa.table({f.name: pa.array([r[f.name] for r in rows], f.type) for f in schema}, schema)


def with_eventlake(lake: Lake, table: str, _: SparkRunner) -> pa.Table:
    return query(lake.place, f'select * from web."{table}"')


Engine = Callable[[Lake, str, SparkRunner], pa.Table]
ENGINES: list[Engine] = [with_duckdb, with_pyarrow, with_pyarrow_file_by_file, with_spark, with_eventlake]
each_engine = pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.__name__)


def plain(found: pa.Table) -> Rows:
    """Rows in order of their messages, with times as microseconds."""
    numbers = pa.schema([(f.name, pa.int64() if pa.types.is_timestamp(f.type) else f.type) for f in found.schema])
    rows: Rows = found.cast(numbers).to_pylist()
    return sorted(rows, key=lambda row: str(row["message_id"]))


def names_of_types(found: pa.Table) -> dict[str, str]:
    names = {
        "int64": "bigint",
        "bool": "boolean",
        "decimal128(38, 6)": "decimal(38,6)",
        "timestamp[us, tz=UTC]": "timestamp",
    }
    return {field.name: names.get(str(field.type), str(field.type)) for field in found.schema}


@each_engine
def test_every_engine_reads_the_values_that_were_sent(lake: Lake, spark: SparkRunner, engine: Engine) -> None:
    rows = plain(engine(lake, TABLE, spark))
    for found in rows:
        found["_rescued_data"] = found["_rescued_data"] and json.loads(found["_rescued_data"])
    assert [{name: found[name] for name in EXPECTED[0]} for found in rows] == EXPECTED


@each_engine
def test_every_engine_sees_the_types_of_the_catalog(lake: Lake, spark: SparkRunner, engine: Engine) -> None:
    catalog = lake.types(TABLE)
    assert {name: catalog[name] for name in EXPECTED_TYPES} == EXPECTED_TYPES
    assert names_of_types(engine(lake, TABLE, spark)) == catalog | {"day": "string", "hr": "string"}


@pytest.mark.parametrize("engine", [with_pyarrow, with_spark, with_eventlake], ids=lambda engine: engine.__name__)
def test_every_engine_reads_every_table_alike(lake: Lake, spark: SparkRunner, engine: Engine) -> None:
    tables = lake.tables()
    assert len(tables) > 8
    for table in tables:
        one, other = with_duckdb(lake, table, spark), engine(lake, table, spark)
        assert names_of_types(other) == names_of_types(one)
        columns = sorted(one.column_names)
        assert plain(other.select(columns)) == plain(one.select(columns))


def test_the_rows_of_the_catalog_and_of_the_files_are_as_many(lake: Lake, spark: SparkRunner) -> None:
    loaded = sum(file.loaded for file in lake.place.ledger.raw_files("src1").values())
    assert sum(with_duckdb(lake, table, spark).num_rows for table in lake.tables()) == loaded == 407


def test_partition_columns_are_text_with_their_leading_zeros(lake: Lake) -> None:
    rows = lake.query(f"select distinct day, hr from web.{TABLE} order by all")
    assert [(row["day"], row["hr"]) for row in rows] == [
        ("1969-12-31", "23"),
        ("2026-11-15", "03"),
        ("2026-11-15", "10"),
        ("2026-11-16", "00"),
    ]
    assert lake.query(f"select message_id from web.{TABLE} where hr = '03' and day = '2026-11-15' order by 1") == [
        {"message_id": "m1"},
        {"message_id": "m6"},
    ]


def test_files_from_before_a_column_came_show_it_as_null(lake: Lake) -> None:
    old = [file for file in files_of(lake, TABLE) if "properties_added" not in pq.read_schema(file).names]
    assert len(old) == 4
    found = lake.query(f"select message_id, properties_added as n, properties_aaa as d from web.{TABLE} order by 1")
    assert [(row["message_id"], row["n"], row["d"]) for row in found] == [
        ("m1", None, None),
        ("m2", None, None),
        ("m3", None, None),
        ("m4", None, None),
        ("m5", 12, None),
        ("m6", -12, None),
        ("m7", None, Decimal("1.5")),
    ]


# What lies in the files


def parquet_columns(lake: Lake) -> Iterator[tuple[Path, Any]]:
    for file in lake.root.rglob("*.parquet"):
        schema = pq.ParquetFile(file).schema
        yield from ((file, schema.column(number)) for number in range(len(schema.names)))


def test_times_are_microseconds_in_utc_and_decimals_have_sixteen_bytes(lake: Lake) -> None:
    times, decimals = 0, 0
    for file, column in parquet_columns(lake):
        assert column.physical_type != "INT96", file
        kind = json.loads(column.logical_type.to_json())
        if kind["Type"] == "Timestamp":
            times += 1
            assert (column.physical_type, kind["isAdjustedToUTC"], kind["timeUnit"]) == ("INT64", True, "microseconds")
        if kind["Type"] == "Decimal":
            decimals += 1
            assert (column.physical_type, column.length) == ("FIXED_LEN_BYTE_ARRAY", 16)
            assert (column.precision, column.scale) == (38, 6)
    assert times > 50
    assert decimals > 5


def test_text_is_marked_as_text(lake: Lake) -> None:
    kinds = {
        (column.name, json.loads(column.logical_type.to_json())["Type"])
        for file, column in parquet_columns(lake)
        if column.physical_type == "BYTE_ARRAY"
    }
    assert {name for name, kind in kinds if kind != "String"} == {"content"}  # of quarantined lines: bytes as they came


def test_every_file_has_the_columns_of_its_table_in_their_order(lake: Lake) -> None:
    """A reader that goes by position, as Hive and Trino can, must find every column where the catalog has it."""
    latest = lake.place.runs.get(None).run_id
    for table in lake.place.catalog.tables():
        columns = [column.name for column in table.schema.columns]
        for file in lake.place.ledger.data_files(table.source_id, table.table_key):
            names = pq.read_schema(lake.root / file.path).names
            assert names == columns[: len(names)], table.name
            if file.run_id == latest:
                assert columns[len(names) :] in ([], ["_rescued_data"])


def test_tables_written_anew_keep_their_types_in_every_file(tmp_path: Path, spark: SparkRunner) -> None:
    lake = Lake(tmp_path / "workspace", spark, clock=SetClock())
    lake.put(measured("m1", "2026-11-15T03:00:00Z", '{"amount":1,"zzz":true}'))
    lake.sync()
    lake.put(measured("m2", "2026-11-16T03:00:00Z", '{"amount":1.5,"aaa":2}'))
    lake.sync()
    types = lake.types(TABLE)
    assert types["properties_amount"] == "bigint"
    lake.run(jobs.rebuild(lake.workspace.connections.preview("web", {"date_partition": "day"})))
    lake.put(measured("m3", "2026-11-16T04:00:00Z", '{"amount":2.5}'))
    lake.sync()
    assert lake.types(TABLE) == types
    assert len(files_of(lake, TABLE)) == 3
    for file in files_of(lake, TABLE):
        assert names_of_types(pq.ParquetFile(file).read()).items() <= types.items()
    assert [row["properties_amount"] for row in lake.rows(TABLE)] == [1, 1, 2]
