"""Queries on Athena: rows with their types, progress, what they cost, and what is told when they fail."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from conftest import InProcess, Lake, SetClock, track
from consoles import Failing
from eventlake.errors import InvalidSettingsError, PermissionMissingError, TransientError
from eventlake.query import athena, query
from eventlake.query.athena import Athena
from stand_in_athena import PAGE, StandIn
from stand_in_athena import athena as served
from test_aws import OnAws, on_aws  # noqa: F401 - a fixture


@pytest.fixture
def lake(on_aws: OnAws) -> Lake:  # noqa: F811
    found = on_aws.lake()
    found.sync_of(track("A", "m1", properties={"n": 1, "d": 1.5, "b": True, "t": "2026-11-01T00:00:00Z", "s": "x"}))
    found.sync_of(track("A", "m2"))
    return found


@pytest.fixture
def stand_in(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    with served(StandIn(lambda sql: query(lake.place, sql))) as found:
        monkeypatch.setenv("AWS_ENDPOINT_URL_ATHENA", found.address)
        yield found


def test_rows_come_back_with_their_types_and_what_they_cost(lake: Lake, stand_in: StandIn) -> None:
    columns = "message_id, properties_n, properties_d, properties_b, properties_t, properties_s"
    sql = f"select {columns} from {lake.connection.database}.track_a order by message_id"
    states: list[tuple[str, int]] = []
    answer = athena.ask(
        lake.place, sql, Athena("team", "s3://results/here"), progress=lambda state, read: states.append((state, read))
    )
    at = datetime(2026, 11, 1, tzinfo=UTC)
    assert [tuple(row.values()) for row in answer.rows.to_pylist()] == [
        ("m1", 1, Decimal("1.500000"), True, at, "x"),
        ("m2", None, None, None, None, None),
    ]
    assert [state for state, _ in states] == ["running", "running", "succeeded"]
    assert (answer.read_bytes, answer.seconds) == (20_000_000, 1.5)
    assert answer.dollars == pytest.approx(0.0001)
    (asked,) = stand_in.asked
    assert (asked["WorkGroup"], asked["ResultConfiguration"]) == ("team", {"OutputLocation": "s3://results/here"})


def test_the_queries_that_the_page_has_for_reports_answer(
    on_aws: OnAws,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those that Segment's documents show: by day for one event and for all, the last success of today, failures."""
    page = (Path(__file__).parent.parent / "docs" / "aws.md").read_text()
    (block,) = re.findall(r"documents ask of the reports.*?```sql\n(.*?)```", page, re.DOTALL)
    asked = [sql for sql in block.replace("SOURCE_ID", "src1").split(";") if sql.strip()]
    lake = on_aws.lake()
    clock = lake.workspace.clock
    assert isinstance(clock, SetClock)
    today = datetime.now(UTC).replace(hour=12, minute=0)
    clock.forward(hours=(today - datetime(2026, 11, 15, 12, tzinfo=UTC)) / timedelta(hours=1) - 24 * 9)
    failures = []
    for days in (8, 1):  # nine days ago, and yesterday
        lake.put(track("A", f"a{days}"))
        lake.runner = Failing()
        with pytest.raises(TransientError):
            lake.sync()
        failures.append(lake.place.runs.latest(1)[0].run_id)
        lake.runner = InProcess()
        lake.sync_of(track("Order Completed", f"o{days}"), track("Order Completed", f"p{days}"))
        clock.forward(hours=24 * days)
    (last, *_) = lake.sync_of(track("Order Completed", "m3"))
    long_ago, yesterday, now = ((today - timedelta(days=days)).date().isoformat() for days in (9, 1, 0))
    with served(StandIn(lambda sql: query(lake.place, sql))) as found:
        monkeypatch.setenv("AWS_ENDPOINT_URL_ATHENA", found.address)
        of_event, of_tables, finished, failed = (athena.ask(lake.place, sql).rows.to_pylist() for sql in asked)
    assert [(row["day"], int(row["events"])) for row in of_event] == [(long_ago, 2), (yesterday, 2), (now, 1)]
    assert [(row["day"], row["table_name"], int(row["events"])) for row in of_tables] == [
        (long_ago, "track_a", 1),
        (long_ago, "track_order_completed", 2),
        (yesterday, "track_a", 1),
        (yesterday, "track_order_completed", 2),
        (now, "track_order_completed", 1),
    ]
    assert last["finish_time"][:19] in str(finished[0]["finished"])
    assert [row["run_id"] for row in failed] == failures[1:]
    assert failed[0]["error_code"] == "service_unavailable"


@pytest.mark.parametrize("rows", [0, 1, PAGE - 1, PAGE, 2 * PAGE + 1])
def test_many_rows_come_page_by_page(lake: Lake, stand_in: StandIn, rows: int) -> None:
    stand_in.looks = 0
    found = athena.ask(lake.place, f"select range as n, range as n from range({rows})").rows
    assert found.column_names == ["n", "n_1"]
    assert found.column("n").to_pylist() == list(range(rows))


def test_what_fails_is_told_with_who_must_act(lake: Lake, stand_in: StandIn) -> None:
    with pytest.raises(InvalidSettingsError, match=r"Athena ended the query .failed.: SYNTAX_ERROR"):
        athena.ask(lake.place, "select nothing from nowhere")
    with pytest.raises(PermissionMissingError) as refused:
        athena.ask(lake.place, "select 1", Athena("forbidden"))
    assert "athena:StartQueryExecution" in refused.value.fix
    with pytest.raises(InvalidSettingsError, match="WorkGroup gone is not found") as unknown:
        athena.ask(lake.place, "select 1", Athena("gone"))
    assert "--workgroup" in unknown.value.fix


@pytest.mark.parametrize(
    ("action", "stopped"),
    [
        ("StartQueryExecution", [False]),
        ("GetQueryExecution", [False, True]),  # it would go on, and nobody looks at it any more
        ("GetQueryResults", [False, False]),
    ],
)
def test_an_athena_that_slows_us_down_is_asked_again(
    lake: Lake, stand_in: StandIn, action: str, stopped: list[bool]
) -> None:
    stand_in.too_many = {action: 2}
    assert athena.ask(lake.place, "select count(*) as n").rows.to_pylist() == [{"n": 1}]
    stand_in.too_many = {action: 100}
    with pytest.raises(TransientError, match="Rate exceeded") as caught:
        athena.ask(lake.place, "select count(*) as n")
    assert "takes no more requests now" in caught.value.fix
    assert [query.stopped for query in stand_in.queries.values()] == stopped


def test_a_query_that_nobody_waits_for_is_stopped(lake: Lake, stand_in: StandIn) -> None:
    stand_in.looks = 1000
    with pytest.raises(TransientError, match=r"longer than 0\.1 seconds"):
        athena.ask(lake.place, "select 1 as n", timeout=0.1)
    assert [one.stopped for one in stand_in.queries.values()] == [True]

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        athena.ask(lake.place, "select 1 as n", progress=interrupted)
    assert [one.stopped for one in stand_in.queries.values()] == [True, True]


def test_who_may_not_stop_a_query_still_sees_why_nobody_waits_for_it(lake: Lake, stand_in: StandIn) -> None:
    stand_in.looks, stand_in.may_not_stop = 1000, True
    with pytest.raises(TransientError, match=r"longer than 0\.1 seconds"):
        athena.ask(lake.place, "select 1 as n", timeout=0.1)


def test_without_glue_there_is_nothing_to_ask(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "place", InProcess(), clock=SetClock(), settings='[lake]\nroot = "lake"\n')
    with pytest.raises(InvalidSettingsError, match="not in Glue"):
        athena.ask(lake.place, "select 1")


def test_on_the_command_line(lake: Lake, stand_in: StandIn, tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "eventlake", "-C", str(lake.workspace.folder), "query", "--athena", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    sql = f"select count(*) as n from {lake.connection.database}.track_a"
    done = run(sql, "--json")
    assert (done.returncode, json.loads(done.stdout)) == (0, {"n": 2})
    assert "Athena read 20.0 MB in 1.5 s, about $0.00010 (query " in done.stderr
    done = run(sql, "--output", str(tmp_path / "n.csv"))
    assert (tmp_path / "n.csv").read_text().split() == ["n", "2"]
    assert run("select nonsense from nowhere").returncode == 2
