"""Date-times as instants."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from eventlake.events import instants
from eventlake.events.instants import FIRST, LAST, Instant, parse
from eventlake.native import texts as native
from eventlake.schema import instant_columns
from strategies import date_times, texts

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ZONES = st.sampled_from(["", "Z", "+00:00", "-00:00", "+01", "-0330", "+05:45", "-23:59", "+2359", "-11"])

LAST_TEXT = "9999-12-31T23:59:59.999999"


@st.composite
def existing(draw: DrawFn) -> str:
    """A date-time that both readers know: valid, with 0 to 9 digits of a fraction."""
    moment = draw(st.integers(FIRST, LAST).map(instants.to_text) | st.sampled_from(["0001-01-01T00:00:00", LAST_TEXT]))
    to_the_second, _, micros = moment.rstrip("Z").partition(".")
    digits = draw(st.integers(0, 9))
    if digits == 0:
        return f"{to_the_second[: draw(st.sampled_from([16, 19]))]}{draw(ZONES)}"
    fraction = f"{micros or 0:0<6}{draw(st.integers(0, 999)):03}"[:digits]
    return f"{to_the_second}.{fraction}{draw(ZONES)}"


def by_the_standard_library(text: str) -> int | None:
    """Microseconds since 1970; None out of the range of `datetime`."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    micros = (moment - EPOCH) // timedelta(microseconds=1)
    return micros if FIRST <= micros <= LAST else None


@given(existing())
@example("0001-01-01T00:00:00+00:01")
@example("9999-12-31T23:59:59.999999-00:01")
def test_date_times_are_read_as_the_standard_library_reads_them(text: str) -> None:
    instant = parse(text)
    assert (instant and instant.micros) == by_the_standard_library(text)


@given(existing())
def test_only_what_is_finer_than_a_microsecond_is_not_exact(text: str) -> None:
    instant = parse(text)
    fraction = text.partition(".")[2].rstrip("Z").partition("+")[0].partition("-")[0]
    assert instant is None or instant.exact == (not fraction[6:].strip("0"))


@given(texts() | date_times())
def test_what_is_read_is_a_date_time_of_the_standard_library(text: str) -> None:
    instant = parse(text)
    if instant is not None:
        assert by_the_standard_library(text) == instant.micros


@given(
    st.lists(st.none() | existing(), max_size=6)
    | st.lists(st.none() | date_times(), max_size=6)
    | st.lists(existing().map(lambda text: text.rstrip("Z")[:19] + "Z"), max_size=6)
    | st.lists(st.none() | texts(), max_size=3)
)
@example(["0000-12-31T23:59:59-01:00"])
@example([None])
@example([])
def test_a_column_is_read_at_once_as_one_by_one(column: list[str | None]) -> None:
    one_by_one = [None if text is None else parse(text) for text in column]
    for array in (pa.array(column, pa.string()), pa.array(["2026-01-01T00:00:00Z", *column], pa.string())[1:]):
        values, is_exact, is_cut = instant_columns.parse(array)
        assert values.type == instant_columns.ARROW
        assert values.cast(pa.int64()).to_pylist() == [instant and instant.micros for instant in one_by_one]
        assert is_exact.tolist() == [instant is not None and instant.exact for instant in one_by_one]
        assert is_cut.tolist() == [instant is not None and not instant.exact for instant in one_by_one]
        slowly, quickly = instant_columns.one_by_one(array), native.instants(array)
        assert [part.dtype for part in slowly] == [part.dtype for part in quickly]
        assert slowly.found.tolist() == quickly.found.tolist()
        assert slowly.values[slowly.found > 0].tolist() == quickly.values[quickly.found > 0].tolist()
    present = [instant for text, instant in zip(column, one_by_one, strict=True) if text is not None]
    found = instant_columns.are_instants(pa.array(column, pa.string()).drop_null())
    assert found.tolist() == [instant is not None for instant in present]


@given(st.lists(st.none() | date_times() | texts(), max_size=6))
def test_without_the_library_a_column_is_read_the_same(column: list[str | None]) -> None:
    array = pa.array(column, pa.string())
    micros, found = instant_columns.one_by_one(array)
    values, is_exact, is_cut = instant_columns.parse(array)
    assert (found == 1).tolist() == is_exact.tolist()
    assert (found == 2).tolist() == is_cut.tolist()
    assert micros[found > 0].tolist() == values.drop_null().cast(pa.int64()).to_pylist()


@given(st.integers(FIRST, LAST))
@example(FIRST)
@example(LAST)
@example(0)
@example(-1)
def test_an_instant_is_written_as_it_is_read(micros: int) -> None:
    assert parse(instants.to_text(micros)) == Instant(micros, exact=True)
    assert instants.micros_of(EPOCH + timedelta(microseconds=micros)) == micros


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2024-02-29T12:34:56Z", "2024-02-29T12:34:56"),
        ("2024-02-29T12:34:56", "2024-02-29T12:34:56"),
        ("2024-02-29T12:34Z", "2024-02-29T12:34:00"),
        ("2024-02-29T12:34", "2024-02-29T12:34:00"),
        ("2024-02-29T12:34:56+02:00", "2024-02-29T10:34:56"),
        ("2024-02-29T12:34:56+0200", "2024-02-29T10:34:56"),
        ("2024-02-29T12:34:56+02", "2024-02-29T10:34:56"),
        ("2024-02-29T12:34:56-05:45", "2024-02-29T18:19:56"),
        ("2024-02-29T12:34:56-00:00", "2024-02-29T12:34:56"),
        ("2024-02-29T00:00:00+23:59", "2024-02-28T00:01:00"),
        ("2024-02-29T12:34:56.1Z", "2024-02-29T12:34:56.100000"),
        ("2024-02-29T12:34:56.000001Z", "2024-02-29T12:34:56.000001"),
        ("2024-02-29T12:34:56.123456000Z", "2024-02-29T12:34:56.123456"),
        ("2000-02-29T00:00:00Z", "2000-02-29T00:00:00"),
        ("1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00"),
        ("0001-01-01T01:00:00+01:00", "0001-01-01T00:00:00"),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999"),
    ],
)
def test_a_full_date_time_is_an_instant(text: str, utc: str) -> None:
    expected = (datetime.fromisoformat(f"{utc}+00:00") - EPOCH) // timedelta(microseconds=1)
    assert parse(text) == Instant(expected, exact=True)


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("2024-02-29T12:34:56.1234567Z", "2024-02-29T12:34:56.123456Z"),
        ("2024-02-29T12:34:56.1234569Z", "2024-02-29T12:34:56.123456Z"),
        ("1969-12-31T23:59:59.9999999Z", "1969-12-31T23:59:59.999999Z"),
        ("2024-02-29T12:34:56." + "0" * 40 + "1", "2024-02-29T12:34:56Z"),
        ("9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.999999Z"),
    ],
)
def test_what_is_finer_than_a_microsecond_is_cut(text: str, cut: str) -> None:
    whole = parse(cut)
    assert whole
    assert parse(text) == Instant(whole.micros, exact=False)
    assert instant_columns.parse(pa.array([text])).is_cut.tolist() == [True]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2024",
        "2024-02",
        "2024-02-29",
        "12:34:56",
        "2024-02-29T12",
        "2024-02-29 12:34:56",
        "2024-02-29t12:34:56z",
        "20240229T123456Z",
        "2024-W09-4T12:34:56Z",
        "2024-060T12:34:56Z",
        "2023-02-29T12:34:56Z",
        "1900-02-29T12:34:56Z",
        "2024-02-30T12:34:56Z",
        "2024-13-01T12:34:56Z",
        "2024-00-01T12:34:56Z",
        "2024-04-31T12:34:56Z",
        "2024-02-29T24:00:00Z",
        "2024-02-29T12:60:00Z",
        "2024-12-31T23:59:60Z",
        "2024-02-29T12:34:56.Z",
        "2024-02-29T12:34:56,5Z",
        "2024-02-29T12:34.5Z",
        "2024-02-29T12:34:56+24:00",
        "2024-02-29T12:34:56+23:60",
        "2024-02-29T12:34:56+2",
        "2024-02-29T12:34:56+02:0",
        "2024-02-29T12:34:56 Z",
        " 2024-02-29T12:34:56Z",
        "2024-02-29T12:34:56Z\n",
        "2024-02-29T12:34:56\x00",
        "٢٠٢٤-02-29T12:34:56Z",
        "0000-01-01T00:00:00Z",
        "0000-12-31T23:59:59-01:00",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "-2024-02-29T12:34:56Z",
        "12024-02-29T12:34:56Z",
        "1709210096",
    ],
)
def test_what_is_not_a_full_date_time_is_no_instant(text: str) -> None:
    assert parse(text) is None
    assert instant_columns.are_instants(pa.array([text, "2024-02-29T12:34:56Z"])).tolist() == [False, True]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z"),
        ("2024-02-29T12:34:56.7Z", "2024-02-29T12:34:56.700Z"),
        ("2024-02-29T12:34:56.789999Z", "2024-02-29T12:34:56.789Z"),
        ("1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
    ],
)
def test_segment_is_written_with_three_decimals(text: str, written: str) -> None:
    instant = parse(text)
    assert instant
    assert instants.to_milliseconds(instant.micros) == written


@given(st.integers(FIRST, LAST))
def test_milliseconds_are_cut_and_not_rounded(micros: int) -> None:
    assert parse(instants.to_milliseconds(micros)) == Instant(micros // 1000 * 1000, exact=True)
