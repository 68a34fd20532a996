"""Dropping a table: what of it goes, what is told, and how the index loses its messages and no others."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import InProcess, Lake, SetClock, track
from eventlake.audit.verify import verify
from eventlake.catalog.base import TableChange
from eventlake.commit.manifest import Manifest, manifests
from eventlake.control.admission import DroppedTable
from eventlake.errors import NotFoundError
from eventlake.sync import jobs
from eventlake.sync.books import Books
from eventlake.sync.shares import ShareSizes
from eventlake.sync.work import Sizes
from test_index import cut, flip, remove


@pytest.fixture
def loaded(tmp_path: Path) -> Lake:
    """Four days with a sync each: of both tables, of the one that will go, of the one that stays, and of both."""
    clock = SetClock()
    lake = Lake(tmp_path / "workspace", InProcess(), clock=clock)
    for day, events in enumerate(("JRR", "JJ", "R", "JR")):
        lake.sync_of(*(track({"J": "Junk", "R": "Real"}[event], f"{day}-{n}") for n, event in enumerate(events)))
        clock.forward(hours=24)
    return lake


def drop(lake: Lake) -> list[dict[str, Any]]:
    return lake.run(jobs.drop(lake.connection, "track_junk"))


def last_manifest(lake: Lake) -> Manifest:
    *_, last = manifests(lake.place, "src1")
    return last


def clean(lake: Lake) -> bool:
    return verify(lake.workspace, lake.connection, lake.runner) == []


def test_the_table_goes_with_its_files_its_messages_and_a_report_that_says_so(loaded: Lake) -> None:
    before = {file.path: file for file in loaded.place.ledger.index_files("src1")}
    junk = [file.path for file in loaded.place.ledger.data_files("src1", "track_junk")]
    of_another_source = TableChange("ios", "track_junk", "src2", "track_junk", "data/src2", ("day", "hr"))
    loaded.place.catalog.apply([of_another_source], run_id="1", at=1)
    report = drop(loaded)
    made = last_manifest(loaded)
    entry, (run_id, at) = made.entry, (made.entry.run_id, made.entry.at)
    assert (made.tables, made.dropped_tables) == ([], [("web", "track_junk")])
    assert entry.removed_data_files == junk
    assert entry.decisions.dropped == [DroppedTable("track_junk", 4, run_id, at)]
    assert loaded.place.admission.dropped("src1") == entry.decisions.dropped
    first, second, third, fourth = before.values()
    assert entry.removed_index_files == [first.path, second.path, fourth.path]
    index = loaded.place.ledger.index_files("src1")
    assert [(file.messages, file.synced_at, file.run_id) for file in index] == [
        (third.messages, third.synced_at, third.run_id),
        (2, first.synced_at, run_id),
        (1, fourth.synced_at, run_id),
    ]
    assert not loaded.staged()

    nothing = Books().as_report()
    whole, line = report
    assert at == loaded.workspace.runs.get(run_id).finished_at
    assert (
        whole
        | {
            "row_count": 0,
            "kind": "drop",
            "books": nothing,
            "files_read": 0,
            "rescued": 0,
            "data_files": 0,
            "bytes": 0,
            "dropped_rows": 4,
            "notices": ["4 rows of track_junk dropped; `eventlake allow` loads them from the archive"],
        }
        == whole
    )
    assert "reindexed" not in whole
    assert (
        line
        | {
            "table_name": "track_junk",
            "row_count": 0,
            "is_new": False,
            "books": {"staged": 0, "loaded": 0, "duplicates": 0, "checksum": nothing["checksum"]},
            "files": 0,
            "bytes": 0,
            "dropped_rows": 4,
        }
        == line
    )
    assert not {"partitions", "new_columns"} & line.keys()
    assert clean(loaded)


@pytest.mark.parametrize("harm", [remove, cut, flip], ids=["gone", "cut off", "flipped"])
def test_a_part_of_the_index_that_was_lost_is_made_anew_without_the_table(
    loaded: Lake, harm: Callable[[Path], None]
) -> None:
    first, second, third, fourth = loaded.place.ledger.index_files("src1")
    for file in (first, third):
        harm(loaded.root / file.path)
    whole, _ = drop(loaded)
    assert whole["reindexed"]["messages"] == 3
    assert whole["notices"][1:] == [
        "a part of the index was lost or damaged, and made anew from the data files: 3 messages"
    ]
    assert second.path in last_manifest(loaded).entry.removed_index_files
    times = [file.synced_at for file in loaded.place.ledger.index_files("src1")]
    assert sorted(times) == [third.synced_at, fourth.synced_at]
    assert loaded.tables() == ["track_real"]
    assert clean(loaded)
    copies = [track("Real", message_id, copy=True) for message_id in ("0-1", "0-2", "2-0", "3-1")]
    books = loaded.sync_of(*copies, track("Junk", "0-0"))[0]["books"]
    assert (books["duplicates"], books["blocked"]) == (4, 1)


def test_what_else_a_run_added_to_the_index_belongs_to_the_drop(tmp_path: Path) -> None:
    """Some files of the run hold messages of the table, others do not."""
    parts = Sizes(shares=ShareSizes(ids_per_share=1, ids_for_one_share=1))
    lake = Lake(tmp_path / "workspace", InProcess(), sizes=parts)
    lake.sync_of(track("Junk", "j1"), *(track("Real", f"r{n}") for n in range(9)))
    lake.sync_of(track("Real", "other"))
    *of_first, other = lake.place.ledger.index_files("src1")
    run_id = drop(lake)[0]["run_id"]
    index = lake.place.ledger.index_files("src1")
    assert len(of_first) > 3
    assert len(last_manifest(lake).entry.removed_index_files) == 1
    assert {file.run_id for file in index if file != other} == {run_id}
    assert other in index
    assert sum(file.messages for file in index) == 10
    assert clean(lake)
    again = lake.sync_of(track("Junk", "j1"), *(track("Real", f"r{n}", again=True) for n in range(9)))
    assert (again[0]["books"]["duplicates"], again[0]["books"]["blocked"]) == (9, 1)


def test_a_table_that_does_not_exist_cannot_be_dropped(loaded: Lake) -> None:
    with pytest.raises(NotFoundError, match="web has no table 'track_other'") as caught:
        loaded.run(jobs.drop(loaded.connection, "track_other"))
    assert caught.value.fix == "see `eventlake tables`"
    assert loaded.place.admission.dropped("src1") == []
    assert clean(loaded)
