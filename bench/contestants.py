"""The ways to turn an archive into Parquet that are compared, each run as a command of its own.

`naive_spark`, `duckdb_copy` and `dlt` are those of `bench.loaders`; the first two `…_with_schema` are told all columns
and types before they start. `eventlake_first` meets every table for the first time, `eventlake_steady` knows them all.
`eventlake_rudder` and `naive_spark_rudder` write the tables of RudderStack, two rows for most events,
with `users`.
`eventlake_suppressing` has a million people on its list whom it must leave out, `eventlake_planned` a tracking plan as
well. `eventlake_bucket` and `eventlake_azure` are the same as `eventlake_steady` in a bucket and in a container of
Azure behind a network, `eventlake_steps` tells what its steps took, `eventlake_warm` finds Spark running. So do
`eventlake_here` and `eventlake_connect`, on a Spark of their own process and on a Connect server, see
`bench.over_connect`. `eventlake_driver` and `eventlake_history` load no events, see `bench.driver`. `bare_spark` loads
nothing. The class cache of `eventlake doctor --quick-start` is there for whoever starts Spark, but for `bare_spark` and
`eventlake_uncached`.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from bench.archives import Archive
from bench.lookback import write_index
from bench.measure import CommandFailed
from eventlake.lake.parquet import WRITER
from eventlake.runners.class_cache import java_options, make_class_cache
from eventlake.runners.java import java_home

if TYPE_CHECKING:
    from collections.abc import Callable

EVENTLAKE = Path(sys.executable).with_name("eventlake")
BUCKET_ENDPOINT = "EVENTLAKE_BENCH_BUCKET_ENDPOINT"
AZURE_ENDPOINT = "EVENTLAKE_BENCH_AZURE_ENDPOINT"
_SLUG = "bench"
_SUPPRESSED = 1_000_000
_ONE_IN_FIFTY = "0[0-4]$"  # of ids that end in hexadecimal digits


@dataclass(frozen=True)
class Task:
    """What a contestant is given."""

    archive: Archive
    sample: Archive  # a few earlier events with the same tables and columns
    index_ids: int = 0  # messages that earlier syncs of a week have loaded


_NOTHING = Archive(Path(), 0, 0, 0, 0)
NO_EVENTS = Task(_NOTHING, _NOTHING)


@dataclass(frozen=True)
class Contestant:
    """`prepare` is not timed and returns the command that is; `output` matches the Parquet files it leaves.

    Of files that are not here, `told` tells the number, the size and the rows.
    """

    prepare: Callable[[Task, Path], list[str]]
    output: str | None = None
    told: Callable[[Path], tuple[int, int, int]] | None = None
    tells: bool = False  # its last line is a JSON object of seconds
    one_row_each: bool = True  # else events have several, or none on purpose, and counting them tells nothing


@cache
def environment() -> dict[str, str]:
    """Spark starts workers with this interpreter, binds to an address every machine has, and finds Java."""
    found = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "JAVA_HOME": str(java_home())}
    return {**os.environ, **found}


def settle_in(scratch: Path) -> None:
    """Do once what is done once on a machine: `eventlake doctor --quick-start`."""
    os.environ["XDG_CACHE_HOME"] = str(scratch)
    make_class_cache(scratch / "spark.log")


def eventlake_workspace(folder: Path, *sources: Path, dialect: str = "segment") -> list[list[str]]:
    """The commands that make a workspace and sync each folder of raw files in turn."""
    eventlake = [str(EVENTLAKE), "-C", str(folder)]
    commands = [[str(EVENTLAKE), "init", str(folder), "--dialect", dialect], [*eventlake, "source", "add", _SLUG]]
    for source in sources:
        commands += [[*eventlake, "import", _SLUG, str(source)], [*eventlake, "sync", _SLUG, "--json"]]
    return commands


def _done(commands: list[list[str]]) -> None:
    for command in commands:
        done = subprocess.run(command, check=False, capture_output=True, env=environment())
        if done.returncode:
            raise CommandFailed(f"{' '.join(command)}\n{done.stderr.decode(errors='replace')}")


def _first(task: Task, folder: Path) -> list[str]:
    *before, sync = eventlake_workspace(folder / "workspace", task.archive.folder)
    _done(before)
    return sync


def _steady(task: Task, folder: Path) -> list[str]:
    *before, sync = eventlake_workspace(folder / "workspace", task.sample.folder, task.archive.folder)
    _done(before)
    if task.index_ids:
        write_index(folder / "workspace", _SLUG, task.index_ids)
    return sync


def _rudder(task: Task, folder: Path) -> list[str]:
    """The same in RudderStack's dialect: most events have two rows, identify calls too."""
    archives, workspace = (task.sample.folder, task.archive.folder), folder / "workspace"
    init, add, *before, sync = eventlake_workspace(workspace, *archives, dialect="rudderstack")
    users = [str(EVENTLAKE), "-C", str(workspace), "source", "set", _SLUG, "skip_users_table=false"]
    _done([init, add, users, *before])
    return sync


def _suppressing(task: Task, folder: Path) -> list[str]:
    """The same with a million people who must not be in the lake, none of whom sends anything."""
    workspace = folder / "workspace"
    make, *before, sync = eventlake_workspace(workspace, task.sample.folder, task.archive.folder)
    _done([make])
    listed = folder / "suppressed.txt"
    listed.write_text("".join(f"nobody-{number}\n" for number in range(_SUPPRESSED)))
    _done([[str(EVENTLAKE), "-C", str(workspace), "suppress", "import", str(listed)], *before])
    return sync


def _planned(task: Task, folder: Path) -> list[str]:
    """The same, with a plan of all events beside, which says of each what it has, and blocks one in fifty."""
    sync, plan = _suppressing(task, folder), folder / "plan.json"
    eventlake = [str(EVENTLAKE), "-C", str(folder / "workspace")]
    _done([[*eventlake, "plan", "infer", _SLUG, str(plan), "--name", "bench"]])
    told = json.loads(plan.read_text())
    strict = {"properties": {"messageId": {"not": {"pattern": _ONE_IN_FIFTY}}}}
    told["rules"] = [rule for rule in told["rules"] if rule["type"] != "COMMON"]
    told["rules"].append({"type": "COMMON", "version": 1, "jsonSchema": strict})
    plan.write_text(json.dumps(told))
    kinds = [f"{kind}.commonEventOnViolations=BLOCK" for kind in ("track", "identify", "group")]
    _done(
        [
            [*eventlake, "plan", "import", str(plan)],
            [*eventlake, "plan", "connect", "bench", _SLUG],
            [*eventlake, "plan", "enforce", _SLUG, "track.allowUnplannedEvents=false", *kinds],
        ]
    )
    return sync


def _bucket(task: Task, folder: Path) -> list[str]:
    """The same with the lake, and the raw archive in it, in a bucket."""
    way_in = f'[s3]\nendpoint = "{os.environ[BUCKET_ENDPOINT]}"\npath_style = true\n'
    return _elsewhere(task, folder, f'[lake]\nroot = "s3://bench-{secrets.token_hex(8)}/lake"\n{way_in}')


def _azure(task: Task, folder: Path) -> list[str]:
    """The same in a container of Azure."""
    from bench.slow_bucket import new_container  # noqa: PLC0415 - needs the servers of the tests

    return _elsewhere(task, folder, new_container(os.environ[AZURE_ENDPOINT]))


def _elsewhere(task: Task, folder: Path, lake: str) -> list[str]:
    workspace = folder / "workspace"
    make, *before, sync = eventlake_workspace(workspace, task.sample.folder, task.archive.folder)
    _done([make])
    _replace(workspace / "eventlake.toml", '[lake]\nroot = "lake"\n', lake)
    _done(before)
    return sync


def _of_ledger(folder: Path) -> tuple[int, int, int]:
    words = [str(EVENTLAKE), "-C", str(folder / "workspace"), "tables", "--json"]
    tables = json.loads(subprocess.run(words, check=True, capture_output=True, env=environment()).stdout)
    files, size, rows = (sum(table[what] for table in tables) for what in ("files", "bytes", "rows"))
    return files, size, rows


def _replace(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    if old not in text:
        raise CommandFailed(f"{file} does not have {old!r}")
    file.write_text(text.replace(old, new))


def _timed_sync(folder: Path, *archives: Path) -> list[str]:
    return [sys.executable, "-m", "bench.timed_sync", str(folder), _SLUG, *map(str, archives)]


def _steps(task: Task, folder: Path) -> list[str]:
    _steady(task, folder)
    return _timed_sync(folder / "workspace")


def _warm(task: Task, folder: Path) -> list[str]:
    _done(eventlake_workspace(folder / "workspace"))
    return _timed_sync(folder / "workspace", task.sample.folder, task.archive.folder)


def _second_sync(kind: str) -> Contestant:
    def prepare(task: Task, folder: Path) -> list[str]:
        _done(eventlake_workspace(folder / "workspace"))
        archives = map(str, (task.sample.folder, task.archive.folder))
        return [sys.executable, "-m", "bench.over_connect", kind, str(folder / "workspace"), _SLUG, *archives]

    return Contestant(prepare, tells=True)


def _without_class_cache(task: Task, folder: Path) -> list[str]:
    return ["env", f"XDG_CACHE_HOME={folder}", *_steady(task, folder)]


def _bare(_task: Task, _folder: Path) -> list[str]:
    return [sys.executable, "-m", "bench.bare_spark"]


def _bare_with_class_cache(_task: Task, _folder: Path) -> list[str]:
    return [sys.executable, "-m", "bench.bare_spark", java_options()]


def _driver(what: str) -> Contestant:
    def prepare(_task: Task, folder: Path) -> list[str]:
        return [sys.executable, "-m", "bench.driver", what, str(folder / "workspace")]

    return Contestant(prepare, tells=True)


def _class_cache(name: str, task: Task, folder: Path) -> Path:
    """What eventlake has as well: a cache of all classes that this way loads, made by a small load."""
    cache = Path(os.environ["XDG_CACHE_HOME"]) / f"{name}.jsa"
    if not cache.exists():
        small = [name, str(task.sample.folder), str(folder / "small")]
        _done([[sys.executable, "-m", "bench.loaders", *small, f"--classes={cache}"]])
    return cache


def _loader(name: str, *, schema_given: bool = False, one_row_each: bool = True) -> Contestant:
    def prepare(task: Task, folder: Path) -> list[str]:
        codec = f"--codec={WRITER['compression']}"  # eventlake's, so that sizes can be compared
        load = [sys.executable, "-m", "bench.loaders", name, str(task.archive.folder)]
        known = task.archive.folder.with_suffix(f".{name}")
        if schema_given and not known.exists():
            _done([[*load, str(known), "--infer"]])
        given = [f"--schema={known}"] if schema_given else []
        if "spark" in name:
            given.append(f"--classes={_class_cache(name, task, folder)}")
        return [*load, str(folder / "out"), codec, *given]

    return Contestant(prepare, output="out/**/*.parquet", one_row_each=one_row_each)


_LAKE = "workspace/lake/segment-data/data/**/*.parquet"

CONTESTANTS = {
    "bare_spark": Contestant(_bare, tells=True),
    "bare_spark_cached": Contestant(_bare_with_class_cache, tells=True),
    "naive_spark": _loader("naive_spark"),
    "spark_with_schema": _loader("naive_spark", schema_given=True),
    "duckdb_copy": _loader("duckdb_copy"),
    "duckdb_with_schema": _loader("duckdb_copy", schema_given=True),
    "naive_spark_rudder": _loader("naive_spark_rudder", one_row_each=False),
    "dlt": _loader("dlt_parquet"),
    "eventlake_first": Contestant(_first, _LAKE),
    "eventlake_steady": Contestant(_steady, _LAKE),
    "eventlake_rudder": Contestant(_rudder, "workspace/lake/rudder-datalake/**/*.parquet", one_row_each=False),
    "eventlake_suppressing": Contestant(_suppressing, _LAKE),
    "eventlake_planned": Contestant(_planned, _LAKE, one_row_each=False),
    "eventlake_uncached": Contestant(_without_class_cache, _LAKE),
    "eventlake_bucket": Contestant(_bucket, told=_of_ledger),
    "eventlake_azure": Contestant(_azure, told=_of_ledger),
    "eventlake_steps": Contestant(_steps, _LAKE, tells=True),
    "eventlake_warm": Contestant(_warm, tells=True),
    "eventlake_here": _second_sync("spark"),
    "eventlake_connect": _second_sync("connect"),
    "eventlake_driver": _driver("billion"),
    "eventlake_history": _driver("history"),
}
