"""Values by kind, the type that follows from them, and casting: nothing is lost in any type."""

from collections.abc import Iterator
from decimal import Decimal
from functools import reduce
from itertools import product
from operator import or_
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from eventlake.events import instants
from eventlake.reading.exact_json import encode, parse
from eventlake.schema.best_effort import BEST_EFFORT
from eventlake.schema.cast import (
    BESIDE_THE_CELL,
    CONVERTED,
    CUT,
    EXACT,
    FRACTION,
    REASONS,
    ROUNDED,
    SPELLING,
    TOO_LARGE,
    TRUNCATED,
    Cast,
    Casts,
    value_text,
)
from eventlake.schema.kinds import Kind, Typed, by_kind
from eventlake.schema.tallies import union
from eventlake.schema.tallying import tallied
from eventlake.schema.types import ColumnType, Seen, infer
from strategies import (
    Number,
    canonical,
    date_times,
    json_values,
    numbers,
    plain_line,
    read_exactly,
    texts,
    whole_numbers,
)

BIGINT, BOOLEAN, DECIMAL = ColumnType.BIGINT, ColumnType.BOOLEAN, ColumnType.DECIMAL
STRING, TIMESTAMP = ColumnType.STRING, ColumnType.TIMESTAMP

either_way = pytest.mark.parametrize("casts", [EXACT, BEST_EFFORT], ids=["exact", "best effort"])


def as_parsed(value: Any) -> Any:
    """A value as the flattener puts it into a column: arrays and deep objects are JSON text."""
    parsed = parse(plain_line(value)).value
    return encode(parsed) if isinstance(parsed, list | dict) else parsed


VALUES = (texts() | numbers() | st.booleans() | json_values() | st.none()).map(as_parsed)
MIXED = st.lists(VALUES, min_size=1, max_size=8)
OF_ONE_KIND = [
    st.lists((values | st.none()).map(as_parsed), min_size=1, max_size=6)
    for values in (texts(), date_times(), numbers(), whole_numbers(), st.booleans())
]
COLUMNS = st.one_of([MIXED, *OF_ONE_KIND])


def column(*values: Any) -> Typed:
    (only,) = by_kind([as_parsed(value) for value in values])
    return only


def sent(kind: Kind, value: Any) -> Any:
    """A value of one kind, in canonical form."""
    return canonical(read_exactly(value) if kind in (Kind.NUMBER, Kind.JSON) else value)


def held(kind: Kind, target: ColumnType, value: Any, cell: Any) -> bool:
    """Whether the cell gives the value back: numbers by value, timestamps by instant, all else as text."""
    if cell is None:
        return False
    if target is TIMESTAMP:
        instant = instants.parse(value) if kind is Kind.TEXT else None
        return instant is not None and instant.exact and instants.micros_of(cell) == instant.micros
    if kind in (Kind.INTEGER, Kind.NUMBER) and target is BOOLEAN:
        return False
    if kind in (Kind.INTEGER, Kind.NUMBER):
        return bool(canonical(Number(str(value))) == canonical(Number(plain(cell))))
    return bool(plain(cell) == plain(value))


def plain(value: Any) -> str:
    """A value as text, as one would write it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        digits = f"{value:f}".rstrip("0").rstrip(".")
        return digits if value else "0"
    return str(value)


def cells_and_misfits(made: Cast) -> Iterator[tuple[Any, list[tuple[str, str]]]]:
    for row, cell in enumerate(made.values.to_pylist()):
        yield cell, [(misfit.json_text, misfit.reason) for misfit in made.misfits if misfit.row == row]


def in_the_oracles_types(value: Any) -> Any:
    return read_exactly(bytes(value).decode()) if isinstance(value, bytes | Raw) else value


# By kind


@given(COLUMNS)
def test_values_are_split_by_kind_and_none_is_converted(values: list[Any]) -> None:
    rows: list[Any] = [None] * len(values)
    kinds = []
    for kind, array in by_kind(values):
        kinds.append(kind)
        assert len(array) == len(values)
        assert array.null_count < len(values)
        for row, value in enumerate(array.to_pylist()):
            if value is not None:
                assert rows[row] is None
                rows[row] = sent(kind, value)
    assert len(set(kinds)) == len(kinds)
    assert rows == [None if value is None else canonical(in_the_oracles_types(value)) for value in values]


@pytest.mark.parametrize(
    ("values", "kinds"),
    [
        ([], []),
        ([None, None], []),
        (["x", None], [Kind.TEXT]),
        ([1, -(2**63), 2**63 - 1], [Kind.INTEGER]),
        ([2**63], [Kind.NUMBER]),
        ([1, 2**63], [Kind.INTEGER, Kind.NUMBER]),
        ([-(2**63) - 1, None], [Kind.NUMBER]),
        ([Number("1.0"), Number("1e400")], [Kind.NUMBER]),
        ([Number("7" * 5000)], [Kind.NUMBER]),
        ([True, False, None], [Kind.BOOLEAN]),
        ([True, 1], [Kind.INTEGER, Kind.BOOLEAN]),
        ([[1], {"a": 1}, []], [Kind.JSON]),
        (["x", 1, Number("1.5"), True, []], [Kind.TEXT, Kind.INTEGER, Kind.NUMBER, Kind.BOOLEAN, Kind.JSON]),
    ],
)
def test_each_json_value_has_its_kind(values: list[Any], kinds: list[Kind]) -> None:
    assert [typed.kind for typed in by_kind([as_parsed(value) for value in values])] == kinds


def test_whole_numbers_are_those_of_64_bits_also_among_others() -> None:
    values = ["x", -(2**63) - 1, -(2**63), 2**63 - 1, 2**63, None]
    assert [(typed.kind, typed.values.type, typed.values.to_pylist()) for typed in by_kind(values)] == [
        (Kind.TEXT, pa.string(), ["x", None, None, None, None, None]),
        (Kind.INTEGER, pa.int64(), [None, None, -(2**63), 2**63 - 1, None, None]),
        (Kind.NUMBER, pa.string(), [None, str(-(2**63) - 1), None, None, str(2**63), None]),
    ]


# What was seen, and the type that follows


def seen_in(typed: Typed) -> Seen:
    return union(tallied(typed))


def seen(*values: Any) -> Seen:
    return reduce(or_, map(seen_in, by_kind([as_parsed(value) for value in values])), Seen.NOTHING)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2**63 - 1, None], BIGINT),
        ([2**63], DECIMAL),
        ([1, 2**63], DECIMAL),
        ([1, Number("1.5")], DECIMAL),
        ([Number("1.0")], DECIMAL),
        ([Number("0.1234567")], DECIMAL),
        ([Number("1e-400")], DECIMAL),
        ([Number("9" * 32)], DECIMAL),
        ([Number("9" * 33)], STRING),
        ([Number("1e31")], DECIMAL),
        ([Number("1e32")], STRING),
        ([1, Number("1e400")], STRING),
        ([Number("9" * 32 + ".9999999")], STRING),
        ([True, False], BOOLEAN),
        ([True, 1], STRING),
        ([True, "true"], STRING),
        ([1, "x"], STRING),
        ([1, "1"], STRING),
        (["12"], STRING),
        (["x"], STRING),
        ([""], STRING),
        (["2024-02-29T12:00:00Z"], TIMESTAMP),
        (["2024-02-29T12:00:00.123456789+05:45", "2024-02-29T12:00"], TIMESTAMP),
        (["2024-02-29T12:00:00Z", "2024-02-29"], STRING),
        (["2024-02-29", "2024-02-29T12:00:00Z"], STRING),
        (["2024-02-29T12:00:00Z", "2023-02-29T12:00:00Z"], STRING),
        (["0000-12-31T23:59:59-01:00"], STRING),
        (["2024-02-29T12:00:00Z", 1709208000], STRING),
        ([[1, 2]], STRING),
        ([[], 1], STRING),
        ([None], STRING),
    ],
)
def test_the_type_of_a_column_follows_from_all_its_values(values: list[Any], expected: ColumnType) -> None:
    assert infer(seen(*values)) is expected
    assert infer(seen(*reversed(values))) is expected


@given(COLUMNS, st.randoms(use_true_random=False))
def test_the_type_does_not_depend_on_order_or_grouping(values: list[Any], dice: Any) -> None:
    def type_of(*parts: list[Any]) -> ColumnType:
        return infer(reduce(or_, (seen_in(typed) for part in parts for typed in by_kind(part)), Seen.NOTHING))

    mixed = dice.sample(values, len(values))
    half = len(values) // 2
    assert type_of(values) is type_of(mixed)
    assert type_of(values) is type_of(*([value] for value in values))
    assert type_of(values) is type_of(mixed[:half], mixed[half:])


@either_way
@given(COLUMNS)
def test_the_type_that_follows_from_values_holds_them_all(casts: Casts, values: list[Any]) -> None:
    parts = list(by_kind(values))
    target = infer(reduce(or_, map(seen_in, parts), Seen.NOTHING))
    for part in parts:
        assert {misfit.reason for misfit in casts.cast(part, target).misfits} <= {ROUNDED, CUT}


def test_more_evidence_never_makes_a_type_narrower() -> None:
    wider = {BIGINT: {BIGINT, DECIMAL, STRING}, DECIMAL: {DECIMAL, STRING}}
    for some, more in product(map(Seen, range(1, 128)), Seen):
        assert infer(some | more) in wider.get(infer(some), {infer(some), STRING})


# Casting


@either_way
@pytest.mark.parametrize("target", ColumnType)
@given(values=COLUMNS)
def test_the_cell_gives_the_value_back_or_a_misfit_carries_it(
    casts: Casts, target: ColumnType, values: list[Any]
) -> None:
    for kind, array in by_kind(values):
        made = casts.cast(Typed(kind, array), target)
        assert made.values.type == target.arrow
        assert len(made.values) == len(values)
        for value, (cell, misfits) in zip(array.to_pylist(), cells_and_misfits(made), strict=True):
            if value is None:
                assert cell is None
                assert not misfits
            elif not misfits:
                assert held(kind, target, value, cell)
            else:
                ((text, reason),) = misfits
                assert canonical(read_exactly(text)) == sent(kind, value)
                assert reason in REASONS
                assert (cell is not None) == (reason in BESIDE_THE_CELL)
                assert not held(kind, target, value, cell)


@either_way
@given(COLUMNS)
def test_text_takes_everything(casts: Casts, values: list[Any]) -> None:
    for typed in by_kind(values):
        assert casts.cast(typed, STRING).misfits == []


@either_way
@pytest.mark.parametrize("target", ColumnType)
@given(values=COLUMNS)
def test_a_value_is_cast_alike_in_any_company(casts: Casts, target: ColumnType, values: list[Any]) -> None:
    for kind, array in by_kind(values):
        together = list(cells_and_misfits(casts.cast(Typed(kind, array), target)))
        alone = [
            next(cells_and_misfits(casts.cast(Typed(kind, array[row : row + 1]), target))) for row in range(len(array))
        ]
        assert together == alone


@either_way
@pytest.mark.parametrize("target", ColumnType)
@given(values=COLUMNS)
def test_without_keep_rounded_only_rounded_and_cut_originals_are_dropped(
    casts: Casts, target: ColumnType, values: list[Any]
) -> None:
    for typed in by_kind(values):
        kept, dropped = casts.cast(typed, target), casts.cast(typed, target, keep_rounded=False)
        assert dropped.values.equals(kept.values)
        assert dropped.misfits == [misfit for misfit in kept.misfits if misfit.reason not in (ROUNDED, CUT)]


def moment(text: str) -> Any:
    instant = instants.parse(text)
    assert instant
    return pa.scalar(instant.micros, pa.int64()).cast(TIMESTAMP.arrow).as_py()


@pytest.mark.parametrize(
    ("value", "target", "cell", "reason"),
    [
        # whole numbers
        (3, BIGINT, 3, None),
        (3, DECIMAL, Decimal("3.000000"), None),
        (3, STRING, "3", None),
        (3, BOOLEAN, None, "not a boolean"),
        (1, BOOLEAN, None, "not a boolean"),
        (3, TIMESTAMP, None, "not a timestamp"),
        (2**63 - 1, BIGINT, 2**63 - 1, None),
        (2**63, BIGINT, None, TOO_LARGE),
        (-(2**63) - 1, BIGINT, None, TOO_LARGE),
        (2**63 - 1, DECIMAL, Decimal(2**63 - 1), None),
        (10**28, BIGINT, None, TOO_LARGE),
        (10**29, BIGINT, None, TOO_LARGE),
        (int("1" * 30), BIGINT, None, TOO_LARGE),
        (int("1" * 30), DECIMAL, Decimal("1" * 30), None),
        (int("1" * 30), STRING, "1" * 30, None),
        (int("9" * 40), BIGINT, None, TOO_LARGE),
        (int("9" * 40), DECIMAL, None, TOO_LARGE),
        (10**32, DECIMAL, None, TOO_LARGE),
        (10**32 - 1, DECIMAL, Decimal(10**32 - 1), None),
        # fractions
        (Number("1.9"), BIGINT, None, FRACTION),
        (Number("3.0"), BIGINT, 3, None),
        (Number("1e3"), BIGINT, 1000, None),
        (Number("-0.0"), BIGINT, 0, None),
        (Number("-0.0"), DECIMAL, Decimal(0), None),
        (Number("1e-400"), BIGINT, None, FRACTION),
        (Number("1e400"), BIGINT, None, TOO_LARGE),
        (Number("1e400"), DECIMAL, None, TOO_LARGE),
        (Number("1e400"), STRING, "1e400", None),
        (Number("1e30"), BIGINT, None, TOO_LARGE),
        (Number("9223372036854775807.0"), BIGINT, 2**63 - 1, None),
        (Number("9223372036854775807.5"), BIGINT, None, FRACTION),
        (Number("9223372036854775808.0"), BIGINT, None, TOO_LARGE),
        (Number("-9223372036854775808.0"), BIGINT, -(2**63), None),
        (Number("-9223372036854775809.0"), BIGINT, None, TOO_LARGE),
        (Number("1.10"), DECIMAL, Decimal("1.1"), None),
        (Number("1.10"), STRING, "1.10", None),
        (Number("0.1234567"), DECIMAL, Decimal("0.123457"), ROUNDED),
        (Number("0.0000005"), DECIMAL, Decimal(0), ROUNDED),
        (Number("0.0000015"), DECIMAL, Decimal("0.000002"), ROUNDED),
        (Number("1.00000000"), DECIMAL, Decimal(1), None),
        (Number("1e-400"), DECIMAL, Decimal(0), ROUNDED),
        (Number("99999999999999999999999999999999.999999"), DECIMAL, Decimal("9" * 32 + ".999999"), None),
        (Number("99999999999999999999999999999999.9999999"), DECIMAL, None, TOO_LARGE),
        (Number("1.5"), BOOLEAN, None, "not a boolean"),
        # text
        ("12", BIGINT, 12, None),
        ("-12", BIGINT, -12, None),
        ("0", BIGINT, 0, None),
        ("-0", BIGINT, None, "not a bigint"),
        ("012", BIGINT, None, "not a bigint"),
        ("+12", BIGINT, None, "not a bigint"),
        (" 12", BIGINT, None, "not a bigint"),
        ("12\n", BIGINT, None, "not a bigint"),
        ("12.0", BIGINT, None, "not a bigint"),
        ("1_0", BIGINT, None, "not a bigint"),
        ("٣", BIGINT, None, "not a bigint"),
        ("9223372036854775807", BIGINT, 2**63 - 1, None),
        ("-9223372036854775808", BIGINT, -(2**63), None),
        ("9223372036854775808", BIGINT, None, "not a bigint"),
        ("-9223372036854775809", BIGINT, None, "not a bigint"),
        ("12", DECIMAL, Decimal(12), None),
        ("12.5", DECIMAL, Decimal("12.5"), None),
        ("12.50", DECIMAL, Decimal("12.5"), SPELLING),
        ("12.0", DECIMAL, Decimal(12), SPELLING),
        ("100", DECIMAL, Decimal(100), None),
        ("-0", DECIMAL, Decimal(0), SPELLING),
        ("1" * 30, DECIMAL, Decimal("1" * 30), None),
        ("1" * 32 + ".123456", DECIMAL, Decimal("1" * 32 + ".123456"), None),
        ("1" * 33, DECIMAL, None, "not a decimal(38,6)"),
        ("012", DECIMAL, None, "not a decimal(38,6)"),
        ("0.1234567", DECIMAL, None, "not a decimal(38,6)"),
        ("1e5", DECIMAL, None, "not a decimal(38,6)"),
        ("NaN", DECIMAL, None, "not a decimal(38,6)"),
        ("true", BOOLEAN, True, None),
        ("false", BOOLEAN, False, None),
        ("True", BOOLEAN, None, "not a boolean"),
        ("1", BOOLEAN, None, "not a boolean"),
        ("n/a", BIGINT, None, "not a bigint"),
        ("", BIGINT, None, "not a bigint"),
        ("a\x00b", STRING, "a\x00b", None),
        # date-times
        ("2024-02-29T12:00:00.5+02:00", TIMESTAMP, moment("2024-02-29T10:00:00.500000Z"), None),
        ("2024-02-29T12:00", TIMESTAMP, moment("2024-02-29T12:00:00Z"), None),
        ("2024-02-29T12:00:00.1234567Z", TIMESTAMP, moment("2024-02-29T12:00:00.123456Z"), CUT),
        ("2024-02-29T12:00:00.1234560Z", TIMESTAMP, moment("2024-02-29T12:00:00.123456Z"), None),
        ("1969-12-31T23:59:59.9999999Z", TIMESTAMP, moment("1969-12-31T23:59:59.999999Z"), CUT),
        ("2024-02-29", TIMESTAMP, None, "not a timestamp"),
        ("2023-02-29T12:00:00Z", TIMESTAMP, None, "not a timestamp"),
        ("2024-02-29T12:00:00Z", STRING, "2024-02-29T12:00:00Z", None),
        ("2024-02-29T12:00:00Z", BIGINT, None, "not a bigint"),
        # booleans
        (True, BOOLEAN, True, None),
        (True, STRING, "true", None),
        (False, STRING, "false", None),
        (True, BIGINT, None, "not a bigint"),
        (True, DECIMAL, None, "not a decimal(38,6)"),
        (True, TIMESTAMP, None, "not a timestamp"),
        # arrays
        ([1, Number("1.10"), "x"], STRING, '[1,1.10,"x"]', None),
        ([1], BIGINT, None, "not a bigint"),
        ([], DECIMAL, None, "not a decimal(38,6)"),
        ([True], BOOLEAN, None, "not a boolean"),
        (["2024-02-29T12:00:00Z"], TIMESTAMP, None, "not a timestamp"),
    ],
)
def test_each_value_in_each_type(value: Any, target: ColumnType, cell: Any, reason: str | None) -> None:
    typed = column(value)
    ((got, misfits),) = cells_and_misfits(EXACT.cast(typed, target))
    assert got == cell
    assert type(got) is type(cell)
    text = value_text(typed.kind, typed.values[0].as_py())
    assert misfits == ([(text, reason)] if reason else [])


@either_way
def test_misfits_name_their_rows(casts: Casts) -> None:
    made = casts.cast(column(None, "1", "x", None, "2", "y"), BIGINT)
    assert made.values.to_pylist() == [None, 1, None, None, 2, None]
    assert [(misfit.row, misfit.json_text) for misfit in made.misfits] == [(2, '"x"'), (5, '"y"')]


@either_way
@pytest.mark.parametrize(
    ("value", "target", "reason"),
    [
        (Number("0.1234567"), DECIMAL, ROUNDED),
        ("2024-02-29T12:00:00.1234567Z", TIMESTAMP, CUT),
        ("12.50", DECIMAL, SPELLING),
        ("n/a", DECIMAL, "not a decimal(38,6)"),
        ("soon", TIMESTAMP, "not a timestamp"),
        (Number("1e400"), DECIMAL, TOO_LARGE),
    ],
)
def test_a_source_may_do_without_the_originals_of_what_was_rounded_or_cut(
    casts: Casts, value: Any, target: ColumnType, reason: str
) -> None:
    kept, dropped = casts.cast(column(value), target), casts.cast(column(value), target, keep_rounded=False)
    assert [misfit.reason for misfit in kept.misfits] == [reason]
    assert dropped.misfits == ([] if reason in (ROUNDED, CUT) else kept.misfits)
    assert dropped.values.equals(kept.values)


@either_way
@pytest.mark.parametrize(
    ("values", "target", "cells"),
    [
        ([Number("1.5"), None, Number("0.1234567"), Number("1e400"), Number("2.25")], DECIMAL, "1.5 - 0.123457 - 2.25"),
        (
            ["2024-02-29T12:00:00Z", None, "soon", "2024-02-29T12:00:00.1234567Z"],
            TIMESTAMP,
            "12:00:00 - - 12:00:00.123456",
        ),
    ],
)
def test_odd_values_change_nothing_for_their_neighbours(
    casts: Casts, values: list[Any], target: ColumnType, cells: str
) -> None:
    made = casts.cast(column(*values), target).values.to_pylist()
    shown = ["-" if cell is None else plain(cell).removesuffix("+00:00").rpartition(" ")[2] for cell in made]
    assert shown == cells.split()


# Best effort


def best(target: ColumnType) -> str:
    return CONVERTED[target]


@pytest.mark.parametrize(
    ("value", "target", "cell", "reason"),
    [
        # what is exact stays as it is
        ("42", BIGINT, 42, None),
        ("12.50", DECIMAL, Decimal("12.5"), SPELLING),
        ("true", BOOLEAN, True, None),
        (Number("3.0"), BIGINT, 3, None),
        # numbers
        (Number("1.9"), BIGINT, 1, TRUNCATED),
        (Number("-1.9"), BIGINT, -1, TRUNCATED),
        (Number("1.9999999999"), BIGINT, 1, TRUNCATED),
        (Number("1e-400"), BIGINT, 0, TRUNCATED),
        (Number("9223372036854775807.5"), BIGINT, 2**63 - 1, TRUNCATED),
        (Number("9223372036854775808.5"), BIGINT, None, TOO_LARGE),
        (Number("1e400"), BIGINT, None, TOO_LARGE),
        (2**63, BIGINT, None, TOO_LARGE),
        (" 42", BIGINT, 42, best(BIGINT)),
        ("42\n", BIGINT, 42, best(BIGINT)),
        ("042", BIGINT, 42, best(BIGINT)),
        ("+42", BIGINT, 42, best(BIGINT)),
        ("-0", BIGINT, 0, best(BIGINT)),
        ("000", BIGINT, 0, best(BIGINT)),
        ("-042", BIGINT, -42, best(BIGINT)),
        ("42.0", BIGINT, 42, best(BIGINT)),
        ("42.", BIGINT, 42, best(BIGINT)),
        ("1e3", BIGINT, 1000, best(BIGINT)),
        ("1.9", BIGINT, 1, TRUNCATED),
        (".9", BIGINT, 0, TRUNCATED),
        ("9223372036854775808", BIGINT, None, TOO_LARGE),
        ("1,000", BIGINT, None, "not a bigint"),
        ("1_000", BIGINT, None, "not a bigint"),
        ("4 2", BIGINT, None, "not a bigint"),
        ("٣", BIGINT, None, "not a bigint"),
        ("0x10", BIGINT, None, "not a bigint"),
        ("", BIGINT, None, "not a bigint"),
        ("-", BIGINT, None, "not a bigint"),
        (".", BIGINT, None, "not a bigint"),
        ("1e9999", BIGINT, None, "not a bigint"),
        ("9" * 101, BIGINT, None, "not a bigint"),
        (True, BIGINT, None, "not a bigint"),
        ([42], BIGINT, None, "not a bigint"),
        (" 12.5", DECIMAL, Decimal("12.5"), best(DECIMAL)),
        ("012", DECIMAL, Decimal(12), best(DECIMAL)),
        ("1e5", DECIMAL, Decimal(100000), best(DECIMAL)),
        ("0.1234567", DECIMAL, Decimal("0.123457"), best(DECIMAL)),
        ("1" * 33, DECIMAL, None, TOO_LARGE),
        ("NaN", DECIMAL, None, "not a decimal(38,6)"),
        ("12,5", DECIMAL, None, "not a decimal(38,6)"),
        # booleans
        ("TRUE", BOOLEAN, True, best(BOOLEAN)),
        ("False", BOOLEAN, False, best(BOOLEAN)),
        (" yes ", BOOLEAN, True, best(BOOLEAN)),
        ("No", BOOLEAN, False, best(BOOLEAN)),
        ("on", BOOLEAN, True, best(BOOLEAN)),
        ("off", BOOLEAN, False, best(BOOLEAN)),
        ("1", BOOLEAN, True, best(BOOLEAN)),
        ("0", BOOLEAN, False, best(BOOLEAN)),
        (1, BOOLEAN, True, best(BOOLEAN)),
        (0, BOOLEAN, False, best(BOOLEAN)),
        (Number("1.0"), BOOLEAN, True, best(BOOLEAN)),
        (2, BOOLEAN, None, "not a boolean"),
        (-1, BOOLEAN, None, "not a boolean"),
        (Number("0.0000001"), BOOLEAN, None, "not a boolean"),
        (Number("1e400"), BOOLEAN, None, "not a boolean"),
        ("maybe", BOOLEAN, None, "not a boolean"),
        ("2", BOOLEAN, None, "not a boolean"),
        ("", BOOLEAN, None, "not a boolean"),
        # instants
        ("2026-11-02", TIMESTAMP, moment("2026-11-02T00:00:00Z"), best(TIMESTAMP)),
        ("2026/11/02", TIMESTAMP, moment("2026-11-02T00:00:00Z"), best(TIMESTAMP)),
        ("2026-11/02", TIMESTAMP, None, "not a timestamp"),
        ("2026-11-02 10:00:00", TIMESTAMP, moment("2026-11-02T10:00:00Z"), best(TIMESTAMP)),
        ("2020-01-15 14:57:24.898", TIMESTAMP, moment("2020-01-15T14:57:24.898Z"), best(TIMESTAMP)),
        ("2020-01-15 14:57:24,898", TIMESTAMP, moment("2020-01-15T14:57:24.898Z"), best(TIMESTAMP)),
        ("2026-11-02 10:00", TIMESTAMP, moment("2026-11-02T10:00:00Z"), best(TIMESTAMP)),
        ("2026-11-02 10:00:00 UTC", TIMESTAMP, moment("2026-11-02T10:00:00Z"), best(TIMESTAMP)),
        ("2026-11-02 10:00:00 +0100", TIMESTAMP, moment("2026-11-02T09:00:00Z"), best(TIMESTAMP)),
        ("2026-11-02t10:00:00z", TIMESTAMP, moment("2026-11-02T10:00:00Z"), best(TIMESTAMP)),
        (" 2026-11-02T10:00:00Z ", TIMESTAMP, moment("2026-11-02T10:00:00Z"), best(TIMESTAMP)),
        ("Mon, 02 Nov 2026 10:00:00 GMT", TIMESTAMP, moment("2026-11-02T10:00:00Z"), best(TIMESTAMP)),
        ("2 Nov 2026 10:00 +0100", TIMESTAMP, moment("2026-11-02T09:00:00Z"), best(TIMESTAMP)),
        (
            "Mon Nov 02 2026 10:00:00 GMT+0100 (Central European Standard Time)",
            TIMESTAMP,
            moment("2026-11-02T09:00:00Z"),
            best(TIMESTAMP),
        ),
        ("Mon, 31 Feb 2026 10:00:00 GMT", TIMESTAMP, None, "not a timestamp"),
        ("1 Jan 0001 00:00:00 +0100", TIMESTAMP, None, "not a timestamp"),
        (1795262400, TIMESTAMP, moment("2026-11-21T12:00:00Z"), best(TIMESTAMP)),
        (1795262400123, TIMESTAMP, moment("2026-11-21T12:00:00.123Z"), best(TIMESTAMP)),
        (Number("1795262400.5"), TIMESTAMP, moment("2026-11-21T12:00:00.5Z"), best(TIMESTAMP)),
        ("1795262400", TIMESTAMP, moment("2026-11-21T12:00:00Z"), best(TIMESTAMP)),
        (10**8, TIMESTAMP, moment("1973-03-03T09:46:40Z"), best(TIMESTAMP)),
        (10**8 - 1, TIMESTAMP, None, "not a timestamp"),
        (10**11 - 1, TIMESTAMP, moment("5138-11-16T09:46:39Z"), best(TIMESTAMP)),
        (10**11, TIMESTAMP, moment("1973-03-03T09:46:40Z"), best(TIMESTAMP)),
        (10**14 - 1, TIMESTAMP, moment("5138-11-16T09:46:39.999Z"), best(TIMESTAMP)),
        (10**14, TIMESTAMP, None, "not a timestamp"),
        (20261102, TIMESTAMP, None, "not a timestamp"),
        (-1795262400, TIMESTAMP, None, "not a timestamp"),
        ("02.11.2026", TIMESTAMP, None, "not a timestamp"),
        ("11/02/2026", TIMESTAMP, None, "not a timestamp"),
        ("2026-02-30", TIMESTAMP, None, "not a timestamp"),
        ("2026-11-02 25:00:00", TIMESTAMP, None, "not a timestamp"),
        ("yesterday", TIMESTAMP, None, "not a timestamp"),
        (True, TIMESTAMP, None, "not a timestamp"),
    ],
)
def test_a_value_is_read_as_it_is_plainly_meant(value: Any, target: ColumnType, cell: Any, reason: str | None) -> None:
    typed = column(value)
    ((got, misfits),) = cells_and_misfits(BEST_EFFORT.cast(typed, target))
    assert got == cell
    assert type(got) is type(cell)
    assert misfits == ([(value_text(typed.kind, typed.values[0].as_py()), reason)] if reason else [])


@pytest.mark.parametrize("target", ColumnType)
@given(values=COLUMNS)
def test_best_effort_changes_no_cell_that_exact_casts_fill(target: ColumnType, values: list[Any]) -> None:
    for typed in by_kind(values):
        exact, best_effort = (list(cells_and_misfits(casts.cast(typed, target))) for casts in (EXACT, BEST_EFFORT))
        for (cell, misfits), other in zip(exact, best_effort, strict=True):
            assert cell is None or (cell, misfits) == other


@given(st.text("0123456789+-.,eE:/ TZGMUtz", max_size=30) | texts())
def test_whatever_a_text_looks_like_it_is_read_or_left_alone(text: str) -> None:
    for target in ColumnType:
        made = BEST_EFFORT.cast(Typed(Kind.TEXT, pa.array([text])), target)
        assert made.misfits or made.values[0].is_valid
