"""Write what was measured into the pages that show it: `python -m bench.page`, after `make bench ARGS="… --json FILE"`.

A block of a page between `<!-- figures: NAME -->` and `<!-- /figures -->` is made from `bench/figures/NAME.json`. A
test makes each once more, so that no page tells other figures than those that were measured.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import median
from textwrap import wrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).parent.parent
FIGURES = Path(__file__).parent / "figures"
PAGES = (ROOT / "README.md", ROOT / "docs" / "performance.md")
_BLOCK = re.compile(
    r"(<!-- figures: (?P<name>[\w-]+)(?P<short> short)? -->\n)(?P<content>.*?)(<!-- /figures -->)", re.DOTALL
)
_BASE = "eventlake_steady"
_COLUMNS = (
    "wall s",
    "CPU s",
    "peak MB",
    "worker MB",
    "events/CPU s",
    "output MB",
    "files",
    "copies left",
    "wall ÷ steady",
)
_SHORT_COLUMNS = ("wall s", "CPU s", "peak MB", "output MB", "files", "copies left")
_IN_WORDS = {
    "naive_spark": "naive PySpark: `read.json`, then `write.partitionBy`",
    "spark_with_schema": "the same, with the schema given",
    "duckdb_copy": "DuckDB: `COPY` of `read_ndjson`",
    "duckdb_with_schema": "the same, with the schema given",
    "eventlake_first": "eventlake, first sync",
    "eventlake_steady": "**eventlake, tables and columns known**",
}


def written(page: str) -> str:
    """A page with all its blocks made anew."""

    def made(block: re.Match[str]) -> str:
        document = json.loads((FIGURES / f"{block['name']}.json").read_text())
        lines = _in_short(document) if block["short"] else _whole(document)
        return "\n".join((block[1].rstrip(), *lines, block[5]))

    return _BLOCK.sub(made, page)


def _whole(document: dict[str, Any]) -> Iterable[str]:
    of_each = _medians(document)
    yield f"{_when(document)}, {document['machine']['cores']} cores: `{document['command']}`."
    yield ""
    yield from _head("", "", "events", *_COLUMNS)
    before = ""
    for (scenario, label), found in of_each.items():
        base = of_each.get((scenario, _BASE))
        yield _row("" if scenario == before else scenario, *_cells(label, found, base))
        before = scenario
    yield ""
    yield from _head("figure", "target", "measured", "")
    for one in document["targets"]:
        met = "met" if one["met"] else "**not met**"
        yield _row(one["words"], one["target"], f"{one['measured']:.2f}", met)


def _in_short(document: dict[str, Any]) -> Iterable[str]:
    """Scenario A, and of the others what can be said in a sentence, for the first page."""
    of_each = _medians(document)
    events, cores = of_each["A", _BASE][0]["events"], document["machine"]["cores"]
    yield from wrap(
        f"{events:,} events of all six calls and 40 track types over 24 hours, {cores} cores, whole processes with the "
        f"start of Spark. {_when(document)}: `{document['command']}`. "
        "[Method, targets and profile](docs/performance.md).",
        120,
    )
    yield ""
    yield from _head("", *_SHORT_COLUMNS)
    for (scenario, label), found in of_each.items():
        if scenario == "A" and label in _IN_WORDS:
            wall, cpu, peak = _cost(found)
            bold = "**" if label == _BASE else ""
            cost = (f"{bold}{wall:,.1f}{bold}", f"{bold}{cpu:,.1f}{bold}", f"{peak:,.0f}")
            yield _row(_IN_WORDS[label], *cost, *_output(found))
    ours, duckdb, spark = (_cost(of_each["H", label])[0] for label in (_BASE, "duckdb_copy", "naive_spark"))
    (dlt,) = [one["measured"] for one in document["targets"] if one["words"].startswith("A: CPU of one more event")]
    yield ""
    yield from wrap(
        "Naive Spark and DuckDB have one schema for all tables and remove no duplicates. On events that share few keys "
        f"(scenario H), a steady sync takes {ours:.1f} seconds, DuckDB {duckdb:.1f} and naive PySpark {spark:.0f}. One "
        f"more event costs dlt {dlt:.1f} times the CPU.",
        120,
    )


def _when(document: dict[str, Any]) -> str:
    runs = max(len(found) for found in _medians(document).values())
    return f"{document['on']}, {f'medians of {runs} runs' if runs > 1 else 'one run'} of each"


def _head(*columns: str) -> tuple[str, str]:
    return _row(*columns), _row(*["---"] * len(columns))


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _medians(document: dict[str, Any]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    of_each: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for run in document["runs"]:
        of_each.setdefault((run["scenario"], run["label"]), []).append(run)
    return of_each


def _cells(label: str, found: list[dict[str, Any]], base: list[dict[str, Any]] | None) -> list[str]:
    wall, cpu, peak = _cost(found)
    worker = max(run["cost"]["worker_peak_bytes"] for run in found) / 1e6
    cost = [f"{wall:,.1f}", f"{cpu:,.1f}", f"{peak:,.0f}", f"{worker:,.0f}" if worker else ""]
    if not found[0]["files"]:
        return [f"`{label}`", "", *cost, *([""] * 5)]
    events = found[0]["events"]
    same = base is not None and base[0]["events"] == events
    ratio = f"{wall / _cost(base)[0]:.2f}" if base and same else ""
    return [f"`{label}`", f"{events:,}", *cost, f"{events / cpu:,.0f}", *_output(found), ratio]


def _cost(found: list[dict[str, Any]]) -> tuple[float, float, float]:
    costs = [run["cost"] for run in found]
    wall, cpu, peak = (median(cost[key] for cost in costs) for key in ("wall_seconds", "cpu_seconds", "peak_bytes"))
    return wall, cpu, peak / 1e6


def _output(found: list[dict[str, Any]]) -> tuple[str, str, str]:
    size, files, copies = (median(run[key] for run in found) for key in ("output_bytes", "files", "copies_left"))
    return f"{size / 1e6:,.1f}", f"{files:,.0f}", f"{copies:,.0f}"


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(written(path.read_text()))
