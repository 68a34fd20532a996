"""Load hostile events in several ways, and count what is lost: `python -m bench.lossless --help`.

A way that does not come to its end as it is written gets one concession after the other, each for the reason it
stopped, until it does. Concessions are told below the table. The exit code is 1 if eventlake loses anything.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.corpus import Corpus, write_corpus
from bench.loads import LOADS, Load, loaded
from bench.oracle import Value, missing, values_of
from bench.outputs import Output, read_output

_TABLE_WIDTH = 150  # rich would cut it to 80 columns where there is no terminal
_EXAMPLES = 20  # of lost values, in the JSON file
_console = Console(stderr=True)


@dataclass
class Score:
    """What became of the corpus in the hands of one contestant."""

    contestant: str
    load: str
    notes: list[str]
    events: int  # distinct ones that it was given
    events_left_out: int  # so that it comes to its end
    lines: int  # that are no events
    lines_left_out: int
    duplicates: int
    events_lost: int = 0
    lines_lost: int = 0  # without a trace
    duplicates_left: int = 0
    values: int = 0
    values_lost: int = 0
    values_lost_of_loaded: int = 0  # of events that are there
    lost_by_place: dict[str, int] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)

    @property
    def loses(self) -> bool:
        return self.events_lost + self.lines_lost + self.values_lost > 0


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory(prefix="eventlake-lossless-") as scratch:
        corpus = write_corpus(Path(scratch) / "corpus", events=options.events, seed=options.seed)
        scores = []
        for name in options.only:
            _console.print(f"loading with {name}")
            load = loaded(LOADS[name], corpus, Path(scratch) / name)
            _console.print(f"  {load.outcome}; looking for {len(corpus.events):,} events")
            scores.append(_score(name, load, corpus))
    _show(scores, options)
    if options.json:
        document = {"events": options.events, "seed": options.seed, "scores": [asdict(score) for score in scores]}
        options.json.write_text(json.dumps(document, indent=2) + "\n")
    if any(score.contestant == "eventlake" and score.loses for score in scores):
        sys.exit(1)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.lossless", description=__doc__)
    parser.add_argument("--events", type=int, default=20_000, help="distinct events (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the corpus (%(default)s)")
    parser.add_argument("--only", default=",".join(LOADS), help="contestants, with commas (%(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write counts and examples of losses to it")
    options = parser.parse_args()
    options.only = options.only.split(",")
    if unknown := set(options.only) - LOADS.keys():
        parser.error(f"no contestant is called {', '.join(sorted(unknown))}; there are {', '.join(LOADS)}")
    return options


def _score(name: str, load: Load, corpus: Corpus) -> Score:
    """Count what is lost of the lines that the contestant was given."""
    given = {message_id: line for message_id, line in corpus.events.items() if message_id not in load.left_out}
    marks = corpus.marks - load.left_out
    output = read_output(load.output) if load.output else Output()
    score = Score(
        contestant=name,
        load=load.outcome,
        notes=load.notes,
        events=len(given),
        events_left_out=len(corpus.events) - len(given),
        lines=len(marks),
        lines_left_out=len(corpus.marks) - len(marks),
        duplicates=sum(message_id in given for message_id in corpus.copies),
        lines_lost=len(marks - output.marks),
        duplicates_left=sum(max(0, len(output.rows[message_id]) - 1) for message_id in given),
    )
    _look_for_values(score, given, output)
    return score


def _look_for_values(score: Score, given: dict[str, str], output: Output) -> None:
    by_place: Counter[str] = Counter()
    for message_id, line in given.items():
        values = values_of(line)
        score.values += len(values)
        rows = output.rows[message_id]
        if not rows:
            score.events_lost += 1
            score.values_lost += len(values)
            continue
        lost = min((missing(values, cells) for cells in rows), key=len)  # of several copies the best one counts
        score.values_lost += len(lost)
        score.values_lost_of_loaded += len(lost)
        by_place.update(_place(value) for value in lost)
        score.examples += [_example(message_id, value) for value in lost[: max(0, _EXAMPLES - len(score.examples))]]
    score.lost_by_place = dict(by_place.most_common())


def _place(value: Value) -> str:
    return "/".join(value.path[:2])[:80]


def _example(message_id: str, value: Value) -> str:
    return f"{message_id} {'/'.join(value.path)}: {value.forms[0]}"[:300]


def _show(scores: list[Score], options: argparse.Namespace) -> None:
    table = Table(title=f"{options.events:,} hostile events, seed {options.seed}")
    table.add_column("contestant")
    for heading in ("events", "left out", "lost", "other lines lost", "copies left", "values", "lost", "% lost"):
        table.add_column(heading, justify="right")
    table.add_column("load")
    for score in scores:
        table.add_row(
            score.contestant,
            f"{score.events:,}",
            f"{score.events_left_out:,}",
            f"{score.events_lost:,}",
            f"{score.lines_lost:,} of {score.lines:,}" if score.lines else f"all {score.lines_left_out:,} left out",
            f"{score.duplicates_left:,} of {score.duplicates:,}",
            f"{score.values:,}",
            f"{score.values_lost:,}",
            f"{100 * score.values_lost / max(1, score.values):.2f}",
            score.load,
        )
    console = Console(width=_TABLE_WIDTH)
    console.print(table)
    for score in scores:
        for note in _notes(score):
            console.print(f"{score.contestant}: {note}", markup=False, highlight=False)


def _notes(score: Score) -> list[str]:
    gone = score.values_lost - score.values_lost_of_loaded
    split = f"{gone:,} values went with lost events, {score.values_lost_of_loaded:,} were lost of events that are there"
    return [*score.notes, split] if score.values_lost else score.notes


if __name__ == "__main__":
    main()
