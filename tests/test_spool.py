"""Logs and what becomes of them: every step from the log to the archive may be done again."""

import gzip
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlake.collector import log, recent
from eventlake.collector.log import Log, Record
from eventlake.collector.recent import PERIOD, RecentIds
from eventlake.collector.roll import roll
from eventlake.lake import ids
from eventlake.storage.local import LocalStorage

DAY = 24 * 3600 * 1_000_000


def record(name: str, *, at: int = 0, source: str = "src1") -> Record:
    return Record(source, at, ids.content_hash(name.encode()), f'{{"messageId":"{name}"}}'.encode())


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
    assert (rolled.events, rolled.copies) == (4, 0)
    assert archived(storage) == {
        f"segment-logs/src1/0/{log.name_of(path)}-0.gz": [record("a").event, record("d").event],
        f"segment-logs/src1/86400000/{log.name_of(path)}-0.gz": [record("b").event],
        f"segment-logs/src2/0/{log.name_of(path)}-0.gz": [record("c").event],
    }
    assert log.sealed(tmp_path) == []


MOMENTS = ["before the archive", "in the archive", "before the ids", "before the log was removed"]


@pytest.mark.parametrize("died", MOMENTS)
def test_a_roll_that_died_is_done_again_with_the_same_outcome(tmp_path: Path, died: str) -> None:
    storage, known = LocalStorage(str(tmp_path / "lake")), RecentIds(tmp_path / "recent")
    written(tmp_path, [record("a"), record("b", at=DAY), record("a")]).hand_on(all_of_it=True)
    [path] = log.sealed(tmp_path)
    shutil.copy(path, tmp_path / "copy")
    roll(path, storage, known)
    expected = archived(storage)
    shutil.copy(tmp_path / "copy", path)  # as if the process had died before it could remove the log
    if died != "before the log was removed":
        shutil.rmtree(tmp_path / "recent")
        known = RecentIds(tmp_path / "recent")
    if died in ("before the archive", "in the archive"):
        for file in list(expected)[: 2 if died == "before the archive" else 1]:
            (Path(storage.root) / file).unlink()
    roll(path, storage, known)
    assert archived(storage) == expected
    assert log.sealed(tmp_path) == []


def test_a_roll_that_is_done_again_after_another_took_one_of_its_messages_loses_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventlake.collector.roll.MAX_BYTES", 50)  # two events in a file
    storage, known = LocalStorage(str(tmp_path / "lake")), RecentIds(tmp_path / "recent")
    names = ["a", "b", "c", "d"]
    written(tmp_path, [record(name) for name in names]).hand_on(all_of_it=True)
    [path] = log.sealed(tmp_path)
    shutil.copy(path, tmp_path / "copy")
    roll(path, storage, known)
    shutil.rmtree(tmp_path / "recent")  # as if it had died before it remembered its messages
    shutil.copy(tmp_path / "copy", path)
    known = RecentIds(tmp_path / "recent")
    known.add("another", [record("a")])
    roll(path, storage, known)
    found = [line for lines in archived(storage).values() for line in lines]
    assert {record(name).event for name in names} <= set(found)


def test_logs_are_rolled_in_the_order_in_which_they_were_sealed(tmp_path: Path) -> None:
    first = Log(tmp_path, "w0", max_bytes=1 << 20, max_seconds=60)
    first.append([record("opened first").line()])
    written(tmp_path, [record("sealed first")]).hand_on(all_of_it=True)
    first.hand_on(all_of_it=True)
    names = [log.read(path).records[0] for path in log.sealed(tmp_path)]
    assert names == [record("sealed first"), record("opened first")]


@settings(max_examples=15)
@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, PERIOD // 2)), min_size=1, max_size=5), max_size=30
    )
)
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
        known = RecentIds(folder)  # anew, as after a restart
        new = known.new(records)
        assert new == expected
        known.add(f"log-{number}", new)
        now = max(one.received for one in records)
    assert len(list(folder.iterdir())) < 3 * recent._FAN
