"""What values are to RudderStack, and what becomes of them in a column of another type."""

import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventlake.events import instants
from eventlake.schema.cast import BESIDE_THE_CELL, REASONS
from eventlake.schema.kinds import Kind, Typed
from eventlake.schema.rudder_values import CASTS, tallied, timestamp
from eventlake.schema.tallies import union
from eventlake.schema.types import ColumnType, Seen, infer


def kind_of(kind: Kind, *values: Any) -> ColumnType:
    """The type of a column with these values."""
    return infer(union(tallied(Typed(kind, pa.array(values)))), ColumnType.DOUBLE)


def cell(kind: Kind, value: Any, target: ColumnType) -> tuple[Any, str | None]:
    """What a column holds of a value, and why the original is kept besides."""
    made = CASTS.cast(Typed(kind, pa.array([value])), target)
    assert made.values.type == target.arrow
    return made.values[0].as_py(), made.misfits[0].reason if made.misfits else None


@pytest.mark.parametrize("number", ["5.0", "-3.00", "1e3", "1E+2", "9.2e18", "0.0", "-0.0", "100e-2"])
def test_a_number_that_is_whole_is_a_bigint_however_it_is_written(number: str) -> None:
    assert kind_of(Kind.NUMBER, number) is ColumnType.BIGINT
    assert cell(Kind.NUMBER, number, ColumnType.BIGINT) == (int(Decimal(number)), None)


@pytest.mark.parametrize("number", ["5.5", "1e-3", "0.1", "1e21", "9223372036854775808", "1e300", "-0.5", "1e-400"])
def test_any_other_number_is_a_double(number: str) -> None:
    assert kind_of(Kind.NUMBER, number) is ColumnType.DOUBLE
    assert kind_of(Kind.NUMBER, number, "5.0") is ColumnType.DOUBLE


def test_a_number_beyond_all_doubles_makes_its_column_text() -> None:
    assert kind_of(Kind.NUMBER, "1e400") is ColumnType.STRING
    assert cell(Kind.NUMBER, "1e400", ColumnType.STRING) == ("1e400", None)
    assert cell(Kind.NUMBER, "1e400", ColumnType.DOUBLE) == (None, "does not fit")


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2019-09-26", "2019-09-26T00:00:00"),
        ("2009-05-19 14:39:22", "2009-05-19T14:39:22"),
        ("2020-02-11 04:56:55.175116", "2020-02-11T04:56:55.175116"),
        ("2019-09-26T06:30:12.984+0530", "2019-09-26T01:00:12.984"),
        ("2019-09-26T06:30:12.984-05:30", "2019-09-26T12:00:12.984"),
        ("2021-06-01T00:00", "2021-06-01T00:00:00"),
        ("2021-06-01 ", "2021-06-01T00:00:00"),
        ("2021-06-01T23:59:59z", "2021-06-01T23:59:59"),
        ("0001-01-01", "0001-01-01T00:00:00"),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999"),
    ],
)
def test_texts_that_are_timestamps(text: str, moment: str) -> None:
    assert kind_of(Kind.TEXT, text) is ColumnType.TIMESTAMP
    expected = datetime.fromisoformat(moment).replace(tzinfo=UTC)
    assert cell(Kind.TEXT, text, ColumnType.TIMESTAMP) == (expected, None)


@pytest.mark.parametrize(
    "text",
    [
        "20210101",
        "2021-1-1",
        "2021-06",
        "06/01/2021",
        "Tue, 01 Jun 2021 00:00:00 GMT",
        "2021-06-01T24:00:00",
        "2021-06-01T00:00:60",
        "2021-06-01T00:00:00+05",
        "2021-06-01T00:00:00,5Z",
        " 2021-06-01",
        "2021-06-01T",
        "2021-13-01",
        "2021-06-32",
        "0000-01-01",
        "+2021-06-01",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
        "2021-06-01T00:00:00.000000000000000000000Z",
        "1622505600",
        "12",
        "true",
    ],
)
def test_texts_that_are_none(text: str) -> None:
    assert kind_of(Kind.TEXT, text) is ColumnType.STRING
    assert cell(Kind.TEXT, text, ColumnType.TIMESTAMP) == (None, "not a timestamp")


def test_forty_characters_are_a_timestamp_and_one_more_is_none() -> None:
    longest = "2021-06-01T00:00:00.50000000000000000000Z"[:-2] + "Z"
    assert len(longest) == 40
    assert kind_of(Kind.TEXT, longest) is ColumnType.TIMESTAMP
    assert kind_of(Kind.TEXT, longest[:-1] + "0Z") is ColumnType.STRING


def test_a_day_that_is_not_in_its_month_is_a_later_one_and_kept_as_it_was_sent() -> None:
    moment, reason = cell(Kind.TEXT, "1988-04-31", ColumnType.TIMESTAMP)
    assert (moment, reason) == (
        datetime(1988, 5, 1, tzinfo=UTC),
        "there is no such day, so the cell has a later one",
    )
    assert cell(Kind.TEXT, "2021-02-29T10:00:00Z", ColumnType.TIMESTAMP)[0] == datetime(2021, 3, 1, 10, tzinfo=UTC)


def test_a_time_finer_than_a_microsecond_is_cut_and_kept() -> None:
    assert cell(Kind.TEXT, "2021-06-01T00:00:00.1234567Z", ColumnType.TIMESTAMP) == (
        datetime(2021, 6, 1, 0, 0, 0, 123456, tzinfo=UTC),
        "finer than a microsecond",
    )
    cut = Typed(Kind.TEXT, pa.array(["2021-06-01T00:00:00.1234567Z"]))
    assert CASTS.cast(cut, ColumnType.TIMESTAMP, keep_rounded=False).misfits == []


@pytest.mark.parametrize(
    ("kind", "value", "target", "held", "reason"),
    [
        (Kind.NUMBER, "1.501", ColumnType.BIGINT, 1, "cut to a whole number"),
        (Kind.NUMBER, "-1.9", ColumnType.BIGINT, -1, "cut to a whole number"),
        (Kind.NUMBER, "9007199254740993.7", ColumnType.BIGINT, 9007199254740993, "cut to a whole number"),
        (Kind.NUMBER, "1e-5000", ColumnType.BIGINT, 0, "cut to a whole number"),
        (Kind.NUMBER, "9223372036854775807.0", ColumnType.BIGINT, 2**63 - 1, None),
        (Kind.NUMBER, "9223372036854775808.0", ColumnType.BIGINT, None, "does not fit"),
        (Kind.NUMBER, "-9223372036854775808.0", ColumnType.BIGINT, -(2**63), None),
        (Kind.NUMBER, "1e99999999999999999999", ColumnType.BIGINT, None, "does not fit"),
        (Kind.INTEGER, 5, ColumnType.DOUBLE, 5.0, None),
        (Kind.INTEGER, 2**53, ColumnType.DOUBLE, 2.0**53, None),
        (Kind.INTEGER, 2**53 + 1, ColumnType.DOUBLE, 2.0**53, "rounded to a double"),
        (Kind.INTEGER, -(2**53) - 1, ColumnType.DOUBLE, -(2.0**53), "rounded to a double"),
        (Kind.NUMBER, "0.1", ColumnType.DOUBLE, 0.1, None),
        (Kind.NUMBER, "0.10000000000000001", ColumnType.DOUBLE, 0.1, "rounded to a double"),
        (Kind.NUMBER, "123456789.1234567", ColumnType.DOUBLE, 123456789.1234567, None),
        (Kind.NUMBER, "1e-400", ColumnType.DOUBLE, 0.0, "rounded to a double"),
        (Kind.INTEGER, 5, ColumnType.STRING, "5", None),
        (Kind.BOOLEAN, True, ColumnType.STRING, "true", None),
        (Kind.JSON, "[1]", ColumnType.STRING, "[1]", None),
        (Kind.TEXT, "12", ColumnType.BIGINT, None, "not a bigint"),
        (Kind.TEXT, "1.5", ColumnType.DOUBLE, None, "not a double"),
        (Kind.TEXT, "true", ColumnType.BOOLEAN, None, "not a boolean"),
        (Kind.BOOLEAN, True, ColumnType.BIGINT, None, "not a bigint"),
        (Kind.INTEGER, 1, ColumnType.BOOLEAN, None, "not a boolean"),
        (Kind.INTEGER, 1_600_000_000, ColumnType.TIMESTAMP, None, "not a timestamp"),
        (Kind.JSON, "[]", ColumnType.BIGINT, None, "not a bigint"),
    ],
)
def test_what_a_column_of_another_type_holds(
    kind: Kind, value: Any, target: ColumnType, held: Any, reason: str | None
) -> None:
    assert cell(kind, value, target) == (held, reason)
    assert reason is None or reason in REASONS
    assert (held is not None) == (reason in BESIDE_THE_CELL or reason is None)


numbers = st.one_of(
    st.from_regex(r"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
)


@given(st.lists(numbers, min_size=1, max_size=5))
@example(["0.1", "1e5", "5.0"])
def test_a_double_gives_its_number_back_or_the_original_is_kept(texts: list[str]) -> None:
    made = CASTS.cast(Typed(Kind.NUMBER, pa.array(texts)), ColumnType.DOUBLE)
    kept = {misfit.row: misfit.json_text for misfit in made.misfits}
    for row, (text, held) in enumerate(zip(texts, made.values.to_pylist(), strict=True)):
        if row in kept:
            assert kept[row] == text
        else:
            assert Decimal(repr(held)) == Decimal(text)
        assert held is None or held == float(text)
        assert (held is None) == math.isinf(float(text))


dates = st.from_regex(r"\d{4}-\d\d-\d\d([T ](\d\d):(\d\d)(:(\d\d)(\.\d{1,9})?)?(Z|z|[+-]\d\d:?\d\d)?)?", fullmatch=True)


@given(st.one_of(dates, st.datetimes().map(lambda moment: moment.isoformat() + "Z"), st.text(max_size=12)))
@example("2020-01-01T00:00:00.000000Z")
def test_columns_and_single_texts_agree_on_what_is_a_timestamp(text: str) -> None:
    one = timestamp(text)
    values = pa.array([text, None, text])
    made = CASTS.cast(Typed(Kind.TEXT, values), ColumnType.TIMESTAMP)
    seen = union(tallied(Typed(Kind.TEXT, values)))
    assert seen == (Seen.TIMESTAMP if one else Seen.TEXT)
    held = [None if moment is None else instants.micros_of(moment) for moment in made.values.to_pylist()]
    assert held == [one.value, None, one.value] if one else [None] * 3
