"""The results of the speed benchmark: as tables, as JSON, as a chart."""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING

import psutil  # type: ignore[import-untyped]
from rich.console import Console
from rich.table import Table

from bench.chart import Bar, Chart, svg
from bench.scenarios import SCENARIOS, Scale
from bench.targets import verdicts

if TYPE_CHECKING:
    from pathlib import Path

    from bench.runs import Entry, Median, Medians, Run

_TABLE_WIDTH = 190  # rich would cut it to 80 columns where there is no terminal
_BASE = "eventlake_steady"
_PACKAGES = ("duckdb", "dlt", "pyarrow", "pyspark")
_HEADINGS = (
    *("events", "wall s", "CPU s", "peak MB", "worker MB", "events/CPU s", "MB/CPU s"),
    *("output MB", "files", "copies left", "events lost", "wall ÷ steady", "CPU/event ÷ steady"),
)


def show(found: Medians, scale: Scale) -> None:
    console = Console(width=_TABLE_WIDTH)
    table = Table(title=f"{scale.events:,} events in {scale.hours} hours, {os.cpu_count()} cores, medians")
    table.add_column("")
    table.add_column("contestant")
    for heading in _HEADINGS:
        table.add_column(heading, justify="right")
    scenario = ""
    for key, one in found.items():
        if key[0] != scenario:
            table.add_section()
        table.add_row("" if key[0] == scenario else key[0], key[1], *_cells(one, found.get((key[0], _BASE))))
        scenario = key[0]
    console.print(table)
    for name in dict.fromkeys(key[0] for key in found):
        console.print(f"{name}: {SCENARIOS[name].title}", highlight=False)
    for key, one in found.items():
        if one.told_seconds:
            told = ", ".join(f"{what} {seconds:.2f} s" for what, seconds in one.told_seconds.items())
            console.print(f"{key[0]}, {key[1]}: {told}", highlight=False)
    console.print(_targets(found))


def _cells(one: Median, base: Median | None) -> list[str]:
    cost = [
        f"{one.wall_seconds:.1f}",
        f"{one.cpu_seconds:.1f}",
        f"{one.peak_bytes / 1e6:,.0f}",
        f"{one.worker_peak_bytes / 1e6:,.0f}" if one.worker_peak_bytes else "-",
    ]
    if not one.files:  # it loads nothing, or is not timed as a whole
        return ["-", *cost]
    same_events = base is not None and base.entry.task.archive.events == one.entry.task.archive.events
    return [
        f"{one.entry.task.archive.events:,}",
        *cost,
        f"{one.events_per_cpu_second:,.0f}",
        f"{one.json_bytes_per_cpu_second / 1e6:.1f}",
        f"{one.output_bytes / 1e6:.1f}",
        f"{one.files:,.0f}",
        f"{one.copies_left:,.0f}",
        f"{one.events_lost:,.0f}",
        f"{one.wall_seconds / base.wall_seconds:.2f}" if base and same_events else "-",
        f"{base.events_per_cpu_second / one.events_per_cpu_second:.2f}" if base else "-",
    ]


def _targets(found: Medians) -> Table:
    table = Table(title="targets")
    table.add_column("figure")
    for heading in ("target", "measured"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for verdict in verdicts(found):
        table.add_row(verdict.words, verdict.target, f"{verdict.measured:.2f}", "met" if verdict.met else "NOT MET")
    return table


def write_json(file: Path, runs: list[Run], found: Medians, scale: Scale) -> None:
    words = [word for word in sys.argv[1:] if word not in ("--json", str(file))]
    document = {
        "on": f"{datetime.now(UTC):%Y-%m-%d}",
        "command": f'make bench ARGS="{shlex.join(words)}"',
        "machine": {
            "cores": os.cpu_count(),
            "memory_bytes": psutil.virtual_memory().total,
            "platform": platform.platform(),
            "python": platform.python_version(),
            **{package: version(package) for package in _PACKAGES if find_spec(package)},
        },
        "scale": asdict(scale),
        "runs": [{**_given(one.entry), **_measured(one)} for one in runs],
        "targets": [asdict(verdict) for verdict in verdicts(found)],
    }
    file.write_text(json.dumps(document, indent=2) + "\n")


def _given(entry: Entry) -> dict[str, object]:
    """An entry without the folders of this machine."""
    archive = entry.task.archive
    return {
        "scenario": entry.scenario,
        "label": entry.label,
        "contestant": entry.contestant,
        "events": archive.events,
        "raw_files": archive.files,
        "gzip_bytes": archive.gzip_bytes,
        "json_bytes": archive.json_bytes,
        "index_ids": entry.task.index_ids,
    }


def _measured(one: Run) -> dict[str, object]:
    return {key: value for key, value in asdict(one).items() if key != "entry"}


def write_chart(file: Path, found: Medians) -> None:
    loaders = {key: one for key, one in found.items() if one.files}
    charts = []
    for scenario in dict.fromkeys(key[0] for key in loaders):
        own = {label: one for (key, label), one in loaders.items() if key == scenario}
        most = max(one.entry.task.archive.events for one in own.values())
        title = f"{scenario}: {SCENARIOS[scenario].title}"
        wall = [_bar(label, one, one.wall_seconds) for label, one in own.items() if _is_whole(one, scenario, most)]
        cpu = [_bar(label, one, one.events_per_cpu_second) for label, one in own.items()]
        charts += [Chart(f"{title}: wall seconds", wall), Chart(f"{title}: events per CPU second", cpu)]
    file.write_text(svg(charts))


def _is_whole(one: Median, scenario: str, most: int) -> bool:
    """Wall times of a slice say nothing beside those of the whole; growth is what scenario G is about."""
    return scenario == "G" or one.entry.task.archive.events == most


def _bar(label: str, one: Median, value: float) -> Bar:
    return Bar(label, value, ours=one.entry.contestant.startswith("eventlake"))
