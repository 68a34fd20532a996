"""Cells: the same whether there is one for each row, or values with the numbers of their rows."""

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventlake.schema.cells import Cells, joined, no_cells, one_of
from eventlake.schema.types import ColumnType

VALUES: dict[ColumnType, st.SearchStrategy[Any]] = {
    ColumnType.STRING: st.text(max_size=5),
    ColumnType.BIGINT: st.integers(-(2**63), 2**63 - 1),
    ColumnType.DOUBLE: st.floats(allow_nan=False),
    ColumnType.BOOLEAN: st.booleans(),
    ColumnType.DECIMAL: st.decimals(-(10**31), 10**31, places=6),
    ColumnType.TIMESTAMP: st.integers(-(2**50), 2**50),
}
KINDS = st.sampled_from(ColumnType)


def array(kind: ColumnType, values: list[Any]) -> pa.Array:
    made = pa.array(values, pa.int64() if kind is ColumnType.TIMESTAMP else kind.arrow)
    return made.cast(kind.arrow)


@st.composite
def columns(draw: st.DrawFn, kind: ColumnType) -> tuple[pa.Array, Cells]:
    """A column, and the same as cells: of either kind, with nulls, and as a part of others."""
    count = draw(st.integers(0, 12))
    whole = array(kind, [draw(st.none() | VALUES[kind]) for _ in range(count)])
    if draw(st.booleans()):
        return whole, Cells(pa.concat_arrays([whole, whole])[count:])
    is_there = np.array([draw(st.booleans()) for _ in range(count)], bool) | whole.is_valid().to_numpy(
        zero_copy_only=False
    )
    some = whole.filter(pa.array(is_there))
    return whole, Cells(pa.concat_arrays([some, some])[len(some) :], np.flatnonzero(is_there))


def plain(cells: Cells, count: int) -> list[Any]:
    made: list[Any] = cells.spread(0, count).to_pylist()
    return made


@given(KINDS.flatmap(columns), st.integers(0, 12), st.integers(0, 12))
def test_any_part_of_a_column_is_spread_over_its_rows(column: tuple[pa.Array, Cells], start: int, stop: int) -> None:
    whole, cells = column
    start, stop = sorted((min(start, len(whole)), min(stop, len(whole))))
    part = cells.spread(start, stop)
    part.validate(full=True)
    assert part.type == whole.type
    assert part.to_pylist() == whole[start:stop].to_pylist()


@given(KINDS.flatmap(columns), st.integers(0, 2**12))
def test_rows_that_are_left_out_take_their_cells_along(column: tuple[pa.Array, Cells], bits: int) -> None:
    whole, cells = column
    which = np.array([bits >> row & 1 for row in range(len(whole))], bool)
    assert plain(cells.kept(which), which.sum()) == whole.filter(pa.array(which)).to_pylist()


@given(KINDS.flatmap(columns), st.randoms())
def test_rows_in_another_order_keep_their_cells(column: tuple[pa.Array, Cells], dice: Any) -> None:
    whole, cells = column
    ranks = np.array(dice.sample(range(len(whole)), len(whole)), np.int64)
    expected = [None] * len(whole)
    for row, rank in enumerate(ranks.tolist()):
        expected[rank] = whole[row].as_py()
    assert plain(cells.placed(ranks), len(whole)) == expected


def test_a_few_rows_that_are_full_do_not_fill_up_all_the_others() -> None:
    """A column that one row of many has is kept as that one value, whatever form it comes in."""
    one = Cells(pa.array([7]))
    few = Cells(pa.array([8]), np.array([99_999]))
    assert joined([(1, one), (100_000, few), (10, None)]).rows is not None
    assert len(joined([(1, one), (100_000, few), (10, None)]).values) == 2
    assert joined([(1, one), (1, Cells(pa.array([None], pa.int64()))), (1, None)]).rows is None
    assert joined([(1, one), (1, None)]).rows is not None


def test_of_numbered_rows_some_are_kept_with_their_new_numbers() -> None:
    cells = Cells(pa.array(["a", "b", "c"]), np.array([2, 5, 7]))
    kept = cells.kept(np.array([False, True, True, True, False, False, True, True]))
    assert (kept.values.to_pylist(), kept.rows.tolist() if kept.rows is not None else None) == (["a", "c"], [1, 4])


def test_a_part_of_a_column_ends_where_it_is_told() -> None:
    assert Cells(pa.array([1, 2, 3, 4])).spread(1, 3).to_pylist() == [2, 3]
    assert no_cells(pa.int64()).spread(2, 5).to_pylist() == [None] * 3


@given(KINDS.flatmap(lambda kind: st.lists(columns(kind) | st.integers(0, 5), min_size=1, max_size=4)))
def test_parts_are_joined_whatever_form_they_have(parts: list[Any]) -> None:
    """A part is a column, or so many rows that have none."""
    if all(isinstance(part, int) for part in parts):
        return
    expected: list[Any] = []
    given_parts: list[tuple[int, Cells | None]] = []
    for part in parts:
        if isinstance(part, int):
            given_parts.append((part, None))
            expected += [None] * part
        else:
            given_parts.append((len(part[0]), part[1]))
            expected += part[0].to_pylist()
    assert plain(joined(given_parts), len(expected)) == expected


@given(KINDS.flatmap(columns), st.integers(0, 3**12))
@example((pa.array(["a", "b"]), Cells(pa.array(["a", "b"]))), 1)
def test_a_column_from_several_places_has_the_values_of_all(column: tuple[pa.Array, Cells], shares: int) -> None:
    whole, cells = column
    share_of = np.array([shares // 3**row % 3 for row in range(len(whole))], np.int64)
    several = []
    for share in range(3):
        mask = share_of == share
        nulls = pa.nulls(len(whole), whole.type)
        own = pa.array([whole[row].as_py() if mask[row] else None for row in range(len(whole))], whole.type)
        several.append(Cells(own) if share else Cells(own.filter(pa.array(mask)), np.flatnonzero(mask)))
        assert len(nulls) == len(own)
    assert plain(one_of(several), len(whole)) == whole.to_pylist()
    assert one_of([cells]) is cells


@pytest.mark.parametrize("kind", ColumnType)
def test_a_column_without_values_is_all_null(kind: ColumnType) -> None:
    assert no_cells(kind.arrow).spread(2, 5).to_pylist() == [None] * 3
    assert no_cells(kind.arrow).spread(0, 5).type == kind.arrow


def test_a_value_knows_its_row() -> None:
    values = pa.array([Decimal("1.5"), Decimal("2.5")])
    assert [Cells(values).row(number) for number in (0, 1)] == [0, 1]
    assert [Cells(values, np.array([3, 7])).row(number) for number in (0, 1)] == [3, 7]
