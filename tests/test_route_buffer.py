"""Events of one route between reading and writing."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlake.events import instants
from eventlake.lake import ids
from eventlake.lake.staging import RECEIVED, RESCUED, place_of
from eventlake.reading.flatten import TableColumns
from eventlake.reading.route_buffer import RouteBuffer, TableRows, Taken, received_micros
from eventlake.schema.evolve import Sighting
from eventlake.schema.kinds import Kind
from eventlake.schema.rescue import Rescued
from eventlake.schema.tallies import Tally
from eventlake.schema.types import Seen
from strategies import date_times, scalars


def micros(text: str) -> int:
    instant = instants.parse(text)
    assert instant
    return instant.micros


def day_of_file(file: int) -> int:
    return 86_400_000_000 * (file + 1)


def buffer_of(*route: str, known: tuple[str, ...] = (), column_limit: int = 100) -> RouteBuffer:
    return RouteBuffer(route, [TableColumns(known=known, column_limit=column_limit) for _ in route])


def filled(*events: dict[str, Any], known: tuple[str, ...] = (), column_limit: int = 100) -> RouteBuffer:
    buffer = buffer_of("track_a", known=known, column_limit=column_limit)
    for number, event in enumerate(events):
        assert len(buffer) == number
        hashed = ids.message_hash(f"m{number}")
        buffer.add(event, [], message_hash=hashed, digest=number + 100, file=number)
    return buffer


def only_table(taken: Taken) -> TableRows:
    (table,) = taken.tables
    return table


def cells(taken: Taken) -> dict[tuple[str, Kind], list[Any]]:
    """The staged columns by name and kind."""
    return {
        (place_of(name).column, place_of(name).kind): values.to_pylist()
        for name, values in zip(only_table(taken).rows.schema.names, only_table(taken).rows.columns, strict=True)
        if name not in (RECEIVED, RESCUED)
    }


def test_events_are_rows_and_messages_in_the_same_order() -> None:
    at = ["2026-01-01T00:00:00Z", "2025-01-01T00:00:00+01:00", "2026-01-01T00:00:00.000001Z"]
    buffer = filled(*({"receivedAt": moment, "n": n} for n, moment in enumerate(at)))
    taken = buffer.take(day_of_file)
    assert cells(taken) == {("received_at", Kind.TEXT): at, ("n", Kind.INTEGER): [0, 1, 2]}
    assert only_table(taken).rows.column(RECEIVED).to_pylist() == list(map(micros, at))
    assert taken.messages["received"].tolist() == list(map(micros, at))
    expected = ids.from_digests([ids.message_hash(f"m{n}") for n in range(3)])
    assert taken.messages["high"].tolist() == expected["high"].tolist()
    assert taken.messages["low"].tolist() == expected["low"].tolist()
    assert taken.messages["digest"].tolist() == [100, 101, 102]
    assert taken.messages["file"].tolist() == [0, 1, 2]
    assert taken.messages["route"].tolist() == [ids.route_hash(("track_a",))] * 3
    types = {name: taken.messages[name].dtype.str for name in ("received", "digest", "file", "route")}
    assert types == {name: ids.FIELDS[name] for name in types}
    assert RESCUED not in only_table(taken).rows.schema.names


def test_what_was_taken_does_not_come_again() -> None:
    buffer = filled({"a": 1}, {"a": "x"})
    assert only_table(buffer.take(day_of_file)).rows.num_rows == 2
    assert len(buffer) == 0
    buffer.add({"a": 2}, [], message_hash=bytes(16), digest=0, file=5)
    again = buffer.take(day_of_file)
    assert cells(again) == {("a", Kind.INTEGER): [2]}
    assert again.messages["received"].tolist() == [day_of_file(5)]


def test_what_was_seen_of_new_columns_is_told_and_of_known_ones_is_not() -> None:
    events: list[dict[str, Any]] = [{"a": 1, "b": 1, "C": 1}, {"a": "x", "c": 2}, {"c": None}]
    taken = filled(*events, known=("b",)).take(day_of_file)
    assert only_table(taken).evidence == {
        "a": Sighting(Seen.INTEGER | Seen.TEXT, 2, "/a", (Tally(Seen.INTEGER, 1, "1"), Tally(Seen.TEXT, 1, "x"))),
        "c": Sighting(Seen.INTEGER, 2, "/C", (Tally(Seen.INTEGER, 2, "1"),)),
    }
    assert cells(taken)["b", Kind.INTEGER] == [1, None, None]


def test_rescued_values_lie_beside_their_rows() -> None:
    buffer = filled({"a": 1}, {"aB": 1, "a_b": 2}, {"a": 2})
    buffer.add({}, [Rescued("/x", "5", "why")], message_hash=bytes(16), digest=0, file=0)
    texts = only_table(buffer.take(day_of_file)).rows.column(RESCUED).to_pylist()
    assert [text and json.loads(text) for text in texts] == [
        None,
        {"/a_b": {"value": 2, "reason": "another key has the column a_b in this event"}},
        None,
        {"/x": {"value": 5, "reason": "why"}},
    ]


def test_the_limit_of_columns_counts_those_that_the_table_has() -> None:
    taken = filled({"a": 1, "b": 2, "c": 3}, known=("c",), column_limit=2).take(day_of_file)
    assert cells(taken) == {("a", Kind.INTEGER): [1], ("c", Kind.INTEGER): [3]}
    assert list(json.loads(only_table(taken).rows.column(RESCUED)[0].as_py())) == ["/b"]


@pytest.mark.parametrize("odd", [None, 5, "soon", "2026-01-01", "2026-13-01T00:00:00Z"])
def test_the_day_of_its_file_counts_for_an_event_that_does_not_tell_when_it_was_received(odd: Any) -> None:
    moment = "2026-01-01T00:00:00.1234567Z"  # finer than a microsecond: read one by one
    assert received_micros([odd], [3], day_of_file).tolist() == [day_of_file(3)]
    both = received_micros([moment, odd, odd], [0, 1, 2], day_of_file)
    assert both.tolist() == [micros(moment), day_of_file(1), day_of_file(2)]


@given(st.lists(date_times() | scalars() | st.just("2026-01-01T00:00:00Z"), min_size=1, max_size=6))
def test_each_event_is_received_when_it_says_so_in_any_company(sent: list[Any]) -> None:
    found = received_micros(sent, range(len(sent)), day_of_file)
    assert isinstance(found, np.ndarray)
    assert found.dtype == np.int64
    for row, value in enumerate(sent):
        instant = instants.parse(value) if isinstance(value, str) else None
        assert found[row] == (instant.micros if instant else day_of_file(row))


def test_columns_that_are_made_elsewhere_become_rows_alike() -> None:
    buffer = buffer_of("page")
    messages = ids.Ids({**ids.from_digests([bytes(16)]), "received": np.array([7], "<i8")})
    taken = buffer.taken([(place_of('["a","/a","integer"]'), pa.array([4]))], messages)
    assert cells(taken) == {("a", Kind.INTEGER): [4]}
    assert only_table(taken).rows.column(RECEIVED).to_pylist() == [7]
    assert taken.messages["route"].tolist() == [ids.route_hash(("page",))]


def test_a_table_is_the_same_number_in_every_file_whatever_its_size() -> None:
    names = [f"track_{number}" for number in range(8)]
    assert {ids.route_hash((name,)) < 2**63 for name in names} == {True, False}
    for name in names:
        buffer = buffer_of(name)
        buffer.add({}, [], message_hash=bytes(16), digest=0, file=0)
        route = buffer.take(day_of_file).messages["route"]
        assert (route.dtype.str, route.tolist()) == ("<u8", [ids.route_hash((name,))])


def test_a_message_has_a_row_in_each_table_of_its_route() -> None:
    columns = [TableColumns(known=("a",), column_limit=100), TableColumns(column_limit=2)]
    buffer = RouteBuffer(("all", "track_a"), columns)
    for number, event in enumerate([{"a": 1, "b": 2, "c": 3}, {"a": 4}]):
        buffer.add(event, [], message_hash=ids.message_hash(f"m{number}"), digest=0, file=0)
    messages, (every, own) = buffer.take(day_of_file)
    assert messages["route"].tolist() == [ids.route_hash(("all", "track_a"))] * 2
    assert (every.table_key, own.table_key) == ("all", "track_a")
    assert every.rows.num_rows == own.rows.num_rows == len(messages) == 2
    assert (set(every.evidence), set(own.evidence)) == ({"b", "c"}, {"a", "b"})
    assert RESCUED not in every.rows.schema.names, "it has room for all columns"
    assert own.rows.column(RESCUED).to_pylist()[1] is None


def test_a_column_is_a_routes_own_only_if_it_is_so_in_all_its_tables() -> None:
    narrow, wide = TableColumns(column_limit=1), TableColumns(column_limit=9)
    buffer = RouteBuffer(("wide", "narrow"), [wide, narrow])
    assert buffer.has_own("a", "/a")
    assert not buffer.has_own("b", "/b"), "there is no room for it in one of them"
    assert not buffer.has_own("a", "/A")


def test_routes_of_several_tables_are_other_numbers_than_those_of_each() -> None:
    routes = [("a",), ("b",), ("a", "b"), ("b", "a"), ("ab",)]
    assert len({ids.route_hash(route) for route in routes}) == len(routes)
