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


def _ten_lines(name: str) -> Contestant:
    def prepare(archive: Archive, folder: Path) -> list[str]:
        return [sys.executable, "-m", "bench.loaders", name, str(archive.files[0].parent), str(folder / "out")]

    return Contestant(Path(sys.executable), prepare, output="out/**/*.parquet")


def eventlake_workspace(folder: Path, *sources: Path) -> list[list[str]]:
    """The commands that make a workspace and sync each folder of raw files in turn."""
    eventlake = [str(_EVENTLAKE), "-C", str(folder)]
    commands = [[str(_EVENTLAKE), "init", str(folder)], [*eventlake, "source", "add", "bench"]]
    for source in sources:
        commands += [[*eventlake, "import", "bench", str(source)], [*eventlake, "sync", "bench", "--json"]]
    return commands


def _eventlake(*, knows_the_tables: bool) -> Contestant:
    def prepare(archive: Archive, folder: Path) -> list[str]:
        before = [archive.sample[0].parent] if knows_the_tables else []
        *steps, sync = eventlake_workspace(folder / "workspace", *before, archive.files[0].parent)
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
