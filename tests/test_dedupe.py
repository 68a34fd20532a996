"""One message, one row: within a run, across runs, across tables; but not across sources."""

from pathlib import Path
from typing import Any

import pytest

from conftest import InProcess, Lake, SetClock, track
from eventlake.runners.spark import SparkRunner


def counts(report: list[dict[str, Any]]) -> tuple[int, int]:
    return report[0]["books"]["loaded"], report[0]["books"]["duplicates"]


def test_of_several_copies_the_first_received_is_the_row(lake: Lake) -> None:
    lake.put(track(receivedAt="2026-11-15T10:05:00Z", copy="late"), name="1.gz")
    lake.put(track(receivedAt="2026-11-15T10:01:00Z", copy="first"), name="2.gz")
    lake.put(track(receivedAt="2026-11-15T11:00:00Z", copy="last"), name="3.gz")
    assert counts(lake.sync()) == (1, 2)
    assert lake.row("track_clicked")["copy"] == "first"


def test_a_copy_in_a_later_sync_is_dropped(lake: Lake, clock: SetClock) -> None:
    assert counts(lake.sync_of(track("A"))) == (1, 0)
    clock.forward(hours=24 * 6.9)
    assert counts(lake.sync_of(track("A", copy=1))) == (0, 1)


def test_a_copy_after_the_look_back_is_a_new_row(lake: Lake, clock: SetClock) -> None:
    lake.sync_of(track())
    for day in range(8):
        clock.forward(hours=24)
        lake.sync_of(track(message_id=f"other {day}"))
    assert counts(lake.sync_of(track())) == (1, 0)
    assert len(lake.rows("track_clicked")) == 10


def days_with_syncs(lake: Lake, clock: SetClock, days: int) -> None:
    for day in range(days):
        clock.forward(hours=24)
        lake.sync_of(track(message_id=f"day {day}"))


@pytest.mark.parametrize(("days", "is_copy"), [(1, True), (2, True), (3, True), (4, False)])
def test_the_look_back_ends_after_as_many_days_as_are_set(tmp_path: Path, days: int, is_copy: bool) -> None:
    """With three days, a message of the third day before today is still known, one of the fourth is not."""
    clock = SetClock()
    lake = Lake(tmp_path / "workspace", InProcess(), clock=clock)
    lake.workspace.connections.change("web", {"lookback_days": "3"})
    lake.sync_of(track())
    days_with_syncs(lake, clock, days)
    assert counts(lake.sync_of(track())) == ((0, 1) if is_copy else (1, 0))


def test_days_without_a_sync_do_not_shorten_the_look_back(lake: Lake, clock: SetClock) -> None:
    lake.sync_of(track())
    clock.forward(hours=24 * 30)
    assert counts(lake.sync_of(track())) == (0, 1)


def test_an_unlimited_look_back_never_forgets(lake: Lake, clock: SetClock) -> None:
    lake.workspace.connections.change("web", {"lookback_days": "unlimited"})
    lake.sync_of(track())
    days_with_syncs(lake, clock, 9)
    assert counts(lake.sync_of(track())) == (0, 1)


def test_the_same_message_under_another_name_is_a_copy(lake: Lake) -> None:
    assert counts(
        lake.sync_of(track("B", receivedAt="2026-11-15T10:01:00Z"), track("A", receivedAt="2026-11-15T10:00:00Z"))
    ) == (1, 1)
    assert lake.tables() == ["track_a"]


def test_a_table_with_nothing_but_copies_is_not_made(lake: Lake) -> None:
    lake.sync_of(track("A"))
    report = lake.sync_of(track("B"))
    assert lake.tables() == ["track_a"]
    assert [line["table_name"] for line in report[1:]] == ["track_b"]
    assert report[1]["row_count"] == 0


def test_content_does_not_matter_only_the_id_does(lake: Lake) -> None:
    assert counts(lake.sync_of(track(message_id="m1"), track(message_id="m2"))) == (2, 0)


def test_other_sources_are_other_worlds(lake: Lake, tmp_path: Path, spark: SparkRunner) -> None:
    other = Lake(tmp_path / "other", spark, source_id="src2")
    assert counts(lake.sync_of(track())) == (1, 0)
    assert counts(other.sync_of(track())) == (1, 0)


def test_a_file_is_loaded_once_and_a_changed_file_adds_only_what_is_new(lake: Lake, clock: SetClock) -> None:
    lake.put(track(message_id="m1"), name="a.gz")
    assert counts(lake.sync()) == (1, 0)
    assert lake.sync()[0]["notices"] == ["No data found"]
    days_with_syncs(lake, clock, 9)  # more than the look-back
    lake.put(track(message_id="m1"), track(message_id="m2"), name="a.gz")
    assert counts(lake.sync()) == (1, 1)


def test_late_files_are_added_to_the_old_partition(lake: Lake) -> None:
    lake.sync_of(track(message_id="m1", receivedAt="2026-11-15T10:00:00Z"))
    lake.sync_of(track(message_id="m2", receivedAt="2026-11-15T12:00:00Z"))
    report = lake.sync_of(track(message_id="m3", receivedAt="2026-11-15T10:30:00Z"))
    assert "partitions" not in report[1], "none was added"
    assert [row["hr"] for row in lake.rows("track_clicked")] == ["10", "12", "10"]


@pytest.mark.parametrize("messages", [1, 300])
def test_message_ids_of_any_kind(lake: Lake, messages: int) -> None:
    ids: list[Any] = [5, 5.5, True, "5", "ü" * 500, "x\0y"]
    lines = [track(message_id=None, messageId=value) for value in ids] * 2
    lines += [track(message_id=f"m{n}") for n in range(messages)]
    # 5 and "5" are one id, as they are one text in the column
    assert counts(lake.sync_of(*lines)) == (messages + 5, 7)
