"""The index of message ids: a lost or damaged part of it never lets copies in."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conftest import InProcess, Lake, SetClock, track
from counted import counts as packed
from eventlake.audit.repair import repair
from eventlake.audit.verify import verify
from eventlake.control.ledger import IndexFile, LakeFile
from eventlake.lake import ids
from eventlake.lake.layout import DAY, HOUR
from eventlake.lake.segment import SegmentDialect
from eventlake.storage.local import LocalStorage
from eventlake.sync import jobs
from eventlake.sync.dedupe import combine
from eventlake.sync.index import Reindexed, found_sound, named, reindex_tasks, within
from eventlake.sync.shares import ShareSizes
from eventlake.sync.work import Sizes
from eventlake.tasks.counts import Count
from eventlake.tasks.dedupe import DedupeResult
from eventlake.tasks.id_files import NewIds
from eventlake.tasks.reindex import ReindexContext, Unindexed, reindex

DIALECT = SegmentDialect("src1", "web")


def counts(report: list[dict[str, Any]]) -> tuple[int, int]:
    return report[0]["books"]["loaded"], report[0]["books"]["duplicates"]


@pytest.fixture
def loaded(tmp_path: Path) -> Lake:
    """Three syncs, each with a part of the index."""
    lake = Lake(tmp_path / "workspace", InProcess(), clock=SetClock())
    for number in range(3):
        lake.sync_of(*(track("AB"[n % 2], f"m{number}{n}") for n in range(4)))
    return lake


def index_files(lake: Lake) -> list[Path]:
    return sorted((lake.root / "segment-data" / "index").rglob("*.ids"))


def all_again(lake: Lake) -> None:
    """Import every event once more, in another file, with one that is new."""
    lake.put(*(track("AB"[n % 2], f"m{number}{n}") for number in range(3) for n in range(4)), track("A", "new"))


def flip(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[:-100] + bytes([content[-100] ^ 16]) + content[-99:])


def remove(file: Path) -> None:
    file.unlink()  # of a bucket too


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-8])


@pytest.mark.parametrize("harm", [remove, cut, flip], ids=["gone", "cut off", "flipped"])
@pytest.mark.parametrize("parts", [1, 3])
def test_copies_are_noticed_although_the_index_was_lost(loaded: Lake, harm: Callable[[Path], None], parts: int) -> None:
    for file in index_files(loaded)[:parts]:
        harm(file)
    all_again(loaded)
    report = loaded.sync()
    assert counts(report) == (1, 12)
    assert report[0]["reindexed"]["messages"] == 4 * parts
    assert "of the index" in report[0]["notices"][0]
    assert verify(loaded.workspace, loaded.connection, loaded.runner) == []


@pytest.mark.parametrize("harm", [remove, cut], ids=["gone", "cut off"])
def test_a_sync_with_nothing_new_makes_a_lost_index_anew_instead_of_forgetting_it(
    loaded: Lake, harm: Callable[[Path], None]
) -> None:
    harm(index_files(loaded)[0])
    report = loaded.sync()
    assert counts(report) == (0, 0)
    assert len(report[0]["notices"]) == 1
    assert "made anew from the data files: 4 messages" in report[0]["notices"][0]
    assert loaded.sync()[0]["notices"] == ["No data found"]
    all_again(loaded)
    assert counts(loaded.sync()) == (1, 12)
    assert verify(loaded.workspace, loaded.connection, loaded.runner) == []


def test_one_part_gone_and_another_damaged(loaded: Lake) -> None:
    gone, damaged, _ = index_files(loaded)
    gone.unlink()
    flip(damaged)
    all_again(loaded)
    report = loaded.sync()
    assert counts(report) == (1, 12)
    assert report[0]["reindexed"]["messages"] == 8
    assert verify(loaded.workspace, loaded.connection, loaded.runner) == []


@pytest.mark.parametrize("harm", [remove, cut, flip], ids=["gone", "cut off", "flipped"])
def test_a_replay_with_a_lost_index_changes_nothing(loaded: Lake, harm: Callable[[Path], None]) -> None:
    before = loaded.rows("track_a"), loaded.rows("track_b")
    harm(index_files(loaded)[1])
    report = loaded.run(jobs.replay(loaded.connection, None, None))
    assert counts(report) == (0, 12)
    assert (report[0]["rewritten"], report[0]["carried_over"]) == (12, 0)
    assert (loaded.rows("track_a"), loaded.rows("track_b")) == before
    assert verify(loaded.workspace, loaded.connection, loaded.runner) == []


def test_a_rebuild_with_a_lost_index_carries_nothing_over(loaded: Lake) -> None:
    index_files(loaded)[1].unlink()
    report = loaded.run(jobs.rebuild(loaded.workspace.connections.preview("web", {"table_prefix": "x"})))
    assert counts(report) == (12, 0)
    assert "reindexed" not in report[0]
    assert len(loaded.rows("x_track_a")) == 6
    assert verify(loaded.workspace, loaded.connection, loaded.runner) == []


def test_rows_that_only_the_lake_has_are_known_to_a_new_index(loaded: Lake) -> None:
    """Neither raw file nor index is there any more: the data files are enough."""
    index_files(loaded)[0].unlink()
    sorted((loaded.root / "segment-logs").rglob("*.gz"))[0].unlink()
    all_again(loaded)
    assert counts(loaded.sync()) == (1, 12)


def torn(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[:50] + b"x" * 100 + content[150:])


@pytest.mark.parametrize("harm", [remove, cut, torn], ids=["gone", "cut off", "torn"])
def test_an_index_and_a_data_file_that_are_both_lost_can_both_be_had_again(
    loaded: Lake, harm: Callable[[Path], None]
) -> None:
    before = loaded.rows("track_a"), loaded.rows("track_b")
    index_files(loaded)[0].unlink()
    harm(sorted((loaded.root / "segment-data/data/src1/segment_type=track_a").rglob("*.parquet"))[0])
    loaded.sync()
    findings = verify(loaded.workspace, loaded.connection, loaded.runner)
    assert findings
    repair(loaded.workspace, loaded.connection, findings, loaded.runner)
    assert verify(loaded.workspace, loaded.connection, loaded.runner) == []
    assert (loaded.rows("track_a"), loaded.rows("track_b")) == before


def test_a_message_that_is_in_the_lake_twice_stays_in_the_index_twice(tmp_path: Path) -> None:
    clock = SetClock()
    lake = Lake(tmp_path / "workspace", InProcess(), clock=clock)
    lake.workspace.connections.change("web", {"lookback_days": "1"})
    for day in range(4):
        lake.sync_of(track("A", "m0" if day in (0, 3) else f"m{day}", receivedAt=f"2026-11-1{day}T10:00:00Z"))
        clock.forward(hours=24)
    assert [row["message_id"] for row in lake.rows("track_a")] == ["m0", "m0", "m1", "m2"]
    index_files(lake)[0].unlink()
    assert lake.sync()[0]["reindexed"]["messages"] == 1
    assert verify(lake.workspace, lake.connection, lake.runner) == []


def test_the_index_of_a_run_is_made_anew_as_a_whole(tmp_path: Path) -> None:
    """Else the run would have reported more than it has in the index."""
    parts = Sizes(shares=ShareSizes(ids_per_share=1, ids_for_one_share=1))
    lake = Lake(tmp_path / "workspace", InProcess(), sizes=parts)
    lake.sync_of(*(track("A", f"m{n}") for n in range(8)))
    lake.sync_of(track("A", "other"))
    first, second, *_, other = index_files(lake)
    flip(first)
    second.unlink()
    lake.put(*(track("A", f"m{n}", copy=True) for n in range(8)))
    report = lake.sync()
    assert counts(report) == (0, 8)
    assert report[0]["reindexed"]["messages"] == 8
    assert other in index_files(lake)
    assert verify(lake.workspace, lake.connection, lake.runner) == []


def test_what_was_made_anew_is_as_old_as_what_was_lost(tmp_path: Path) -> None:
    """Else a look-back would begin anew with it, or end at once."""
    clock = SetClock()
    lake = Lake(tmp_path / "workspace", InProcess(), clock=clock)
    for day in range(3):
        lake.sync_of(track("A", f"m{day}"))
        clock.forward(hours=24)
    synced = [file.synced_at for file in lake.place.ledger.index_files("src1")]
    for file in index_files(lake)[:2]:
        file.unlink()
    lake.sync()
    assert sorted(file.synced_at for file in lake.place.ledger.index_files("src1")) == sorted(synced[1:])


def test_a_run_leaves_nothing_behind_where_it_worked(loaded: Lake) -> None:
    loaded.sync_of(track("A", "m1"), track("A", "m1"), track("B", "m2"))
    loaded.run(jobs.replay(loaded.connection, None, None))
    assert list(loaded.place.storage.files("segment-stage")) == []


# Shares of a run


def test_the_index_gets_the_ids_of_every_share() -> None:
    parts = [NewIds(f"ids-{n}", n, n << 64 | n) for n in (1, 2, 3)]
    key = ids.route_hash(("track_a",))
    results = [
        DedupeResult(packed({0: Count(part.messages)}), packed({key: Count(part.messages)}), None, part, None)
        for part in parts
    ]
    kept = combine([*results, DedupeResult(packed({}), packed({}), None, None, None)], [("track_a",)])
    assert kept.new_ids == parts
    assert kept.indexed == (6, 6 << 64 | 6)
    assert kept.tables == {"track_a": Count(loaded=6)}


# Ids that are made anew


def data_file(storage: LocalStorage, path: str, *messages: tuple[str, int]) -> Unindexed:
    columns = {
        "message_id": pa.array([message_id for message_id, _ in messages], pa.string()),
        "received_at": pa.array([received for _, received in messages], pa.timestamp("us", "UTC")),
    }
    with storage.open_output(path) as sink:
        pq.write_table(pa.table(columns), sink)
    return Unindexed(path, path.partition("/")[0])


def told(messages: ids.Ids) -> set[tuple[int, ...]]:
    return {tuple(int(messages[name][row]) for name in ids.INDEX_FIELDS) for row in range(len(messages))}


def message(message_id: str, received: int, *route: str) -> tuple[int, ...]:
    digest = ids.message_hash(message_id)
    return int.from_bytes(digest[:8]), int.from_bytes(digest[8:]), received, ids.route_hash(route)


def test_rows_that_no_sound_file_has_are_written_sorted_by_their_hashes(tmp_path: Path) -> None:
    """A row is known by its message, its time and its table together."""
    storage = LocalStorage(str(tmp_path))
    files = [
        data_file(storage, "page/1", ("m1", 5), ("m2", 6), ("m3", 7), ("m1", 9)),
        data_file(storage, "page/empty"),
        Unindexed("page/gone", "page"),
        data_file(storage, "group/1", ("m1", 5), ("m4", 8)),
    ]
    everything = reindex(ReindexContext("segment-stage/1", storage, DIALECT, ()), files)
    assert everything
    assert everything.path.startswith("segment-stage/1/ids-")
    with ids.opened(storage, everything.path) as file:
        whole = file.read(ids.ALL, ids.INDEX_FIELDS)
        assert (whole["high"][1:] >= whole["high"][:-1]).all()
        assert (everything.messages, everything.checksum) == (6, ids.checksum(whole))
        assert told(whole) == {
            *(message(name, at, "page") for name, at in (("m1", 5), ("m2", 6), ("m3", 7), ("m1", 9))),
            *(message(name, at, "group") for name, at in (("m1", 5), ("m4", 8))),
        }

    known = reindex(ReindexContext("segment-stage/2", storage, DIALECT, ()), files[:1])
    other = reindex(ReindexContext("segment-stage/2", storage, DIALECT, ()), [data_file(storage, "group/2", ("m4", 8))])
    assert known
    assert other
    rest = reindex(ReindexContext("segment-stage/3", storage, DIALECT, (known.path, other.path)), files)
    assert rest
    with ids.opened(storage, rest.path) as file:
        assert told(file.read(ids.ALL, ids.INDEX_FIELDS)) == {message("m1", 5, "group")}
    assert reindex(ReindexContext("segment-stage/4", storage, DIALECT, (everything.path,)), files) is None
    assert list(storage.folders("segment-stage")) == ["1", "2", "3"]


def test_rows_of_a_message_in_several_tables_are_one_message_if_there_is_a_route_to_them(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    files = [
        data_file(storage, "a/1", ("m1", 5), ("m2", 5), ("m3", 5), ("m5", 5), ("m5", 5)),
        data_file(storage, "b/1", ("m3", 5), ("m4", 5)),
        data_file(storage, "all/1", ("m1", 5), ("m2", 6), ("m4", 5), ("m5", 5), ("m5", 5)),
    ]
    made = reindex(ReindexContext("segment-stage/1", storage, DIALECT, (), (("all", "a"), ("all", "b"))), files)
    assert made
    with ids.opened(storage, made.path) as file:
        found = file.read(ids.ALL, ids.INDEX_FIELDS)
    assert sorted(tuple(int(found[name][row]) for name in ids.INDEX_FIELDS) for row in range(len(found))) == sorted(
        [
            message("m1", 5, "all", "a"),
            message("m2", 5, "a"),  # at another time: not the same
            message("m2", 6, "all"),
            message("m3", 5, "a"),  # no route leads to both
            message("m3", 5, "b"),
            message("m4", 5, "all", "b"),
            message("m5", 5, "all", "a"),  # twice in the lake
            message("m5", 5, "all", "a"),
        ]
    )


# Pure rules


def test_a_file_of_the_index_is_sound_if_it_has_the_size_that_its_messages_take() -> None:
    files = [IndexFile(name, f"run of {name}", 3, "0", 1) for name in ("a", "b", "c", "gone")]
    small, large = sorted(ids.index_sizes(3))
    index = found_sound(iter(files), {"a": small, "b": large, "c": small + 1})
    assert ([file.path for file in index.sound], [file.path for file in index.lost]) == (["a", "b"], ["c", "gone"])


def test_parts_get_names_and_keep_their_times() -> None:
    parts = [(NewIds("stage/a", 3, 10), 77), (NewIds("stage/b", 4, 255), 88)]
    assert named(parts, "segment-data/index/source=src1", "9") == {
        "stage/a": IndexFile("segment-data/index/source=src1/9-0.ids", "9", 3, f"{10:032x}", 77),
        "stage/b": IndexFile("segment-data/index/source=src1/9-1.ids", "9", 4, f"{255:032x}", 88),
    }
    again = Reindexed(tuple(part for part, _ in parts), (index_file(3), index_file(5), index_file(4)))
    assert again.as_report == {"messages": 7, "checksum": f"{265:032x}"}
    assert again.synced_at == 5 * DAY


def index_file(day: int, part: int = 0) -> IndexFile:
    return IndexFile(f"{day}-{part}", "run", 1, "0", day * DAY + part)


def test_the_look_back_counts_days_with_syncs_and_today() -> None:
    files = [index_file(day, part) for day in (3, 10, 11, 40) for part in (0, 1)]
    assert within(files, None) == files
    assert within(files, 1) == files[-4:]
    assert within(files, 2) == files[-6:]
    assert within(files, 3) == files
    assert within([], 7) == []


@pytest.mark.parametrize(
    ("rows", "sizes"), [((), []), ((5,), [1]), ((10, 1), [1, 1]), ((9, 1, 1), [2, 1]), ((30,), [1])]
)
def test_data_files_are_shared_out_by_their_rows(rows: tuple[int, ...], sizes: list[int]) -> None:
    files = [
        LakeFile(f"{n}", "src1", "page", [], count, 1, "", n * HOUR, n * HOUR, "run") for n, count in enumerate(rows)
    ]
    tasks = reindex_tasks(files, HOUR, 10)
    assert [len(task) for task in tasks] == sizes
    assert [file.path for task in tasks for file in task] == [file.path for file in files]


def test_data_files_of_one_partition_are_not_shared_out() -> None:
    """The rows of a message in several tables must come together."""
    files = [LakeFile(f"{n}", "src1", f"t{n}", [], 10, 1, "", n % 2 * HOUR, 0, "run") for n in range(6)]
    tasks = reindex_tasks(files, HOUR, 10)
    assert [[file.path for file in task] for task in tasks] == [["0", "2", "4"], ["1", "3", "5"]]


def test_discarded_values_are_no_messages_for_the_index() -> None:
    files = [
        LakeFile(f"{n}", "src1", "t", [], 10, 1, "", 0, 0, "run", owner=owner) for n, owner in enumerate(("", "t"))
    ]
    assert [[file.path for file in task] for task in reindex_tasks(files, HOUR, 10)] == [["0"]]
