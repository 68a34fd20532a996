"""The ways to turn an archive into Parquet that are compared, each run as a command of its own.

`naive_spark` and `duckdb_copy` are what one writes in ten lines: one schema for all tables, no deduplication,
no evolution. `eventlake_first` meets every table for the first time, `eventlake_steady` knows them all.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

if TYPE_CHECKING:
    from collections.abc import Callable

# The launcher starts executors and workers with this interpreter, and binds to an address every machine has.
ENVIRONMENT = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
_EVENTLAKE = Path(sys.executable).with_name("eventlake")


@dataclass(frozen=True)
class Archive:
    """The data of a benchmark: the files to load, and a small sample with the same tables and columns."""

    files: list[Path]
    sample: list[Path]


@dataclass(frozen=True)
class Contestant:
    """`prepare` is not timed and returns the command that is; `output` matches its Parquet files."""

    program: Path
    prepare: Callable[[Archive, Path], list[str]]
    output: str


def naive_spark(target: Path, files: list[str]) -> None:
    """Read all lines as JSON with an inferred schema, and write one dataset partitioned by table and hour."""
    spark = (
        SparkSession.builder.master("local[*]")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    received_at = F.to_timestamp("receivedAt")
    table = F.when(F.col("type") == "track", F.regexp_replace(F.lower("event"), "[^a-z0-9]+", "_"))
    (
        spark.read.json(files)
        .withColumn("segment_type", table.otherwise(F.col("type")))
        .withColumn("day", F.date_format(received_at, "yyyy-MM-dd"))
        .withColumn("hr", F.date_format(received_at, "HH"))
        .write.partitionBy("segment_type", "day", "hr")
        .parquet(str(target))
    )
    spark.stop()


def duckdb_copy(target: Path, files: list[str]) -> None:
    """Do the same with DuckDB's own JSON reader, on all cores."""
    duckdb.sql("SET TimeZone = 'UTC'")
    # Types are inferred from all lines, as Spark does: with DuckDB's sample of 20,480 the first value of
    # another kind after it ends the load. Without maps, for Spark's reader makes none either.
    duckdb.sql(
        """
        COPY (
            SELECT *,
                CASE type WHEN 'track' THEN regexp_replace(lower(event), '[^a-z0-9]+', '_', 'g') ELSE type END
                    AS segment_type,
                strftime(receivedAt, '%Y-%m-%d') AS day,
                strftime(receivedAt, '%H') AS hr
            FROM read_ndjson($files, sample_size = -1, map_inference_threshold = -1)
        ) TO $target (FORMAT parquet, PARTITION_BY (segment_type, day, hr))
        """,
        params={"files": files, "target": str(target)},
    )


def _ten_lines(name: str) -> Contestant:
    def prepare(archive: Archive, folder: Path) -> list[str]:
        return [
            sys.executable,
            "-m",
            "bench.contestants",
            name,
            str(folder / "out"),
            *map(str, archive.files),
        ]

    return Contestant(Path(sys.executable), prepare, output="out/**/*.parquet")


def _eventlake(*, knows_the_tables: bool) -> Contestant:
    def prepare(archive: Archive, folder: Path) -> list[str]:
        workspace = str(folder / "workspace")
        eventlake = [str(_EVENTLAKE), "-C", workspace]
        sync = [*eventlake, "sync", "bench", "--json"]
        steps = [[str(_EVENTLAKE), "init", workspace], [*eventlake, "source", "add", "bench"]]
        if knows_the_tables:
            steps += [[*eventlake, "import", "bench", *map(str, archive.sample)], sync]
        steps.append([*eventlake, "import", "bench", *map(str, archive.files)])
        for step in steps:
            subprocess.run(step, check=True, stdout=subprocess.DEVNULL, env=ENVIRONMENT)
        return sync

    return Contestant(_EVENTLAKE, prepare, output="**/segment-data/data/**/*.parquet")


CONTESTANTS = {
    "naive_spark": _ten_lines("naive_spark"),
    "duckdb_copy": _ten_lines("duckdb_copy"),
    "eventlake_first": _eventlake(knows_the_tables=False),
    "eventlake_steady": _eventlake(knows_the_tables=True),
}

if __name__ == "__main__":
    name, target, *files = sys.argv[1:]
    {"naive_spark": naive_spark, "duckdb_copy": duckdb_copy}[name](Path(target), files)
