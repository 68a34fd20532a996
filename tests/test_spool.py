"""Logs and what becomes of them: every step from the log to the archive may be done again."""

import gzip
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eventlake.collector import log
from eventlake.collector.log import Log, Record
from eventlake.collector.recent import PERIOD, RecentIds
from eventlake.collector.roll import Rolled, roll
from eventlake.lake import ids
from eventlake.lake.ids import IdFile
from eventlake.storage.local import LocalStorage

DAY = 24 * 3600 * 1_000_000
FAN = 3  # files of recent ids, before they become one: few, so that many become one


def record(name: str, *, at: int = 0, source: str = "src1") -> Record:
    return Record(source, at, log.message_hash(source, name), f'{{"messageId":"{name}"}}'.encode())


def written(folder: Path, records: list[Record], **limits: float) -> Log:
    made = Log(folder, "w0", max_bytes=int(limits.get("max_bytes", 1 << 20)), max_seconds=limits.get("max_seconds", 60))
    made.append([one.line() for one in records])
    return made


def archived(storage: LocalStorage) -> dict[str, list[bytes]]:
    files = sorted(Path(storage.root).rglob("*.gz"))
    return {str(f.relative_to(storage.root)): gzip.decompress(f.read_bytes()).splitlines() for f in files}


@given(st.lists(st.text(max_size=8), max_size=8), st.integers(0, 60))
def test_a_log_gives_back_its_records_whatever_half_of_one_follows(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], half: int
) -> None:
    folder = tmp_path_factory.mktemp("log")
    records = [record(name.encode("unicode_escape").decode(), at=place) for place, name in enumerate(names)]
    written(folder, records).hand_on(all_of_it=True)
    [path] = log.sealed(folder)
    with path.open("ab") as file:
        file.write(record("never acknowledged").line()[:half])
    assert log.read(path) == (records, 0)


def test_a_log_that_is_full_is_sealed_and_the_next_begins(tmp_path: Path) -> None:
    made = written(tmp_path, [record("a")], max_bytes=10)
    made.hand_on()
    made.append([record("b").line()])
    made.hand_on()
    assert [log.read(path).records for path in log.sealed(tmp_path)] == [[record("a")], [record("b")]]


def test_events_go_to_the_folder_of_their_source_and_day(tmp_path: Path) -> None:
    storage, known = LocalStorage(str(tmp_path / "lake")), RecentIds(tmp_path / "recent")
    records = [record("a"), record("b", at=DAY), record("c", source="src2"), record("d")]
    written(tmp_path, records).hand_on(all_of_it=True)
    [path] = log.sealed(tmp_path)
    rolled = roll(path, storage, known)
    assert (rolled.archived, rolled.copies) == ({"src1": 3, "src2": 1}, {})
    assert archived(storage) == {
        f"segment-logs/src1/0/{log.name_of(path)}-0.gz": [record("a").event, record("d").event],
        f"segment-logs/src1/86400000/{log.name_of(path)}-0.gz": [record("b").event],
        f"segment-logs/src2/0/{log.name_of(path)}-0.gz": [record("c").event],
    }
    assert log.sealed(tmp_path) == []


def test_a_roll_that_is_done_again_after_another_took_one_of_its_messages_loses_none(
    tmp_path: Path,
) -> None:
    storage, known = LocalStorage(str(tmp_path / "lake")), RecentIds(tmp_path / "recent")
    names = ["a", "b", "c", "d"]
    written(tmp_path, [record(name) for name in names]).hand_on(all_of_it=True)
    [path] = log.sealed(tmp_path)
    shutil.copy(path, tmp_path / "copy")
    roll(path, storage, known, max_bytes=50)  # two events in a file
    shutil.rmtree(tmp_path / "recent")  # as if it had died before it remembered its messages
    shutil.copy(tmp_path / "copy", path)
    known = RecentIds(tmp_path / "recent")
    known.add("another", [record("a")])
    roll(path, storage, known, max_bytes=50)
    found = [line for lines in archived(storage).values() for line in lines]
    assert {record(name).event for name in names} <= set(found)


def test_logs_are_rolled_in_the_order_in_which_they_were_sealed(tmp_path: Path) -> None:
    first = Log(tmp_path, "w0", max_bytes=1 << 20, max_seconds=60)
    first.append([record("opened first").line()])
    written(tmp_path, [record("sealed first")]).hand_on(all_of_it=True)
    first.hand_on(all_of_it=True)
    names = [log.read(path).records[0] for path in log.sealed(tmp_path)]
    assert names == [record("sealed first"), record("opened first")]


def rolled(folder: Path, *records: Record, max_bytes: int = 1000) -> Rolled:
    """What a roll says of a log with these records."""
    written(folder, list(records)).hand_on(all_of_it=True)
    [path] = log.sealed(folder)
    return roll(path, LocalStorage(str(folder / "lake")), RecentIds(folder / "recent"), max_bytes=max_bytes)


def test_a_roll_tells_what_it_archived_and_what_later_ones_leave_out(tmp_path: Path) -> None:
    first = rolled(tmp_path, record("a"), record("b"), record("a"), record("a", source="src2", at=DAY))
    assert first[:2] == ({"src1": 2, "src2": 1}, {"src1": 1})
    assert first.files == list(archived(LocalStorage(str(tmp_path / "lake"))))
    assert first.damaged == 0
    assert rolled(tmp_path, record("c")).copies == {}
    last = rolled(tmp_path, *map(record, "abcd"))
    assert (last.archived, last.copies) == ({"src1": 1}, {"src1": 3})


def test_a_damaged_log_is_kept_and_what_is_whole_of_it_is_archived(tmp_path: Path) -> None:
    whole = record("whole").line()
    path = tmp_path / "w0-5@6.sealed"
    path.write_bytes(b"no record\n" + whole)
    storage = LocalStorage(str(tmp_path / "lake"))
    assert roll(path, storage, RecentIds(tmp_path / "recent")).damaged == len(b"no record\n")
    assert archived(storage) == {"segment-logs/src1/0/w0-5-0.gz": [record("whole").event]}
    assert (tmp_path / "w0-5.damaged").read_bytes() == b"no record\n" + whole
    assert log.sealed(tmp_path) == []


@pytest.mark.parametrize(("max_bytes", "events"), [(54, [3, 3, 1]), (53, [2, 2, 2, 1]), (5, [1] * 7)])
def test_archive_files_are_as_large_as_they_may_be_and_no_larger(
    tmp_path: Path, max_bytes: int, events: list[int]
) -> None:
    rolled(tmp_path, *map(record, "abcdefg"), max_bytes=max_bytes)  # 18 bytes each, with the end of the line
    files = archived(LocalStorage(str(tmp_path / "lake")))
    assert [len(lines) for lines in files.values()] == events
    assert [line for lines in files.values() for line in lines] == [record(name).event for name in "abcdefg"]


@pytest.mark.parametrize(
    ("there", "added"), [(gzip.compress(record("a").event + b"\n"), "bbc"), (b"\x1f\x8bdamaged", "abbc")]
)
def test_beside_an_archive_file_with_other_events_those_that_it_lacks_are_put(
    tmp_path: Path, there: bytes, added: str
) -> None:
    storage = LocalStorage(str(tmp_path / "lake"))
    path = tmp_path / "w0-5@6.sealed"
    lines = [Record("src1", 0, ids.content_hash(b"%d" % at), record(name).event) for at, name in enumerate("abbc")]
    content = b"".join(one.line() for one in lines)
    for _ in range(2):  # as after another crash
        path.write_bytes(content)
        storage.write("segment-logs/src1/0/w0-5-0.gz", there)
        roll(path, storage, RecentIds(tmp_path / "recent"))
        shutil.rmtree(tmp_path / "recent")
    assert sorted(file.path for file in storage.files("")) == [
        "segment-logs/src1/0/w0-5-0-again.gz",
        "segment-logs/src1/0/w0-5-0.gz",
    ]
    again = gzip.decompress(storage.read("segment-logs/src1/0/w0-5-0-again.gz"))
    assert again.splitlines() == [record(name).event for name in added]
    assert storage.read("segment-logs/src1/0/w0-5-0.gz") == there


def messages_in(folder: Path) -> dict[str, int]:
    """How many messages each file of recent ids holds."""
    paths = sorted(folder.iterdir())
    return {path.name: len(IdFile(pa.memory_map(str(path)), fields=("high", "low", "received"))) for path in paths}


def test_recent_ids_are_kept_for_the_period_and_not_longer(tmp_path: Path) -> None:
    known = RecentIds(tmp_path / "recent")
    known.add("one", [record("a", at=0)])
    known.add("two", [record("b", at=PERIOD)])
    assert known.new([record("a", at=PERIOD)]) == []
    known.add("three", [record("c", at=PERIOD + 1)])
    assert list(messages_in(tmp_path / "recent")) == ["three.ids", "two.ids"]


def test_files_of_about_one_size_become_one_without_what_is_too_old_or_there_twice(tmp_path: Path) -> None:
    known = RecentIds(tmp_path, fan=2)
    known.add("a", [record(f"many {at}", at=PERIOD) for at in range(200)])
    known.add("b", [record("a", at=0), record("old", at=-1)])  # smaller: they stay apart
    assert list(messages_in(tmp_path).values()) == [200, 2]
    known.add("c", [record("a", at=0), *(record(f"few {at}", at=PERIOD) for at in range(40))])
    assert sorted(messages_in(tmp_path).values()) == [41, 200]
    copies = [record("a", at=PERIOD), record("few 7", at=PERIOD), record("many 7", at=PERIOD)]
    assert known.new(copies) == []


def test_a_message_that_was_kept_again_after_the_period_is_known_by_the_later_time(tmp_path: Path) -> None:
    known = RecentIds(tmp_path, fan=2)
    known.add("one", [record("a", at=0)])
    known.add("two", [record("a", at=PERIOD + 1)])
    assert list(messages_in(tmp_path).values()) == [1]
    assert known.new([record("a", at=PERIOD + 2)]) == []


def test_messages_that_share_half_of_their_hash_are_no_copies_of_each_other(tmp_path: Path) -> None:
    def hashed(high: bytes, low: bytes, at: int) -> Record:
        return Record("src1", at, 8 * high + 8 * low, b"{}")

    known = RecentIds(tmp_path, fan=2)
    records = [hashed(b"a", b"a", 0), hashed(b"a", b"b", PERIOD + 1), hashed(b"b", b"b", PERIOD + 1)]
    assert known.new(records) == records
    known.add("one", records)
    later = [hashed(b"a", b"a", PERIOD + 1), hashed(b"a", b"c", PERIOD + 1), hashed(b"b", b"a", PERIOD + 1)]
    assert known.new(later) == later


def test_recent_ids_take_no_more_room_than_a_day_needs(tmp_path: Path) -> None:
    known = RecentIds(tmp_path, fan=FAN)
    for hour in range(24 * 10):
        known.add(f"log-{hour}", [record(f"m{hour}", at=hour * PERIOD // 24)])
    files = [IdFile(pa.memory_map(str(path)), fields=("high", "low", "received")) for path in tmp_path.iterdir()]
    assert 24 <= sum(map(len, files)) < 24 + 2 * FAN
    assert known.new([record(f"m{hour}", at=24 * 10 * PERIOD // 24) for hour in range(24 * 9, 24 * 10)]) == []


LATER = st.one_of(st.integers(0, PERIOD // 2), st.sampled_from([0, 1, PERIOD // 2, PERIOD - 1, PERIOD, PERIOD + 1]))


@settings(max_examples=15)
@given(st.lists(st.lists(st.tuples(st.sampled_from("abcdef"), LATER), min_size=1, max_size=5), max_size=30))
# A copy decides nothing about what comes after it, whether they are in one log or in two.
@example([[("a", 0), ("a", 43199999999)], [("a", 32203023348)], [("a", 0), ("a", 10996976654)]])
@example([[("a", 0), ("a", PERIOD), ("a", PERIOD + 1)]])
@example([[("a", 0), ("a", PERIOD + 1)], [("a", 0), ("a", PERIOD), ("a", PERIOD + 1)]])
def test_recent_ids_know_what_came_in_the_last_day_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[tuple[str, int]]]
) -> None:
    folder = tmp_path_factory.mktemp("recent")
    last: dict[str, int] = {}  # when a message that was kept came
    now = 0
    for number, batch in enumerate(batches):
        records = []
        for name, later in sorted(batch, key=lambda pair: pair[1]):
            records.append(record(name, at=now + later))
        expected = []
        for one in records:
            name = one.event.decode()
            if name not in last or one.received - last[name] > PERIOD:
                expected.append(one)
                last[name] = one.received
        known = RecentIds(folder, fan=FAN)  # anew, as after a restart
        new = known.new(records)
        assert new == expected
        known.add(f"log-{number}", new)
        now = max(one.received for one in records)
    assert len(list(folder.iterdir())) < 3 * FAN
