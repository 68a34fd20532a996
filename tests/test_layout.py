"""Where data lands: folders, partitions, tables and databases."""

import json
import re
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conftest import InProcess, Lake, SetClock, track
from eventlake.errors import InvalidSettingsError
from eventlake.lake.layout import HOUR
from eventlake.lake.parquet import FileSizes, PartitionedWriter
from eventlake.library.annexes import add_annex
from eventlake.policies.plan import Rule, of_rules
from eventlake.sync import jobs

ROOT = Path(__file__).parent.parent


def test_data_lands_by_source_type_day_and_hour_of_receipt(lake: Lake) -> None:
    lake.put(track("Order Completed", receivedAt="2026-01-05T03:04:05Z", timestamp="2001-01-01T00:00:00Z"))
    lake.sync()
    (file,) = lake.data_files()
    assert file.startswith("src1/segment_type=track_order_completed/day=2026-01-05/hr=03/")
    assert file.endswith(".parquet")


def test_an_hour_ends_with_its_last_millisecond(lake: Lake) -> None:
    lake.put(
        track(message_id="m1", receivedAt="2026-01-05T10:59:59.999Z"),
        track(message_id="m2", receivedAt="2026-01-05T11:00:00.000Z"),
        track(message_id="m3", receivedAt="2026-01-05T12:30:00+02:00"),
    )
    lake.sync()
    hours = {row["message_id"]: row["hr"] for row in lake.rows("track_clicked")}
    assert hours == {"m1": "10", "m2": "11", "m3": "10"}


@pytest.mark.parametrize(
    ("layout", "folder"),
    [
        ("day_hour", "day=2026-01-05/hr=03"),
        ("year_month_day_hour", "year=2026/month=01/day=05/hr=03"),
        ("year_month_day", "year=2026/month=01/day=05"),
        ("day", "day=2026-01-05"),
    ],
)
def test_four_date_layouts(lake: Lake, layout: str, folder: str) -> None:
    lake.workspace.connections.change("web", {"date_partition": layout})
    lake.put(track(receivedAt="2026-01-05T03:04:05Z"))
    report = lake.sync()
    (file,) = lake.data_files()
    assert file.rpartition("/")[0] == f"src1/segment_type=track_clicked/{folder}"
    keys = dict(part.split("=") for part in folder.split("/"))
    assert report[1]["partitions"] == [keys]
    assert {key: lake.row("track_clicked")[key] for key in keys} == keys


def test_partition_by_slug(lake: Lake) -> None:
    lake.workspace.connections.change("web", {"partition_by_slug": "true"})
    lake.put(track())
    lake.sync()
    assert lake.data_files()[0].startswith("web/segment_type=")


def test_one_table_per_event_and_call(lake: Lake) -> None:
    calls = [{**track(message_id=call), "type": call} for call in ("identify", "page", "screen", "group", "alias")]
    lake.put(*calls, track("Order Completed", "m1"), track("101 Account Update", "m2"), track("购买", "m3"))
    lake.sync()
    fixed = ["alias", "group", "identify", "page", "screen", "track_101_account_update", "track_order_completed"]
    fallback = (set(lake.tables()) - set(fixed)).pop()
    assert fallback.startswith("track_event_")
    assert sorted(lake.tables()) == sorted([*fixed, fallback])
    assert lake.row(fallback)["event"] == "购买"


def test_names_that_are_one_in_snake_case_share_a_table(lake: Lake) -> None:
    lake.put(track("Order Completed", "m1"), track("order_completed", "m2"), track("orderCompleted", "m3"))
    lake.sync()
    assert lake.tables() == ["track_order_completed"]
    assert [row["event"] for row in lake.rows("track_order_completed")] == [
        "Order Completed",
        "order_completed",
        "orderCompleted",
    ]


def test_plain_naming_keeps_calls_and_events_apart(lake: Lake) -> None:
    lake.workspace.connections.change("web", {"table_naming": "plain"})
    lake.put(track("Order Completed", "m1"), track("Page", "m2"), {**track(message_id="m3"), "type": "page"})
    lake.sync()
    assert lake.tables() == ["order_completed", "page", "track_page"]


def test_table_prefix_and_database_name(lake: Lake) -> None:
    lake.workspace.connections.change("web", {"table_prefix": "ios", "database": "apps"})
    lake.put(track("Opened"))
    lake.sync()
    assert lake.query("select event from apps.ios_track_opened") == [{"event": "Opened"}]


def test_two_sources_cannot_write_into_the_same_tables(lake: Lake) -> None:
    lake.workspace.connections.add_source("ios")
    with pytest.raises(InvalidSettingsError, match="belongs to the connection web/default"):
        lake.workspace.connections.change("ios", {"database": "web"})
    lake.workspace.connections.change("web", {"table_prefix": "web"})
    lake.workspace.connections.change("ios", {"database": "web", "table_prefix": "ios"})
    with pytest.raises(InvalidSettingsError, match="begin alike"):
        lake.workspace.connections.change("ios", {"table_prefix": "web_ios"})


def test_only_reserved_names_are_touched(lake: Lake) -> None:
    (lake.root / "mine").mkdir(parents=True)
    (lake.root / "mine" / "notes.txt").write_text("keep")
    lake.put(track())
    lake.sync()
    assert {path.name for path in lake.root.iterdir()} <= {"segment-data", "segment-stage", "segment-logs", "mine"}
    assert (lake.root / "mine" / "notes.txt").read_text() == "keep"
    assert not list((lake.root / "segment-stage").iterdir())


class Watching(InProcess):
    """A runner that looks after each step what lies in the lake."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.seen: set[str] = set()

    def run(self, *args: Any, **kwargs: Any) -> list[Any]:
        results = super().run(*args, **kwargs)
        self.look()
        return results

    def look(self) -> None:
        self.seen |= {str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file()}


def leaves_of_the_tree() -> set[str]:
    """The paths below a lake that ARCHITECTURE.md shows."""
    text = (ROOT / "ARCHITECTURE.md").read_text().partition("└── lake/")[2].partition("\n```")[0]
    leaves, above = set(), [""]
    for line in text.splitlines()[1:]:
        drawn, names = re.fullmatch(r"([ │├└─]+)(.+?)(?:  .*)?", line).groups()  # type: ignore[union-attr]
        depth = len(drawn) // 4 - 1
        if names.endswith("/"):
            above[depth:] = [names]
        else:
            leaves |= {"".join(above[:depth]) + name for name in names.split(", ")}
    return leaves


def as_pattern(leaf: str) -> str:
    inner = {"<date folders>": ".+", "*": "[^/]+"}
    parts = re.split(r"(<[^>]+>|\*)", leaf)
    return "".join(inner.get(part, "[^/]+") if number % 2 else re.escape(part) for number, part in enumerate(parts))


def test_everything_that_lies_in_a_lake_is_in_the_tree_and_the_other_way_round(tmp_path: Path) -> None:
    runner = Watching(tmp_path / "workspace" / "lake")
    lake = Lake(tmp_path / "workspace", runner, clock=SetClock())
    workspace = lake.workspace
    workspace.connections.add_source("other", source_id="src2")
    workspace.suppressions.add(["bob"])
    prices = {"type": "object", "properties": {"price": {"type": "number"}}}
    workspace.plans.save(
        of_rules("Shop", [Rule("TRACK", {"type": "object", "properties": {"properties": prices}}, "A")])
    )
    workspace.plans.connect("Shop", "src1")
    workspace.plans.enforce("src1", {"forwardingViolationsTo": "src2"})
    lake.sync_of(
        track("A", "m1", properties={"price": "high"}), track("A", "m2", userId="bob"), track("B", "m3"), b"broken"
    )
    lake.put(track("A", "m1"), name="copy.gz")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "1.json").write_text(json.dumps(track("A", "m4")))
    add_annex(workspace, "web", str(tmp_path / "elsewhere"), follow=True)
    lake.sync()
    next(iter(lake.root.glob("segment-logs/src1/*/1.gz"))).unlink()  # a replay carries its rows over
    lake.run(jobs.replay(lake.connection, None, None))
    runner.look()
    leaves = leaves_of_the_tree()
    patterns = {leaf: re.compile(as_pattern(leaf)) for leaf in leaves}
    assert [path for path in runner.seen if not any(one.fullmatch(path) for one in patterns.values())] == []
    elsewhere = {leaf for leaf in leaves if leaf.startswith(("staging/", "segment-data/packages/"))}
    assert len(elsewhere) == 2
    missing = {leaf for leaf, one in patterns.items() if not any(one.fullmatch(path) for path in runner.seen)}
    assert missing == elsewhere


def test_a_hostile_event_name_stays_inside_the_lake(lake: Lake) -> None:
    names = [
        "../../etc/passwd",
        "a/b",
        "x=y",
        "50%",
        "o'clock; DROP TABLE x",
        '"quoted"',
        "🎉🎉",
        "n" * 2000,
        "a\x00b",
        "..",
    ]
    lake.put(*(track(name, f"m{number}") for number, name in enumerate(names)))
    report = lake.sync()
    assert report[0]["books"]["loaded"] == len(names)
    found = [lake.query(f'select event from web."{table}"') for table in lake.tables()]
    assert sorted(row["event"] for rows in found for row in rows) == sorted(names)
    assert all(file.startswith("src1/segment_type=track_") for file in lake.data_files())


def test_past_the_table_limit_old_tables_go_on_and_new_events_are_kept_aside(lake: Lake) -> None:
    lake.workspace.connections.change("web", {"table_limit": "2"})
    lake.put(track("One", "m1"), track("Two", "m2"), track("Two", "m2b"), track("Zero", "m3"))
    report = lake.sync()
    lake.put(track("One", "m4"), track("Four", "m5"))
    again = lake.sync()
    assert lake.tables() == ["track_one", "track_two"]
    assert len(lake.rows("track_one")) == 2
    assert [r[0]["books"]["quarantined"] for r in (report, again)] == [1, 1]
    assert any("refused (table_limit): track_zero" in notice for notice in report[0]["notices"])
    kept = lake.query("select reason, content from __segment_datalake.quarantine order by line")
    assert [row["reason"] for row in kept] == ["table_limit", "table_limit"]


def test_a_backfill_of_many_hours_needs_few_open_files(lake: Lake) -> None:
    lines = [track(message_id=f"m{n}", receivedAt=f"2026-01-{n // 24 + 1:02d}T{n % 24:02d}:00:00Z") for n in range(600)]
    report = lake.sync_of(*reversed(lines))
    assert report[0]["books"]["loaded"] == 600
    assert len(report[1]["partitions"]) == 600
    assert len(lake.data_files()) == 600
    assert FileSizes().open_files < 600


def test_the_table_limit_holds_over_all_tasks_and_takes_the_most_used_events(lake: Lake) -> None:
    lake.workspace.connections.change("web", {"table_limit": "2"})
    for number in range(4):  # several files, so several tasks
        lake.put(track("Often", f"o{number}"), track(f"Rare {number}", f"r{number}"), track("Usual", f"u{number}"))
    report = lake.sync()
    assert lake.tables() == ["track_often", "track_usual"]
    assert (report[0]["books"]["loaded"], report[0]["books"]["quarantined"]) == (8, 4)


def test_files_that_grow_too_large_for_memory_are_finished_with_all_their_rows(lake: Lake) -> None:
    storage = lake.place.storage
    writer = PartitionedWriter(
        storage.put, lake.connection.dialect, "page", "out", map(str, count()), sizes=FileSizes(bytes_in_memory=1)
    )
    for start in (0, 10):
        hours = pa.array([(start + n) * HOUR // 4 for n in range(10)], pa.timestamp("us", "UTC"))
        writer.write(pa.table({"received_at": hours, "n": pa.array(range(start, start + 10))}))
    files = writer.close()
    read = [pq.read_table(storage.full(file.written), partitioning=None) for file in files]
    assert sorted(n for rows in read for n in rows["n"].to_pylist()) == list(range(20))
    assert len(files) == 6  # five hours, and the third came in both parts
    for file, rows in zip(files, read, strict=True):
        received = rows["received_at"].cast(pa.int64()).to_pylist()
        assert (file.rows, file.first_received, file.last_received) == (len(received), min(received), max(received))
