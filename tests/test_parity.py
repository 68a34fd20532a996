"""A lake that somebody else wrote beside ours: what of its rows and cells is missing or different."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conftest import InProcess, Lake, SetClock, track
from eventlake.errors import InvalidSettingsError, NotFoundError
from eventlake.query.parity import Difference, Hour, parity
from eventlake.storage.local import LocalStorage


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = Lake(tmp_path / "place", InProcess(), clock=SetClock(), settings='[lake]\nroot = "lake"\n')
    found.sync_of(
        *(
            track("Order Completed", f"m{n}", receivedAt=f"2026-11-15T{10 + n % 2}:00:00Z", properties={"total": n})
            for n in range(6)
        ),
        track("Only Ours", "o1"),
    )
    return found


def written(folder: Path, key: str, rows: list[dict[str, Any]], name: str = "part-0") -> None:
    """A file as Segment's lake has it, whatever its types."""
    path = folder / f"segment_type={key}" / "day=2026-11-15" / "hr=10" / f"{name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)


def row(number: int, **more: Any) -> dict[str, Any]:
    at = f"2026-11-15 {10 + number % 2}:00:00"
    return {
        "message_id": f"m{number}",
        "received_at": at,
        "event": "Order Completed",
        "properties_total": number,
    } | more


def compared(lake: Lake, folder: Path) -> Any:
    return parity(lake.place, lake.connection, LocalStorage(str(folder)), "")


def test_the_same_rows_are_the_same_however_they_were_written(lake: Lake, tmp_path: Path) -> None:
    rows = [row(number) for number in range(6)]
    written(tmp_path / "theirs", "order_completed", rows[:3])
    written(
        tmp_path / "theirs",
        "order_completed",
        [{**one, "properties_total": str(n)} for n, one in enumerate(rows)][3:],
        "b",
    )
    found = compared(lake, tmp_path / "theirs")
    assert [hour[:6] for hour in found.hours] == [
        ("track_order_completed", "2026-11-15 10", 3, 3, 0, 0),
        ("track_order_completed", "2026-11-15 11", 3, 3, 0, 0),
    ]
    assert (found.differences, found.only_theirs, found.only_ours) == ([], [], ["track_only_ours"])
    assert found.missing == 0


def test_what_is_missing_extra_or_different_is_named(lake: Lake, tmp_path: Path) -> None:
    theirs = [row(0), row(1, properties_total=99), row(2), row(7), row(8), row(9), row(11), row(8)]
    written(tmp_path / "theirs", "track_order_completed", theirs)
    written(tmp_path / "theirs", "track_gone", [row(1)])
    found = compared(lake, tmp_path / "theirs")
    assert found.hours == [
        Hour("track_order_completed", "2026-11-15 10", 4, 3, 1, 1, ("m8",)),
        Hour("track_order_completed", "2026-11-15 11", 4, 3, 3, 2, ("m11", "m7", "m9")),
    ]
    assert found.differences == [Difference("track_order_completed", "properties_total", 1, "m1")]
    assert found.only_theirs == ["track_gone"]
    assert found.missing == 4


def test_files_of_others_beside_ours_are_theirs(lake: Lake) -> None:
    folder = lake.connection.dialect.data_folder
    with pytest.raises(NotFoundError, match="no tables of others"):
        parity(lake.place, lake.connection, lake.place.storage, folder)
    written(lake.root / folder, "track_order_completed", [row(0), row(8)])
    found = parity(lake.place, lake.connection, lake.place.storage, folder)
    assert sum(hour.theirs for hour in found.hours) == 2
    assert found.missing == 1


def test_what_cannot_be_of_our_type_is_not_taken_for_null(lake: Lake, tmp_path: Path) -> None:
    lake.sync_of(track("Order Completed", "m6", receivedAt="2026-11-15T10:00:00Z", properties={"total": "n/a"}))
    rows = [row(n, properties_total=text) for n, text in enumerate(["0", "1.0", "2.4", "n/a", None, "five", "n/a"])]
    written(tmp_path / "theirs", "track_order_completed", rows)
    found = compared(lake, tmp_path / "theirs")
    assert found.missing == 0
    # 2.4 is not 2, a text is no number, and one that we could not load either is not in our cell.
    assert found.differences == [Difference("track_order_completed", "properties_total", 5, "m2")]


def test_columns_that_only_they_have_are_told(lake: Lake, tmp_path: Path) -> None:
    rows = [
        row(n, EVENT="Order Completed", properties_coupon="A" if n < 2 else None, properties_none=None)
        for n in range(6)
    ]
    written(
        tmp_path / "theirs", "track_order_completed", [{k: v for k, v in one.items() if k != "event"} for one in rows]
    )
    found = compared(lake, tmp_path / "theirs")
    assert found.differences == [
        Difference("track_order_completed", "properties_coupon", 2, "m0", True),
        Difference("track_order_completed", "properties_none", 0, "", True),
    ]


def test_folders_of_one_table_are_taken_together(lake: Lake, tmp_path: Path) -> None:
    written(tmp_path / "theirs", "order_completed", [row(n) for n in range(3)])
    written(tmp_path / "theirs", "track_order_completed", [row(n) for n in range(3, 9)])
    found = compared(lake, tmp_path / "theirs")
    assert sum(hour.theirs for hour in found.hours) == 9
    assert found.missing == 3
    assert found.only_theirs == []


def test_rows_without_a_message_id_are_missing(lake: Lake, tmp_path: Path) -> None:
    rows = [row(0), row(0, message_id=None), row(0, message_id=None)]
    written(tmp_path / "theirs", "track_order_completed", rows)
    (hour, *_) = compared(lake, tmp_path / "theirs").hours
    assert (hour.theirs, hour.missing, hour.examples) == (3, 2, ("a row without message_id",))


@pytest.mark.parametrize("lacks", ["message_id", "received_at"])
def test_files_that_are_not_segments_are_told_as_such(lake: Lake, tmp_path: Path, lacks: str) -> None:
    rows = [{name: value for name, value in row(0).items() if name != lacks}]
    written(tmp_path / "theirs", "track_order_completed", rows)
    with pytest.raises(InvalidSettingsError, match=f"have no column {lacks}"):
        compared(lake, tmp_path / "theirs")
    broken = tmp_path / "theirs" / "segment_type=track_order_completed" / "broken.parquet"
    broken.write_bytes(b"not Parquet")
    with pytest.raises(InvalidSettingsError, match="cannot be read together"):
        compared(lake, tmp_path / "theirs")


def test_our_own_folder_by_its_address_has_only_theirs_in_it(lake: Lake) -> None:
    folder = lake.root / lake.connection.dialect.data_folder
    with pytest.raises(NotFoundError, match="no tables of others"):
        compared(lake, folder)
    written(folder, "track_order_completed", [row(8)])
    found = compared(lake, folder)
    assert [(hour.theirs, hour.missing) for hour in found.hours if hour.theirs] == [(1, 1)]


def test_on_the_command_line(lake: Lake, tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "eventlake", "-C", str(lake.workspace.folder), "parity", "web", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    theirs = str(tmp_path / "theirs")
    written(tmp_path / "theirs", "track_order_completed", [row(number) for number in range(6)])
    done = run(theirs)
    assert (done.returncode, done.stdout.splitlines()) == (
        0,
        ["Only we have: track_only_ours", "6 rows of theirs, 6 of ours in 1 table that both have; 0 messages missing."],
    )
    written(tmp_path / "theirs", "track_order_completed", [row(8, event="Other")], "b")
    done = run(theirs, "--json")
    assert done.returncode == 1
    assert sum(hour["missing"] for hour in json.loads(done.stdout)["hours"]) == 1
    shown = run(theirs)
    assert "m8" in shown.stdout
    assert "1 message missing." in shown.stdout
    assert "no tables of others" in run(str(tmp_path)[:-1] + "-none").stderr
