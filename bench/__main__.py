"""Compare ways to turn an archive of events into Parquet: `python -m bench --help`."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import tempfile
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench.contestants import CONTESTANTS, ENVIRONMENT, Archive, Contestant
from bench.measure import CommandFailed, Cost, measured
from eventlake.demo.events import Recipe, write_archive

_BASE = "naive_spark"
_EVENTS_PER_FILE = 50_000
_FEWEST_FILES = 8  # so that more cores than one have work
_SAMPLE_EVENTS = 10_000
_TABLE_WIDTH = 110  # rich would cut it to 80 columns where there is no terminal
_console = Console(stderr=True)


@dataclass(frozen=True)
class Run:
    """One timed run of a contestant: what it cost, and what it left on disk."""

    contestant: str
    cost: Cost
    output_bytes: int
    files: int


def main() -> None:
    options = _options()
    # Without broken lines: neither of the simple ways survives them.
    recipe = Recipe(options.events, hours=options.hours, duplicate_share=0.01, conflict_share=0.002)
    with tempfile.TemporaryDirectory(prefix="eventlake-bench-") as scratch:
        archive = _archive(recipe, Path(scratch))
        input_bytes = sum(file.stat().st_size for file in archive.files)
        runs: list[Run] = []
        for turn in range(options.repeat):  # in turn, so that a busy minute of the machine does not hit one alone
            for name in options.only:
                _console.print(f"run {turn + 1} of {options.repeat}: {name}")
                try:
                    runs.append(_run(name, CONTESTANTS[name], archive, Path(scratch) / "run"))
                except CommandFailed as failure:
                    raise SystemExit(f"{name}: {failure}") from None
    _medians(runs, options.only, recipe, input_bytes)
    if options.json:
        options.json.write_text(json.dumps(_document(recipe, runs, input_bytes), indent=2, default=str) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--events", type=int, default=200_000, help="distinct events to load (%(default)s)")
    parser.add_argument("--hours", type=int, default=24, help="of receipt they are spread over (%(default)s)")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each; medians are shown (%(default)s)")
    parser.add_argument("--only", default=",".join(CONTESTANTS), help="contestants, with commas (%(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every run to this file")
    options = parser.parse_args()
    options.only = options.only.split(",")
    if unknown := set(options.only) - CONTESTANTS.keys():
        parser.error(f"no contestant is called {', '.join(sorted(unknown))}; there are {', '.join(CONTESTANTS)}")
    for name in options.only:
        if not CONTESTANTS[name].program.exists():
            parser.error(f"{name} needs {CONTESTANTS[name].program}: install the project, or leave it out")
    return options


def _archive(recipe: Recipe, scratch: Path) -> Archive:
    # The sample comes before the data and has other events of the same kinds.
    earlier = recipe.until - timedelta(hours=recipe.hours)
    sample = replace(recipe, events=_SAMPLE_EVENTS, until=earlier, hours=1, seed=recipe.seed + 1)
    with Progress(console=_console, transient=True) as progress:
        task = progress.add_task("making events", total=recipe.events * (1 + recipe.duplicate_share))
        files = write_archive(
            recipe,
            scratch / "archive",
            files=max(_FEWEST_FILES, recipe.events // _EVENTS_PER_FILE),
            progress=lambda lines: progress.advance(task, lines),
        )
    return Archive(files, sample=write_archive(sample, scratch / "sample", files=1))


def _run(name: str, contestant: Contestant, archive: Archive, folder: Path) -> Run:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    command = contestant.prepare(archive, folder)
    before = set(folder.glob(contestant.output))
    cost = measured(command, environment=ENVIRONMENT, log=folder.with_suffix(".log"))
    written = set(folder.glob(contestant.output)) - before
    return Run(name, cost, sum(file.stat().st_size for file in written), len(written))


def _medians(runs: list[Run], names: list[str], recipe: Recipe, input_bytes: int) -> None:
    size = f"{input_bytes / 1e6:.0f} MB gzip, {os.cpu_count()} cores"
    table = Table(title=f"{recipe.events:,} events in {recipe.hours} hours, {size}")
    table.add_column("contestant")
    for heading in ("wall s", "CPU s", "peak MB", "events/CPU s", "output MB", "files", f"wall / {_BASE}"):
        table.add_column(heading, justify="right")
    walls = {name: median(run.cost.wall_seconds for run in runs if run.contestant == name) for name in names}
    for name in names:
        own = [run for run in runs if run.contestant == name]
        cpu_seconds = median(run.cost.cpu_seconds for run in own)
        table.add_row(
            name,
            f"{walls[name]:.1f}",
            f"{cpu_seconds:.1f}",
            f"{median(run.cost.peak_bytes for run in own) / 1e6:,.0f}",
            f"{recipe.events / cpu_seconds:,.0f}",
            f"{median(run.output_bytes for run in own) / 1e6:.1f}",
            f"{median(run.files for run in own):,.0f}",
            f"{walls[name] / walls[_BASE]:.2f}" if _BASE in walls else "-",
        )
    Console(width=_TABLE_WIDTH).print(table)


def _document(recipe: Recipe, runs: list[Run], input_bytes: int) -> dict[str, object]:
    return {
        "machine": {
            "cores": os.cpu_count(),
            "platform": platform.platform(),
            "python": platform.python_version(),
        },
        "recipe": asdict(recipe),
        "input_bytes": input_bytes,
        "runs": [asdict(run) for run in runs],
    }


if __name__ == "__main__":
    main()
