"""Other ways to turn an archive into Parquet: what one writes in ten lines, each run as a process of its own.

One schema for all tables or one per table, no deduplication, nobody who counts. `--schema` gives a schema that was
inferred before (`--infer` writes it), as one has who loads daily. `--concede` switches on what it takes to get a load
of hostile events to its end; see `bench.lossless`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LONGEST_FOLDER = 200


@dataclass(frozen=True)
class Way:
    """How a load is to be done."""

    codec: str = "snappy"
    classes: Path | None = None  # a class cache, from which Spark starts sooner; made if it is not there
    concede: frozenset[str] = frozenset()
    schema: Path | None = None  # that is known before


def _spark(way: Way) -> Any:
    from pyspark.sql import SparkSession  # noqa: PLC0415 - the others start without it

    return (
        SparkSession.builder.master("local[*]")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.extraJavaOptions", _java_options(way.classes))
        .config("spark.sql.caseSensitive", str("case_sensitive" in way.concede).lower())
        .config("spark.sql.parquet.compression.codec", way.codec)
        .getOrCreate()
    )


def _java_options(classes: Path | None) -> str:
    if classes is None:
        return ""
    return f"-Xlog:cds*=off -XX:{'SharedArchiveFile' if classes.exists() else 'ArchiveClassesAtExit'}={classes}"


def _stop(spark: Any, way: Way) -> None:
    is_new = way.classes and not way.classes.exists()
    java = spark.sparkContext._gateway
    spark.stop()
    if is_new:
        java.shutdown()
        java.proc.stdin.close()
        java.proc.wait()  # it writes the cache when it ends


def naive_spark(source: Path, target: Path, way: Way) -> None:
    """Read all lines as JSON with an inferred schema, and write one dataset partitioned by table and hour."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - the name everyone knows it by
    from pyspark.sql.types import StructType  # noqa: PLC0415

    spark = _spark(way)
    reader = spark.read
    if way.schema:
        reader = reader.schema(StructType.fromJson(json.loads(way.schema.read_text())))
    received_at = F.to_timestamp("receivedAt")
    name = F.regexp_replace(F.lower("event"), "[^a-z0-9]+", "_")
    if "short_names" in way.concede:
        name = F.substring(name, 1, _LONGEST_FOLDER)
    table = F.when(F.col("type") == "track", name)
    (
        reader.json(str(source))
        .withColumn("segment_type", table.otherwise(F.col("type")))
        .withColumn("day", F.date_format(received_at, "yyyy-MM-dd"))
        .withColumn("hr", F.date_format(received_at, "HH"))
        .write.partitionBy("segment_type", "day", "hr")
        .parquet(str(target))
    )
    _stop(spark, way)


def naive_spark_rudder(source: Path, target: Path, way: Way) -> None:
    """The same as RudderStack lays events out: track calls also in the event's own table, identify calls in `users`."""
    from pyspark.sql import DataFrame  # noqa: PLC0415
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - the name everyone knows it by

    spark = _spark(way)
    received_at = F.to_timestamp("receivedAt")
    events = (
        spark.read.json(str(source))
        .withColumn("day", F.date_format(received_at, "yyyy-MM-dd"))
        .withColumn("hr", F.date_format(received_at, "HH"))
        .cache()
    )
    of_call = F.when(F.col("type") == "identify", "identifies").otherwise(F.concat("type", F.lit("s")))
    name = F.regexp_replace(F.lower("event"), "[^a-z0-9]+", "_")
    tracks = events.where("type = 'track'").drop("properties", "traits").withColumn("table", F.lit("tracks"))
    others = events.where("type <> 'track'").withColumn("table", of_call)
    own = events.where("type = 'track'").withColumn("table", name)
    users = events.where("type = 'identify' AND trim(userId) <> ''").withColumn("table", F.lit("users"))
    rows = reduce(partial(DataFrame.unionByName, allowMissingColumns=True), (tracks, others, own, users))
    rows.write.partitionBy("table", "day", "hr").parquet(str(target))
    _stop(spark, way)


def spark_schema(source: Path, target: Path) -> None:
    spark = _spark(Way())
    target.write_text(spark.read.json(str(source)).schema.json())
    spark.stop()


# Types are inferred from all lines, as Spark does: with DuckDB's sample of 20,480 the first value of another kind after
# it ends the load. Without maps, for Spark's reader makes none either.
_INFERRED = "sample_size = -1, map_inference_threshold = -1"


def duckdb_copy(source: Path, target: Path, way: Way) -> None:
    """Do the same with DuckDB's own JSON reader, on all cores."""
    import duckdb  # noqa: PLC0415

    name = "regexp_replace(lower(event), '[^a-z0-9]+', '_', 'g')"
    if "short_names" in way.concede:
        name = f"left({name}, {_LONGEST_FOLDER})"
    ignore = ", ignore_errors = true" if "ignore_errors" in way.concede else ""
    how = f"columns = {way.schema.read_text()}" if way.schema else _INFERRED
    duckdb.sql("SET TimeZone = 'UTC'")
    duckdb.sql(f"SET temp_directory = '{target.parent}'")  # else what does not fit into memory goes to where one stands
    duckdb.sql(
        f"""
        COPY (
            SELECT *,
                CASE type WHEN 'track' THEN {name} ELSE type END AS segment_type,
                strftime(receivedAt, '%Y-%m-%d') AS day,
                strftime(receivedAt, '%H') AS hr
            FROM read_ndjson($files, {how}{ignore})
        ) TO $target (FORMAT parquet, COMPRESSION {way.codec}, PARTITION_BY (segment_type, day, hr))
        """,
        params={"files": f"{source}/*", "target": str(target)},
    )


def duckdb_schema(source: Path, target: Path) -> None:
    import duckdb  # noqa: PLC0415

    query = f"DESCRIBE SELECT * FROM read_ndjson($files, {_INFERRED})"
    found = duckdb.execute(query, {"files": f"{source}/*"}).fetchall()

    def quoted(text: str) -> str:
        return "'" + text.replace("'", "''") + "'"

    target.write_text("{" + ", ".join(f"{quoted(name)}: {quoted(kind)}" for name, kind, *_ in found) + "}")


def dlt_parquet(source: Path, target: Path, way: Way) -> None:
    """One table per event with dlt, nested values in tables of their own, as it does by itself."""
    os.environ["RUNTIME__DLTHUB_TELEMETRY"] = "false"
    os.environ["NORMALIZE__DATA_WRITER__COMPRESSION"] = way.codec
    import dlt  # noqa: PLC0415
    from dlt.common import json as dlt_json  # noqa: PLC0415

    longest = _LONGEST_FOLDER if "short_names" in way.concede else None

    def table(event: dict[str, Any]) -> str:
        name = f"track_{event.get('event')}" if event.get("type") == "track" else str(event.get("type"))
        return name[:longest]

    def events() -> Iterator[dict[str, Any]]:
        for line in _lines(source):
            try:
                event = dlt_json.loadb(line)
            except ValueError:
                if "skip_unreadable" not in way.concede:
                    raise
                continue
            if isinstance(event, dict):
                yield event

    pipeline = dlt.pipeline(
        "bench",
        pipelines_dir=str(target.with_name("dlt-state")),
        destination=dlt.destinations.filesystem(target.as_uri()),
        dataset_name="events",
    )
    resource = dlt.resource(events, name="events", table_name=table, write_disposition="append")
    pipeline.run(resource, loader_file_format="parquet")


def _lines(source: Path) -> Iterator[bytes]:
    for path in sorted(source.iterdir()):
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            yield from file


LOADERS: dict[str, Callable[[Path, Path, Way], None]] = {
    "naive_spark": naive_spark,
    "naive_spark_rudder": naive_spark_rudder,
    "duckdb_copy": duckdb_copy,
    "dlt_parquet": dlt_parquet,
}
SCHEMAS: dict[str, Callable[[Path, Path], None]] = {"naive_spark": spark_schema, "duckdb_copy": duckdb_schema}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("loader", choices=LOADERS)
    parser.add_argument("source", type=Path, help="folder of the raw files")
    parser.add_argument("target", type=Path, help="folder to be made")
    parser.add_argument("--codec", default="snappy", help="of the Parquet files")
    parser.add_argument("--classes", type=Path, metavar="FILE", help="a class cache for Spark; made if it is not there")
    parser.add_argument("--concede", action="append", default=[], help="a switch that gets hostile events loaded")
    parser.add_argument("--schema", type=Path, help="a file that --infer wrote")
    parser.add_argument("--infer", action="store_true", help="write only the schema, to the target")
    options = parser.parse_args()
    source, target = options.source.resolve(), options.target.resolve()
    if options.infer:
        SCHEMAS[options.loader](source, target)
    else:
        way = Way(options.codec, options.classes, frozenset(options.concede), options.schema)
        LOADERS[options.loader](source, target, way)
