"""What the figures should be, beside what they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.runs import Median, Medians


@dataclass(frozen=True)
class Target:
    """A figure and its limit: `measure` raises KeyError where the runs do not tell."""

    words: str
    limit: float
    measure: Callable[[Medians], float]
    at_least: bool = False

    def met(self, measured: float) -> bool:
        return measured >= self.limit if self.at_least else measured <= self.limit


def _wall(scenario: str, label: str) -> Callable[[Medians], float]:
    return lambda found: found[scenario, label].wall_seconds


def _told(scenario: str, label: str, what: str) -> Callable[[Medians], float]:
    return lambda found: found[scenario, label].told_seconds[what]


def _ratio(above: Callable[[Medians], float], below: Callable[[Medians], float]) -> Callable[[Medians], float]:
    return lambda found: above(found) / below(found)


def _cpu_against_dlt(found: Medians) -> float:
    return found["A", "eventlake_steady"].events_per_cpu_second / found["A", "dlt"].events_per_cpu_second


def _lookback_share(found: Medians) -> float:
    """What dedupe takes longer with a week to search, as a share of the whole process."""
    alone, searched = found["D", "nothing before"], found["D", "84 syncs before"]
    return (searched.told_seconds["dedupe"] - alone.told_seconds["dedupe"]) / searched.wall_seconds


def _growth(found: Medians) -> float:
    """How much dearer one more event is between the whole and ten times than between a tenth and the whole."""
    tenth, whole, tenfold = (found["G", size] for size in ("tenth", "whole", "tenfold"))
    return _each_more(whole, tenfold) / _each_more(tenth, whole)


def _each_more(fewer: Median, more: Median) -> float:
    events = more.entry.task.archive.events - fewer.entry.task.archive.events
    return (more.wall_seconds - fewer.wall_seconds) / events


def _worker_growth(found: Medians) -> float:
    return found["G", "tenfold"].worker_peak_bytes / found["G", "whole"].worker_peak_bytes


def _size_against_duckdb(found: Medians) -> float:
    return found["A", "eventlake_steady"].output_bytes / found["A", "duckdb_copy"].output_bytes


_STEADY = _wall("A", "eventlake_steady")

TARGETS = (
    Target("A: DuckDB's wall time ÷ steady", 1.0, _ratio(_wall("A", "duckdb_copy"), _STEADY), at_least=True),
    Target("A: naive PySpark's wall time ÷ steady", 5.0, _ratio(_wall("A", "naive_spark"), _STEADY), at_least=True),
    Target("A: events per CPU second, steady ÷ dlt", 6.0, _cpu_against_dlt, at_least=True),
    Target("A: first sync ÷ steady", 1.3, _ratio(_wall("A", "eventlake_first"), _STEADY)),
    Target("A: output bytes, steady ÷ DuckDB", 1.0, _size_against_duckdb),
    Target("B: 1,000 types ÷ A", 1.5, _ratio(_wall("B", "eventlake_steady"), _STEADY)),
    Target("C: small files ÷ A", 2.0, _ratio(_wall("C", "eventlake_steady"), _STEADY)),
    Target("D: share of the look-back in wall time", 0.15, _lookback_share),
    Target("O: A in a bucket ÷ on a disk", 1.3, _ratio(_wall("O", "A in a bucket"), _wall("O", "A on a disk"))),
    Target("O: N in a bucket ÷ on a disk", 2.0, _ratio(_wall("O", "N in a bucket"), _wall("O", "N on a disk"))),
    Target("F: cold process ÷ bare PySpark", 1.6, _ratio(_wall("F", "eventlake_steady"), _wall("F", "bare_spark"))),
    Target(
        "F: warm sync ÷ bare PySpark process",
        0.4,
        _ratio(_told("F", "eventlake_warm", "sync"), _wall("F", "bare_spark")),
    ),
    Target("G: wall time of one more event, large ÷ small", 1.1, _growth),
    Target("G: peak memory of a worker, tenfold ÷ whole", 1.1, _worker_growth),
)


@dataclass(frozen=True)
class Verdict:
    words: str
    target: str
    measured: float
    met: bool


def verdicts(found: Medians) -> list[Verdict]:
    """The targets that the runs can tell about."""
    told = []
    for target in TARGETS:
        try:
            measured = target.measure(found)
        except KeyError:
            continue
        limit = f"{'≥' if target.at_least else '≤'} {target.limit:g}"
        told.append(Verdict(target.words, limit, measured, target.met(measured)))
    return told
