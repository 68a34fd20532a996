"""What is measured: each scenario asks one question, of some contestants."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bench.contestants import NO_EVENTS, Task
from bench.runs import Entry
from bench.shapes import Shapes, various, wide
from eventlake.demo.events import Recipe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.archives import Archives

_EVENTS_PER_FILE = 20_000  # some 4 MB of gzip
_FEWEST_FILES = 8  # so that more cores than one have work
_SMALL_FILE = 50  # events
_FEW_EVENTS = 5_000
SIZES = {"tenth": 0.1, "whole": 1, "tenfold": 10}  # of scenario G
DLT_SIZES = {"a slice": 1, "five slices": 5}  # for dlt, with which all events would take an hour
_LOADERS = ("naive_spark", "spark_with_schema", "duckdb_copy", "duckdb_with_schema")


@dataclass(frozen=True)
class Scale:
    events: int
    hours: int
    slice_events: int  # for contestants that would take too long with all
    index_ids: int  # in the look-back
    shape: int = 1  # the seed of the tables of H, W and N


def _recipe(scale: Scale) -> Recipe:
    # Without broken lines: the simple ways stop at them. `make bench-lossless` is about those.
    return Recipe(scale.events, hours=scale.hours, duplicate_share=0.01, conflict_share=0.002)


def _task(archives: Archives, recipe: Recipe | Shapes, *, files: int | None = None, index_ids: int = 0) -> Task:
    files = files or max(_FEWEST_FILES, recipe.events // _EVENTS_PER_FILE)
    return Task(archives.archive(recipe, files), archives.sample(recipe), index_ids)


def whole_task(scale: Scale, archives: Archives) -> Task:
    """The events of scenario A, on which others build."""
    return _task(archives, _recipe(scale))


def _many(scenario: str, task: Task, *contestants: str) -> Iterator[Entry]:
    for contestant in contestants:
        yield Entry(scenario, contestant, contestant, task)


def _a(scale: Scale, archives: Archives) -> Iterator[Entry]:
    task = whole_task(scale, archives)
    yield from _many("A", task, "bare_spark_cached", *_LOADERS, "eventlake_first", "eventlake_steady")
    # dlt stops at whole numbers beyond 64 bits, which are among the conflicts.
    yield from _slices("A", scale, archives, replace(_recipe(scale), conflict_share=0.0))


def _slices(scenario: str, scale: Scale, archives: Archives, recipe: Recipe | Shapes) -> Iterator[Entry]:
    """The same slices for dlt and for us: between them lies what one more event costs."""
    for name, share in DLT_SIZES.items():
        part = _task(archives, replace(recipe, events=scale.slice_events * share))
        yield Entry(scenario, f"dlt, {name}", "dlt", part)
        yield Entry(scenario, f"steady, {name}", "eventlake_steady", part)


def _b(scale: Scale, archives: Archives) -> Iterator[Entry]:
    task = _task(archives, replace(_recipe(scale), track_types=1000))
    yield from _many("B", task, "duckdb_copy", "eventlake_first", "eventlake_steady")


def _c(scale: Scale, archives: Archives) -> Iterator[Entry]:
    task = _task(archives, _recipe(scale), files=max(1, scale.events // _SMALL_FILE))
    yield from _many("C", task, "duckdb_copy", "eventlake_steady")


def _d(scale: Scale, archives: Archives) -> Iterator[Entry]:
    task = whole_task(scale, archives)
    yield Entry("D", "nothing before", "eventlake_steps", task)
    yield Entry("D", "84 syncs before", "eventlake_steps", replace(task, index_ids=scale.index_ids))


def _e(scale: Scale, archives: Archives) -> Iterator[Entry]:
    task = _task(archives, _recipe(scale), files=1)
    yield from _many("E", task, "naive_spark", "duckdb_copy", "eventlake_steady")


def _f(scale: Scale, archives: Archives) -> Iterator[Entry]:
    task = _task(archives, replace(_recipe(scale), events=min(scale.events, _FEW_EVENTS)))
    yield from _many("F", task, "bare_spark", "bare_spark_cached")
    yield from _many("F", task, "eventlake_uncached", "eventlake_steady", "eventlake_warm")


def _g(scale: Scale, archives: Archives) -> Iterator[Entry]:
    for of, recipe in (("A", _recipe(scale)), ("H", _shapes(scale))):
        for name, factor in SIZES.items():
            task = _task(archives, replace(recipe, events=int(scale.events * factor)))
            yield Entry("G", f"{of}, {name}", "eventlake_steady", task)


def _shapes(scale: Scale) -> Shapes:
    return various(scale.events, scale.shape, hours=scale.hours)


def _h(scale: Scale, archives: Archives) -> Iterator[Entry]:
    task = _task(archives, _shapes(scale))
    yield from _many("H", task, "bare_spark_cached", *_LOADERS, "eventlake_first", "eventlake_steady")
    yield from _slices("H", scale, archives, _shapes(scale))


def _k(scale: Scale, archives: Archives) -> Iterator[Entry]:
    yield from _many("K", whole_task(scale, archives), "eventlake_here", "eventlake_connect")


def _n(scale: Scale, archives: Archives) -> Iterator[Entry]:
    task = _task(archives, Shapes(scale.events, scale.shape, hours=3, track_types=1000))
    yield from _many("N", task, "duckdb_copy", "eventlake_first", "eventlake_steady")


def _w(scale: Scale, archives: Archives) -> Iterator[Entry]:
    task = _task(archives, wide(scale.events, scale.shape, hours=scale.hours))
    yield from _many("W", task, "duckdb_copy", "eventlake_first", "eventlake_steady")


def _o(scale: Scale, archives: Archives) -> Iterator[Entry]:
    few = whole_task(scale, archives)
    many = _task(archives, Shapes(scale.events, scale.shape, hours=3, track_types=1000))
    for name, task in (("A", few), ("N", many)):
        yield Entry("O", f"{name} on a disk", "eventlake_steady", task)
        yield Entry("O", f"{name} in a bucket", "eventlake_bucket", task)
    yield Entry("O", "A on Azure", "eventlake_azure", few)


def _p(scale: Scale, archives: Archives) -> Iterator[Entry]:
    task = whole_task(scale, archives)
    yield from _many("P", task, "eventlake_steady", "eventlake_suppressing", "eventlake_planned")


def _r(scale: Scale, archives: Archives) -> Iterator[Entry]:
    yield from _many("R", whole_task(scale, archives), "naive_spark_rudder", "eventlake_rudder", "eventlake_steady")


def _s(_scale: Scale, _archives: Archives) -> Iterator[Entry]:
    yield from _many("S", NO_EVENTS, "eventlake_driver", "eventlake_history")


@dataclass(frozen=True)
class Scenario:
    title: str
    entries: Callable[[Scale, Archives], Iterator[Entry]]


SCENARIOS = {
    "A": Scenario("40 track types, files of a few MB", _a),
    "B": Scenario("1,000 track types", _b),
    "C": Scenario("files of 50 events", _c),
    "D": Scenario("a week of earlier syncs in the look-back", _d),
    "E": Scenario("one huge file", _e),
    "F": Scenario("5,000 events", _f),
    "G": Scenario("a tenth, the whole and ten times the events", _g),
    "H": Scenario("40 track types with properties of their own", _h),
    "K": Scenario("A over Spark Connect, beside a Spark of the same process", _k),
    "N": Scenario("1,000 track types in three hours", _n),
    "O": Scenario("A and N in a bucket behind a network, and A in a container of Azure", _o),
    "P": Scenario("A with a million suppressed people, and with a plan of all its events", _p),
    "R": Scenario("A in RudderStack's dialect", _r),
    "S": Scenario("the driver of a billion events, and one more file after a million", _s),
    "W": Scenario("one table with 1,500 columns of which an event fills 30", _w),
}
