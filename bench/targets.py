"""What the figures should be, beside what they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.scenarios import DLT_SIZES

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
    of_many: float | None = None  # another limit, with ten million events in a scenario
    scenario: str = ""  # that one

    def limit_of(self, found: Medians) -> float:
        events = [one.entry.task.archive.events for (scenario, _), one in found.items() if scenario == self.scenario]
        return self.of_many if self.of_many and max(events) >= MANY else self.limit


MANY = 10_000_000


def _wall(scenario: str, label: str) -> Callable[[Medians], float]:
    return lambda found: found[scenario, label].wall_seconds


def _told(scenario: str, label: str, what: str) -> Callable[[Medians], float]:
    return lambda found: found[scenario, label].told_seconds[what]


def _ratio(above: Callable[[Medians], float], below: Callable[[Medians], float]) -> Callable[[Medians], float]:
    return lambda found: above(found) / below(found)


def _against_dlt(scenario: str) -> Callable[[Medians], float]:
    """What one more event costs, between the same two slices."""
    few, more = DLT_SIZES

    def each_more(found: Medians, contestant: str) -> float:
        return _cpu_each_more(found[scenario, f"{contestant}, {few}"], found[scenario, f"{contestant}, {more}"])

    return lambda found: each_more(found, "dlt") / each_more(found, "steady")


def _cpu_each_more(fewer: Median, more: Median) -> float:
    return (more.cpu_seconds - fewer.cpu_seconds) / _more_events(fewer, more)


def _cpu_per_event(scenario: str) -> Callable[[Medians], float]:
    return lambda found: 1 / found[scenario, "eventlake_steady"].events_per_cpu_second


def _worker_mb(found: Medians) -> float:
    ours = (one for one in found.values() if one.entry.contestant.startswith("eventlake"))
    return max(one.worker_peak_bytes for one in ours) / 1e6


def _more_with_a_past(found: Medians) -> float:
    told = found["S", "eventlake_history"].told_seconds
    return told["long past"] - told["empty"]


def _lookback_share(found: Medians) -> float:
    """What dedupe takes longer with a week to search, as a share of the whole process."""
    alone, searched = found["D", "nothing before"], found["D", "84 syncs before"]
    return (searched.told_seconds["dedupe"] - alone.told_seconds["dedupe"]) / searched.wall_seconds


def _growth(found: Medians) -> float:
    """How much dearer one more event is between the whole and ten times than between a tenth and the whole."""
    tenth, whole, tenfold = (found["G", f"A, {size}"] for size in ("tenth", "whole", "tenfold"))
    return _each_more(whole, tenfold) / _each_more(tenth, whole)


def _each_more(fewer: Median, more: Median) -> float:
    return (more.wall_seconds - fewer.wall_seconds) / _more_events(fewer, more)


def _more_events(fewer: Median, more: Median) -> int:
    return more.entry.task.archive.events - fewer.entry.task.archive.events


def _worker_growth(of: str) -> Callable[[Medians], float]:
    return lambda found: found["G", f"{of}, tenfold"].worker_peak_bytes / found["G", f"{of}, whole"].worker_peak_bytes


def _size_against_duckdb(scenario: str) -> Callable[[Medians], float]:
    return lambda found: found[scenario, "eventlake_steady"].output_bytes / found[scenario, "duckdb_copy"].output_bytes


def _rudder_cpu(found: Medians) -> float:
    return found["R", "eventlake_rudder"].cpu_seconds / found["R", "eventlake_steady"].cpu_seconds


def _policy_cpu(contestant: str) -> Callable[[Medians], float]:
    return lambda found: found["P", contestant].cpu_seconds / found["P", "eventlake_steady"].cpu_seconds


_STEADY = _wall("A", "eventlake_steady")


def _against(scenario: str) -> tuple[Target, ...]:
    """The others in A and H. With ten million events, where the start counts less, more is asked."""
    steady, first = _wall(scenario, "eventlake_steady"), _wall(scenario, "eventlake_first")
    duckdb, spark = _wall(scenario, "duckdb_copy"), _wall(scenario, "naive_spark")

    def at_least(words: str, limit: float, measure: Callable[[Medians], float], many: float | None = None) -> Target:
        return Target(f"{scenario}: {words}", limit, measure, at_least=True, of_many=many, scenario=scenario)

    return (
        at_least("DuckDB's wall time ÷ steady", 1.0, _ratio(duckdb, steady), 1.3),
        at_least("naive PySpark's wall time ÷ steady", 4.0, _ratio(spark, steady), 5.0),
        at_least("DuckDB's wall time ÷ first sync", 0.9, _ratio(duckdb, first)),
        at_least("CPU of one more event, dlt ÷ steady", 8.0, _against_dlt(scenario)),
        Target(f"{scenario}: output bytes, steady ÷ DuckDB", 1.0, _size_against_duckdb(scenario)),
    )


TARGETS = (
    *_against("A"),
    *_against("H"),
    Target("H ÷ A: CPU per event", 1.25, _ratio(_cpu_per_event("H"), _cpu_per_event("A"))),
    Target("N: 1,000 types in three hours ÷ A", 1.5, _ratio(_wall("N", "eventlake_steady"), _STEADY)),
    Target("W ÷ A: CPU per event", 1.5, _ratio(_cpu_per_event("W"), _cpu_per_event("A"))),
    Target("memory of a worker, MB, in every scenario", 700, _worker_mb),
    Target("B: 1,000 types ÷ A", 1.5, _ratio(_wall("B", "eventlake_steady"), _STEADY)),
    Target("C: small files ÷ A", 2.0, _ratio(_wall("C", "eventlake_steady"), _STEADY)),
    Target("D: share of the look-back in wall time", 0.15, _lookback_share),
    Target("O: A in a bucket ÷ on a disk", 1.3, _ratio(_wall("O", "A in a bucket"), _wall("O", "A on a disk"))),
    Target("O: N in a bucket ÷ on a disk", 2.0, _ratio(_wall("O", "N in a bucket"), _wall("O", "N on a disk"))),
    Target("R: CPU in RudderStack's dialect ÷ in Segment's", 1.8, _rudder_cpu),
    Target("P: CPU with a million suppressed people ÷ without", 1.03, _policy_cpu("eventlake_suppressing")),
    Target("P: CPU with them and a plan of all events ÷ without", 1.25, _policy_cpu("eventlake_planned")),
    Target(
        "F: cold process ÷ bare PySpark, both with a class cache",
        1.6,
        _ratio(_wall("F", "eventlake_steady"), _wall("F", "bare_spark_cached")),
    ),
    Target(
        "F: cold process ÷ bare PySpark, both without",
        1.6,
        _ratio(_wall("F", "eventlake_uncached"), _wall("F", "bare_spark")),
    ),
    Target(
        "F: warm sync ÷ bare PySpark process",
        0.4,
        _ratio(_told("F", "eventlake_warm", "sync"), _wall("F", "bare_spark")),
    ),
    Target(
        "K: CPU over Connect ÷ on a Spark of the same process",
        1.2,
        _ratio(_told("K", "eventlake_connect", "CPU"), _told("K", "eventlake_here", "CPU")),
    ),
    Target("S: the driver of a billion events, s", 120, _told("S", "eventlake_driver", "driver")),
    Target("S: its memory, MB", 2000, lambda found: found["S", "eventlake_driver"].peak_bytes / 1e6),
    Target("S: a sync after a million raw files, s longer", 2, _more_with_a_past),
    Target("G: wall time of one more event, large ÷ small", 1.1, _growth),
    Target("G: peak memory of a worker, ten times A ÷ A", 1.1, _worker_growth("A")),
    Target("G: peak memory of a worker, ten times H ÷ H", 1.1, _worker_growth("H")),
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
        except (KeyError, ValueError):  # nothing of it was run
            continue
        limit = target.limit_of(found)
        met = measured >= limit if target.at_least else measured <= limit
        told.append(Verdict(target.words, f"{'≥' if target.at_least else '≤'} {limit:g}", measured, met))
    return told
