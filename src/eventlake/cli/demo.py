"""`eventlake demo`: a whole tour in a scratch folder."""

import shlex
import tempfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from eventlake import query as engine
from eventlake.archive.importer import import_file
from eventlake.cli import demo_live, output, state
from eventlake.cli.report_view import show_report
from eventlake.cli.runners import Runners
from eventlake.control.connections import Connection
from eventlake.control.sources import Source
from eventlake.demo.events import Recipe, write_archive
from eventlake.reports.words import count
from eventlake.runners.base import Runner
from eventlake.schema.names import RESCUED_COLUMN
from eventlake.settings import DEFAULT_LAKE, DialectName
from eventlake.sync import jobs
from eventlake.sync.run import run
from eventlake.workspace import Workspace

SOURCE = "shop"
_LIVE_EVENTS = 500


class Tour(NamedTuple):
    """What is asked of a lake in one of the dialects."""

    events_per_hour: str
    revenue: str
    misfits: str
    orders: str
    any_sql: str


_TOURS: dict[DialectName, Tour] = {
    "segment": Tour(
        """
        SELECT day, hr, count(*) AS events, count(DISTINCT anonymous_id) AS visitors
        FROM shop.page GROUP BY ALL ORDER BY ALL
        """,
        """
        SELECT properties_currency AS currency, count(*) AS orders, sum(properties_revenue) AS revenue
        FROM shop.track_order_completed GROUP BY ALL ORDER BY orders DESC LIMIT 3
        """,
        """
        SELECT message_id[:8] AS message, _rescued_data FROM shop.{table}
        WHERE _rescued_data IS NOT NULL AND _rescued_data NOT LIKE '%rounded%' LIMIT 4
        """,
        orders="shop.track_order_completed",
        any_sql="select event, count(*) from shop.track_product_added group by all",
    ),
    "rudderstack": Tour(
        """
        SELECT strftime(received_at, '%Y-%m-%d') AS day, strftime(received_at, '%H') AS hr, count(*) AS events,
        count(DISTINCT anonymous_id) AS visitors FROM shop.pages GROUP BY ALL ORDER BY ALL
        """,
        """
        SELECT currency, count(*) AS orders, round(sum(revenue), 2) AS revenue
        FROM shop.order_completed GROUP BY ALL ORDER BY orders DESC LIMIT 3
        """,
        """
        SELECT table_name, column_name, column_value[:40] AS column_value, reason, count(*) AS values
        FROM shop.rudder_discards GROUP BY ALL ORDER BY ALL LIMIT 6
        """,
        orders="shop.order_completed",
        any_sql="select event, count(*) from shop.tracks group by all",
    ),
}
_QUARANTINED = """
    SELECT reason, count(*) AS lines, min(detail) AS example FROM __segment_datalake.quarantine
    GROUP BY reason ORDER BY lines DESC
"""


def demo(
    events: Annotated[int, typer.Option(min=1000, help="How many events to make.")] = 50_000,
    folder: Annotated[Path | None, typer.Option("--dir", help="Where; by default a new temporary folder.")] = None,
    dialect: state.DialectOption = "segment",
    serve: Annotated[
        bool, typer.Option("--serve", help="Run everything, with live events, and show it in a browser, until Ctrl-C.")
    ] = False,
) -> None:
    """A tour in a scratch folder: make events, send some over HTTP, sync them on Spark, look at what became of them.

    With --serve, the same in a browser: a collector, a scheduler and the console run, and events keep coming.
    """
    scratch = (folder or Path(tempfile.mkdtemp(prefix="eventlake-demo-"))).resolve()
    workspace = Workspace.create(scratch, dialect)
    connection, write_key = workspace.connections.add_source(SOURCE)
    tour = _TOURS[dialect]
    _step(f"1. A workspace in {scratch}")

    _step(f"2. {events:,} events of a web shop, an iOS app and a back end; with copies, odd values and broken lines")
    if serve:
        _serve(workspace, connection, write_key, events)
        return
    until = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    recipe = Recipe(events=int(events * 0.8), until=until - timedelta(hours=5), hours=19)
    later = replace(
        recipe,
        events=events - recipe.events,
        seed=2,
        until=until,
        hours=5,
        duplicate_share=0.02,
        conflict_share=0.02,
        broken_share=0.001,
    )
    _archive(workspace, connection.source, recipe, scratch / "raw" / "1", files=8)

    _step("3. The first sync: Spark starts, tables and columns are found")
    with Runners(workspace) as runners, runners.of(DEFAULT_LAKE) as runner:
        _sync(workspace, connection, runner)
        _step("4. A collector runs: some events come over HTTP")
        with demo_live.collector(scratch) as address:
            recipe = Recipe(_LIVE_EVENTS, seed=3, until=until, hours=1)
            output.out.print(f"{demo_live.send(address, write_key, recipe)} to {address}/v1/batch")
        _step("5. Five hours later: copies of earlier events, values of the wrong kind, broken lines")
        _archive(workspace, connection.source, later, scratch / "raw" / "2", files=2)
        _sync(workspace, connection, runner)
        _step("6. The same sync once more: nothing to do, and nothing twice")
        _sync(workspace, connection, runner)

    _step("7. Page views per hour, asked with SQL")
    _show_chart(workspace, tour)
    _step("8. Orders")
    _show(workspace, tour.revenue)
    _step("9. What did not fit its column is kept beside the row, with the reason")
    _show(workspace, tour.misfits.format(table=_table_with_rescued(workspace)))
    _step("10. What is not an event is kept, too")
    _show(workspace, _QUARANTINED)
    _what_next(scratch, tour)


def _sync(workspace: Workspace, connection: Connection, runner: Runner) -> None:
    with output.progress() as report:
        lines = run(workspace, jobs.sync(connection), runner, report)
    show_report(SOURCE, lines)


def _step(words: str) -> None:
    output.out.print()
    output.out.print(words, style="bold")


def _serve(workspace: Workspace, connection: Connection, write_key: str, events: int) -> None:
    """Everything, as `eventlake serve` runs it, with a day of history and live events."""
    until = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    history = Recipe(events, until=until, duplicate_share=0.02, conflict_share=0.02, broken_share=0.001)
    _archive(workspace, connection.source, history, workspace.folder / "raw", files=8)
    workspace.connections.change(SOURCE, {"schedule": "every 5m"})
    _step("3. Everything runs, and events keep coming. Open the link below; stop with Ctrl-C")
    demo_live.serve(workspace.folder, write_key)


def _archive(workspace: Workspace, source: Source, recipe: Recipe, folder: Path, *, files: int) -> None:
    folder.mkdir(parents=True)
    with output.progress() as report:
        made = 0

        def count(lines: int) -> None:
            nonlocal made
            made += lines
            report("make", made, max(made, recipe.events))

        for file in write_archive(replace(recipe, project_id=source.id), folder, files=files, progress=count):
            import_file(workspace.archive, source.id, file, now_micros=workspace.clock.now())


def _show(workspace: Workspace, sql: str) -> None:
    found = engine.query(workspace.lake(), sql)
    output.out.print(" ".join(sql.split()), style="dim", soft_wrap=True)
    output.table(None, found.column_names, [list(row.values()) for row in found.to_pylist()])


def _table_with_rescued(workspace: Workspace) -> str:
    """A few thousand events may leave a table without an odd value: take one that has some."""
    names = [table.name for table in workspace.lake().catalog.tables() if RESCUED_COLUMN in table.schema.names]
    return next(name for name in ("track_product_viewed", *names) if name in names)


def _show_chart(workspace: Workspace, tour: Tour) -> None:
    rows = engine.query(workspace.lake(), tour.events_per_hour).to_pylist()
    output.out.print(" ".join(tour.events_per_hour.split()), style="dim", soft_wrap=True)
    output.out.print(output.columns_chart([row["events"] for row in rows]), style="cyan")
    hours = "".join(f"{row['hr']:<8}" for row in rows[::4])
    output.out.print(
        f"{hours}\n{sum(row['events'] for row in rows):,} page views in {count(len(rows), 'hour')}", style="dim"
    )


def _what_next(scratch: Path, tour: Tour) -> None:
    _step("What next")
    for command, words in (
        ("tables", "all tables"),
        (f"describe {tour.orders}", "columns, types, and since when"),
        (f'query "{tour.any_sql}"', "any SQL"),
        ("replay shop --all", "load everything again: adds nothing"),
        ("collect", "let SDKs send to it: see docs/collector.md"),
        ("verify", "do archive, files, catalog and books agree?"),
    ):
        output.say(f"  eventlake -C {shlex.quote(str(scratch))} {command}   ", (f"# {words}", "dim"))
    output.say("  eventlake init my-lake   ", ("# your own", "dim"))
