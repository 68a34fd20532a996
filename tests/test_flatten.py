"""From events to columns and rescued values."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Raw

from eventlake.reading.exact_json import NotJsonError, json_text, parse, rescued_in
from eventlake.reading.flatten import CONTAINERS, MAX_SPELLINGS, Chunk, Flattener, NewColumns, TableColumns
from eventlake.schema import names, rescue
from eventlake.schema.cast import NO_ROOM_NOW
from eventlake.schema.claims import Claim
from eventlake.schema.reading import MAX_DEPTH
from eventlake.schema.rescue import Rescued
from eventlake.schema.types import ENVELOPE_TYPES
from strategies import (
    EMPTY,
    Leaf,
    Number,
    canonical,
    events,
    json_lines,
    json_values,
    keys,
    leaves,
    objects,
    path_of,
    plain_line,
    read_exactly,
)

Rows = list[Counter[Leaf]]


def flattened(*lines: bytes | dict[str, Any], **options: Any) -> Chunk:
    flattener = Flattener(TableColumns(**options))
    add(flattener, lines)
    return flattener.take()


def add(flattener: Flattener, lines: Iterable[bytes | dict[str, Any]]) -> None:
    for line in lines:
        event, set_aside = parse(line if isinstance(line, bytes) else plain_line(line))
        flattener.add(event, set_aside)


def in_the_oracles_types(cell: Any) -> Any:
    """A cell as it was sent: arrays and objects are there as JSON, numbers as digits."""
    return read_exactly(bytes(cell).decode()) if isinstance(cell, bytes | Raw) else cell


def cells(chunk: Chunk) -> Rows:
    """The leaves that the columns hold, by row."""
    rows: Rows = [Counter() for _ in range(chunk.rows)]
    for _, pointer, values in chunk.columns:
        assert len(values) == chunk.rows
        for row, cell in enumerate(values):
            rows[row].update(leaves(in_the_oracles_types(cell), path_of(pointer)))
    return rows


def rescued(chunk: Chunk) -> Rows:
    rows: Rows = [Counter() for _ in range(chunk.rows)]
    for row, entries in chunk.rescued.items():
        for entry in entries:
            rows[row].update(leaves(read_exactly(entry.json_text), path_of(entry.pointer)))
    return rows


def sent(line: bytes) -> Counter[Leaf]:
    """The leaves of an event; an empty `properties` and the like say nothing."""
    return telling(leaves(read_exactly(line.decode("utf-8-sig"))))


def telling(found: Iterable[Leaf]) -> Counter[Leaf]:
    silent = {((container,), EMPTY) for container in CONTAINERS} | {((), EMPTY)}
    return Counter(leaf for leaf in found if leaf not in silent)


def assert_every_leaf_is_in_one_place(lines: Sequence[bytes], chunk: Chunk) -> None:
    assert chunk.rows == len(lines)
    for row, (line, in_columns, aside) in enumerate(zip(lines, cells(chunk), rescued(chunk), strict=True)):
        everything, event = telling((in_columns + aside).elements()), sent(line)
        assert not event - everything
        # An object of which everything was set aside is rescued as an empty one; nothing else may be new.
        for path, value in everything - event:
            assert value == EMPTY
            assert any(path == other[: len(path)] != other for other, _ in event), row


def row_of(chunk: Chunk, row: int = 0) -> dict[str, Any]:
    """The cells of one row by column."""
    found = {}
    for (name,), _, values in chunk.columns:
        if values[row] is not None:
            assert name not in found
            found[name] = values[row]
    return found


def reasons(chunk: Chunk, row: int = 0) -> dict[str, str]:
    return {entry.pointer: entry.reason for entry in chunk.rescued.get(row, [])}


# Nothing is lost


@given(json_lines())
def test_every_leaf_of_an_event_is_in_exactly_one_place(line: bytes) -> None:
    assert_every_leaf_is_in_one_place([line], flattened(line))


@given(st.lists(st.lists(json_lines(objects()), max_size=4), min_size=1, max_size=3), st.sampled_from([1, 3, 8, 2000]))
def test_rows_stay_apart_over_many_events_and_takes(batches: list[list[bytes]], column_limit: int) -> None:
    flattener = Flattener(TableColumns(column_limit=column_limit))
    for lines in batches:
        add(flattener, lines)
        assert flattener.rows == len(lines)
        assert_every_leaf_is_in_one_place(lines, flattener.take())


@given(json_lines(st.fixed_dictionaries({"a": json_values(), "A": json_values(), "b": json_values()})))
def test_what_is_taken_does_not_change_with_what_comes_later(line: bytes) -> None:
    flattener = Flattener(TableColumns())
    add(flattener, [line])
    chunk = flattener.take()
    before = cells(chunk)
    add(flattener, [line, b'{"a":"later","b":{"c":1}}'])
    flattener.take()
    assert cells(chunk) == before


@given(st.lists(objects(), max_size=5))
def test_a_column_is_named_for_the_place_of_its_values(some: list[dict[str, Any]]) -> None:
    chunk = flattened(*some)
    places = [pointer for _, pointer, _ in chunk.columns]
    assert len(places) == len(set(places))
    for (name,), pointer, values in chunk.columns:
        assert name == names.column_name(*path_of(pointer))
        assert any(value is not None for value in values)


@given(events())
def test_the_first_in_document_order_wins_a_shared_column(event: dict[str, Any]) -> None:
    winners: dict[str, Any] = {}
    for path, leaf in leaves(event, deepest=MAX_DEPTH):
        name = names.column_name(*path)
        owned = names.OWNED_COLUMNS.get(name, rescue.pointer(path)) != rescue.pointer(path)
        if leaf != EMPTY and name not in names.PARTITION_KEYS and not owned:
            winners.setdefault(name, (path, leaf))
    columns = flattened(event).columns
    held = {name: (path_of(place), canonical(in_the_oracles_types(values[0]))) for (name,), place, values in columns}
    assert held == winners
    assert len(columns) == len(held)


@given(
    st.lists(objects(), min_size=1, max_size=4), st.integers(1, 12), st.sets(st.sampled_from(["a", "b", "product_id"]))
)
@example([{"productId": [], "USER_ID": []}], 1, set())
def test_no_more_columns_are_made_than_the_table_may_have(
    some: list[dict[str, Any]], limit: int, known: set[str]
) -> None:
    lines = [plain_line(event) for event in some]
    chunk = flattened(*lines, column_limit=limit, known=known)
    bound = {name for (name,), _, _ in chunk.columns} - ENVELOPE_TYPES.keys()  # those always have room
    assert len(bound | known) <= max(limit, len(known))
    assert_every_leaf_is_in_one_place(lines, chunk)


# Rules, one by one


def test_nested_objects_become_columns_and_arrays_become_text() -> None:
    chunk = flattened(
        {"type": "page", "context": {"app": {"buildNumber": 7}}, "properties": {"Tags": ["a", Number("1.50")]}}
    )
    assert row_of(chunk) == {"type": "page", "context_app_build_number": 7, "properties_tags": b'["a",1.50]'}
    assert not chunk.rescued


def test_columns_keep_their_rows_when_events_differ() -> None:
    chunk = flattened({"a": 1}, {"b": 2}, {}, {"a": 3}, {"c": {"d": "x"}})
    assert {name: values for (name,), _, values in chunk.columns} == {
        "a": [1, None, None, 3, None],
        "b": [None, 2, None, None, None],
        "c_d": [None, None, None, None, "x"],
    }


def test_nothing_to_take_is_an_empty_chunk() -> None:
    flattener = Flattener(TableColumns())
    assert flattener.take() == Chunk(0, [], {})
    add(flattener, [b'{"a":1,"A":2}'])
    flattener.take()
    assert flattener.take() == Chunk(0, [], {})


def test_nulls_make_no_column() -> None:
    assert flattened({"a": None, "b": {"c": None}}) == Chunk(1, [], {})


@pytest.mark.parametrize("first", ["productId", "product_id", "Product ID"])
def test_keys_of_one_column_share_it_and_the_first_of_a_row_wins(first: str) -> None:
    others = [key for key in ("productId", "product_id", "Product ID") if key != first]
    event = {"properties": {first: 1, others[0]: 2, others[1]: 3}}
    chunk = flattened(event, {"properties": {others[0]: 4}}, {"properties": {others[1]: 5, first: 6}})
    assert [row_of(chunk, row) for row in range(3)] == [{"properties_product_id": n} for n in (1, 4, 5)]
    why = "another key has the column properties_product_id in this event"
    assert reasons(chunk, 0) == {f"/properties/{key}": why for key in others}
    assert reasons(chunk, 1) == {}
    assert reasons(chunk, 2) == {f"/properties/{first}": why}


def test_a_key_that_shares_its_column_with_a_nested_key_is_seen() -> None:
    chunk = flattened({"a": {"b": 1}, "a_b": 2}, {"a_b": 3, "a": {"b": 4}}, {"a": {"b": 5}}, {"a": {"B": 6, "b": 7}})
    assert [row_of(chunk, row)["a_b"] for row in range(4)] == [1, 3, 5, 6]
    assert [list(reasons(chunk, row)) for row in range(4)] == [["/a_b"], ["/a/b"], [], ["/a/b"]]


def test_one_key_may_hold_values_and_objects() -> None:
    chunk = flattened({"a": 1}, {"a": {"b": 2}}, {"a": [3]}, {"a": "x"})
    assert [row_of(chunk, row) for row in range(4)] == [{"a": 1}, {"a_b": 2}, {"a": b"[3]"}, {"a": "x"}]


def test_columns_past_the_limit_are_rescued_and_known_ones_go_on() -> None:
    chunk = flattened({"a": 1, "b": 2, "c": 3, "d": {"e": 4}}, {"c": 5, "a": 6}, column_limit=3, known=["c", "x"])
    assert [row_of(chunk, row) for row in range(2)] == [{"a": 1, "c": 3}, {"a": 6, "c": 5}]
    assert reasons(chunk, 0) == dict.fromkeys(["/b", "/d/e"], "the table has its limit of columns")


def test_a_table_that_is_past_its_limit_keeps_the_columns_it_has() -> None:
    chunk = flattened({"a": 1, "b": 2, "c": 3}, column_limit=1, known=["a", "b"])
    assert row_of(chunk) == {"a": 1, "b": 2}
    assert list(reasons(chunk)) == ["/c"]


def test_a_second_spelling_needs_no_room_of_its_own() -> None:
    chunk = flattened({"aB": 1}, {"a_b": 2}, column_limit=1)
    assert [row_of(chunk, row) for row in range(2)] == [{"a_b": 1}, {"a_b": 2}]


def test_a_sender_that_makes_up_spellings_does_not_fill_the_memory() -> None:
    spellings = ["a" + "_" * count + "b" for count in range(1, MAX_SPELLINGS + 4)]
    chunk = flattened(*({key: row} for row, key in enumerate(spellings)))
    assert len(chunk.columns) == MAX_SPELLINGS
    assert [row_of(chunk, row) for row in range(MAX_SPELLINGS)] == [{"a_b": row} for row in range(MAX_SPELLINGS)]
    for row in range(MAX_SPELLINGS, len(spellings)):
        assert reasons(chunk, row) == {f"/{spellings[row]}": f"more than {MAX_SPELLINGS} spellings of the column a_b"}


def test_a_sender_that_makes_up_objects_does_not_fill_the_memory() -> None:
    limit = 5
    lines = [plain_line({f"k{number}": {"a": number}}) for number in range(limit * 4 + 3)]
    flattener = Flattener(TableColumns(column_limit=limit))
    add(flattener, lines)
    chunk = flattener.take()
    assert_every_leaf_is_in_one_place(lines, chunk)
    assert reasons(chunk, limit * 4 - 1) == {f"/k{limit * 4 - 1}/a": "the table has its limit of columns"}
    for row in range(limit * 4, len(lines)):
        assert reasons(chunk, row) == {f"/k{row}": "too many different objects in this table"}
    add(flattener, [b'{"k0":{"a":"again"}}'])
    assert row_of(flattener.take()) == {"k0_a": "again"}


def nested(levels: int, value: Any) -> Any:
    for _ in range(levels):
        value = {"a": value}
    return value


def test_objects_are_flattened_to_the_depth_limit_and_kept_as_text_below() -> None:
    chunk = flattened(nested(MAX_DEPTH, 1), nested(MAX_DEPTH + 2, {"n": Number("1.10"), "none": None, "o": {}}))
    assert [column.pointer for column in chunk.columns] == ["/a" * MAX_DEPTH]
    assert chunk.columns[0].values == [1, b'{"a":{"a":{"n":1.10,"none":null,"o":{}}}}']
    assert not chunk.rescued


@pytest.mark.parametrize("inner", ["[1]", '{"b":1}', '{"b":1,"b":2}', '[{"b":1,"b":2}]'])
def test_an_event_of_any_depth_is_flattened_or_refused(inner: str) -> None:
    for levels in (*range(100, 600, 100), *range(600, 1000, 7)):
        deep = '{"a":' * levels + inner + "}" * levels
        line = f'{{"a":{deep},"context":{{"k":{deep}}},"b":[{deep}],"B":[{deep}]}}'.encode()
        try:
            event, set_aside = parse(line)
        except NotJsonError:
            assert levels > 600 - 3
            continue
        flattener = Flattener(TableColumns())
        flattener.add(event, set_aside)
        assert rescued_in(rescue.to_json(flattener.take().rescued[0]))


def test_an_empty_object_is_rescued_unless_it_is_an_empty_container() -> None:
    empty: dict[str, Any] = {key: {} for key in CONTAINERS}
    chunk = flattened(empty | {"a": {}, "b": []}, {"context": {"context": {}, "app": {}}})
    assert row_of(chunk, 0) == {"b": b"[]"}
    assert reasons(chunk, 0) == {"/a": "an empty object has no column"}
    assert list(reasons(chunk, 1)) == ["/context/context", "/context/app"]


@pytest.mark.parametrize("key", ["year", "month", "day", "hr", "segment_type", "Day", "segmentType", "HR"])
def test_the_names_of_partitions_are_not_given_to_columns(key: str) -> None:
    chunk = flattened({key: 1, "properties": {key: 2}})
    name = names.snake(key)
    assert row_of(chunk) == {f"properties_{name}": 2}
    assert reasons(chunk) == {f"/{key}": f"{name} is the name of a partition"}


@pytest.mark.parametrize(("owner", "other"), [("messageId", "message_id"), ("receivedAt", "Received At")])
def test_only_its_owner_fills_a_column_that_the_lake_rests_on(owner: str, other: str) -> None:
    chunk = flattened({other: 1}, {other: 2, owner: 3}, {owner: 4, other: 5}, {"properties": {owner: 6}})
    name = names.snake(owner)
    assert [row_of(chunk, row) for row in range(4)] == [{}, {name: 3}, {name: 4}, {f"properties_{name}": 6}]
    assert [list(reasons(chunk, row)) for row in range(4)] == [[f"/{other}"], [f"/{other}"], [f"/{other}"], []]


def test_no_key_reaches_the_column_of_rescued_values() -> None:
    chunk = flattened({"_rescued_data": 1, "__rescued_data": 2})
    assert row_of(chunk) == {"rescued_data": 1}


def test_what_the_parser_set_aside_is_rescued_with_its_row() -> None:
    chunk = flattened(b'{"a":1}', b'{"a":1,"a":[{"b":1,"b":2}]}', b'{"a":NaN}')
    assert [entry[:2] for entry in chunk.rescued[1]] == [("/a", '[{"b":1,"b":2}]')]
    assert [entry[:2] for entry in chunk.rescued[2]] == [("/a", '"NaN"')]
    assert list(chunk.rescued) == [1, 2]


# What is rescued, as text

ENTRIES = st.lists(
    st.builds(
        lambda path, line: Rescued(rescue.pointer(path), json_text(parse(line).value), "because"),
        st.lists(st.sampled_from(["a", "b", "a/0", "a~2", "a~#2", "~"]) | keys(), min_size=1, max_size=3),
        json_lines(json_values()),
    ),
    max_size=12,
)


def read_entries(text: str) -> Counter[Any]:
    """The entries of `_rescued_data`, as any reader of JSON sees them; the places must differ."""
    members = read_exactly(text)
    assert len({place for place, _ in members}) == len(members)
    entries: Counter[Any] = Counter()
    for place, entry in members:
        assert [name for name, _ in entry] == ["value", "reason"]
        entries[tuple(rescue.keys_of(place)), canonical(entry[0][1]), entry[1][1]] += 1
    return entries


def expected(entries: Iterable[Rescued]) -> Counter[Any]:
    return Counter((path_of(e.pointer), canonical(read_exactly(e.json_text)), e.reason) for e in entries)


@given(st.lists(keys() | st.text("~/012#"), min_size=1))
def test_a_pointer_leads_back_to_its_keys(path: list[str]) -> None:
    place = rescue.pointer(path)
    assert tuple(rescue.keys_of(place)) == path_of(place) == tuple(path)


@given(ENTRIES)
def test_every_rescued_value_is_in_the_text_once(entries: list[Rescued]) -> None:
    assert read_entries(rescue.to_json(entries)) == expected(entries)


@given(ENTRIES)
def test_rescued_values_are_read_back_as_they_were_sent(entries: list[Rescued]) -> None:
    assert expected(rescued_in(rescue.to_json(entries))) == expected(entries)


@pytest.mark.timeout(20)
def test_a_key_that_comes_ten_thousand_times_is_kept_as_often() -> None:
    line = b"{" + b",".join(b'"a":%d' % number for number in range(20_000)) + b"}"
    chunk = flattened(line)
    text = rescue.to_json(chunk.rescued[0])
    assert sorted(entry["value"] for entry in json.loads(text).values()) == list(range(1, 20_000))


def test_a_value_whose_column_another_key_has_is_rescued_as_it_was_sent() -> None:
    chunk = flattened({"aB": 1, "a_b": Number("2.50"), "A B": [3, {"x": Number("1.0")}]}, {"aB": 1, "a_b": {"c": 2}})
    assert [(entry.pointer, entry.json_text) for entry in chunk.rescued[0]] == [
        ("/a_b", "2.50"),
        ("/A B", '[3,{"x":1.0}]'),
    ]
    again = flattened({"aB": 1, "a_b": 2}, {"a_b": "x", "aB": ["y"]}, {"aB": Number("1e5"), "a_b": True})
    assert [entry.json_text for row in range(3) for entry in again.rescued[row]] == ["2", '["y"]', "true"]


def test_the_first_place_that_asks_has_a_column_to_itself_for_good() -> None:
    table = TableColumns(known=["a"], column_limit=2)
    for _ in range(2):
        assert table.claimed(("a",)) == ("a",)
        assert table.claimed(("A",)) is None
        assert table.claimed(("b",)) == ("b",)  # the last column that the table may have
        assert table.claimed(("B",)) is None
        assert table.claimed(("c",)) is None
    assert table.no_room((Claim("b"),)) is None  # to share it, there is room
    assert table.no_room((Claim("c"),)) == "the table has its limit of columns"


def test_a_column_that_the_lake_rests_on_is_for_its_owner_only() -> None:
    table = TableColumns()
    assert table.claimed(("message_id",)) is None
    assert table.claimed(("messageId",)) == ("message_id",)
    assert table.claimed(("day",)) is None
    assert table.claimed(("properties", "Order ID")) == ("properties_order_id",)


def test_cells_that_stand_for_nothing_are_counted_until_they_are_taken() -> None:
    flattener = Flattener(TableColumns(column_limit=100))
    assert flattener.padding == 0
    for event, padding in (({"a": 1}, 0), ({"a": 2}, 0), ({"a": 3, "b": 1}, 2), ({"c": 1}, 5), ({"a": 4, "b": 2}, 7)):
        flattener.add(event, [])
        assert flattener.padding == padding
    flattener.take()
    assert flattener.padding == 0


def test_columns_that_are_new_are_bounded_over_all_tables_of_a_task() -> None:
    of_all = NewColumns(3)
    first, second = (Flattener(TableColumns(known=("k",), new_columns=of_all)) for _ in range(2))
    first.add({"k": 0, "a": 1, "b": 2}, [])
    second.add({"k": 0, "c": 3, "d": 4, "messageId": "m"}, [])
    first.add({"a": 5, "e": 6}, [])
    one, other = first.take(), second.take()
    assert [name for column in one.columns for name in column.names] == ["k", "a", "b"]
    assert [name for column in other.columns for name in column.names] == ["k", "c", "message_id"]
    assert one.rescued == {1: [Rescued("/e", "6", NO_ROOM_NOW)]}
    assert other.rescued == {0: [Rescued("/d", "4", NO_ROOM_NOW)]}
