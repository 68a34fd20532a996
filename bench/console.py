"""How fast pages of the console are with a long history: `python -m bench.console`.

200 sources with ten tables each, 100,000 runs, on SQLite or on a PostgreSQL that is there already (`--database URL`).
"""

from __future__ import annotations

import argparse
import secrets
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from starlette.testclient import TestClient

from eventlake.catalog.embedded import COLUMNS, TABLES
from eventlake.control import database as db
from eventlake.control.people import Scope
from eventlake.control.run_lines import told_by
from eventlake.library import Workspace
from eventlake.web.app import create_app
from eventlake.workspace import CONFIG

if TYPE_CHECKING:
    from collections.abc import Iterator

SECOND = 1_000_000
DAY = 86_400 * SECOND
_TABLES, _COLUMNS = 10, 30
_PASSWORD = secrets.token_urlsafe(16)


def filled(folder: Path, address: str, *, sources: int, runs: int) -> Workspace:
    """A workspace with a long history, of which only the database is there."""
    (folder / CONFIG).write_text(f'workspace_id = "bench"\ndatabase = "{address}"\n')
    place = Workspace.open(folder)
    for number in range(sources):
        place.connections.add_source(f"source-{number}", source_id=f"src{number}")
    with place.engine.begin() as connection:
        for table, rows in _rows(place.clock.now(), sources, runs):
            for start in range(0, len(rows), 5000):
                connection.execute(table.insert(), rows[start : start + 5000])
    return place


def _rows(now: int, sources: int, runs: int) -> Iterator[tuple[Any, list[dict[str, Any]]]]:
    names = [
        (f"src{source}", f"source_{source}", f"track_event_{table}")
        for source in range(sources)
        for table in range(_TABLES)
    ]
    head = {"lake": "default"}
    yield (
        TABLES,
        [
            head
            | {"database": database, "name": name, "source_id": source, "table_key": name, "location": name}
            | {"partition_keys": ["day", "hr"], "created_run": "1", "created_at": now}
            for source, database, name in names
        ],
    )
    yield (
        COLUMNS,
        [
            head
            | {"database": database, "table": name, "name": f"properties_{column}", "position": column}
            | {"type": "string", "pointer": f"/properties/{column}"}
            for _, database, name in names
            for column in range(_COLUMNS)
        ],
    )
    yield (
        db.data_files,
        [
            head
            | {"path": f"{source}/{name}/{file}", "source_id": source, "table_key": name, "partition": ["a", "b"]}
            | {"rows": 100, "size": 10_000, "digest": "", "first_received": now, "last_received": now, "run_id": "1"}
            for source, _, name in names
            for file in range(50)
        ],
    )
    step = 40 * DAY // runs
    yield db.runs, [_run(now - number * step, number, sources) for number in range(runs)]


def _run(at: int, number: int, sources: int) -> dict[str, Any]:
    source = number % sources
    books = {"lines": 1010, "loaded": 1000, "duplicates": 5, "suppressed": 0, "blocked": 0, "quarantined": 5}
    is_bad = number < sources and number % 10 == 0  # the last sync of every tenth
    line = {"table_name": "", "database": f"source_{source}", "row_count": 100, "books": books, "is_new": False}
    report: list[dict[str, Any]] = [
        {"type": "source", "books": books, "rescued": 3, "files_read": 1, "data_files": 9, "bytes": 1}
    ]
    report += [line | {"table_name": f"track_event_{table}"} for table in range(_TABLES)]
    if is_bad:
        report = [{"type": "source", "error": "the storage is away", "error_code": "service_unavailable"}]
    return {
        "run_id": f"{at * 1000:019d}",
        "lake": "default",
        "source_id": f"src{source}",
        "kind": "sync",
        "status": "failed" if is_bad else "finished",
        "step": "commit",
        "started_at": at,
        "finished_at": at + 30 * SECOND,
        "report": report,
        "steps": [["discover", at], ["commit", at + SECOND]],
        **told_by(report),
    }


def pages(place: Workspace) -> list[str]:
    run_id = place.runs.lines(1)[0].run_id
    return [
        *("/", "/sources", "/sources/source-7", "/connections", "/connections/source-7/default", "/runs"),
        *("/runs?connection=source-7/default", f"/runs/{run_id}", "/health", "/health?source=source-7", "/tables"),
        *("/tables?source=source-7", "/tables/default/source_7.track_event_3", "/quality", "/quality?view=rescued"),
        *("/alerts", "/settings", "/search?q=event_3", "/_well", "/sql", "/sql/names?word=source_7.t", "/plans"),
        *("/sources/source-7/rules", "/privacy", "/quality?view=violations&days=1", "/quality?view=blocked"),
        *(
            f"/api/v1/{name}"
            for name in ("health", "funnel", "rows-by-day", "sources", "connections", "runs", "tables")
        ),
        *("/api/v1/connections/source-7/default", f"/api/v1/runs/{run_id}", "/api/v1/quarantine", "/api/v1/alerts"),
    ]


def measured(place: Workspace, *, times: int) -> dict[str, list[float]]:
    """Seconds that each page took, each time."""
    client = TestClient(create_app(place, requests_per_second=0), base_url="http://127.0.0.1")
    secret = place.people.invite(Scope.ADMIN)
    client.post(f"/welcome/{secret}", data={"name": "bench", "password": _PASSWORD})
    found: dict[str, list[float]] = {}
    for path in pages(place):
        for _ in range(times + 1):
            begun = time.perf_counter()
            answer = client.get(path)
            took = time.perf_counter() - begun
            if answer.status_code != 200:
                raise SystemExit(f"{path} answers {answer.status_code}")
            found.setdefault(path, []).append(took)
    return {path: seconds[1:] for path, seconds in found.items()}  # the first finds nothing in memory


def at_95(seconds: list[float]) -> float:
    return sorted(seconds)[int(len(seconds) * 0.95)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.console", description=__doc__)
    parser.add_argument("--database", default="sqlite:///eventlake.db", help="URL (%(default)s)")
    parser.add_argument("--sources", type=int, default=200)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=40, help="each page is asked for (%(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="eventlake-bench-") as scratch:
        place = filled(Path(scratch), options.database, sources=options.sources, runs=options.runs)
        found = measured(place, times=options.times)
        place.close()
    table = Table("page", "median ms", "95th percentile ms", title=f"{options.sources} sources, {options.runs:,} runs")
    for path, seconds in found.items():
        table.add_row(path, f"{statistics.median(seconds) * 1000:.0f}", f"{at_95(seconds) * 1000:.0f}")
    whole = [one for seconds in found.values() for one in seconds]
    table.add_row("all", f"{statistics.median(whole) * 1000:.0f}", f"{at_95(whole) * 1000:.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
