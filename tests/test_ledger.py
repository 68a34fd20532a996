"""The ledger: what a run recorded is what is read back, all of it or nothing, and twice is once."""

import copy
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from conftest import new_database
from eventlake.control import database
from eventlake.control.admission import Admission, Decisions, DroppedTable, RefusedTable
from eventlake.control.leases import Lane, Leases
from eventlake.control.ledger import Entry, IndexFile, LakeFile, Ledger, LoadedFile, TableFiles
from eventlake.control.replays import PendingReplay, Replays
from eventlake.errors import OvertakenError


@pytest.fixture
def engine(tmp_path: Path) -> sa.Engine:
    return database.connect(new_database(), tmp_path)


@pytest.fixture
def ledger(engine: sa.Engine) -> Ledger:
    return Ledger(engine, "default")


Record = Callable[[Entry], None]


@pytest.fixture
def record(engine: sa.Engine, ledger: Ledger) -> Iterator[Record]:
    """Records as a run does that holds its source, on top of what is there; of two sources with connections."""
    with engine.begin() as connection:
        rows = [{"id": name, "slug": name, "name": name, "enabled": True, "created_at": 1} for name in ("src1", "src2")]
        connection.execute(database.sources.insert(), rows)
        here = {"enabled": True, "connected": True, "settings": {"old": 1}, "created_at": 1}
        of = [("src1", "default"), ("src2", "default"), ("src2", "aws")]
        connection.execute(
            database.connections.insert(), [{**here, "source_id": id_, "lake": lake} for id_, lake in of]
        )
    with Leases(engine, "default").held("src1") as lease:

        def recorded(entry: Entry) -> None:
            entry.base = ledger.last_run(entry.source_id)
            ledger.record(entry, lease)

        yield recorded


def raw_file(name: str, source_id: str = "src1", run_id: str = "1") -> LoadedFile:
    return LoadedFile(source_id, name, 100, "etag", run_id, 31, 1, 2, 4, 8, 16, "abc", "digest", 5, None)


def data_file(name: str, source_id: str = "src1", run_id: str = "1", table_key: str = "page") -> LakeFile:
    return LakeFile(name, source_id, table_key, ["2026-11-15", "10"], 7, 900, "digest", 5, 6, run_id)


def index_file(name: str, run_id: str = "1") -> IndexFile:
    return IndexFile(name, run_id, 7, "abc", 123)


def first() -> Entry:
    return Entry(
        run_id="1",
        source_id="src1",
        at=5,
        report=[],
        raw_files=[raw_file("b.gz"), raw_file("a.gz")],
        files=[
            TableFiles("track_b", [data_file("b.parquet", table_key="track_b")]),
            TableFiles("page", [data_file("a.parquet")]),
        ],
        index_files=[index_file("b.ids"), index_file("a.ids")],
        quarantine_files=["b.bad", "a.bad"],
        decisions=Decisions(dropped=[DroppedTable("junk", 3, "1", 5)], refused=[RefusedTable("late", 4, 1, 5)]),
    )


def other() -> Entry:
    """Another source, with a raw file of the same name."""
    return Entry(
        run_id="2",
        source_id="src2",
        at=6,
        report=[],
        raw_files=[raw_file("a.gz", "src2", "2")],
        files=[TableFiles("page", [data_file("c.parquet", "src2", "2")])],
        index_files=[index_file("c.ids", "2")],
        quarantine_files=["c.bad"],
        decisions=Decisions(dropped=[DroppedTable("junk", 9, "2", 6)], refused=[RefusedTable("late", 8, 2, 6)]),
    )


def known(ledger: Ledger, source_id: str) -> tuple[object, ...]:
    return (
        ledger.raw_files(source_id),
        ledger.data_files(source_id),
        ledger.index_files(source_id),
        [file for file in ledger.quarantine_files() if file[1] == source_id],
    )


def expected_of_first() -> tuple[object, ...]:
    return (
        {"a.gz": raw_file("a.gz"), "b.gz": raw_file("b.gz")},
        [data_file("a.parquet"), data_file("b.parquet", table_key="track_b")],
        [index_file("a.ids"), index_file("b.ids")],
        [("a.bad", "src1", "1"), ("b.bad", "src1", "1")],
    )


def test_of_a_long_history_only_the_files_asked_for_are_told(ledger: Ledger, record: Record) -> None:
    files = [raw_file(f"{number}.gz") for number in range(25)]
    record(Entry("1", "src1", 5, [], raw_files=files))
    record(Entry("2", "src2", 5, [], raw_files=[raw_file("other.gz", "src2")]))
    asked = [*(file.path for file in files[:21]), "other.gz", "new.gz"]
    told = {(file.path, 100, "etag") for file in files}
    for at_once in (1, 7, 22, 23, 100):
        found = list(ledger.loaded("src1", asked, at_once=at_once, one_by_one=1))
        assert sorted(found) == sorted((file.path, 100, "etag") for file in files[:21])
    for more_than in (0.9, 22 / 25):  # 23 of 25 are asked for: all are read
        assert set(ledger.loaded("src1", asked, one_by_one=more_than)) == told
    assert not set(ledger.loaded("src1", []))


def test_each_source_has_what_its_runs_recorded_however_often(ledger: Ledger, record: Record) -> None:
    for entry in (first(), other(), first(), other()):
        record(entry)
    assert known(ledger, "src1") == expected_of_first()
    assert known(ledger, "src2") == (
        {"a.gz": raw_file("a.gz", "src2", "2")},
        [data_file("c.parquet", "src2", "2")],
        [index_file("c.ids", "2")],
        [("c.bad", "src2", "2")],
    )
    assert ledger.data_files("src1", "track_b") == [data_file("b.parquet", table_key="track_b")]
    assert ledger.data_files("src2", "track_b") == []
    assert [ledger.has_data(source_id) for source_id in ("src1", "src2", "src3")] == [True, True, False]


def test_what_a_run_replaces_goes_and_what_it_brings_comes(ledger: Ledger, record: Record) -> None:
    for entry in (first(), other()):
        record(entry)
    changed = raw_file("a.gz", run_id="3")._replace(lines=1, digest="new")
    later = Entry(
        "3",
        "src1",
        7,
        [],
        raw_files=[changed],
        files=[TableFiles("page", [data_file("d.parquet", run_id="3")], ["a.parquet"])],
        index_files=[index_file("d.ids", "3"), index_file("b.ids", "1")],
        removed_index_files=["a.ids"],
    )
    for _ in range(2):
        record(later)
        assert known(ledger, "src1")[:3] == (
            {"a.gz": changed, "b.gz": raw_file("b.gz")},
            [data_file("b.parquet", table_key="track_b"), data_file("d.parquet", run_id="3")],
            [index_file("b.ids", "3"), index_file("d.ids", "3")],
        )
    assert len(ledger.data_files("src2")) == len(ledger.index_files("src2")) == 1


@pytest.mark.parametrize(
    "entry",
    [
        Entry("4", "src1", 7, [], files=[TableFiles("page", [data_file("x", run_id="4")])]),
        Entry("4", "src1", 7, [], index_files=[index_file("x", "4")]),
        Entry("4", "src1", 7, [], quarantine_files=["x"]),
    ],
    ids=["data", "index", "quarantine"],
)
def test_a_run_is_known_by_any_file_that_it_added(ledger: Ledger, record: Record, entry: Entry) -> None:
    record(first())
    assert not ledger.has_recorded("4")
    record(entry)
    assert [ledger.has_recorded(run_id) for run_id in ("1", "4", "5")] == [True, True, False]


def test_an_entry_that_cannot_be_recorded_as_a_whole_changes_nothing(ledger: Ledger, record: Record) -> None:
    record(first())
    half = first()
    half.files, half.removed_index_files = [TableFiles("page", [data_file("z.parquet")], ["b.parquet"])], ["b.ids"]
    half.raw_files = [raw_file("z.gz")]
    half.decisions = Decisions(refused=[RefusedTable("late", None, 1, 5)])  # type: ignore[arg-type]
    with pytest.raises(sa.exc.IntegrityError):
        record(half)
    assert known(ledger, "src1") == expected_of_first()


def test_settings_that_a_run_brings_are_those_of_its_connection_alone(
    engine: sa.Engine, ledger: Ledger, record: Record
) -> None:
    record(first())
    record(Entry("3", "src2", 7, [], source_settings={"new": 2}))
    with engine.connect() as connection:
        table = database.connections.c
        found = connection.execute(sa.select(table.source_id, table.lake, table.settings).order_by("source_id", "lake"))
        assert [tuple(row) for row in found] == [
            ("src1", "default", {"old": 1}),
            ("src2", "aws", {"old": 1}),
            ("src2", "default", {"new": 2}),
        ]


def test_a_run_is_recorded_only_on_top_of_the_one_that_it_was_made_for(
    engine: sa.Engine, ledger: Ledger, record: Record
) -> None:
    assert ledger.last_run("src1") is None
    record(first())
    record(other())
    assert (ledger.last_run("src1"), ledger.last_run("src2")) == ("1", "2")
    assert Ledger(engine, "aws").last_run("src2") is None
    with Leases(engine, "default").held("src1", Lane.REPLAY) as lease:
        for base in (None, "0", "2"):
            late = Entry("3", "src1", 7, [], raw_files=[raw_file("z.gz", run_id="3")], base=base)
            with pytest.raises(OvertakenError, match="run 3"):
                ledger.refuse_overtaken(late)
            with pytest.raises(OvertakenError, match="run 3"):
                ledger.record(late, lease)
        assert known(ledger, "src1") == expected_of_first()
        on_top = Entry("3", "src1", 7, [], base="1")
        for _ in range(2):
            ledger.refuse_overtaken(on_top)
            ledger.record(on_top, lease)
        assert ledger.last_run("src1") == "3"
        with pytest.raises(OvertakenError) as caught:
            ledger.record(first(), lease)
        assert caught.value.fix == "run it again: nothing of it was published"


def test_a_source_that_is_forgotten_begins_anew(ledger: Ledger, record: Record) -> None:
    record(first())
    record(other())
    ledger.forget("src1")
    assert known(ledger, "src1") == ({}, [], [], [])
    assert [len(part) for part in known(ledger, "src2")] == [1, 1, 1, 1]  # type: ignore[arg-type]
    assert (ledger.last_run("src1"), ledger.last_run("src2")) == (None, "2")


def test_each_lake_has_its_own_ledger_though_sources_and_paths_are_the_same(
    engine: sa.Engine, ledger: Ledger, record: Record
) -> None:
    """What is recorded, taken away, asked for or forgotten in one lake is not so in the other."""
    elsewhere = Ledger(engine, "aws")
    replays = {lake: Replays(engine, lake) for lake in ("default", "aws")}
    for lake in replays.values():
        for source_id in ("src1", "src2"):
            lake.put(PendingReplay(source_id, None, None, 0, None, 1, 0))

    def recorded(entry: Entry) -> None:
        entry.base = elsewhere.last_run(entry.source_id)
        with Leases(engine, "aws").held(entry.source_id) as lease:
            elsewhere.record(entry, lease)

    both = Entry(
        "1",
        "src2",
        5,
        [],
        raw_files=[raw_file("a.gz", "src2")],
        files=[TableFiles("page", [data_file("z.parquet", "src2")])],
        index_files=[index_file("z.ids")],
        quarantine_files=["z.bad"],
    )
    assert not elsewhere.has_data("src2")
    record(first())
    record(copy.deepcopy(both))
    assert (elsewhere.has_data("src2"), elsewhere.has_recorded("1"), elsewhere.paths("src2")) == (False, False, set())
    assert not list(elsewhere.loaded("src2", ["a.gz"]))
    recorded(copy.deepcopy(both))
    assert ledger.paths("src1") == {"a.parquet", "b.parquet", "a.ids", "b.ids", "a.bad", "b.bad"}
    assert ledger.paths("src2") == elsewhere.paths("src2") == {"z.parquet", "z.ids", "z.bad"}
    assert known(elsewhere, "src2") == known(ledger, "src2")

    settings = {"new": 2}
    gone = [TableFiles("page", [], ["z.parquet"])]
    recorded(Entry("7", "src2", 7, [], files=gone, removed_index_files=["z.ids"], source_settings=settings))
    assert elsewhere.paths("src2") == {"z.bad"}
    assert ledger.paths("src2") == {"z.parquet", "z.ids", "z.bad"}
    pending = {
        (lake, source): replays[lake].pending(source) is not None for lake in replays for source in ("src1", "src2")
    }
    assert [place for place, is_pending in pending.items() if not is_pending] == [("aws", "src2")]

    elsewhere.forget("src2")
    assert known(elsewhere, "src2")[:3] == ({}, [], [])
    assert ledger.paths("src2") == {"z.parquet", "z.ids", "z.bad"}
    assert (ledger.last_run("src2"), elsewhere.last_run("src2")) == ("1", None)
    ledger.set_last_run("src2", "9")
    assert [ledger.last_run("src1"), ledger.last_run("src2"), elsewhere.last_run("src2")] == ["1", "9", None]


# Tables that may not be


def test_each_source_has_its_own_rules_in_order_of_their_names(
    engine: sa.Engine, ledger: Ledger, record: Record
) -> None:
    admission = Admission(engine, "default")
    for entry in (first(), other(), first()):
        record(entry)
    assert admission.dropped("src1") == [DroppedTable("junk", 3, "1", 5)]
    assert admission.refused("src2") == [RefusedTable("late", 8, 2, 6)]

    more = Decisions(dropped=[DroppedTable("b", 1, "3", 7), DroppedTable("a", 1, "3", 7)])
    record(Entry("3", "src1", 7, [], decisions=more))
    assert [table.table_key for table in admission.dropped("src1")] == ["a", "b", "junk"]
    assert admission.refused("src1") == [RefusedTable("late", 4, 1, 5)], "nothing was said of them"

    less = Decisions(allowed=["junk", "a", "unknown"], refused=[RefusedTable("z", 1, 1, 7), RefusedTable("y", 1, 1, 7)])
    for _ in range(2):
        record(Entry("4", "src1", 8, [], decisions=less))
        assert admission.dropped("src1") == [DroppedTable("b", 1, "3", 7)]
        assert admission.refused("src1") == [RefusedTable("y", 1, 1, 7), RefusedTable("z", 1, 1, 7)]
    record(Entry("5", "src1", 9, [], decisions=Decisions(refused=[])))
    assert admission.refused("src1") == []
    assert admission.dropped("src2") == [DroppedTable("junk", 9, "2", 6)]
    assert admission.refused("src2") == [RefusedTable("late", 8, 2, 6)]
