"""Events of one route between reading and writing."""

import json
from typing import Any

import numpy as np

from eventlake.lake import ids
from eventlake.reading.evidence import evidence_of
from eventlake.reading.flatten import TableColumns
from eventlake.reading.route_buffer import RouteBuffer, Taken
from eventlake.schema.evolve import Sighting
from eventlake.schema.kinds import Kind
from eventlake.schema.rescue import Rescued
from eventlake.schema.tallies import Tally
from eventlake.schema.tallying import tallied
from eventlake.schema.types import Seen
from staged_rows import RESCUED, rows_of_piece


def buffer_of(*route: str, known: tuple[str, ...] = (), column_limit: int = 100) -> RouteBuffer:
    return RouteBuffer(route, [TableColumns(known=known, column_limit=column_limit) for _ in route])


def filled(*events: dict[str, Any], known: tuple[str, ...] = (), column_limit: int = 100) -> RouteBuffer:
    buffer = buffer_of("track_a", known=known, column_limit=column_limit)
    for number, event in enumerate(events):
        assert len(buffer) == number
        hashed = ids.message_hash(f"m{number}")
        buffer.add(event, [], message_hash=hashed, received=number * 10, digest=number + 100, file=number)
    return buffer


def cells(taken: Taken, table_key: str = "track_a") -> list[dict[tuple[str, Kind], Any]]:
    """The cells of each row by name and kind, without what was rescued."""
    return [
        {(place.column, place.kind): value for place, value in row.items() if place != RESCUED}
        for row in rows_of_piece(taken.piece, table_key)
    ]


def rescued(taken: Taken, table_key: str = "track_a") -> list[dict[str, Any] | None]:
    texts = [row.get(RESCUED) for row in rows_of_piece(taken.piece, table_key)]
    return [text and json.loads(text) for text in texts]


def test_events_are_rows_and_messages_in_the_same_order() -> None:
    taken = filled({"n": 0, "a": "x"}, {"n": 1}, {"n": 2, "a": "y"}).take()
    assert cells(taken) == [
        {("n", Kind.INTEGER): 0, ("a", Kind.TEXT): "x"},
        {("n", Kind.INTEGER): 1},
        {("n", Kind.INTEGER): 2, ("a", Kind.TEXT): "y"},
    ]
    assert taken.messages["received"].tolist() == [0, 10, 20]
    expected = ids.from_digests([ids.message_hash(f"m{n}") for n in range(3)])
    assert taken.messages["high"].tolist() == expected["high"].tolist()
    assert taken.messages["low"].tolist() == expected["low"].tolist()
    assert taken.messages["digest"].tolist() == [100, 101, 102]
    assert taken.messages["file"].tolist() == [0, 1, 2]
    assert taken.messages["route"].tolist() == [ids.route_hash(("track_a",))] * 3
    types = {name: taken.messages[name].dtype.str for name in ("received", "digest", "file", "route")}
    assert types == {name: ids.FIELDS[name] for name in types}
    assert rescued(taken) == [None] * 3


def test_what_was_taken_does_not_come_again() -> None:
    buffer = filled({"a": 1}, {"a": "x"})
    assert len(cells(buffer.take())) == 2
    assert len(buffer) == 0
    buffer.add({"a": 2}, [], message_hash=bytes(16), received=7, digest=0, file=5)
    again = buffer.take()
    assert cells(again) == [{("a", Kind.INTEGER): 2}]
    assert again.messages["received"].tolist() == [7]


def test_what_was_seen_of_new_columns_is_told_and_of_known_ones_is_not() -> None:
    events: list[dict[str, Any]] = [{"a": 1, "b": 1, "C": 1}, {"a": "x", "c": 2}, {"c": None, "aB": 1, "a_b": 2}]
    taken = filled(*events, known=("b",)).take()
    assert evidence_of(taken.piece, "track_a", ("b", "a_b"), tallied) == {
        "a": Sighting(Seen.INTEGER | Seen.TEXT, 2, "/a", (Tally(Seen.INTEGER, 1, "1"), Tally(Seen.TEXT, 1, "x"))),
        "c": Sighting(Seen.INTEGER, 2, "/C", (Tally(Seen.INTEGER, 2, "1"),)),
    }
    assert [row.get(("b", Kind.INTEGER)) for row in cells(taken)] == [1, None, None]


def test_rescued_values_lie_beside_their_rows() -> None:
    buffer = filled({"a": 1}, {"aB": 1, "a_b": 2}, {"a": 2})
    buffer.add({}, [Rescued("/x", "5", "why")], message_hash=bytes(16), received=0, digest=0, file=0)
    assert rescued(buffer.take()) == [
        None,
        {"/a_b": {"value": 2, "reason": "another key has the column a_b in this event"}},
        None,
        {"/x": {"value": 5, "reason": "why"}},
    ]


def test_the_limit_of_columns_counts_those_that_the_table_has() -> None:
    taken = filled({"a": 1, "b": 2, "c": 3}, known=("c",), column_limit=2).take()
    assert cells(taken) == [{("a", Kind.INTEGER): 1, ("c", Kind.INTEGER): 3}]
    assert [list(entries or ()) for entries in rescued(taken)] == [["/b"]]


def test_events_without_values_are_rows_too() -> None:
    taken = filled({}, {}).take()
    assert cells(taken) == [{}, {}]
    assert len(taken.messages) == 2


def test_a_table_is_the_same_number_in_every_file_whatever_its_size() -> None:
    names = [f"track_{number}" for number in range(8)]
    assert {ids.route_hash((name,)) < 2**63 for name in names} == {True, False}
    for name in names:
        messages = buffer_of(name).messages([bytes(16)], np.array([1]), np.array([2], "<u4"), np.array([3], "<u4"))
        assert (messages["route"].dtype.str, messages["route"].tolist()) == ("<u8", [ids.route_hash((name,))])


def test_a_message_has_a_row_in_each_table_of_its_route() -> None:
    columns = [TableColumns(known=("a",), column_limit=100), TableColumns(column_limit=2)]
    buffer = RouteBuffer(("all", "track_a"), columns)
    for number, event in enumerate([{"a": 1, "b": 2, "c": 3}, {"a": 4}]):
        hashed = ids.message_hash(f"m{number}")
        buffer.add(event, [], message_hash=hashed, received=0, digest=0, file=0)
    taken = buffer.take()
    assert taken.messages["route"].tolist() == [ids.route_hash(("all", "track_a"))] * 2
    assert list(taken.piece.tables) == ["all", "track_a"]
    assert [sorted(name for name, _ in row) for row in cells(taken, "all")] == [["a", "b", "c"], ["a"]]
    assert [sorted(name for name, _ in row) for row in cells(taken, "track_a")] == [["a", "b"], ["a"]]
    assert rescued(taken, "all") == [None, None], "it has room for all columns"
    assert [list(entries or ()) for entries in rescued(taken, "track_a")] == [["/c"], []]


def test_a_place_is_claimed_only_if_it_has_a_column_to_itself_in_all_tables() -> None:
    narrow, wide = TableColumns(column_limit=1), TableColumns(column_limit=9)
    buffer = RouteBuffer(("wide", "narrow"), [wide, narrow])
    for _ in range(2):
        assert buffer.claimed(("a",)) == [("wide", "a"), ("narrow", "a")]
        assert buffer.claimed(("b",)) is None, "there is no room for it in one of them"
        assert buffer.claimed(("A",)) is None


def test_routes_of_several_tables_are_other_numbers_than_those_of_each() -> None:
    routes = [("a",), ("b",), ("a", "b"), ("b", "a"), ("ab",)]
    assert len({ids.route_hash(route) for route in routes}) == len(routes)
