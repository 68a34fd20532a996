"""What a run did and what is written down of it: files, books, tables and the report, each exactly once."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import InProcess, Lake
from eventlake.catalog.base import TableChange
from eventlake.commit.manifest import Manifest
from eventlake.control.admission import Decisions, DroppedTable, RefusedTable
from eventlake.control.ledger import Entry, IndexFile, LakeFile, LoadedFile, TableFiles
from eventlake.errors import InternalError
from eventlake.lake.parquet import DataFile
from eventlake.reports.report import RunHead, time_text
from eventlake.schema.evolve import Column
from eventlake.schema.types import ColumnType
from eventlake.sync import books, jobs
from eventlake.sync.dedupe import Kept
from eventlake.sync.discover import Found
from eventlake.sync.index import Index, Reindexed
from eventlake.sync.jobs import Job
from eventlake.sync.manifest_of import manifest_of
from eventlake.sync.outcome import Outcome
from eventlake.sync.plan import TablePlan
from eventlake.sync.stage import Staged
from eventlake.sync.state import read_state
from eventlake.tasks.counts import Count
from eventlake.tasks.id_files import NewIds
from eventlake.tasks.publish import Published
from eventlake.tasks.scope import Scope
from eventlake.tasks.staged import FileCount, RawFile

RUN = "1794777199649472259"
NOON = 1_794_744_000_000_000  # 2026-11-15, microseconds
HEAD = RunHead("test", "src1", RUN, "web", NOON * 1000)
TEN, ELEVEN = ("2026-11-15", "10"), ("2026-11-15", "11")
ID = Column("message_id", ColumnType.STRING, "/messageId")
TIME = Column("received_at", ColumnType.TIMESTAMP, "/receivedAt")
PRICE = Column("properties_price", ColumnType.BIGINT, "/properties/price")
RESCUED = Column("_rescued_data", ColumnType.STRING, "")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "workspace", InProcess())


def raw(number: int) -> RawFile:
    return RawFile(number, f"raw/{number}.gz", 100 + number, f"etag{number}")


def data(number: int, table: str, hour: tuple[str, ...] = TEN, rows: int = 1) -> DataFile:
    return DataFile(table, hour, f"data/{number}", f"stage/data{number}", rows, 1000 + number, f"d{number}", 5, 6)


def of_lake(number: int, table: str, hour: tuple[str, ...] = TEN, rows: int = 1, run: str = RUN) -> LakeFile:
    return LakeFile(f"data/{number}", "src1", table, list(hour), rows, 1000 + number, f"d{number}", 5, 6, run)


def plan(name: str, *, is_new: bool = False, added: tuple[Column, ...] = (), **more: Any) -> TablePlan:
    return TablePlan(name, is_new, more.pop("columns", added), added, more.pop("refused", ()), **more)


def in_index(name: str, day: int = 3) -> IndexFile:
    return IndexFile(f"index/{name}", "1", 4, "f", day)


Seen = tuple[Found, Index]


def found(*, gone: int = 0, sound: tuple[IndexFile, ...] = (), lost: tuple[IndexFile, ...] = ()) -> Seen:
    return Found([raw(0)], list(sound), gone), Index(list(sound), list(lost))


def manifest(lake: Lake, job: Job, seen: Seen, staged: Staged, kept: Kept, *rest: Any) -> Manifest:
    """Of a run whose books balance, with these plans and these files."""
    plans, published = rest
    state = replace(read_state(lake.place, job), index=seen[1])
    accounts = books.close(staged, kept, published)
    outcome = Outcome(seen[0], staged, kept, plans, published, accounts, state.replaced_files(job))
    known = {key: lake.place.catalog.partitions(table.database, table.name) for key, table in state.tables.items()}
    return manifest_of(job, state, known, HEAD, outcome, lake.workspace.clock.now_ns())


def told(line: dict[str, Any]) -> dict[str, Any]:
    """What a line of the report says beyond what all lines repeat."""
    return {name: value for name, value in line.items() if name not in HEAD.line("", "", 0) or name == "table_name"}


def change(table: str, **fields: Any) -> TableChange:
    where = f"segment-data/data/src1/segment_type={table.removeprefix('x_')}"
    return TableChange("web", table, "src1", table.removeprefix("x_"), where, ("day", "hr"), **fields)


def loaded(number: int, of: books.Books) -> LoadedFile:
    path, size, etag = raw(number)[1:]
    counts = of.lines, of.loaded, of.duplicates, of.suppressed, of.blocked, of.quarantined
    return LoadedFile("src1", path, size, etag, RUN, *counts, f"{of.checksum:032x}", f"r{number}", 5, 6)


def table_books(*counts: int, checksum: int) -> dict[str, Any]:
    names = ("staged", "loaded", "duplicates")
    return {**dict(zip(names, counts, strict=True)), "checksum": f"{checksum:032x}"}


def test_a_first_sync(lake: Lake) -> None:
    """Of one new table there are rows in three files, of another only copies, of a third nothing at all."""
    counts = [
        FileCount(raw(0), 9, 7, 1, 1, 5, 6, "r0"),
        FileCount(raw(1), 1, 0, 0, 0, None, None, "", error="it ends too early"),
        FileCount(raw(2), 3, 2, 1, 0, 5, 6, "r2"),
    ]
    bad, late, dropped = ["stage/bad0", "stage/bad1"], Counter(track_late=1), Counter({"dropped table": 1})
    staged = Staged(files=counts, quarantine=bad, refused_tables=late, blocked_by=dropped)
    kept = Kept(
        files={0: Count(3, 4, 0, 10), 2: Count(2, 0, 0, 5)},
        routes={("page",): Count(5, 3, 0, 15), ("track_copy",): Count(0, 1, 0, 0)},
        new_ids=[NewIds("stage/ids0", 3, 11), NewIds("stage/ids1", 2, 4)],
    )
    reason = "text, because 1 of 5 values is not a number"
    plans = [
        plan("track_copy", is_new=True, added=(ID, TIME), reasons={"x": "integer"}),
        plan("track_none", is_new=True, added=(ID, TIME)),
        plan("page", is_new=True, added=(ID, TIME, PRICE), refused=("z1", "z2"), reasons={"properties_price": reason}),
    ]
    published = [
        Published("page", [data(0, "page"), data(1, "page", ELEVEN)], 2, Counter(properties_a=1)),
        Published("page", [data(2, "page", TEN, rows=3)], 3, Counter(properties_a=2, properties_b=1)),
        Published("page", [], rescued=Counter()),
        Published("track_copy", []),
    ]
    made = manifest(lake, jobs.sync(lake.connection), found(), staged, kept, plans, published)
    entry, at = made.entry, lake.workspace.clock.now() - 1
    assert entry.report[0]["finish_time"] == time_text(at * 1000)
    assert isinstance(entry.at, int)
    assert made.tables == [change("page", added=(ID, TIME, PRICE, RESCUED), partitions=(TEN, ELEVEN))]
    assert made.dropped_tables == []
    assert made.moves == [
        ("stage/data0", "data/0"),
        ("stage/data1", "data/1"),
        ("stage/data2", "data/2"),
        ("stage/ids0", f"segment-data/index/source=src1/{RUN}-0.ids"),
        ("stage/ids1", f"segment-data/index/source=src1/{RUN}-1.ids"),
        ("stage/bad0", f"segment-data/quarantine/source=src1/run_id={RUN}/0.parquet"),
        ("stage/bad1", f"segment-data/quarantine/source=src1/run_id={RUN}/1.parquet"),
    ]
    assert entry == Entry(
        run_id=RUN,
        source_id="src1",
        at=at,
        report=entry.report,
        raw_files=[
            loaded(0, books.Books(9, 3, 4, 0, 1, 1, 10)),
            loaded(2, books.Books(3, 2, 0, 0, 0, 1, 5)),
        ],
        files=[TableFiles("page", [of_lake(0, "page"), of_lake(1, "page", ELEVEN), of_lake(2, "page", TEN, rows=3)])],
        index_files=[
            IndexFile(made.moves[3][1], RUN, 3, f"{11:032x}", at),
            IndexFile(made.moves[4][1], RUN, 2, f"{4:032x}", at),
        ],
        quarantine_files=[made.moves[5][1], made.moves[6][1]],
        decisions=Decisions(refused=[RefusedTable("track_late", 1, 1, at)]),
    )
    whole, copies, page = map(told, entry.report)
    assert whole == {
        "table_name": "",
        "row_count": 5,
        "kind": "sync",
        "books": books.Books(12, 5, 4, 0, 1, 2, 15).as_report(),
        "files_read": 2,
        "rescued": 4,
        "data_files": 3,
        "bytes": 3003,
        "blocked_by": {"dropped table": 1},
        "failed_files": [{"file": "raw/1.gz", "error": "it ends too early"}],
        "notices": whole["notices"],
    }
    assert len(whole["notices"]) == 7
    assert page == {
        "table_name": "page",
        "row_count": 5,
        "is_new": True,
        "partitions": [{"day": "2026-11-15", "hr": "10"}, {"day": "2026-11-15", "hr": "11"}],
        "new_columns": [
            {"name": "message_id", "type": "string"},
            {"name": "received_at", "type": "timestamp"},
            {"name": "properties_price", "type": "bigint"},
        ],
        "books": table_books(8, 5, 3, checksum=15),
        "files": 3,
        "bytes": 3003,
        "rescued": {"properties_a": 3, "properties_b": 1},
        "refused_columns": 2,
        "type_reasons": {"properties_price": reason},
    }
    assert copies == {
        "table_name": "track_copy",
        "row_count": 0,
        "is_new": False,
        "books": table_books(1, 0, 1, checksum=0),
        "files": 0,
        "bytes": 0,
    }


# Runs on a lake that is there


def tables_of(files: list[LakeFile]) -> list[TableFiles]:
    keys = sorted({file.table_key for file in files})
    return [TableFiles(key, [file for file in files if file.table_key == key]) for key in keys]


def fill(lake: Lake) -> None:
    """Two tables with data, one that was dropped and one that was refused."""
    tables = [
        change("page", added=(ID, TIME), partitions=(TEN,)),
        change("track_copy", added=(ID, TIME, PRICE), partitions=(TEN,)),
    ]
    of_another_source = replace(change("page", partitions=(TEN,)), database="ios", source_id="src2")
    lake.place.catalog.apply([*tables, of_another_source], run_id="1", at=1)
    files = [of_lake(90, "page", run="1"), of_lake(91, "track_copy", run="1"), of_lake(92, "page", run="1")]
    decisions = Decisions(
        dropped=[DroppedTable("track_junk", 1, "1", 1)], refused=[RefusedTable("track_late", 1, 1, 1)]
    )
    with lake.place.leases.held("src1") as lease:
        lake.place.ledger.record(Entry("1", "src1", 1, [], files=tables_of(files), decisions=decisions), lease)


def test_two_files_with_one_name_are_noticed_before_one_takes_the_place_of_the_other(lake: Lake) -> None:
    kept = Kept({0: Count(2, 0, 0, 5)}, {("page",): Count(2, 0, 0, 5)}, new_ids=[NewIds("stage/ids0", 2, 5)])
    staged = Staged(files=[FileCount(raw(0), 2, 2, 0, 0, 5, 6, "r0")])
    files = [data(0, "page", rows=1), data(1, "page", rows=1)._replace(path="data/0")]
    with pytest.raises(InternalError, match="two files of this run have one name"):
        manifest(
            lake,
            jobs.sync(lake.connection),
            found(),
            staged,
            kept,
            [plan("page", is_new=True)],
            [Published("page", files, 2)],
        )


def test_a_later_sync_that_made_a_part_of_the_index_anew(lake: Lake) -> None:
    """Of an old table there are new rows and a new column, of another only a copy, which has a new field as well."""
    fill(lake)
    lost = (in_index("a", day=5), in_index("b", day=3))
    staged = Staged(files=[FileCount(raw(0), 4, 4, 0, 0, 5, 6, "r0")])
    kept = Kept(
        files={0: Count(3, 1, 0, 10)},
        routes={("page",): Count(3, 0, 0, 10), ("track_copy",): Count(0, 1, 0, 0)},
        new_ids=[NewIds("stage/ids0", 3, 10)],
        reindexed=Reindexed((NewIds("stage/again0", 5, 20), NewIds("stage/again1", 3, 7)), lost),
    )
    plans = [plan("page", added=(PRICE,), columns=(ID, TIME, PRICE)), plan("track_copy", added=(PRICE,))]
    published = [Published("page", [data(0, "page", ELEVEN), data(1, "page", TEN, rows=2)], 3)]
    seen = found(sound=(in_index("c"),), lost=lost)
    made = manifest(lake, jobs.sync(lake.connection), seen, staged, kept, plans, published)
    entry, at = made.entry, lake.workspace.clock.now() - 1
    assert made.tables == [change("page", added=(PRICE,), partitions=(TEN, ELEVEN))]
    assert made.moves[2:] == [
        ("stage/ids0", f"segment-data/index/source=src1/{RUN}-0.ids"),
        ("stage/again0", f"segment-data/index/source=src1/{RUN}-1.ids"),
        ("stage/again1", f"segment-data/index/source=src1/{RUN}-2.ids"),
    ]
    assert [(file.messages, int(file.checksum, 16), file.synced_at) for file in entry.index_files] == [
        (3, 10, at),
        (5, 20, 5),
        (3, 7, 5),
    ]
    assert entry.removed_index_files == ["index/a", "index/b"]
    assert entry.removed_data_files == []
    assert entry.decisions == Decisions()
    whole, page, copies = map(told, entry.report)
    assert whole["reindexed"] == {"messages": 8, "checksum": f"{27:032x}"}
    assert whole["notices"] == [
        "a part of the index was lost or damaged, and made anew from the data files: 8 messages"
    ]
    assert not {"failed_files", "rewritten", "carried_over"} & whole.keys()
    assert page["partitions"] == [{"day": "2026-11-15", "hr": "11"}]
    assert page["new_columns"] == [{"name": "properties_price", "type": "bigint"}]
    assert (page["is_new"], copies["row_count"]) == (False, 0)
    assert not {"rescued", "refused_columns", "type_reasons", "retyped", "rewritten"} & page.keys()
    assert not {"partitions", "new_columns"} & copies.keys()


def test_a_sync_that_finds_no_room_again_counts_on(lake: Lake) -> None:
    fill(lake)
    staged = Staged(files=[FileCount(raw(0), 3, 0, 3)], refused_tables=Counter(track_late=2, track_new=1))
    entry = manifest(lake, jobs.sync(lake.connection), found(), staged, Kept(), [], []).entry
    at = lake.workspace.clock.now() - 1
    assert entry.decisions == Decisions(
        refused=[RefusedTable("track_late", 3, 2, at), RefusedTable("track_new", 1, 1, at)]
    )


def test_a_replay_that_changes_a_type_and_lets_a_table_in(lake: Lake) -> None:
    """Lines are counted and put aside by the sync that meets them first, not again."""
    fill(lake)
    wanted = frozenset({"page", "track_late", "track_junk"})
    job = jobs.retype(lake.connection, "page", "properties_price", ColumnType.STRING)
    job = replace(job, scope=Scope(5, 6, wanted), allowed=frozenset({"track_late", "track_junk"}))
    counts = [FileCount(raw(0), 8, 6, 2, 0, 5, 6, "r0")]
    staged = Staged(files=counts, quarantine=["stage/bad0"], refused_tables=Counter(track_junk=2))
    kept = Kept(
        files={0: Count(2, 4, 3, 10)},
        routes={("page",): Count(0, 4, 3, 0), ("track_late",): Count(2, 0, 0, 10)},
        new_ids=[NewIds("stage/ids0", 2, 10)],
        carried_routes={("page",): 2},
    )
    plans = [plan("page", columns=(ID, TIME)), plan("track_late", is_new=True, added=(ID, TIME))]
    published = [Published("page", [data(0, "page", rows=5)], 5), Published("track_late", [data(1, "track_late")], 2)]
    made = manifest(lake, job, found(gone=1), staged, kept, plans, published)
    entry = made.entry
    assert made.tables == [
        change("page", retyped=(("properties_price", ColumnType.STRING),), partitions=(TEN,)),
        change("track_late", added=(ID, TIME), partitions=(TEN,)),
    ]
    assert made.dropped_tables == []
    assert (entry.raw_files, entry.quarantine_files, entry.source_settings) == ([], [], None)
    assert entry.removed_data_files == ["data/90", "data/92"]
    assert [file.synced_at for file in entry.index_files] == [entry.at]
    assert entry.decisions == Decisions(allowed=["track_late"], refused=[])
    whole, page, late = map(told, entry.report)
    assert (whole["kind"], whole["rewritten"], whole["carried_over"]) == ("replay", 3, 2)
    assert "reindexed" not in whole
    assert page["retyped"] == {"properties_price": "string"}
    assert (page["rewritten"], page["row_count"]) == (3, 0)
    assert page["books"] == table_books(4, 0, 4, checksum=0)
    assert not {"retyped", "rewritten"} & late.keys()


def test_a_plain_replay_decides_nothing_about_tables(lake: Lake) -> None:
    fill(lake)
    staged = Staged(files=[FileCount(raw(0), 2, 0, 2)], refused_tables=Counter(track_late=2))
    made = manifest(lake, jobs.replay(lake.connection, None, None), found(), staged, Kept(), [], [])
    assert made.entry.decisions == Decisions()


def test_a_type_is_changed_also_where_no_row_is_left(lake: Lake) -> None:
    fill(lake)
    job = jobs.retype(lake.connection, "track_copy", "properties_price", ColumnType.STRING)
    made = manifest(lake, job, found(), Staged(), Kept(), [plan("track_copy", columns=(ID, TIME, PRICE))], [])
    assert made.tables == [change("track_copy", retyped=(("properties_price", ColumnType.STRING),))]
    assert len(made.entry.report) == 1


def test_all_written_anew_under_another_name(lake: Lake) -> None:
    """Tables bring their columns along, the whole index is new, and the old names go."""
    fill(lake)
    job = jobs.rebuild(lake.workspace.connections.preview("web", {"table_prefix": "x"}))
    staged = Staged(files=[FileCount(raw(0), 3, 2, 1, 0, 5, 6, "r0")], refused_tables=Counter(track_new=1))
    lost = (in_index("b"),)
    kept = Kept(
        files={0: Count(2, 0, 0, 10)},
        routes={("page",): Count(2, 0, 0, 10)},
        new_ids=[NewIds("stage/ids0", 2, 10)],
        reindexed=Reindexed((NewIds("stage/again0", 5, 20),), lost),
    )
    plans = [plan("page", added=(PRICE,), columns=(ID, TIME, PRICE))]
    published = [Published("page", [data(0, "page", rows=2)], 2)]
    made = manifest(lake, job, found(sound=(in_index("a"),), lost=lost), staged, kept, plans, published)
    entry = made.entry
    assert made.tables == [change("x_page", added=(ID, TIME, PRICE), partitions=(TEN,))]
    assert made.dropped_tables == [("web", "page"), ("web", "track_copy")]
    assert [(table.table_key, len(table.added), table.removed) for table in entry.files] == [
        ("page", 1, ["data/90", "data/92"]),
        ("track_copy", 0, ["data/91"]),
    ]
    assert entry.removed_index_files == ["index/a", "index/b"]
    assert [file.messages for file in entry.index_files] == [2]
    assert entry.source_settings
    assert (entry.source_settings["table_prefix"], entry.source_settings["date_partition"]) == ("x", "day_hour")
    assert entry.decisions == Decisions(refused=[RefusedTable("track_new", 1, 1, entry.at)])
    whole, page = map(told, entry.report)
    assert (whole["kind"], whole["rewritten"], whole["carried_over"]) == ("rebuild", 0, 0)
    assert "reindexed" not in whole
    assert page["table_name"] == "x_page"
    assert page["partitions"] == [{"day": "2026-11-15", "hr": "10"}]


def test_all_written_anew_under_the_same_name_names_every_partition_again(lake: Lake) -> None:
    fill(lake)
    kept = Kept({0: Count(1)}, {("page",): Count(1)}, new_ids=[NewIds("stage/ids0", 1, 0)])
    staged = Staged(files=[FileCount(raw(0), 1, 1)])
    plans, published = [plan("page", columns=(ID, TIME))], [Published("page", [data(0, "page", ELEVEN)], 1)]
    made = manifest(lake, jobs.rebuild(lake.connection), found(), staged, kept, plans, published)
    assert made.tables == [change("page", partitions=(ELEVEN,), forgotten=(TEN,))]
    assert made.dropped_tables == [("web", "track_copy")]
    assert told(made.entry.report[1])["partitions"] == [{"day": "2026-11-15", "hr": "11"}]


def test_of_rescued_columns_the_fifty_with_the_most_values_are_told(lake: Lake) -> None:
    rescued = Counter({f"c{n}": n for n in range(1, 61)})
    kept = Kept({0: Count(1)}, {("page",): Count(1)}, new_ids=[NewIds("stage/ids0", 1, 0)])
    staged = Staged(files=[FileCount(raw(0), 1, 1)])
    plans, published = [plan("page", is_new=True, added=(ID,))], [Published("page", [data(0, "page")], 1, rescued)]
    made = manifest(lake, jobs.sync(lake.connection), found(), staged, kept, plans, published)
    assert made.entry.report[1]["rescued"] == {f"c{n}": n for n in range(11, 61)}


def test_a_source_says_that_it_is_almost_full_once_its_new_tables_are_counted(lake: Lake) -> None:
    fill(lake)
    lake.workspace.connections.change("web", {"table_limit": "3"})
    kept = Kept({0: Count(1)}, {("track_new",): Count(1)}, new_ids=[NewIds("stage/ids0", 1, 0)])
    staged = Staged(files=[FileCount(raw(0), 1, 1)])
    plans, published = [plan("track_new", is_new=True)], [Published("track_new", [data(0, "track_new")], 1)]
    made = manifest(lake, jobs.sync(lake.connection), found(), staged, kept, plans, published)
    assert made.entry.report[0]["notices"] == ["the source has 3 of at most 3 tables (table_limit)"]
