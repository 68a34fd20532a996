"""What `/metrics` tells, in the text format of Prometheus."""

from collections.abc import Iterable, Mapping, Sized

from eventlake.collector.backlog import Held
from eventlake.collector.counters import NAMES, NO_SOURCE

_PREFIX = "eventlake_collector"
_OF_NO_SOURCE = frozenset({"requests", "errors", "archive_errors"})

Sample = tuple[Mapping[str, str], int | float]


def exposition(
    sums: Mapping[str, Mapping[str, int]],
    held: Mapping[str, Held],
    damaged: Mapping[str, Sized],
    *,
    is_archiving: bool,
    now: int,
    slugs: Mapping[str, str],
) -> str:
    """All metrics. Sources are called by their slugs, and by their ids if those are not known."""

    def of(source: str) -> dict[str, str]:
        return {"source": slugs.get(source, source)}

    sources = sorted({*sums, *held, *slugs} - {NO_SOURCE})
    lines: list[str] = []
    for name, help_ in NAMES.items():
        if name in _OF_NO_SOURCE:
            samples: list[Sample] = [({}, sums[NO_SOURCE][name])]
        else:
            samples = [(of(source), sums[source][name]) for source in sorted(sums) if source or sums[source][name]]
        lines += _metric(f"{name}_total", "counter", help_, samples)
    backlog: list[Sample] = [(of(source), held[source].events if source in held else 0) for source in sources]
    lines += _metric("backlog_events", "gauge", "Events that were acknowledged and are not in the archive.", backlog)
    ages: list[Sample] = [
        (of(source), max(0.0, (now - held[source].oldest) / 1e6) if source in held else 0) for source in sources
    ]
    lines += _metric("backlog_age_seconds", "gauge", "Time since the oldest of them was received; 0 for none.", ages)
    lines += _metric(
        "archive_failing",
        "gauge",
        "1 if the last attempt to write to the archive failed.",
        [({}, int(not is_archiving))],
    )
    files: list[Sample] = [({"kind": kind}, len(paths)) for kind, paths in damaged.items()]
    lines += _metric("damaged_files", "gauge", "Files that were found damaged and are kept to be looked at.", files)
    return "\n".join(lines) + "\n"


def _metric(name: str, kind: str, help_: str, samples: Iterable[Sample]) -> list[str]:
    full = f"{_PREFIX}_{name}"
    return [f"# HELP {full} {help_}", f"# TYPE {full} {kind}", *(_line(full, *sample) for sample in samples)]


def _line(name: str, labels: Mapping[str, str], value: int | float) -> str:
    shown = ",".join(f'{label}="{text}"' for label, text in labels.items())
    number = f"{value:.3f}" if isinstance(value, float) else str(value)
    return f"{name}{{{shown}}} {number}" if shown else f"{name} {number}"
