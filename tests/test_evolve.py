"""How a table's columns grow."""

from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlake.schema.declared import TypeRules, parse
from eventlake.schema.evolve import Column, Evidence, SchemaChange, Sighting, TableSchema, evolve, join
from eventlake.schema.tallies import Tally
from eventlake.schema.types import ENVELOPE_TYPES, ColumnType, Seen, infer

NAMES = st.sampled_from([*ENVELOPE_TYPES, *"abcdefgh", "properties_price", "traits_age"])
SIGHTINGS = st.builds(
    Sighting,
    st.integers(1, 127).map(Seen),
    st.integers(1, 10),
    st.sampled_from(["/a", "/A", "/a_", "/b", "/properties/price"]),
    st.lists(
        st.builds(Tally, st.sampled_from(Seen), st.integers(1, 10), st.sampled_from(["1", "n/a", "x"])),
        unique_by=lambda tally: tally.seen,
    ).map(lambda tallies: tuple(sorted(tallies, key=lambda tally: tally.seen.value))),
)
EVIDENCE = st.dictionaries(NAMES, SIGHTINGS, max_size=12)
SCHEMAS = st.lists(
    st.builds(Column, NAMES, st.sampled_from(ColumnType), st.just("/old")),
    unique_by=lambda column: column.name,
    max_size=8,
).map(lambda columns: TableSchema(tuple(columns)))
LIMITS = st.integers(0, 20)


def seen(**columns: Seen | tuple[Seen, int]) -> Evidence:
    return {
        name: Sighting(what, 1, f"/{name}") if isinstance(what, Seen) else Sighting(*what, f"/{name}")
        for name, what in columns.items()
    }


def after(schema: TableSchema, change: SchemaChange) -> TableSchema:
    return TableSchema(schema.columns + change.added)


@given(st.lists(EVIDENCE, max_size=6), SCHEMAS, LIMITS, st.randoms(use_true_random=False))
def test_neither_order_nor_grouping_of_the_evidence_matters(
    parts: list[Evidence], schema: TableSchema, limit: int, dice: Any
) -> None:
    mixed = dice.sample(parts, len(parts))
    groups = iter(mixed)
    grouped = [join(islice(groups, dice.randint(1, 3))) for _ in parts]
    backwards = [dict(reversed(part.items())) for part in parts]
    whole = join(parts)
    assert join(mixed) == join(grouped) == join(backwards) == whole
    change = evolve(schema, whole, column_limit=limit)
    assert evolve(schema, join(grouped), column_limit=limit) == change
    assert evolve(schema, dict(reversed(whole.items())), column_limit=limit) == change


@given(st.lists(EVIDENCE, max_size=6))
def test_joined_evidence_holds_all_that_was_seen(parts: list[Evidence]) -> None:
    for name, sighting in join(parts).items():
        of_column = [part[name] for part in parts if name in part]
        assert sighting.values == sum(one.values for one in of_column)
        assert all(one.seen in sighting.seen for one in of_column)
        assert sighting.pointer == min(one.pointer for one in of_column)


def test_what_was_seen_of_a_column_is_counted_by_kind_over_all_parts() -> None:
    numbers, texts = Tally(Seen.INTEGER, 9, "1"), Tally(Seen.TEXT, 1, "n/a")
    one = Sighting.of((numbers, texts), "/b")
    assert one == Sighting(Seen.INTEGER | Seen.TEXT, 10, "/b", (numbers, texts))
    both = one.joined(Sighting.of((Tally(Seen.INTEGER, 2, "3"),), "/a"))
    assert both == Sighting(Seen.INTEGER | Seen.TEXT, 12, "/a", (Tally(Seen.INTEGER, 11, "1"), texts))


def test_a_type_that_is_declared_for_one_table_is_given_there_with_the_reason() -> None:
    rules = TypeRules(parse("page:price=decimal"))
    evidence = seen(price=Seen.INTEGER, size=Seen.INTEGER)
    there = evolve(TableSchema(), evidence, table="page", rules=rules)
    assert [column.type for column in there.added] == [ColumnType.DECIMAL, ColumnType.BIGINT]
    assert there.reasons == {"price": "declared: page:price=decimal(38,6)"}
    for elsewhere in (evolve(TableSchema(), evidence, rules=rules), evolve(TableSchema(), evidence, table="page")):
        assert [column.type for column in elsewhere.added] == [ColumnType.BIGINT] * 2
        assert elsewhere.reasons == {}


def test_joining_changes_none_of_the_parts() -> None:
    one, other = seen(a=Seen.INTEGER), seen(a=Seen.TEXT)
    join([one, other])
    assert one == seen(a=Seen.INTEGER)
    assert join([]) == {}


@given(SCHEMAS, EVIDENCE, LIMITS)
def test_each_column_is_known_added_or_refused(schema: TableSchema, evidence: Evidence, limit: int) -> None:
    change = evolve(schema, evidence, column_limit=limit)
    added = [column.name for column in change.added]
    assert sorted([*added, *change.refused]) == sorted(set(evidence) - schema.names)
    assert len(schema.columns) + len(added) <= max(limit, len(schema.columns))
    assert not change.refused or len(schema.columns) + len(added) >= limit


@given(SCHEMAS, EVIDENCE)
def test_a_known_column_never_changes(schema: TableSchema, evidence: Evidence) -> None:
    changed = after(schema, evolve(schema, evidence))
    assert changed.columns[: len(schema.columns)] == schema.columns
    assert len(changed.names) == len(changed.columns)


@given(SCHEMAS, EVIDENCE, LIMITS)
def test_the_same_evidence_again_adds_nothing(schema: TableSchema, evidence: Evidence, limit: int) -> None:
    change = evolve(schema, evidence, column_limit=limit)
    assert evolve(after(schema, change), evidence, column_limit=limit) == SchemaChange((), change.refused)


@given(SCHEMAS, EVIDENCE, LIMITS)
def test_past_the_limit_the_envelope_and_then_the_most_used_come_first(
    schema: TableSchema, evidence: Evidence, limit: int
) -> None:
    def rank(name: str) -> tuple[bool, int, str]:
        return name not in ENVELOPE_TYPES, -evidence[name].values, name

    change = evolve(schema, evidence, column_limit=limit)
    assert all(rank(column.name) < rank(refused) for column in change.added for refused in change.refused)


@given(SCHEMAS, EVIDENCE)
def test_new_columns_have_their_types_and_come_in_a_fixed_order(schema: TableSchema, evidence: Evidence) -> None:
    added = evolve(schema, evidence).added
    for name, kind, pointer in added:
        assert kind is ENVELOPE_TYPES.get(name, infer(evidence[name].seen))
        assert pointer == evidence[name].pointer
    names = [column.name for column in added]
    envelope = [name for name in ENVELOPE_TYPES if name in names]
    assert names == envelope + sorted(set(names) - set(envelope))


@pytest.mark.parametrize("what", [Seen.INTEGER, Seen.BOOLEAN, Seen.TIMESTAMP, Seen.NESTED, Seen.NOTHING])
def test_an_odd_first_event_does_not_decide_about_the_envelope(what: Seen) -> None:
    added = evolve(TableSchema(), dict.fromkeys(ENVELOPE_TYPES, Sighting(what, 1, "/x"))).added
    assert {column.name: column.type for column in added} == ENVELOPE_TYPES
    times = {"received_at", "sent_at", "timestamp", "original_timestamp"}
    assert {name for name, kind in ENVELOPE_TYPES.items() if kind is ColumnType.TIMESTAMP} == times
    assert {kind for name, kind in ENVELOPE_TYPES.items() if name not in times} == {ColumnType.STRING}


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        (Seen.INTEGER, ColumnType.BIGINT),
        (Seen.NUMBER, ColumnType.DECIMAL),
        (Seen.INTEGER | Seen.NUMBER, ColumnType.DECIMAL),
        (Seen.NUMBER | Seen.HUGE, ColumnType.STRING),
        (Seen.BOOLEAN, ColumnType.BOOLEAN),
        (Seen.TIMESTAMP, ColumnType.TIMESTAMP),
        (Seen.TIMESTAMP | Seen.TEXT, ColumnType.STRING),
        (Seen.INTEGER | Seen.TEXT, ColumnType.STRING),
        (Seen.BOOLEAN | Seen.INTEGER, ColumnType.STRING),
        (Seen.NESTED, ColumnType.STRING),
        (Seen.NOTHING, ColumnType.STRING),
    ],
)
def test_a_new_column_gets_the_narrowest_type_that_holds_everything(what: Seen, expected: ColumnType) -> None:
    (added,) = evolve(TableSchema(), seen(a=what)).added
    assert added == Column("a", expected, "/a")


def test_a_limit_of_three_takes_the_envelope_and_the_most_used() -> None:
    evidence = seen(rare=(Seen.TEXT, 1), common=(Seen.TEXT, 9), also=(Seen.TEXT, 9), type=(Seen.TEXT, 1))
    change = evolve(TableSchema(), evidence, column_limit=3)
    assert [column.name for column in change.added] == ["type", "also", "common"]
    assert change.refused == ("rare",)


def test_a_type_changes_only_when_it_is_told_to() -> None:
    schema = after(TableSchema(), evolve(TableSchema(), seen(a=Seen.INTEGER, b=Seen.BOOLEAN)))
    retyped = schema.with_type("a", ColumnType.DECIMAL)
    assert [column.type for column in retyped.columns] == [ColumnType.DECIMAL, ColumnType.BOOLEAN]
    assert [column.type for column in schema.columns] == [ColumnType.BIGINT, ColumnType.BOOLEAN]
    assert schema.with_type("c", ColumnType.STRING) == schema
