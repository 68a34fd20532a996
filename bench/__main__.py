"""Compare what it costs to turn an archive of events into Parquet: `python -m bench --help`."""

from __future__ import annotations

import argparse
import os
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from bench.archives import Archives
from bench.contestants import AZURE_ENDPOINT, BUCKET_ENDPOINT, CONTESTANTS, settle_in
from bench.measure import CommandFailed, ImpossibleCostError
from bench.results import show, write_chart, write_json
from bench.runs import Entry, Run, medians, run
from bench.scenarios import SCENARIOS, Scale

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_IDS_PER_EVENT = 80  # in the look-back of scenario D: a week of syncs, each about as large as the one measured
_TRIES = 3
_console = Console(stderr=True)


def main() -> None:
    options = _options()
    scale = Scale(
        events=options.events,
        hours=options.hours,
        slice_events=options.slice,
        index_ids=options.index_ids or _IDS_PER_EVENT * options.events,
        shape=options.shape,
    )
    with tempfile.TemporaryDirectory(prefix="eventlake-bench-") as scratch:
        settle_in(Path(scratch))
        archives = Archives(Path(scratch), _console)
        entries = [
            entry
            for scenario in options.scenario
            for entry in SCENARIOS[scenario].entries(scale, archives)
            if entry.contestant in options.only
        ]
        with _stores_for(entries, Path(scratch)):
            runs = _run_all(entries, options.repeat, Path(scratch) / "run")
    found = medians(runs)
    show(found, scale)
    if options.json:
        write_json(options.json, runs, found, scale)
        write_chart(options.json.with_suffix(".svg"), found)


@contextmanager
def _stores_for(entries: list[Entry], scratch: Path) -> Iterator[None]:
    """Run the servers of object stores that somebody needs."""
    wanted = {entry.contestant for entry in entries}
    with ExitStack() as running:
        if "eventlake_bucket" in wanted:
            from bench.slow_bucket import slow_bucket  # noqa: PLC0415 - needs the servers of the tests

            os.environ[BUCKET_ENDPOINT] = running.enter_context(slow_bucket(scratch / "bucket"))
        if "eventlake_azure" in wanted:
            from bench.slow_bucket import slow_account  # noqa: PLC0415

            os.environ[AZURE_ENDPOINT] = running.enter_context(slow_account(scratch / "account"))
        yield


def _run_all(entries: list[Entry], repeat: int, folder: Path) -> list[Run]:
    runs: list[Run] = []
    for turn in range(repeat):  # in turn, so that a busy minute of the machine does not hit one alone
        for entry in entries:
            _console.print(f"run {turn + 1} of {repeat}: {entry.scenario} {entry.label}", highlight=False)
            try:
                runs.append(_measured(entry, folder))
            except CommandFailed as failure:
                if entry.contestant.startswith("eventlake"):
                    raise SystemExit(f"{entry.label}: {failure}") from None
                last = str(failure).strip().splitlines()[-1]
                _console.print(f"{entry.scenario} {entry.label} stopped: {last}", highlight=False, style="yellow")
    return runs


def _measured(entry: Entry, folder: Path) -> Run:
    for _ in range(_TRIES):
        try:
            return run(entry, folder)
        except ImpossibleCostError as impossible:
            _console.print(f"{impossible}: once more", highlight=False, style="yellow")
    raise SystemExit(f"{entry.label} cannot be measured here: the clocks of this machine do not agree")


def _options() -> argparse.Namespace:
    scenarios = "; ".join(f"{name}: {scenario.title}" for name, scenario in SCENARIOS.items())
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__, epilog=f"Scenarios: {scenarios}.")
    parser.add_argument("--scenario", default="A", help="with commas (%(default)s)")
    parser.add_argument("--events", type=_positive, default=1_000_000, help="distinct events to load (%(default)s)")
    parser.add_argument("--hours", type=_positive, default=24, help="of receipt they are spread over (%(default)s)")
    parser.add_argument(
        "--slice",
        type=_positive,
        default=50_000,
        metavar="EVENTS",
        help="of them for dlt, and five times so many (%(default)s)",
    )
    parser.add_argument(
        "--index-ids", type=_positive, metavar="N", help="message ids in the look-back of D (80 per event)"
    )
    parser.add_argument(
        "--shape", type=int, default=1, metavar="SEED", help="of the tables of H, N and W (%(default)s)"
    )
    parser.add_argument("--repeat", type=_positive, default=3, help="runs of each; medians are shown (%(default)s)")
    parser.add_argument("--only", default=",".join(CONTESTANTS), help="contestants, with commas (%(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every run to it, and a chart beside it")
    options = parser.parse_args()
    options.scenario = _known(parser, options.scenario, SCENARIOS)
    options.only = _known(parser, options.only, CONTESTANTS)
    if options.json and not options.json.parent.is_dir():
        parser.error(f"there is no folder {options.json.parent}")
    return options


def _positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise ValueError
    return number


_positive.__name__ = "number from 1"  # what argparse calls it


def _known(parser: argparse.ArgumentParser, names: str, known: Mapping[str, object]) -> list[str]:
    wanted = names.split(",")
    if unknown := set(wanted) - known.keys():
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    return wanted


if __name__ == "__main__":
    main()
