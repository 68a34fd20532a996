"""A quick look whether loads have become slow: exit code 1 if naive Spark comes too near."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from rich.console import Console

from bench.archives import Archives
from bench.contestants import Task, settle_in
from bench.runs import Entry, run
from bench.scenarios import Scale, whole_task

_EVENTS = 250_000
_STATED = 5.0  # times as long as a steady sync takes naive Spark, with a million events
_LEAST = _STATED / 2  # fewer events are more start-up, and other machines are other machines


def main() -> None:
    """Measure, and measure again if it looks slow: a machine that is shared has bad minutes."""
    scale = Scale(_EVENTS, hours=24, slice_events=0, index_ids=0)
    with tempfile.TemporaryDirectory(prefix="eventlake-smoke-") as scratch:
        settle_in(Path(scratch))
        task = whole_task(scale, Archives(Path(scratch), Console(stderr=True)))
        if not any(_is_fast(task, Path(scratch) / "run") for _ in range(2)):
            sys.exit(1)


def _is_fast(task: Task, folder: Path) -> bool:
    naive, steady = (
        run(Entry("A", name, name, task), folder).cost.wall_seconds for name in ("naive_spark", "eventlake_steady")
    )
    print(f"{_EVENTS:,} events: naive Spark {naive:.1f} s, eventlake {steady:.1f} s")
    print(f"naive Spark takes {naive / steady:.2f} times as long; at least {_LEAST:g} times is wanted")
    return naive / steady >= _LEAST


if __name__ == "__main__":
    main()
