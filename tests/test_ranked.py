"""Values of one event that are for the same column: which of them it gets, and what becomes of the others."""

from typing import Any

import numpy as np
import pyarrow as pa

from eventlake.schema.cells import Cells
from eventlake.schema.claims import SEGMENT
from eventlake.schema.kinds import Kind, Place
from eventlake.schema.ranked import Candidate, highest_ranked
from eventlake.schema.rescue import Rescued
from eventlake.schema.rudder_columns import RudderColumns, TableKind

PAGES, IDENTIFIES = RudderColumns(TableKind.PAGES), RudderColumns(TableKind.IDENTIFIES, context_traits_too=True)


def some(column: str, pointer: str, *values: Any, kind: Kind = Kind.TEXT, rows: list[int] | None = None) -> Candidate:
    numbers = None if rows is None else np.array(rows)
    return Candidate(Place(column, pointer, kind), Cells(pa.array(values), numbers))


def taken(candidates: list[Candidate], count: int) -> dict[str, list[Any]]:
    return {one.place.pointer: one.cells.spread(0, count).to_pylist() for one in candidates}


def test_values_from_one_place_are_taken_as_they_are() -> None:
    found = [some("n", "/properties/n", 1, None, kind=Kind.INTEGER), some("n", "/properties/n", None, "x")]
    assert highest_ranked(found, PAGES, "n", 2) == (found, [])
    shared = [some("a_b", "/aB", "x", None), some("a_b", "/a_b", None, "y")]
    assert highest_ranked(shared, SEGMENT, "a_b", 2) == (shared, []), "no row has more than one of these"
    assert highest_ranked([], PAGES, "n", 2) == ([], [])


def test_the_value_of_the_lowest_rank_is_taken_whatever_comes_first() -> None:
    name = some("name", "/name", "Home", None, "Cart", None)
    own = some("name", "/properties/name", "Other", "About", "Cart", None)
    for found in ([name, own], [own, name]):
        chosen, beaten = highest_ranked(found, PAGES, "name", 4)
        assert taken(chosen, 4) == {
            "/name": ["Home", None, "Cart", None],
            "/properties/name": [None, "About", None, None],
        }
        assert beaten == [(0, Rescued("/properties/name", '"Other"', "another value has the column name"))]


def test_few_values_keep_their_rows() -> None:
    name = some("name", "/name", "Home", rows=[2])
    own = some("name", "/properties/name", 7, 8, kind=Kind.INTEGER, rows=[1, 2])
    chosen, beaten = highest_ranked([own, name], PAGES, "name", 4)
    assert taken(chosen, 4) == {"/name": [None, None, "Home", None], "/properties/name": [None, 7, None, None]}
    assert beaten == [(2, Rescued("/properties/name", "8", "another value has the column name"))]


def test_a_value_that_has_another_column_is_not_lost() -> None:
    found = [
        some("plan", "/traits/plan", "a", None, None),
        some("plan", "/context/traits/plan", "b", "c", None),
        some("plan", "/userProperties/plan", "d", "e", "f"),
    ]
    chosen, beaten = highest_ranked(found, IDENTIFIES, "plan", 3)
    assert taken(chosen, 3) == {
        "/traits/plan": ["a", None, None],
        "/context/traits/plan": [None, "c", None],
        "/userProperties/plan": [None, None, "f"],
    }
    reason = "another value has the column plan"
    assert beaten == [
        (0, Rescued("/userProperties/plan", '"d"', reason)),
        (1, Rescued("/userProperties/plan", '"e"', reason)),
    ]


def test_cells_of_a_table_that_was_taken_over_have_no_place_and_come_first() -> None:
    chosen, beaten = highest_ranked([some("n", "", "old", None), some("n", "/properties/n", None, "x")], PAGES, "n", 2)
    assert taken(chosen, 2) == {"": ["old", None], "/properties/n": [None, "x"]}
    assert beaten == []
