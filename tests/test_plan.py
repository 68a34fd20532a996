"""How the work of a run is shared out."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventlake.lake.staging import IdSegment, Segment
from eventlake.schema.evolve import Sighting, TableSchema
from eventlake.schema.types import ColumnType, Seen
from eventlake.sync import plan
from eventlake.sync.plan import Staged, TablePlan, combine, packed, plan_table, publish_tasks, stage_tasks
from eventlake.sync.publish import TableShare
from eventlake.sync.staged import FileCount, RawFile, StagedTable, StageResult

SIZES = st.integers(0, 100) | st.integers(0, 1 << 30)
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
    large = stage_tasks(raw_files([plan.BYTES_PER_STAGE_TASK] * 100), 2)
    assert len(large) == 100
    many = stage_tasks(raw_files([10] * (20 * plan.FILES_PER_STAGE_TASK)), 2)
    assert {len(task) for task in many} == {plan.FILES_PER_STAGE_TASK}


def test_no_core_waits_for_the_last_tasks() -> None:
    files = raw_files([plan.BYTES_PER_STAGE_TASK // 2] * 50)
    assert len(stage_tasks(files, 1)) == 25
    assert len(stage_tasks(files, 2)) == 26
    assert len(stage_tasks(files, 4)) == 28


# Publishing


def plan_of(name: str) -> TablePlan:
    return plan_table(name, None, {"a": Sighting(Seen.INTEGER, 1, "/a")}, column_limit=10)


def staged_tables(tables: dict[str, list[int]]) -> Staged:
    """Tables with segments of so many rows, spread over three staged files."""
    staged = Staged()
    for name, segments in tables.items():
        table = staged.tables[name] = StagedTable()
        for number, rows in enumerate(segments):
            table.segments.append(Segment(f"staged-{number % 3}", number * 100, 100, 200, table.rows, rows))
            table.rows += rows
    return staged


TABLES = st.dictionaries(st.sampled_from([f"track_{n}" for n in range(40)]), st.lists(ROWS, max_size=12), max_size=12)


@given(TABLES, st.integers(1, 16), st.sets(st.sampled_from(["track_1", "track_2", "identify"])))
def test_every_segment_is_published_by_exactly_one_task(
    tables: dict[str, list[int]], parallelism: int, carried: set[str]
) -> None:
    staged = staged_tables(tables)
    carry_from = {name: [f"{name}-old.parquet", f"{name}-older.parquet"] for name in carried}
    plans = [plan_of(name) for name in sorted(tables.keys() | carried)]
    tasks = publish_tasks(plans, staged, carry_from, parallelism)
    published = [share for task in tasks for share in task]
    assert all(tasks)
    assert Counter((share.segment_type, segment) for share in published for segment in share.segments) == Counter(
        (name, segment) for name, table in staged.tables.items() for segment in table.segments
    )
    assert Counter((share.segment_type, file) for share in published for file in share.carry_from) == Counter(
        (name, file) for name, files in carry_from.items() for file in files
    )
    columns = {each.segment_type: each.columns for each in plans}
    assert all(share.columns == columns[share.segment_type] for share in published)
    assert {share.segment_type for share in published} == set(columns)


@given(TABLES, st.integers(1, 16))
def test_only_a_large_table_is_split(tables: dict[str, list[int]], parallelism: int) -> None:
    staged = staged_tables(tables)
    shares = [
        share for task in publish_tasks([plan_of(name) for name in tables], staged, {}, parallelism) for share in task
    ]
    least, most = plan.ROWS_PER_SHARE
    for name, table in staged.tables.items():
        sizes = [sum(segment.rows for segment in share.segments) for share in shares if share.segment_type == name]
        assert len(sizes) == 1 or table.rows > least
        assert sum(size < least for size in sizes) <= 1
        largest = max((segment.rows for segment in table.segments), default=0)
        assert all(size < most + largest for size in sizes if size)


def test_many_small_tables_are_packed_together() -> None:
    tables = {f"track_{number}": [10] for number in range(1000)}
    tasks = publish_tasks([plan_of(name) for name in tables], staged_tables(tables), {}, 2)
    assert [len(task) for task in tasks] == [500, 500]


def test_the_segments_of_a_share_are_read_file_by_file() -> None:
    tables = {"track_a": [10] * 9}
    ((share,),) = publish_tasks([plan_of("track_a")], staged_tables(tables), {}, 4)
    assert isinstance(share, TableShare)
    assert list(share.segments) == sorted(share.segments)


# What the tasks found


def result(number: int, table: str, rows: int, seen: Seen) -> StageResult:
    staged = StagedTable(
        rows=rows,
        segments=[Segment(f"staged-{number}", 0, 1, 1, 0, rows)],
        evidence={"a": Sighting(seen, rows, f"/{number}")},
    )
    return StageResult(
        files=[FileCount(RawFile(number, f"{number}.gz", 1, "e"), lines=rows, error="torn" if number == 3 else None)],
        tables={table: staged},
        id_segments=[IdSegment(f"staged-{number}", 1, rows)],
        quarantine=f"quarantine-{number}" if number % 2 else None,
        refused_tables=["track_z"],
    )


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
    assert whole.paths == mixed.paths
    assert whole.rows == mixed.rows == sum(rows for _, rows, _ in parts)
    assert whole.failed_files == mixed.failed_files == frozenset({3} & set(numbers))
    assert sorted(whole.quarantine) == sorted(mixed.quarantine)
    for name, table in whole.tables.items():
        assert table.evidence == mixed.tables[name].evidence
        assert sorted(table.segments) == sorted(mixed.tables[name].segments)
        assert table.rows == mixed.tables[name].rows


# Tables


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 2000])
def test_every_table_has_a_message_id_and_a_time_of_receipt(limit: int) -> None:
    made = plan_table("page", None, {"a": Sighting(Seen.INTEGER, 5, "/a")}, column_limit=limit)
    assert [column.name for column in made.columns][:2] == ["message_id", "received_at"]
    assert [column.type for column in made.columns][:2] == [ColumnType.STRING, ColumnType.TIMESTAMP]
    assert made.is_new
    assert made.added == made.columns
    assert made.refused == (() if limit > 2 else ("a",))


def test_a_table_that_exists_only_grows() -> None:
    before = TableSchema(plan_of("page").columns)
    made = plan_table(
        "page", before, {"a": Sighting(Seen.TEXT, 1, "/a"), "b": Sighting(Seen.TEXT, 1, "/b")}, column_limit=9
    )
    assert not made.is_new
    assert made.columns[: len(before.columns)] == before.columns
    assert [column.name for column in made.added] == ["b"]


@given(st.integers(0, 10**10), st.integers(1, 500))
def test_the_search_for_duplicates_has_one_to_as_many_shares_as_buckets(messages: int, parallelism: int) -> None:
    assert 1 <= plan.dedupe_shares(messages, parallelism) <= 256
    assert plan.dedupe_shares(messages, parallelism) <= plan.dedupe_shares(messages * 2, parallelism)
