"""Reports: in Segment's place and form, and true."""

import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from conftest import ELSEWHERE, Lake, SetClock, track
from eventlake.errors import EventLakeError, NoSpaceError
from eventlake.lake.report_columns import REPORT_COLUMNS
from eventlake.reports import report as reports
from eventlake.runners.spark import SparkRunner
from eventlake.sync import jobs
from eventlake.sync.run import run

SEGMENT_FIELDS = {column.name for column in REPORT_COLUMNS[:22]}


def on_disk(lake: Lake) -> list[Path]:
    return sorted((lake.root / "segment-data" / "reports").rglob("*"))


def test_the_report_lies_where_segment_puts_it_one_object_per_line(lake: Lake) -> None:
    lines = lake.sync_of(track("A", "m1"), track("A", "m1"), track("B", "m2"), track("B", "m3"))
    run_id = lines[0]["run_id"]
    path = lake.root / f"segment-data/reports/day=2026-11-15/source=src1/run_id={run_id}/report.json"
    assert [json.loads(line) for line in path.read_text().splitlines()] == lines
    assert [line["type"] for line in lines] == ["source", "event", "event"]
    assert [line["table_name"] for line in lines] == ["", "track_a", "track_b"]
    assert {line["database"] for line in lines} == {"web"}
    assert {line["workspace_id"] for line in lines} == {lake.workspace.settings.workspace_id}
    assert [line["row_count"] for line in lines] == [3, 1, 2]
    assert [line.get("is_new") for line in lines[1:]] == [True, True]
    assert lines[1]["partitions"] == [{"day": "2026-11-15", "hr": "10"}]
    assert {"name": "received_at", "type": "timestamp"} in lines[1]["new_columns"]


def test_books_balance_for_the_run_its_files_and_its_tables(lake: Lake) -> None:
    lake.put(track("A", "m1"), track("A", "m1"), b"{", name="1.gz")
    lake.put(track("B", "m2"), track("A", "m1"), name="2.gz")
    lines = lake.sync()
    books = lines[0]["books"]
    assert books["lines"] == 5 == books["loaded"] + books["duplicates"] + books["quarantined"]
    assert (books["loaded"], books["duplicates"], books["quarantined"]) == (2, 2, 1)
    by_file = lake.place.ledger.raw_files("src1").values()
    assert [(f.lines, f.loaded, f.duplicates, f.quarantined) for f in by_file] == [(3, 1, 1, 1), (2, 1, 1, 0)]
    assert sum(int(f.checksum, 16) for f in by_file) % 2**64 == int(books["checksum"], 16) % 2**64
    assert [(t["books"]["loaded"], t["books"]["duplicates"]) for t in lines[1:]] == [(1, 2), (1, 0)]
    assert sum(len(lake.rows(table)) for table in lake.tables()) == books["loaded"]


def test_minutes_are_cut_not_rounded() -> None:
    head = reports.RunHead("w", "s", "r", "db", start_ns=0)
    ns = (44 * 60 + 50) * 1_000_000_000
    assert reports.finished(head, ns, [], {})[0]["duration_mins"] == 44


def test_times_are_text_without_zone_to_the_nanosecond() -> None:
    assert reports.time_text(1_700_000_000_000_000_001) == "2023-11-14 22:13:20.000000001"


def test_what_does_not_apply_is_left_out(lake: Lake) -> None:
    lines = lake.sync_of(track())
    assert not {"error", "error_code", "replay", "replay_from", "replay_to"} & set(lines[0])
    assert None not in lines[0].values()
    left_out = {"error", "error_code", "replay", "replay_from", "replay_to", "emr_cluster_id", "day"}
    assert set(lines[1]) & SEGMENT_FIELDS == SEGMENT_FIELDS - left_out - (set() if ELSEWHERE == "s3" else {"s3_bucket"})
    later = lake.sync_of(track(message_id="m2"))
    assert not {"new_columns", "partitions"} & set(later[1])
    assert later[1]["is_new"] is False


class Failing:
    """Spark with a task that cannot be carried out."""

    def __init__(self, spark: SparkRunner, step: str) -> None:
        self._spark = spark
        self._step = step
        self.parallelism = 2
        self.where: dict[str, str] = {}

    def run(
        self,
        function: Callable[..., Any],
        context: Any,
        tasks: Sequence[Any],
        progress: Callable[[int], None] | None = None,
    ) -> list[Any]:
        def no_space(_: Any, __: Any) -> None:
            raise OSError(28, "No space left on device")

        if function.__name__ == self._step:
            return self._spark.run(no_space, context, tasks, progress)
        return self._spark.run(function, context, tasks, progress)


@pytest.mark.parametrize("step", ["stage", "dedupe", "publish"])
def test_a_failed_run_is_reported_leaves_nothing_and_the_next_one_makes_up_for_it(
    lake: Lake, spark: SparkRunner, step: str
) -> None:
    lake.put(track("A", "m1"), b"broken")
    with pytest.raises(NoSpaceError, match="No space left on device"):
        run(lake.workspace, jobs.sync(lake.connection), Failing(spark, step))
    failed = lake.place.runs.get(None)
    assert failed.outcome == "Failed"
    assert failed.report
    (line,) = failed.report
    assert (line["type"], line["status"], line["error_code"]) == ("source", "failed", "no_space")
    assert "No space left" in line["error"]
    assert line["fix"] == failed.line.fix == "make room on the disk, then run it again: nothing is lost"
    assert "row_count" not in line
    assert json.loads((lake.root / reports.path(lake.place.folders, line)).read_text()) == line
    assert lake.data_files() == []
    assert lake.tables() == []
    assert not list((lake.root / "segment-stage").rglob("*.parquet"))

    assert lake.sync()[0]["books"]["loaded"] == 1
    assert len(lake.rows("track_a")) == 1
    assert len(lake.query("select * from __segment_datalake.quarantine")) == 1


def test_nothing_is_reported_on_disk_while_a_run_goes_on_but_its_step_can_be_asked_for(lake: Lake) -> None:
    seen = []

    def look(step: str, done: int, tasks: int) -> None:
        run_now = lake.place.runs.get(None)
        seen.append((step, run_now.outcome, on_disk(lake)))

    lake.put(track())
    run(lake.workspace, jobs.sync(lake.connection), lake.runner, look)
    assert {step for step, _, _ in seen} == {"stage", "dedupe", "publish"}
    assert all(outcome == f"Running: {step}" and files == [] for step, outcome, files in seen)
    assert on_disk(lake)


def test_a_sync_without_data_is_a_success_with_a_notice(lake: Lake) -> None:
    (line,) = lake.sync()
    assert (line["status"], line["row_count"], line["notices"]) == ("finished", 0, ["No data found"])
    assert lake.place.runs.get(None).outcome == "Success"


def test_the_table_of_reports_answers_the_usual_questions(lake: Lake, clock: SetClock) -> None:
    lake.sync_of(track("A", "m1"), track("B", "m2"))
    clock.forward(hours=24)
    lake.sync_of(track("A", "m3"))
    clock.forward(hours=1)
    lake.put(track("A", "m4"))
    with pytest.raises(EventLakeError):
        run(lake.workspace, jobs.sync(lake.connection), Failing(lake.runner, "stage"))  # type: ignore[arg-type]
    table = "__segment_datalake.sync_reports"
    assert lake.query(
        f"select day, sum(row_count)::int as n from {table} "
        "where table_name='track_a' and type='event' group by day order by day"
    ) == [
        {"day": "2026-11-15", "n": 1},
        {"day": "2026-11-16", "n": 1},
    ]
    assert lake.query(f"select day, table_name, row_count from {table} where type='event' order by all") == [
        {"day": "2026-11-15", "table_name": "track_a", "row_count": 1},
        {"day": "2026-11-15", "table_name": "track_b", "row_count": 1},
        {"day": "2026-11-16", "table_name": "track_a", "row_count": 1},
    ]
    (latest,) = lake.query(
        f"select max(finish_time) as t from {table} where status='finished' and date(day)=date '2026-11-16'"
    )
    assert latest["t"].isoformat().startswith("2026-11-16T12:00:00")
    (failure,) = lake.query(
        f"select run_id, error, error_code, source_id from {table} "
        "where status='failed' and date(day) >= date '2026-11-16' - interval 5 day"
    )
    assert failure["error_code"] == "no_space"
    assert failure["source_id"] == "src1"


def test_two_runs_of_a_source_never_go_on_at_once(lake: Lake) -> None:
    lake.put(track())
    other: list[BaseException] = []

    def second(step: str, done: int, tasks: int) -> None:
        def attempt() -> None:
            try:
                lake.sync()
            except EventLakeError as error:
                other.append(error)

        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join()

    run(lake.workspace, jobs.sync(lake.connection), lake.runner, second)
    assert other
    assert all("another run of this connection is going on" in str(error) for error in other)
    assert len(lake.rows("track_clicked")) == 1
