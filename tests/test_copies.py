"""Which copy of a message is the row: decided on ids alone, for a sync, a replay and a rebuild."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from counted import counts, told
from eventlake.errors import InternalError
from eventlake.lake import ids
from eventlake.lake.staging import StagedFile
from eventlake.storage.local import LocalStorage
from eventlake.sync.dedupe import combine
from eventlake.tasks.counts import Count
from eventlake.tasks.dedupe import DedupeContext, DedupeResult, dedupe
from eventlake.tasks.dropped import Dropped
from eventlake.tasks.id_files import NewIds
from eventlake.tasks.scope import Mode, Scope

TABLES = ("a", "b", "c")  # the hash of the second does not fit into 63 bits
ROUTES = tuple((table,) for table in TABLES)


class Copy(NamedTuple):
    """A staged copy of a message, or a row of the lake."""

    high: int
    received: int = 0
    table: str | tuple[str, ...] = "a"  # or its whole route
    number: int = 0
    file: int = 0
    digest: int = 0
    low: int = 7

    @property
    def route(self) -> int:
        return ids.route_hash((self.table,) if isinstance(self.table, str) else self.table)

    @property
    def hash(self) -> tuple[int, int]:
        return self.high << 56, self.low


def as_ids(copies: Iterable[Copy], fields: Iterable[str] = ids.FIELDS) -> ids.Ids:
    columns = [
        {**one._asdict(), "high": one.hash[0], "route": one.route} for one in sorted(copies, key=lambda one: one.hash)
    ]
    return ids.Ids({name: np.array([one[name] for one in columns], ids.FIELDS[name]) for name in fields})


def checksum(*copies: Copy) -> int:
    return ids.checksum_of(sum(one.hash[0] for one in copies), sum(one.hash[1] for one in copies))


Row = tuple[int, int, int, int]


def rows_in(storage: LocalStorage, path: str | None) -> list[Row]:
    """What a file of ids holds."""
    if path is None:
        return []
    with ids.opened(storage, path) as file:
        rows = file.read(ids.ALL, ids.INDEX_FIELDS)
    return list(zip(*(rows[name].tolist() for name in ids.INDEX_FIELDS), strict=True))


def row(one: Copy) -> Row:
    return *one.hash, one.received, one.route


class Run:
    """Staged files with their copies, and the index of a lake."""

    def __init__(
        self,
        folder: Path,
        *staged: Sequence[Sequence[Copy]],
        lake: Sequence[Sequence[Copy]] = (),
        mode: Mode = Mode.SYNC,
        failed: Iterable[int] = (),
        scope: Scope | None = None,
        routes: Sequence[tuple[str, ...]] = ROUTES,
    ) -> None:
        self.storage = LocalStorage(str(folder))
        self.staged = [[copy for part in parts for copy in part] for parts in staged]
        paths = [f"staged-{number}" for number in range(len(staged))]
        segments = []
        for path, parts in zip(paths, staged, strict=True):
            with StagedFile(self.storage, path) as file:
                segments += [file.append_ids(as_ids(part)) for part in parts]
        index = [f"index-{number}" for number in range(len(lake))]
        for path, rows in zip(index, lake, strict=True):
            with self.storage.open_output(path) as sink:
                ids.write(sink, as_ids(rows, ids.INDEX_FIELDS))
        self.context = DedupeContext(
            "segment-stage/run",
            self.storage,
            mode,
            tuple(segments),
            tuple(paths),
            tuple(index),
            frozenset(failed),
            scope,
            tuple(routes),
        )

    def decide(self, share: ids.Share = ids.ALL) -> DedupeResult:
        return dedupe(self.context, share)

    def published(self, *results: DedupeResult) -> list[Copy]:
        """The copies that are written, for all that these results say."""
        paths = [result.dropped for result in results if result.dropped]
        dropped = Dropped(self.storage, paths)
        return [
            copy
            for file, copies in enumerate(self.staged)
            for copy in copies
            if dropped.kept(file, copy.number, 1, in_scope=True) is None
        ]


def test_of_copies_the_first_received_is_the_row_and_else_the_same_in_any_order(tmp_path: Path) -> None:
    ranked = [
        Copy(1, received=-5, number=9, file=9, digest=9),
        Copy(1, received=2, number=8, file=8, digest=1),
        Copy(1, received=2, number=7, file=1, digest=2),
        Copy(1, received=2, number=1, file=2, digest=2),
        Copy(1, received=2, number=3, file=2, digest=2),
    ]
    for number, winner in enumerate(ranked[:-1]):
        run = Run(tmp_path / str(number), [[copy] for copy in reversed(ranked[number:])])
        result = run.decide()
        assert run.published(result) == [winner]
        assert sum(count.duplicates for count in told(result.files).values()) == len(ranked) - number - 1
        assert result.new_ids
        assert rows_in(run.storage, result.new_ids.path) == [row(winner)]


def test_messages_are_told_apart_by_both_halves_of_their_hashes(tmp_path: Path) -> None:
    copies = [
        Copy(1, received=1, number=1, low=1),
        Copy(1, received=2, number=2, low=2),
        Copy(1, received=3, number=3, low=1),
        Copy(2, received=1, number=4, low=1),
        Copy(2, received=3, number=5, low=2),
    ]
    in_the_lake = [Copy(2, received=9, low=2, table="c"), Copy(3)]
    run = Run(tmp_path, [copies[:2], copies[2:]], lake=[[Copy(1, low=3)], in_the_lake, [Copy(4)]])
    result = run.decide()
    assert run.published(result) == [copies[0], copies[1], copies[3]]
    assert told(result.files) == {0: Count(3, 2, 0, checksum(copies[0], copies[1], copies[3]))}
    assert (result.carried, result.carried_routes) == (None, {})


def test_what_is_decided_is_counted_by_file_and_by_table_and_put_into_the_index(tmp_path: Path) -> None:
    first = [
        Copy(1, received=10, table="a", number=0, file=3),
        Copy(255, received=11, table="b", number=1, file=3),
        Copy(254, received=12, table="b", number=2, file=5),
        Copy(9, received=13, table="b", number=3, file=5),
    ]
    second = [
        Copy(1, received=9, table="b", number=0, file=6),
        Copy(255, received=12, table="a", number=1, file=6),
        Copy(2, received=13, table="a", number=2, file=6),
    ]
    run = Run(tmp_path, [first], [second], lake=[[Copy(9, received=99, table="c")]])
    result = run.decide()
    new = [first[1], first[2], second[0], second[2]]
    assert run.published(result) == new
    a, b = ids.route_hash(("a",)), ids.route_hash(("b",))
    assert told(result.files) == {
        3: Count(1, 1, 0, checksum(first[1])),
        5: Count(1, 1, 0, checksum(first[2])),
        6: Count(2, 1, 0, checksum(second[0], second[2])),
    }
    assert told(result.routes) == {
        a: Count(1, 2, 0, checksum(second[2])),
        b: Count(3, 1, 0, checksum(first[1], first[2], second[0])),
    }
    assert result.new_ids
    assert result.new_ids[1:] == (4, checksum(*new))
    assert sorted(rows_in(run.storage, result.new_ids.path)) == sorted(map(row, new))
    assert [path.rpartition("-")[0] for path in (result.new_ids.path, result.dropped or "")] == [
        "segment-stage/run/ids",
        "segment-stage/run/dropped",
    ]


def test_every_message_is_decided_about_in_exactly_one_share(tmp_path: Path) -> None:
    copies = [Copy(n, received=n % 7, table=TABLES[n % 3], number=n, file=n % 5) for n in range(256)]
    again = [copy._replace(received=copy.received + 1, number=copy.number + 256) for copy in copies[::2]]
    lake = [copies[:40], copies[100:140]]
    run = Run(tmp_path, [copies[128:], copies[:128]], [again], lake=lake, mode=Mode.REPLAY)
    whole = run.decide()
    parts = [run.decide(share) for share in ids.shares(3)]
    assert run.published(*parts) == run.published(whole)
    routes = [(name,) for name in TABLES]
    apart, at_once = combine(parts, routes), combine([whole], routes)
    assert (apart.files, apart.tables, apart.indexed) == (at_once.files, at_once.tables, at_once.indexed)
    assert at_once.indexed == (176, checksum(*copies[40:100], *copies[140:]))
    assert sum(count.rewritten for count in apart.files.values()) == 80


def test_nothing_of_a_file_that_broke_off_is_loaded_or_counted(tmp_path: Path) -> None:
    copies = [
        Copy(1, received=1, number=0, file=2),
        Copy(1, received=5, number=1, file=1),
        Copy(2, received=1, number=2, file=2),
        Copy(3, received=1, number=3, file=4),
    ]
    run = Run(tmp_path, [copies], failed=[2, 4])
    result = run.decide()
    assert run.published(result) == [copies[1]]
    assert told(result.files) == {1: Count(1, 0, 0, checksum(copies[1])), 2: Count(), 4: Count()}
    assert result.new_ids
    assert result.new_ids.messages == 1


# Replay: what is the row in the lake is written again, what only the lake has is carried over


def test_a_replay_writes_the_rows_of_the_lake_again_and_adds_what_is_missing(tmp_path: Path) -> None:
    rows = [Copy(1, received=1, number=0), Copy(2, received=2, number=1, table="b"), Copy(3, received=3, number=2)]
    earlier = Copy(1, received=0, number=3)  # would win, if the lake did not have the message
    elsewhere = Copy(3, received=3, number=4, table="c")
    new = [Copy(4, received=4, number=5), Copy(4, received=5, number=6)]
    run = Run(tmp_path, [[earlier, *rows, elsewhere, *new]], lake=[[rows[1]], [rows[2], rows[0]]], mode=Mode.REPLAY)
    result = run.decide()
    assert run.published(result) == [*rows, new[0]]
    assert told(result.files) == {0: Count(1, 6, 3, checksum(new[0]))}
    assert result.carried_routes == {}


def test_of_copies_of_a_row_one_is_written_again_whatever_lies_between_them(tmp_path: Path) -> None:
    copies = [Copy(1, received=1, number=n, digest=n, table=table) for n, table in enumerate("abab")]
    run = Run(tmp_path, [copies], lake=[[Copy(1, received=1, table="b")]], mode=Mode.REPLAY)
    result = run.decide()
    assert run.published(result) == [copies[1]]
    assert told(result.files) == {0: Count(0, 4, 1, 0)}


def test_rows_of_the_lake_without_a_copy_are_carried_over(tmp_path: Path) -> None:
    lake = [Copy(n, received=n, table=TABLES[n % 2]) for n in range(6)]
    other_time, other_table = Copy(1, received=0, table="b", number=1), Copy(2, received=2, table="b", number=2)
    unreadable = Copy(3, received=3, table="b", number=3, file=9)
    readable, newer = Copy(4, received=4, number=4), Copy(4, received=8, number=5)
    staged = [other_time, other_table, unreadable, newer, readable]
    run = Run(tmp_path, [staged], lake=[lake[:3], lake[3:]], mode=Mode.REPLAY, failed=[9])
    result = run.decide()
    assert run.published(result) == [other_table, readable]
    assert rows_in(run.storage, result.carried) == [row(lake[n]) for n in (0, 1, 3, 5)]
    assert result.carried_routes == {ids.route_hash(("a",)): 1, ids.route_hash(("b",)): 3}
    assert rows_in(run.storage, result.removed) == [row(lake[2])], "by today's rules it goes to another table"
    assert result.carried
    assert result.carried.startswith("segment-stage/run/carried-")


def test_a_replay_of_nothing_carries_everything_over(tmp_path: Path) -> None:
    rows = [Copy(1), Copy(2)]
    run = Run(tmp_path, lake=[rows], mode=Mode.REPLAY)
    result = run.decide()
    assert rows_in(run.storage, result.carried) == list(map(row, rows))
    assert (told(result.files), told(result.routes), result.dropped, result.new_ids) == ({}, {}, None, None)


@pytest.mark.parametrize("tables", [None, frozenset({"a"}), frozenset({"a", "b"}), frozenset({"a", "b", "c"})])
def test_only_rows_of_the_period_and_the_tables_asked_for_are_carried_over(
    tmp_path: Path, tables: frozenset[str] | None
) -> None:
    rows = [Copy(n, received=received, table=TABLES[n % 3]) for n, received in enumerate([9, 9, 9, 10, 10, 10, 19, 19])]
    late = [Copy(n, received=20, table=TABLES[n % 3]) for n in range(20, 23)]
    run = Run(tmp_path, lake=[[*rows, *late]], mode=Mode.REPLAY, scope=Scope(10, 20, tables))
    wanted = [row(one) for one in rows[3:] if tables is None or one.table in tables]
    assert rows_in(run.storage, run.decide().carried) == wanted


def test_a_message_that_is_outside_of_the_period_is_not_added_once_more(tmp_path: Path) -> None:
    staged = Copy(1, received=15)
    run = Run(tmp_path, [[staged]], lake=[[Copy(1, received=5)]], mode=Mode.REPLAY, scope=Scope(10, 20))
    result = run.decide()
    assert run.published(result) == []
    assert (result.new_ids, result.carried) == (None, None)


@pytest.mark.parametrize(("copies", "again", "carried"), [(0, 0, 3), (1, 0, 3), (2, 0, 3), (3, 3, 0), (4, 3, 0)])
def test_as_many_rows_as_the_lake_has_of_a_message_stay_there(
    tmp_path: Path, copies: int, again: int, carried: int
) -> None:
    """It has several if the message came again after the look-back."""
    same = [Copy(1, received=1, number=n, digest=n) for n in range(4)]
    at_another_time, other = Copy(1, received=2, number=8), Copy(2, received=1, number=9)
    lake = [[same[0], at_another_time], [same[0], other], [same[0]]]
    run = Run(tmp_path, [[*same[:copies], at_another_time, other]], lake=lake, mode=Mode.REPLAY)
    result = run.decide()
    assert run.published(result) == [*same[:again], at_another_time, other]
    assert result.carried_routes == ({ids.route_hash(("a",)): carried} if carried else {})
    assert rows_in(run.storage, result.carried) == [row(same[0])] * carried
    assert result.new_ids is None


# Rebuild: as if the lake were empty


def test_a_rebuild_decides_anew_and_names_what_would_be_lost(tmp_path: Path) -> None:
    staged = [
        Copy(1, received=5, number=0),
        Copy(1, received=4, number=1),
        Copy(2, received=5, number=2, table="b"),
        Copy(3, received=5, number=3, file=9),
    ]
    lake = [[Copy(1, received=5), Copy(3, received=5)], [Copy(1, received=6), Copy(2, low=8, table="c")]]
    run = Run(tmp_path, [staged], lake=lake, mode=Mode.REBUILD, failed=[9])
    result = run.decide()
    new = [staged[1], staged[2]]
    assert run.published(result) == new
    assert told(result.files) == {0: Count(2, 1, 0, checksum(*new)), 9: Count()}
    assert result.carried_routes == {ids.route_hash(("a",)): 1, ids.route_hash(("c",)): 1}


# What all tasks decided


def test_the_results_of_all_tasks_are_one(tmp_path: Path) -> None:
    half = 1 << 64
    first, second = ids.route_hash(("track_a",)), ids.route_hash(("all", "page"))
    results = [
        DedupeResult(
            counts({0: Count(1, 2, 1, half), 1: Count(5)}),
            counts({first: Count(1, 2, 1, half)}),
            "dropped-0",
            NewIds("ids-0", 2, half + 2),
            "carried-0",
            {first: 3},
        ),
        DedupeResult(counts({}), counts({}), None, None, None),
        DedupeResult(
            counts({0: Count(4, 8, 2, half + half - 1)}),
            counts({first: Count(4, 8, 2, 3), second: Count(1)}),
            "dropped-1",
            NewIds("ids-1", 3, half * (half - 1)),
            "carried-1",
            {second: 1, first: 4},
        ),
    ]
    kept = combine(results, [("track_a",), ("all", "page")])
    assert kept.files == {0: Count(5, 10, 3, 2 * half + half - 1), 1: Count(5)}
    assert kept.routes == {("track_a",): Count(5, 10, 3, half + 3), ("all", "page"): Count(1)}
    assert kept.messages == Count(6, 10, 3, half + 3)
    assert kept.tables == {"track_a": Count(5, 10, 3, half + 3), "all": Count(1), "page": Count(1)}
    assert kept.dropped == ["dropped-0", "dropped-1"]
    assert kept.new_ids == [NewIds("ids-0", 2, half + 2), NewIds("ids-1", 3, half * (half - 1))]
    assert kept.carried == ["carried-0", "carried-1"]
    assert kept.carried_tables == {"track_a": 7, "all": 1, "page": 1}
    assert kept.indexed == (5, 2)


def test_a_table_on_several_routes_has_the_rows_of_all_of_them() -> None:
    routes = [("all", "page"), ("all",), ("track_a",)]
    hashes = [ids.route_hash(route) for route in routes]
    counted = counts({hashes[0]: Count(1, 2, 0, 3), hashes[1]: Count(4, 5, 0, 6), hashes[2]: Count(7)})
    kept = combine([DedupeResult(counts({}), counted, None, None, None, {hashes[0]: 1, hashes[1]: 2})], routes)
    assert kept.tables == {"all": Count(5, 7, 0, 9), "page": Count(1, 2, 0, 3), "track_a": Count(7)}
    assert kept.carried_tables == {"all": 3, "page": 1}


@pytest.mark.parametrize(
    "result",
    [
        DedupeResult(counts({}), counts({5: Count(1)}), None, None, None),
        DedupeResult(counts({}), counts({}), None, None, None, {5: 1}),
    ],
)
def test_messages_on_a_route_that_nobody_knows_are_a_fault_of_ours(result: DedupeResult) -> None:
    with pytest.raises(InternalError) as caught:
        combine([result], [("track_a",)])
    assert caught.value.problem == "messages were counted on a route that neither the lake nor this run has: 5"
    assert caught.value.fix == "run it again; if it happens twice, report it with this message"


# Messages with several rows

BOTH = [("all", "a"), ("all", "b"), ("all",)]


def as_rows(run: Run, *results: DedupeResult, in_scope: bool) -> list[int]:
    """The messages of the first staged file that have a row in a table."""
    dropped = Dropped(run.storage, [result.dropped for result in results if result.dropped])
    kept = dropped.kept(0, 0, len(run.staged[0]), in_scope=in_scope)
    return list(range(len(run.staged[0]))) if kept is None else np.flatnonzero(kept).tolist()


def test_a_replay_of_one_table_writes_only_its_rows_again_but_all_rows_of_new_messages(tmp_path: Path) -> None:
    run = Run(
        tmp_path,
        [
            [
                Copy(1, number=0, table=("all", "a")),
                Copy(2, number=1, table=("all", "b")),
                Copy(3, number=2, table=("all", "a")),
            ]
        ],
        lake=[[Copy(1, table=("all", "a")), Copy(2, table=("all", "b"))]],
        mode=Mode.REPLAY,
        scope=Scope(0, 10, frozenset({"a"})),
        routes=BOTH,
    )
    result = run.decide()
    assert told(result.files) == {0: Count(1, 2, 1, checksum(Copy(3)))}
    kept = combine([result], BOTH)
    kept.scope = run.context.scope
    assert as_rows(run, result, in_scope=True) == [0, 2]
    assert as_rows(run, result, in_scope=False) == [2]
    assert {name: (count.loaded, count.rewritten) for name, count in kept.tables.items()} == {
        "all": (1, 0),
        "a": (1, 1),
        "b": (0, 0),
    }
    assert kept.carried_tables == {}


def test_rows_that_only_the_lake_has_are_carried_over_in_the_tables_of_the_scope(tmp_path: Path) -> None:
    lake = [[Copy(1, table=("all", "a")), Copy(2, table=("all", "b")), Copy(3, table=("all",))]]
    run = Run(tmp_path, lake=lake, mode=Mode.REPLAY, scope=Scope(0, 10, frozenset({"a"})), routes=BOTH)
    kept = combine([run.decide()], BOTH)
    kept.scope = run.context.scope
    assert (kept.carried_routes, kept.carried_tables) == ({("all", "a"): 1}, {"a": 1})
    run = Run(tmp_path / "whole", lake=lake, mode=Mode.REPLAY, scope=Scope(0, 10), routes=BOTH)
    assert combine([run.decide()], BOTH).carried_tables == {"all": 3, "a": 1, "b": 1}
