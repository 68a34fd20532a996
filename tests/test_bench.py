"""What the benchmark rests on: data of the shape that is said, costs that can be, and limits where they belong."""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from bench import page
from bench.archives import Archive
from bench.contestants import Task
from bench.measure import Cost, ImpossibleCostError, refuse_impossible
from bench.runs import Entry, Median, Medians
from bench.shapes import lines, tables_of, various, wide
from bench.targets import TARGETS, verdicts

from conftest import InProcess, Lake
from eventlake.reading.scanner import ScanSizes
from test_scanner import Reader

SEEDS = [*range(1, 61), 1009, 77_777]


def test_tables_of_every_seed_share_few_keys_and_have_500_to_1000_places() -> None:
    found = {seed: tables_of(various(1, seed, hours=1)) for seed in SEEDS}
    assert all(500 <= sum(table.places for table in tables) <= 1000 for tables in found.values())
    for tables in found.values():
        assert len({table.event for table in tables}) == len(tables) == 40
        keys = [key for table in tables for key, _, _ in table.members]
        assert len(set(keys)) > 0.75 * len(keys)
        kinds: dict[str, set[object]] = {}
        for table in tables:
            for key, kind, _ in table.members:
                kinds.setdefault(key, set()).add(kind)
        assert sum(len(of_key) > 1 for of_key in kinds.values()) >= 8, "some keys are of other kinds elsewhere"
    assert found[1][0].members != found[2][0].members


@pytest.mark.parametrize("seed", [1, 5])
def test_the_wide_table_has_1500_columns_of_which_an_event_fills_30(tmp_path: Path, seed: int) -> None:
    shapes = wide(2000, seed, hours=1)
    lake = Lake(tmp_path, InProcess())
    lake.sync_of(*lines(shapes))
    (table,) = [table for table in lake.place.catalog.tables() if table.name.startswith("track_")]
    assert len(table.schema.columns) == 1500
    (kept,) = tables_of(shapes)
    optional = {key for key, _, is_optional in kept.members if is_optional}
    assert 0.2 < len(optional) / len(kept.members) < 0.4
    for line in list(lines(shapes))[:50]:
        if b'"track"' in line:
            keys = re.findall(rb'"(\w+_\w+\d+)":', line)
            assert 10 <= len(keys) <= 30


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_no_line_of_them_is_left_to_the_exact_reader(tmp_path: Path, seed: int) -> None:
    for shapes in (various(1500, seed, hours=1), wide(300, seed, hours=1)):
        read = Reader(tmp_path, ScanSizes(), column_limit=2000)
        read(*lines(shapes))
        assert read.left == []


def cost_of(code: str, log: Path) -> Cost:
    """In a process of its own: whoever measures ends all else that goes on below it, such as servers of tests."""
    measure = (
        "import sys; from pathlib import Path; from dataclasses import astuple; from bench.measure import measured; "
        "print(*astuple(measured([sys.executable, '-c', sys.argv[1]], environment={}, log=Path(sys.argv[2]))))"
    )
    words = [sys.executable, "-c", measure, code, str(log)]
    done = subprocess.run(words, cwd=Path(__file__).parent.parent, capture_output=True, text=True, check=True)
    wall, cpu, peak, worker = done.stdout.split()
    return Cost(float(wall), float(cpu), int(peak), int(worker))


def test_what_a_command_costs_is_told(tmp_path: Path) -> None:
    busy = "import time\nend = time.process_time() + 0.5\nwhile time.process_time() < end: pass"
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"
    hold = "held = bytearray(200_000_000); import time; time.sleep(0.5)"
    for code in (busy, nested):
        cost = cost_of(code, tmp_path / "log")
        assert 0.5 <= cost.cpu_seconds < 1.5
        assert cost.wall_seconds >= 0.5
    assert cost_of(hold, tmp_path / "log").peak_bytes > 200_000_000


def test_a_cost_that_cannot_be_is_refused() -> None:
    refuse_impossible(Cost(10, 19, 0, 0), 10, cores=2)
    with pytest.raises(ImpossibleCostError, match=r"5586\.0 CPU seconds were told .* 491\.0 seconds on 2 cores"):
        refuse_impossible(Cost(490, 5586, 0, 0), 491, cores=2)


def medians(scenario: str, events: int, **seconds: float) -> Medians:
    archive = Archive(Path(), events, 1, 1, 1)
    task = Task(archive, archive)
    return {
        (scenario, label): Median(Entry(scenario, label, label, task), 3, wall, wall, 1, 1, 1, 1, 0, 0, {})
        for label, wall in seconds.items()
    }


def test_limits_are_those_of_the_scenario_that_they_are_about() -> None:
    few = medians("A", 1_000_000, eventlake_steady=10, duckdb_copy=12)
    many = medians("H", 10_000_000, eventlake_steady=10, duckdb_copy=12)
    found = {verdict.words: (verdict.target, verdict.met) for verdict in verdicts({**few, **many})}
    assert found["A: DuckDB's wall time ÷ steady"] == ("≥ 1", True)
    assert found["H: DuckDB's wall time ÷ steady"] == ("≥ 1.3", False)


def test_one_more_event_is_compared_between_the_same_two_slices() -> None:
    found = {
        ("A", label): Median(
            Entry("A", label, label.split(",")[0], Task(archive, archive)), 3, cpu, cpu, 1, 1, 1, 1, 0, 0, {}
        )
        for label, events, cpu in (
            ("dlt, a slice", 50_000, 10),
            ("dlt, five slices", 250_000, 50),
            ("steady, a slice", 50_000, 7),
            ("steady, five slices", 250_000, 11),
            ("eventlake_steady", 1_000_000, 12),  # which must not count
        )
        for archive in (Archive(Path(), events, 1, 1, 1),)
    }
    (verdict,) = [verdict for verdict in verdicts(found) if "dlt" in verdict.words]
    assert (verdict.measured, verdict.met) == (10.0, True)


def test_every_target_is_on_the_page() -> None:
    targets = (Path(__file__).parent.parent / "docs" / "performance.md").read_text()
    (table,) = re.findall(r"### Targets\n(.*?)\n\n[^|]", targets, re.DOTALL)
    told = {number.replace(",", "") for number in re.findall(r"\d[\d,.]*", table)}
    assert {f"{limit:g}" for target in TARGETS for limit in (target.limit, target.of_many) if limit} <= told


@pytest.mark.parametrize("path", page.PAGES, ids=lambda path: path.name)
def test_pages_tell_the_figures_that_were_measured(path: Path) -> None:
    text = path.read_text()
    assert "<!-- figures: " in text
    assert page.written(text) == text


@pytest.mark.parametrize(
    "words",
    [["--events", "0"], ["--hours", "0"], ["--repeat", "-1"], ["--json", "/no/such/folder/x.json"], ["--only", "me"]],
)
def test_what_cannot_be_measured_is_refused_before_anything_is(words: list[str]) -> None:
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-m", "bench", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert words[1].split("/")[-1].split(".")[0] in done.stderr or "folder" in done.stderr
    assert time.monotonic() - started < 60
