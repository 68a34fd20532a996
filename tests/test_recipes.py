"""What docs/lake-layout.md says about reading with other engines is done here, as it is written there."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from conftest import InProcess, Lake, track
from eventlake.runners.spark import SparkRunner

PAGE = (Path(__file__).parent.parent / "docs" / "lake-layout.md").read_text()
RECIPES = PAGE.partition("## Reading with other engines")[2]
FOLDER = "lake/segment-data/data/a1d83a9398f790d4/segment_type=page"
COLUMNS = {"message_id", "received_at", "properties_first", "properties_later", "day", "hr"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table whose second file has one column more."""
    lake = Lake(tmp_path_factory.mktemp("recipes") / "workspace", InProcess())
    lake.sync_of(track("A", "m1", receivedAt="2026-11-15T03:00:00Z", properties={"first": 1}))
    lake.sync_of(track("A", "m2", receivedAt="2026-11-16T10:00:00Z", properties={"later": 2.5}))
    return lake.root / "segment-data" / "data" / "src1" / "segment_type=track_a"


def session(spark: SparkRunner) -> Any:
    from pyspark.sql import SparkSession

    assert spark._context
    return SparkSession.builder.getOrCreate().newSession()


def of_duckdb(rows: Any) -> tuple[list[dict[str, Any]], dict[str, str]]:
    table = rows.to_arrow_table()
    return table.to_pylist(), {"day": str(table.schema.field("day").type), "hr": str(table.schema.field("hr").type)}


def of_arrow(rows: Any) -> tuple[list[dict[str, Any]], dict[str, str]]:
    return rows.to_pylist(), {key: str(rows.schema.field(key).type) for key in ("day", "hr")}


def of_pandas(rows: Any) -> tuple[list[dict[str, Any]], dict[str, str]]:
    return rows.to_dict("records"), {key: str(rows[key].dtype) for key in ("day", "hr")}


def of_polars(rows: Any) -> tuple[list[dict[str, Any]], dict[str, str]]:
    return rows.to_dicts(), {key: str(rows[key].dtype) for key in ("day", "hr")}


def of_spark(rows: Any) -> tuple[list[dict[str, Any]], dict[str, str]]:
    return [row.asDict() for row in rows.collect()], {key: dict(rows.dtypes)[key] for key in ("day", "hr")}


# Recipes in the order of the page; how to look at their rows; what the table says of day and hr.
ENGINES: dict[str, tuple[Callable[[Any], tuple[list[dict[str, Any]], dict[str, str]]], tuple[str, str]]] = {
    "DuckDB": (of_duckdb, ("string", "string")),
    "pyarrow": (of_arrow, ("string", "string")),
    "pandas": (of_pandas, ("string[pyarrow]", "string[pyarrow]")),
    "polars": (of_polars, ("String", "String")),
    "Spark": (of_spark, ("string", "string")),
}
WORDS = {"string": "text", "string[pyarrow]": "text", "String": "text"}


def test_every_recipe_reads_all_rows_and_all_columns(folder: Path, spark: SparkRunner) -> None:
    recipes = re.findall(r"```python\n(.*?)```", RECIPES, re.DOTALL)
    first, *others = recipes
    assert len(others) == len(ENGINES)
    names: dict[str, Any] = {"spark": session(spark)}
    assert FOLDER in first
    exec(first.replace(FOLDER, str(folder)), names)
    for recipe, (engine, (look, (day, hr))) in zip(others, ENGINES.items(), strict=True):
        exec(recipe, names)
        rows, types = look(names["rows"])
        assert set(rows[0]) >= COLUMNS, engine
        assert "table_key" not in rows[0], engine
        assert types == {"day": day, "hr": hr}, engine
        by_message = {row["message_id"]: row for row in rows}
        assert by_message["m1"]["properties_first"] == 1, engine
        assert float(by_message["m2"]["properties_later"]) == 2.5, engine
        assert pd.isna(by_message["m2"]["properties_first"]), engine
        assert f"| {engine} | {WORDS[day]} | {WORDS[hr]} |" in RECIPES


def test_without_its_recipe_each_engine_does_what_the_table_says(folder: Path, spark: SparkRunner) -> None:
    found: Any = duckdb.sql(f"select * from read_parquet('{folder}/**/*.parquet')")
    kinds = dict(zip(found.columns, map(str, found.types), strict=True))
    assert (kinds["day"], kinds["hr"]) == ("DATE", "VARCHAR")
    assert "properties_later" not in kinds

    schema = ds.dataset(folder, partitioning="hive").schema
    assert (schema.field("day").type, schema.field("hr").type) == (pa.string(), pa.int32())
    assert "properties_later" not in schema.names

    frame: Any = pd.read_parquet(folder)
    assert str(frame["hr"].dtype) == "category"
    assert frame["hr"].cat.categories.dtype.kind == "i"
    assert "properties_later" not in frame.columns

    with pytest.raises(pl.exceptions.PolarsError):
        pl.read_parquet(f"{folder}/**/*.parquet")

    plain = dict(session(spark).read.parquet(str(folder)).dtypes)
    assert (plain["day"], plain["hr"]) == ("date", "int")
    assert len(COLUMNS - set(plain)) == 1  # Spark looks at one file, of its choice
