"""Replay: the same again, with today's rules, and nothing twice."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from conftest import InProcess, Lake, SetClock, track
from eventlake.audit.verify import verify
from eventlake.events import instants
from eventlake.schema.types import ColumnType
from eventlake.sync import jobs
from eventlake.sync.jobs import Job


def at(text: str) -> int:
    instant = instants.parse(text)
    assert instant
    return instant.micros


def replay(lake: Lake, start: str = "2026-11-15T00:00:00Z", stop: str = "2026-11-16T00:00:00Z", *events: str) -> Job:
    types = frozenset(lake.connection.dialect.event_table(event) for event in events) or None
    return jobs.replay(lake.connection, at(start), at(stop), types)


def content(lake: Lake, table: str) -> list[dict[str, Any]]:
    return lake.rows(table)


def clean(lake: Lake) -> bool:
    return verify(lake.workspace, lake.connection, lake.runner) == []


def test_a_replay_of_what_is_loaded_adds_nothing(lake: Lake, clock: SetClock) -> None:
    lake.put(track("A", "m1"), track("A", "m1", receivedAt="2026-11-15T11:00:00Z"), track("B", "m2"), b"broken")
    lake.sync()
    before = {table: content(lake, table) for table in lake.tables()}
    clock.forward(hours=24 * 30)  # long after the look-back
    report = lake.run(replay(lake))
    assert (report[0]["row_count"], report[0]["rewritten"], report[0]["carried_over"]) == (0, 2, 0)
    assert report[0]["books"]["duplicates"] == 3
    assert {table: content(lake, table) for table in lake.tables()} == before
    assert len(lake.query("select * from __segment_datalake.quarantine")) == 1
    assert clean(lake)


def test_the_report_names_the_period(lake: Lake) -> None:
    lake.sync_of(track("A", "m1"))
    line = lake.run(replay(lake, "2026-11-15T10:30:00Z", "2026-11-15T10:45:00Z"))[0]
    assert line["replay"] is True
    assert line["replay_from"] == "2026-11-15 10:30:00.000000000"
    assert line["replay_to"] == "2026-11-15 10:45:00.000000000"


def test_only_the_period_and_the_events_asked_for_are_written_again(lake: Lake) -> None:
    lake.put(
        track("A", "m1", receivedAt="2026-11-15T10:00:00Z"),
        track("A", "m2", receivedAt="2026-11-15T11:00:00Z"),
        track("B", "m3", receivedAt="2026-11-15T10:00:00Z"),
    )
    lake.sync()
    before = set(lake.data_files())
    report = lake.run(replay(lake, "2026-11-15T10:00:00Z", "2026-11-15T11:00:00Z", "A"))
    assert (report[0]["books"]["lines"], report[0]["rewritten"]) == (1, 1)
    replaced = before - set(lake.data_files())
    assert [file.rpartition("/")[0] for file in replaced] == ["src1/segment_type=track_a/day=2026-11-15/hr=10"]
    assert clean(lake)


def test_a_period_inside_an_hour_keeps_the_rest_of_the_hour(lake: Lake) -> None:
    lake.put(track("A", "m1", receivedAt="2026-11-15T10:00:00Z"), track("A", "m2", receivedAt="2026-11-15T10:59:00Z"))
    lake.sync()
    lake.run(replay(lake, "2026-11-15T10:30:00Z", "2026-11-15T10:31:00Z"))
    assert [row["message_id"] for row in lake.rows("track_a")] == ["m1", "m2"]
    assert clean(lake)


def test_a_replay_brings_lost_files_back(lake: Lake) -> None:
    lake.sync_of(track("A", "m1"), track("B", "m2"))
    for file in (lake.root / "segment-data" / "data").rglob("*.parquet"):
        file.unlink()
    lake.run(replay(lake))
    assert [row["message_id"] for table in ("track_a", "track_b") for row in lake.rows(table)] == ["m1", "m2"]
    assert clean(lake)


def test_rows_whose_raw_file_is_gone_are_carried_over(lake: Lake) -> None:
    properties = {"n": 1, "d": 1.5, "big": 10**31 + 1, "t": "2026-01-01T00:00:00Z", "b": True, "s": "x", "l": [1]}
    raw = lake.put(track("A", "m1", properties=properties))
    lake.sync()
    odd = {"n": "n/a", "d": 0.1234567, "t": "soon", "b": "maybe", "productId": 1, "product_id": 2}
    raw2 = lake.put(track("A", "m2", properties=odd))
    lake.put(track("A", "m3"))
    lake.sync()
    before = content(lake, "track_a")
    raw.unlink()
    raw2.unlink()
    report = lake.run(replay(lake))
    assert (report[0]["rewritten"], report[0]["carried_over"]) == (1, 2)
    assert "2 raw files are gone" in report[0]["notices"][-1]
    after = content(lake, "track_a")
    for row in (*before, *after):
        row["_rescued_data"] = json.loads(row["_rescued_data"] or "{}")
    assert after == before


def test_a_corrected_type_brings_rescued_values_into_the_column(lake: Lake) -> None:
    lake.sync_of(track("A", "m1", properties={"price": 10}))
    raw = lake.put(track("A", "m2", properties={"price": 10.75}), track("A", "m3", properties={"price": "n/a"}))
    lake.sync()
    assert [row["properties_price"] for row in lake.rows("track_a")] == [10, 10, None]
    raw.unlink()  # the values are in the lake: no raw file is needed

    lake.run(jobs.retype(lake.connection, "track_a", "properties_price", ColumnType.DECIMAL))
    rows = lake.rows("track_a")
    assert [row["properties_price"] for row in rows] == [Decimal("10"), Decimal("10.75"), None]
    assert [json.loads(row["_rescued_data"] or "{}") for row in rows][:2] == [{}, {}]
    assert json.loads(rows[2]["_rescued_data"])["/properties/price"]["value"] == "n/a"

    lake.run(jobs.retype(lake.connection, "track_a", "properties_price", ColumnType.STRING))
    assert [row["properties_price"] for row in lake.rows("track_a")] == ["10", "10.75", "n/a"]
    types = {
        pq.read_schema(Path(f)).field("properties_price").type for f in lake.root.glob("segment-data/data/*/*/*/*/*")
    }
    assert {str(kind) for kind in types} == {"string"}, "no file of the old type is left"
    history = [
        (e.change, e.type, e.old_type)
        for e in lake.place.catalog.history("web", "track_a")
        if e.column == "properties_price"
    ]
    assert history == [
        ("added", "bigint", None),
        ("retyped", "decimal(38,6)", "bigint"),
        ("retyped", "string", "decimal(38,6)"),
    ]
    assert [found.kind for found in verify(lake.workspace, lake.connection, lake.runner)] == ["raw_file_gone"]


def test_a_message_loaded_again_after_the_look_back_stays_as_often_as_it_is(tmp_path: Path) -> None:
    clock = SetClock()
    lake = Lake(tmp_path / "workspace", InProcess(), clock=clock)
    lake.workspace.connections.change("web", {"lookback_days": "1"})
    times = ["2026-11-01T10:00:00Z", "2026-11-09T10:00:00Z", "2026-11-09T10:00:00Z"]
    raw = []
    for number, received in enumerate(times):
        raw.append(lake.put(track("A", "m1", receivedAt=received)))
        lake.sync()
        for day in range(2):
            clock.forward(hours=24)
            lake.sync_of(track("B", f"other {number} {day}"))
    before = content(lake, "track_a")
    assert len(before) == 3
    for gone, (rewritten, carried) in [(None, (9, 0)), (raw[0], (8, 1)), (raw[1], (6, 3)), (raw[2], (6, 3))]:
        if gone:
            gone.unlink()
        report = lake.run(replay(lake, "2026-10-01T00:00:00Z", "2026-12-01T00:00:00Z"))
        assert (report[0]["rewritten"], report[0]["carried_over"], report[0]["row_count"]) == (rewritten, carried, 0)
        assert content(lake, "track_a") == before
    assert {found.kind for found in verify(lake.workspace, lake.connection, lake.runner)} == {"raw_file_gone"}


def test_replay_then_sync_then_replay_again(lake: Lake) -> None:
    lake.sync_of(track("A", "m1"))
    lake.run(replay(lake))
    lake.sync_of(track("A", "m1"), track("A", "m2"))
    lake.run(replay(lake))
    lake.run(replay(lake))
    assert [row["message_id"] for row in lake.rows("track_a")] == ["m1", "m2"]
    assert clean(lake)


def test_everything_can_be_replayed(lake: Lake) -> None:
    lake.sync_of(
        track("A", "m1", receivedAt="1970-01-01T00:00:00Z"), track("A", "m2", receivedAt="9999-12-31T23:59:59Z")
    )
    line = lake.run(jobs.replay(lake.connection, None, None))[0]
    assert (line["replay"], line["rewritten"], line["row_count"]) == (True, 2, 0)
    assert not {"replay_from", "replay_to"} & set(line)
    assert clean(lake)


def test_a_replay_of_an_empty_period_changes_nothing(lake: Lake) -> None:
    lake.sync_of(track("A", "m1"))
    files = lake.data_files()
    report = lake.run(replay(lake, "2020-01-01T00:00:00Z", "2020-01-02T00:00:00Z"))
    assert report[0]["notices"] == ["No data found"]
    assert lake.data_files() == files


def test_rows_of_a_raw_file_that_broke_since_are_kept(lake: Lake) -> None:
    raw = lake.put(*(track("A", f"m{n:04}", noise=f"{n * 7919 % 1000003:x}" * 8) for n in range(2000)))
    lake.sync()
    before = content(lake, "track_a")
    raw.write_bytes(raw.read_bytes()[: raw.stat().st_size // 2])
    report = lake.run(replay(lake))
    assert (report[0]["carried_over"], len(report[0]["failed_files"])) == (2000, 1)
    assert content(lake, "track_a") == before
