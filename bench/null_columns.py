"""What it would be like if data files left out columns that are null in all of their rows: smaller, and for whom wrong?

3,255 events in 290 tables, as public payloads have them: tables of 10 to 60 properties, of which an event has 12. The
data files of a sync are written once more without these columns, and in other ways, and read by several engines.

    PYTHONPATH=tests python -m bench.null_columns
"""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from bench.shapes import Shapes, lines
from eventlake.archive import layout as archive
from eventlake.lake.parquet import WRITER, repeating
from eventlake.sync import jobs
from eventlake.sync.run import run
from eventlake.workspace import Workspace
from runner_without_spark import InProcess  # of the tests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from eventlake.catalog.base import CatalogTable

_SHAPES = Shapes(3255, track_types=290, fewest_keys=10, most_keys=60, filled=12, hours=3)
_LENGTH_AND_MAGIC = 8  # bytes at the end of a file, after its footer
_WAYS: dict[str, dict[str, Any]] = {
    "as eventlake writes them": {},
    "with dictionaries for all columns": {"use_dictionary": True},
    "without dictionaries": {"use_dictionary": False},
    "with data pages of version 2": {"data_page_version": "2.0"},
    "with a page index": {"write_page_index": True},
    "with zstd": {"compression": "zstd"},
    "without compression": {"compression": "none"},
    "without statistics": {"write_statistics": False},
}


def _synced(folder: Path) -> tuple[Path, list[CatalogTable]]:
    place = Workspace.create(folder)
    connection, _ = place.connections.add_source("web", source_id="web")
    raw = gzip.compress(b"\n".join(lines(_SHAPES)))
    place.archive.write(archive.path("web", place.clock.now(), "all.gz"), raw)
    run(place, jobs.sync(connection), InProcess())
    return folder / "lake", place.lake().catalog.tables()


def _files(lake: Path, table: CatalogTable) -> list[Path]:
    return sorted((lake / table.location).rglob("*.parquet"))


def _rewritten(
    lake: Path, tables: list[CatalogTable], target: Path, columns: Callable[[pa.Table], list[str]], how: dict[str, Any]
) -> tuple[int, int]:
    """Write all files once more; the sizes of the files and of their footers."""
    size = footers = 0
    for table in tables:
        for file in _files(lake, table):
            new = target / file.relative_to(lake)
            new.parent.mkdir(parents=True, exist_ok=True)
            content = pq.ParquetFile(file).read()
            pq.write_table(
                content.select(columns(content)), new, **{**WRITER, "use_dictionary": repeating(content), **how}
            )
            size += new.stat().st_size
            footers += int.from_bytes(new.read_bytes()[-_LENGTH_AND_MAGIC:-4], "little")
    return size, footers


def _all(content: pa.Table) -> list[str]:
    return list(content.column_names)


def _filled(content: pa.Table) -> list[str]:
    return [name for name in content.column_names if content.column(name).null_count < len(content)]


def _misses(lake: Path, table: CatalogTable, names: Callable[[list[Path]], list[str]]) -> bool:
    return not {column.name for column in table.schema.columns} <= set(names(_files(lake, table)))


def _of_pyarrow(files: list[Path]) -> list[str]:
    return list(ds.dataset([str(file) for file in files]).schema.names)


def _of_duckdb(files: list[Path]) -> list[str]:
    return list(duckdb.read_parquet([str(file) for file in files]).columns)


def _of_duckdb_by_name(files: list[Path]) -> list[str]:
    return list(duckdb.read_parquet([str(file) for file in files], union_by_name=True).columns)


def _shifts(lake: Path, table: CatalogTable) -> bool:
    """Whether a reader by position takes one column for another in some file."""
    names = [column.name for column in table.schema.columns]
    return any((found := pq.read_schema(file).names) != names[: len(found)] for file in _files(lake, table))


class _Spark:
    """Spark, told the columns as a catalog does (Glue, Hive), and left to find them in the files."""

    def __init__(self) -> None:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - takes its time

        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        self.session: Any = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()

    def of_files(self, files: list[Path]) -> list[str]:
        return list(self.session.read.parquet(*map(str, files)).columns)

    def differs_told_by_a_catalog(self, lake: Path, other: Path, table: CatalogTable) -> bool:
        schema = ", ".join(f"`{column.name}` {column.type.value}" for column in table.schema.columns)
        reader = self.session.read.schema(schema)
        rows = [sorted(map(repr, reader.parquet(*map(str, _files(place, table))).collect())) for place in (lake, other)]
        return rows[0] != rows[1]


def _told(lake: Path, tables: list[CatalogTable], folder: Path) -> Iterator[tuple[str, ...]]:
    bare = folder / "without"
    chunks = [
        content.column(name).null_count == len(content)
        for table in tables
        for file in _files(lake, table)
        if (content := pq.ParquetFile(file).read())
        for name in content.column_names
    ]
    yield "columns of files that hold nothing", f"{sum(chunks):,} of {len(chunks):,}", ""
    for number, (way, how) in enumerate(_WAYS.items()):
        size, footers = _rewritten(lake, tables, folder / str(number), _all, how)
        yield f"size of all files, footers, {way}", f"{size / 1e6:.2f} MB, {footers / 1e6:.2f} MB", ""
    size, footers = _rewritten(lake, tables, bare, _filled, {})
    yield "the same without columns of nulls", "", f"{size / 1e6:.2f} MB, {footers / 1e6:.2f} MB"
    several = [table for table in tables if len(_files(lake, table)) > 1]
    spark = _Spark()
    readers = {
        "pyarrow, pandas": _of_pyarrow,
        "DuckDB": _of_duckdb,
        "DuckDB with union_by_name": _of_duckdb_by_name,
        "Spark without mergeSchema": spark.of_files,
    }
    for name, names in readers.items():
        counts = [sum(_misses(place, table, names) for table in several) for place in (lake, bare)]
        yield f"tables in which columns are missed: {name}", *(f"{count} of {len(several)}" for count in counts)
    shifted = [sum(_shifts(place, table) for table in several) for place in (lake, bare)]
    yield "tables in which a reader by position errs", *(f"{count} of {len(several)}" for count in shifted)
    wrong = sum(spark.differs_told_by_a_catalog(lake, bare, table) for table in several[:30])
    yield "tables that differ for Spark, told the columns", "", f"{wrong} of {len(several[:30])}"


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        lake, tables = _synced(Path(scratch) / "workspace")
        for words, *figures in _told(lake, tables, Path(scratch)):
            print(f"{words:<60}", *(f"{figure:>22}" for figure in figures), flush=True)


if __name__ == "__main__":
    main()
