"""How the work of a run is shared out."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventlake.lake import segments
from eventlake.lake.segments import NONE, Segment, records_of, segments_of
from eventlake.lake.staging import IdSegment
from eventlake.schema import declared
from eventlake.schema.declared import TypeRules
from eventlake.schema.evolve import Sighting, TableSchema
from eventlake.schema.tallies import Tally
from eventlake.schema.types import ColumnType, Seen
from eventlake.sync.plan import TablePlan, plan_table
from eventlake.sync.shares import ShareSizes, dedupe_shares, packed, publish_tasks, stage_tasks
from eventlake.sync.stage import Room, Staged, StagedTable, combine, tables_within
from eventlake.tasks.publish import TableShare
from eventlake.tasks.staged import HOURS_COUNTED, FileCount, News, RawFile, StageResult
from unpacked_segments import segments_in

SIZES = st.integers(0, 100) | st.integers(0, 1 << 30)
LIMITS = ShareSizes()
ROWS = st.integers(1, 4096) | st.integers(1, 3_000_000)


def raw_files(sizes: list[int]) -> list[RawFile]:
    return [RawFile(number, f"segment-logs/s/1/{number}.gz", size, "e") for number, size in enumerate(sizes)]


# Packing


@given(st.lists(SIZES, max_size=60), st.integers(1, 20))
def test_packing_loses_and_doubles_nothing(weights: list[int], groups: int) -> None:
    made = packed(list(enumerate(weights)), groups)
    assert sorted(item for group in made for item in group) == list(range(len(weights)))
    assert len(made) <= groups
    assert all(made)


@given(st.lists(SIZES, min_size=1, max_size=60), st.integers(1, 20))
def test_groups_differ_by_no_more_than_the_heaviest_item(weights: list[int], groups: int) -> None:
    loads = [sum(weights[item] for item in group) for group in packed(list(enumerate(weights)), groups)]
    lightest = loads[-1] if len(loads) == groups else 0
    assert max(loads) - lightest <= max(weights)
    assert loads == sorted(loads, reverse=True)


@given(st.lists(SIZES, max_size=30), st.integers(1, 9))
def test_packing_is_the_same_every_time(weights: list[int], groups: int) -> None:
    weighted = list(enumerate(weights))
    assert packed(weighted, groups) == packed(iter(weighted), groups)


def test_equal_items_are_spread_evenly() -> None:
    assert sorted(map(len, packed([(item, 5) for item in range(12)], 4))) == [3, 3, 3, 3]


def test_the_heaviest_items_are_packed_first_and_the_heaviest_groups_begin() -> None:
    assert packed([("a", 1), ("c", 3), ("z", 5), ("b", 3)], 2) == [["z", "a"], ["c", "b"]]
    assert packed([("b", 3), ("c", 2), ("a", 4)], 2) == [["b", "c"], ["a"]]


def test_no_items_are_no_groups() -> None:
    assert packed([], 4) == []


# Staging


@given(st.lists(SIZES, max_size=60), st.integers(1, 16))
@example([0] * 3000, 2)
@example([64 << 20] * 10, 2)
def test_every_raw_file_is_staged_by_exactly_one_task(sizes: list[int], parallelism: int) -> None:
    files = raw_files(sizes)
    tasks = stage_tasks(files, parallelism)
    assert sorted(file for task in tasks for file in task) == files
    assert all(tasks)
    assert len(tasks) >= min(parallelism, len(files))


def test_large_and_many_files_make_more_tasks_than_there_are_cores() -> None:
    large = stage_tasks(raw_files([LIMITS.bytes_per_stage_task] * 100), 2)
    assert len(large) == 100
    many = stage_tasks(raw_files([10] * (20 * LIMITS.files_per_stage_task)), 2)
    assert {len(task) for task in many} == {LIMITS.files_per_stage_task}


def test_each_core_has_some_tasks_if_there_is_enough_to_do() -> None:
    """Four, so that one that turns out heavier does not keep the others waiting; each with so many bytes at least."""
    least = LIMITS.fewest_bytes_per_stage_task
    for files, tasks in ((1, 1), (2, 2), (6, 6), (8, 8), (40, 8)):
        assert len(stage_tasks(raw_files([least] * files), 2)) == tasks
    assert len(stage_tasks(raw_files([least] * 100), 16)) == 64


def test_no_core_waits_for_the_last_tasks() -> None:
    files = raw_files([LIMITS.bytes_per_stage_task // 2] * 50)
    assert len(stage_tasks(files, 1)) == 25
    assert len(stage_tasks(files, 2)) == 26
    assert len(stage_tasks(files, 4)) == 28


def test_to_open_a_file_costs_as_much_as_to_read_some_bytes() -> None:
    files = raw_files([35, 0, 0, 0, 0, 0])
    assert stage_tasks(files, 2, ShareSizes(bytes_to_open_a_file=10)) == [files[1:], files[:1]]
    assert stage_tasks(files, 2, ShareSizes(bytes_to_open_a_file=1)) == [files[:1], files[1:]]


# Publishing


def rows_in(share: bytes) -> int:
    return sum(segment.rows for segment in segments_of(share))


def plan_of(name: str) -> TablePlan:
    return plan_table(name, None, {"a": Sighting(Seen.INTEGER, 1, "/a")}, column_limit=10)


def staged_tables(tables: dict[str, list[int]]) -> Staged:
    """Tables with segments of so many rows, spread over three staged files."""
    staged = Staged()
    for name, sizes in tables.items():
        table = staged.tables[name] = StagedTable()
        for number, rows in enumerate(sizes):
            table.segments += records_of([Segment(number % 3, rows, table.rows, 100, 200, number * 100)])
            table.rows += rows
    return staged


def shared_out(
    plans: list[TablePlan],
    staged: Staged,
    parallelism: int,
    *,
    carry_from: dict[str, list[str]] | None = None,
    sizes: ShareSizes = LIMITS,
) -> list[list[TableShare]]:
    old = carry_from or {}
    tables = [
        (
            TableShare(plan.table_key, plan.columns, NONE, tuple(old.get(plan.table_key, ()))),
            staged.tables.get(plan.table_key, StagedTable()).segments,
        )
        for plan in plans
    ]
    return publish_tasks(tables, parallelism, sizes)


TABLES = st.dictionaries(st.sampled_from([f"track_{n}" for n in range(40)]), st.lists(ROWS, max_size=12), max_size=12)


@given(TABLES, st.integers(1, 16), st.sets(st.sampled_from(["track_1", "track_2", "identify"])))
def test_every_segment_is_published_by_exactly_one_task(
    tables: dict[str, list[int]], parallelism: int, carried: set[str]
) -> None:
    staged = staged_tables(tables)
    carry_from = {name: [f"{name}-old.parquet", f"{name}-older.parquet"] for name in carried}
    plans = [plan_of(name) for name in sorted(tables.keys() | carried)]
    tasks = shared_out(plans, staged, parallelism, carry_from=carry_from)
    published = [share for task in tasks for share in task]
    assert all(tasks)
    assert Counter((share.table_key, segment) for share in published for segment in segments_of(share.segments)) == (
        Counter((name, segment) for name, table in staged.tables.items() for segment in segments_in(table.segments))
    )
    assert Counter((share.table_key, file) for share in published for file in share.carry_from) == Counter(
        (name, file) for name, files in carry_from.items() for file in files
    )
    columns = {each.table_key: each.columns for each in plans}
    assert all(share.columns == columns[share.table_key] for share in published)
    assert {share.table_key for share in published} == set(columns)


@given(TABLES, st.integers(1, 16))
def test_only_a_large_table_is_split(tables: dict[str, list[int]], parallelism: int) -> None:
    staged = staged_tables(tables)
    shares = [share for task in shared_out([plan_of(name) for name in tables], staged, parallelism) for share in task]
    least, most = LIMITS.fewest_rows_per_share, LIMITS.most_rows_per_share
    for name, table in staged.tables.items():
        sizes = [rows_in(share.segments) for share in shares if share.table_key == name]
        assert len(sizes) == 1 or table.rows > least
        assert sum(size < least for size in sizes) <= 1
        largest = max((segment.rows for segment in segments_in(table.segments)), default=0)
        assert all(size < most + largest for size in sizes if size)


def test_many_small_tables_are_packed_together() -> None:
    tables = {f"track_{number}": [10] for number in range(1000)}
    tasks = shared_out([plan_of(name) for name in tables], staged_tables(tables), 2)
    assert [len(task) for task in tasks] == [500, 500]
    sizes = ShareSizes(fewest_rows_per_share=100)
    tasks = shared_out([plan_of(name) for name in tables], staged_tables(tables), 2, sizes=sizes)
    assert sorted(len(task) for task in tasks) == [166, 166, 167, 167, 167, 167]


@pytest.mark.parametrize(
    ("rows", "shares", "tasks"),
    [(5, [5], 1), (30, [10, 10, 10], 3), (65, [10] * 6 + [5], 6), (120, [20] * 6, 6), (600, [40] * 15, 15)],
)
def test_a_table_is_split_so_that_every_core_has_a_few_shares_of_it_which_fit_into_memory(
    rows: int, shares: list[int], tasks: int
) -> None:
    sizes = ShareSizes(fewest_rows_per_share=10, most_rows_per_share=40)
    staged = staged_tables({"track_a": [1] * rows})
    made = shared_out([plan_of("track_a")], staged, 2, sizes=sizes)
    assert sorted((rows_in(share.segments) for task in made for share in task), reverse=True) == shares
    assert len(made) == tasks


def test_a_share_weighs_more_than_its_rows() -> None:
    tables = {"track_a": [1500], "track_b": [1], "track_c": [1], "track_d": [1], "track_e": [1]}
    tasks = shared_out([plan_of(name) for name in tables], staged_tables(tables), 2)
    assert [[share.table_key for share in task] for task in tasks] == [
        ["track_a", "track_e"],
        ["track_b", "track_c", "track_d"],
    ]


def test_the_first_share_of_a_table_tells_which_files_to_carry_from_and_all_the_rest() -> None:
    sizes = ShareSizes(fewest_rows_per_share=10, most_rows_per_share=10)
    staged = staged_tables({"track_a": [10, 10], "track_b": [10]})
    plans = [plan_of("track_a"), plan_of("track_b")]
    whole = TableShare("track_a", plans[0].columns, NONE, ("old.parquet",), (("track_a",),), 7, is_in_scope=False)
    other = TableShare("track_b", plans[1].columns, NONE)
    tables = [(whole, staged.tables["track_a"].segments), (other, staged.tables["track_b"].segments)]
    tasks = publish_tasks(tables, 1, sizes)
    shares = sorted((share for task in tasks for share in task), key=lambda share: (share[0], not share.carry_from))
    first, second = segments_in(staged.tables["track_a"].segments)
    assert [segments_of(share.segments) for share in shares] == [
        [first],
        [second],
        segments_in(staged.tables["track_b"].segments),
    ]
    assert [share._replace(segments=NONE) for share in shares] == [whole, whole._replace(carry_from=()), other]


def test_the_segments_of_a_share_are_read_file_by_file() -> None:
    tables = {"track_a": [10] * 9}
    ((share,),) = shared_out([plan_of("track_a")], staged_tables(tables), 4)
    assert isinstance(share, TableShare)
    places = [(segment.file, segment.offset) for segment in segments_of(share.segments)]
    assert places == sorted((number % 3, number * 100) for number in range(9))


# What the tasks found


def result(number: int, table: str, rows: int, seen: Seen) -> StageResult:
    return StageResult(
        files=[FileCount(RawFile(number, f"{number}.gz", 1, "e"), lines=rows, error="torn" if number == 3 else None)],
        staged=f"staged-{number}",
        tables=segments.packed({table: [Segment(0, rows, 0, 1, 1, number)]}),
        news={table: News({"a": Sighting(seen, rows, f"/{number}")})},
        id_segments=[IdSegment(f"staged-{number}", 1, rows)],
        quarantine=f"quarantine-{number}" if number % 2 else None,
        refused_tables=Counter(track_z=1),
    )


def places(staged: Staged, name: str) -> list[tuple[str, int, int]]:
    """Where the rows of a table are: staged files, places in them, and how many rows."""
    found = segments_in(staged.tables[name].segments)
    return sorted((staged.paths[segment.file], segment.offset, segment.rows) for segment in found)


@given(
    st.lists(
        st.tuples(st.sampled_from(["page", "track_a"]), st.integers(1, 9), st.sampled_from([Seen.INTEGER, Seen.TEXT])),
        max_size=6,
    ),
    st.randoms(use_true_random=False),
)
def test_the_order_in_which_tasks_finish_does_not_matter(parts: list[tuple[str, int, Seen]], dice: Any) -> None:
    def combined(order: list[int]) -> Staged:
        return combine([result(number, *parts[number]) for number in order])

    numbers = list(range(len(parts)))
    whole, mixed = combined(numbers), combined(dice.sample(numbers, len(numbers)))
    assert whole.files == mixed.files
    assert [count.file.number for count in whole.files] == numbers
    assert sorted(whole.paths) == sorted(mixed.paths)
    assert whole.messages == mixed.messages == sum(rows for _, rows, _ in parts)
    assert whole.failed_files == mixed.failed_files == frozenset({3} & set(numbers))
    assert sorted(whole.quarantine) == sorted(mixed.quarantine)
    for name, table in whole.tables.items():
        assert table.evidence == mixed.tables[name].evidence
        assert places(whole, name) == places(mixed, name)
        assert table.rows == mixed.tables[name].rows


def test_all_that_tasks_found_is_found_by_the_run() -> None:
    parts = [result(2, "page", 3, Seen.INTEGER), result(1, "page", 4, Seen.TEXT), result(0, "track_a", 5, Seen.TEXT)]
    parts[0].news["page"].hours = {1, 2}
    parts[1].news["page"].hours = {2, 3}
    parts[0].refused_tables["track_y"] = 2
    parts[0].one_by_one, parts[2].one_by_one = "A", "B"
    whole = combine(parts)
    assert [count.file.number for count in whole.files] == [0, 1, 2]
    page = whole.tables["page"]
    assert (page.rows, page.hours) == (7, {1, 2, 3})
    assert page.evidence == {"a": Sighting(Seen.INTEGER | Seen.TEXT, 7, "/1")}
    assert whole.tables["track_a"].evidence == parts[2].news["track_a"].evidence
    assert places(whole, "page") == [("staged-1", 1, 4), ("staged-2", 2, 3)]
    assert places(whole, "track_a") == [("staged-0", 0, 5)]
    assert whole.paths == ["staged-2", "staged-1", "staged-0"]
    assert sorted(segment.messages for segment in whole.id_segments) == [3, 4, 5]
    assert whole.quarantine == ["quarantine-1"]
    assert whole.refused_tables == {"track_z": 3, "track_y": 2}
    assert whole.one_by_one == {"A", "B"}


# Tables


def new_tables(**tables: tuple[int, int]) -> Staged:
    """Tables that were seen in so many hours, with so many rows."""
    return Staged(tables={name: StagedTable(rows, hours=set(range(hours))) for name, (hours, rows) in tables.items()})


@pytest.mark.parametrize(
    ("room", "before", "allowed"),
    [
        (Room(9, 9), (), None),
        (Room(5, 4), (), None),
        (Room(5, 3), (), "beatk"),
        (Room(4, 4), (), "abetk"),
        (Room(5, 3), ("c",), "abcek"),
        (Room(5, 1), (), "bek"),
        (Room(2, 4), (), "bek"),
        (Room(2, 1), ("a",), "aek"),
        (Room(5, 0), (), "ek"),
        (Room(0, 0), (), "k"),
    ],
)
def test_of_new_tables_those_come_first_that_come_again_or_were_seen_for_long(
    room: Room, before: tuple[str, ...], allowed: str | None
) -> None:
    day = HOURS_COUNTED
    staged = new_tables(k=(1, 1), e=(day + 9, 1), b=(day - 1, 5), a=(2, 7), t=(2, 7), c=(2, 6))
    assert tables_within(room, ["k", "gone"], staged, before) == (allowed and frozenset({*allowed, "gone"}))


def test_hours_beyond_a_day_do_not_count() -> None:
    staged = new_tables(a=(HOURS_COUNTED, 1), b=(HOURS_COUNTED + 9, 2), c=(HOURS_COUNTED + 99, 1))
    assert tables_within(Room(2, 0), [], staged) == frozenset({"a", "b"})


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 2000])
def test_every_table_has_a_message_id_and_a_time_of_receipt(limit: int) -> None:
    evidence = {"a": Sighting(Seen.INTEGER, 5, "/a"), "message_id": Sighting(Seen.TEXT, 5, "/messageId")}
    evidence["type"] = Sighting(Seen.TEXT, 5, "/type")
    made = plan_table("page", None, evidence, column_limit=limit)
    columns = {column.name: (column.type, column.pointer) for column in made.columns}
    assert columns["message_id"] == (ColumnType.STRING, "/messageId")
    assert columns["received_at"] == (ColumnType.TIMESTAMP, "/receivedAt")
    assert made.is_new
    assert made.added == made.columns
    assert made.refused == {3: ("a",), 2000: ()}.get(limit, ("a", "type"))


def test_a_table_of_events_that_tell_nothing_has_them_too() -> None:
    made = plan_table("page", None, {}, column_limit=9)
    assert [column.pointer for column in made.columns] == ["/messageId", "/receivedAt"]


def test_a_table_that_exists_only_grows() -> None:
    before = TableSchema(plan_of("page").columns)
    made = plan_table(
        "page", before, {"a": Sighting(Seen.TEXT, 1, "/a"), "b": Sighting(Seen.TEXT, 1, "/b")}, column_limit=9
    )
    assert not made.is_new
    assert made.columns[: len(before.columns)] == before.columns
    assert [column.name for column in made.added] == ["b"]


def test_declared_types_are_those_of_their_table_and_a_type_that_is_not_what_it_seems_has_a_reason() -> None:
    rules = TypeRules(declared.parse("track_x:a=decimal"))
    evidence = {"a": Sighting.of((Tally(Seen.INTEGER, 9, "1"), Tally(Seen.TEXT, 1, "n/a")), "/a")}
    types = {}
    for table in ("track_x", "track_y"):
        made = plan_table(table, None, evidence, column_limit=9, rules=rules)
        types[table] = made.columns[-1].type
        assert made.table_key == table
        assert list(made.reasons) == ["a"]
    assert types == {"track_x": ColumnType.DECIMAL, "track_y": ColumnType.STRING}


@given(st.integers(0, 10**10), st.integers(1, 500))
def test_the_search_for_duplicates_has_one_to_as_many_shares_as_buckets(messages: int, parallelism: int) -> None:
    assert 1 <= dedupe_shares(messages, parallelism) <= 256
    assert dedupe_shares(messages, parallelism) <= dedupe_shares(messages * 2, parallelism)


def test_few_messages_are_one_share_and_many_are_as_many_as_memory_asks_for() -> None:
    def shares(messages: int) -> int:
        return dedupe_shares(messages, 4, ShareSizes(ids_per_share=100, ids_for_one_share=10))

    assert [shares(messages) for messages in (0, 10, 11, 499, 500, 10_000, 10**9)] == [1, 1, 4, 4, 5, 100, 256]
