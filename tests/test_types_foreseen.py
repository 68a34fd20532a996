"""Types that people can foresee: why a column is text, and types that are declared before the first value comes."""

import json
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import InProcess, Lake, track
from eventlake.control.settings import SegmentSettings
from eventlake.errors import InvalidSettingsError
from eventlake.schema import declared
from eventlake.schema.kinds import Kind, Typed, by_kind
from eventlake.schema.tallies import SAMPLE_LENGTH, Tally, joined, why_text
from eventlake.schema.tallying import tallied
from eventlake.schema.types import SEGMENT_TYPES, ColumnType, Seen
from eventlake.sync import jobs
from test_kinds_and_cast import COLUMNS, as_parsed
from test_laws import all_rows, balanced, copies, lost, new_lake, with_id


@pytest.fixture
def quick(tmp_path: Path) -> Lake:
    """A lake that needs no Spark."""
    return Lake(tmp_path / "workspace", InProcess())


def orders(number: int, **properties: Any) -> list[dict[str, Any]]:
    return [track("Order", f"{number}-{n}", properties=properties) for n in range(number)]


def set_types(lake: Lake, **changes: str) -> None:
    lake.workspace.connections.change("web", changes)


# Why a column is text


def tallies_of(*values: Any) -> tuple[Tally, ...]:
    whole: tuple[Tally, ...] = ()
    for typed in by_kind([as_parsed(value) for value in values]):
        whole = joined(whole, tallied(typed))
    return whole


@given(COLUMNS, st.randoms(use_true_random=False))
def test_values_are_counted_alike_in_any_order_and_in_any_parts(values: list[Any], dice: Any) -> None:
    def counted(*parts: list[Any]) -> Counter[Seen]:
        counts: Counter[Seen] = Counter()
        for part in parts:
            for typed in by_kind(part):
                counts.update({tally.seen: tally.values for tally in tallied(typed)})
        return counts

    mixed = dice.sample(values, len(values))
    half = len(values) // 2
    assert counted(values) == counted(mixed) == counted(mixed[:half], mixed[half:])
    assert counted(values) == counted(*([value] for value in values))
    assert sum(counted(values).values()) == sum(value is not None for value in values)


def test_dates_are_told_from_texts_wherever_they_stand() -> None:
    instant, lookalike = "2026-11-15T10:20Z", "2026-99-15T10:20Z"
    texts = [
        "",
        "x",
        lookalike,
        instant,
        "2026-11-15",
        "2026/11/15T10:20:30Z",
        "ä" * 20,
        "2026-11-15 10:20:30",
        instant,
    ]
    assert [(t.seen, t.values) for t in tallies_of(*texts)] == [(Seen.TIMESTAMP, 2), (Seen.TEXT, 7)]
    assert [(t.seen, t.values) for t in tallies_of(None, instant, None)] == [(Seen.TIMESTAMP, 1)]
    assert [(t.seen, t.values) for t in tallies_of("", "")] == [(Seen.TEXT, 2)]
    part = pa.array(["x", "yy", instant, "z", instant, instant]).slice(2, 3)  # as a table's part of a column comes
    assert tallied(Typed(Kind.TEXT, part)) == (Tally(Seen.TIMESTAMP, 2, instant), Tally(Seen.TEXT, 1, "z"))


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([1] * 999 + ["n/a"], "text because 1 of 1,000 values is not a number: n/a"),
        (["n/a"] + [1.5, 2] * 3, "text because 1 of 7 values is not a number: n/a"),
        ([1, 2, 3, True, [7]], "text because 2 of 5 values are not a number: true"),
        ([True] + [1] * 9 + ["x", "x"], "text because 3 of 12 values are not a number: x"),
        ([True, False, False, "maybe"], "text because 1 of 4 values is not a boolean: maybe"),
        (["2026-11-15T10:20Z"] * 3 + ["soon"], "text because 1 of 4 values is not a timestamp: soon"),
        ([1, 2, 10**40], f"text because 1 of 3 values is too large for decimal(38,6): {str(10**40)[:SAMPLE_LENGTH]}"),
        ([1, "x"], None),  # neither is the exception
        (["x", "y", 5], None),
        (["x"], None),
        ([[1], [2]], None),
    ],
)
def test_text_is_explained_where_most_values_are_of_another_type(values: list[Any], reason: str | None) -> None:
    assert why_text(tallies_of(*values)) == reason


def test_no_more_than_the_beginning_of_a_value_is_shown() -> None:
    reason = why_text(tallies_of(1, 2, "secret" * 50))
    assert reason
    assert reason.endswith(f": {('secret' * 50)[:SAMPLE_LENGTH]}")


@pytest.mark.parametrize("events", [999, 2999])  # read one by one, and as columns
@pytest.mark.parametrize("files", [1, 3])
def test_the_report_says_which_value_made_a_column_text(quick: Lake, events: int, files: int) -> None:
    lines = [track("Order", f"m{n}", properties={"total": n + 0.5}) for n in range(events)]
    lines.append(track("Order", "odd", properties={"total": "n/a"}))
    for number in range(files):
        quick.put(*lines[number::files])
    head, table = quick.sync()
    reason = f"text because 1 of {events + 1:,} values is not a number: n/a"
    assert head["notices"] == [f"track_order.properties_total is {reason}"]
    assert table["type_reasons"] == {"properties_total": reason}
    assert quick.types("track_order")["properties_total"] == "string"


def test_many_surprises_are_counted_and_the_first_are_named(quick: Lake) -> None:
    keys = [f"k{n:02d}" for n in range(13)]
    quick.put(*(track("Order", f"m{n}", properties=dict.fromkeys(keys, "x" if n == 0 else n)) for n in range(5)))
    notices = quick.sync()[0]["notices"]
    assert len(notices) == 11
    assert notices[0].startswith("track_order.properties_k00 is text because 1 of 5 values")
    assert notices[-1] == "3 more columns became text because of a few values; see `eventlake describe`"


def test_a_column_that_is_there_already_surprises_nobody_again(quick: Lake) -> None:
    quick.sync_of(*orders(3, total=1), track("Order", "odd", properties={"total": "n/a"}))
    assert "notices" not in quick.sync_of(*orders(4, total=1))[0]


# Types declared beforehand


@pytest.mark.parametrize(
    ("pattern", "columns"),
    [
        ("properties.total", {"properties_total"}),
        ("properties_total", {"properties_total"}),
        ("properties.orderId", {"properties_order_id"}),
        ("properties.*_id", {"properties_order_id", "properties_sku_id"}),
        ("properties.*Id", {"properties_order_id", "properties_sku_id"}),
        ("*_id", {"properties_order_id", "properties_sku_id", "context_page_id"}),
        ("context.**", {"context_page_id", "context_page_total"}),
        ("properties.t*l", {"properties_total"}),
        ("total", set()),
        ("page:*total", set()),
        ("track_order:*total", {"properties_total", "context_page_total"}),
    ],
)
def test_a_pattern_names_places_or_columns(pattern: str, columns: set[str]) -> None:
    known = ["properties_total", "properties_order_id", "properties_sku_id", "context_page_id", "context_page_total"]
    (declaration,) = declared.parse(f"{pattern}=string")
    assert {name for name in known if declaration.fits("track_order", name)} == columns


def test_declared_types_win_over_what_is_seen_and_misfits_are_rescued(quick: Lake) -> None:
    set_types(quick, types="properties.total=decimal, properties.*_id=string, page:properties.n=string")
    head, table = quick.sync_of(
        track("Order", "m1", properties={"total": 12, "order_id": 7, "n": 1}),
        track("Order", "m2", properties={"total": "n/a", "order_id": 8}),
    )
    types = quick.types("track_order")
    assert types["properties_total"] == "decimal(38,6)"
    assert types["properties_order_id"] == "string"
    assert types["properties_n"] == "bigint"  # that declaration is for another table
    rows = quick.rows("track_order")
    assert [row["properties_total"] for row in rows] == [Decimal(12), None]
    assert [row["properties_order_id"] for row in rows] == ["7", "8"]
    assert json.loads(rows[1]["_rescued_data"])["/properties/total"]["value"] == "n/a"
    assert table["type_reasons"] == {
        "properties_order_id": "declared: properties_*_id=string",
        "properties_total": "declared: properties_total=decimal(38,6)",
    }
    assert head["notices"] == ["1 value did not fit its column; see _rescued_data"]


def test_of_two_declarations_that_fit_the_first_counts(quick: Lake) -> None:
    set_types(quick, types="properties.a_id=bigint, properties.*_id=string")
    quick.sync_of(track("Order", properties={"a_id": 1, "b_id": 1}))
    assert quick.types("track_order")["properties_a_id"] == "bigint"
    assert quick.types("track_order")["properties_b_id"] == "string"


def test_a_pattern_leaves_the_envelope_alone(quick: Lake) -> None:
    set_types(quick, types="*=boolean")
    quick.sync_of(track("Order", "m1", userId="u1", properties={"x": "true"}))
    types = quick.types("track_order")
    assert (types["received_at"], types["message_id"], types["user_id"]) == ("timestamp", "string", "string")
    assert types["properties_x"] == "boolean"
    assert quick.row("track_order")["received_at"] == datetime(2026, 11, 15, 10, 20, 30, 123000, tzinfo=UTC)


def test_a_column_that_exists_keeps_its_type_also_when_all_tables_are_written_anew(quick: Lake) -> None:
    quick.sync_of(track("Order", "m1", properties={"total": 1}))
    set_types(quick, types="properties.*=string", numbers="decimal")
    quick.sync_of(track("Order", "m2", properties={"total": 2, "tax": 3}))
    wanted = {"properties_total": "bigint", "properties_tax": "string"}
    for job in (
        jobs.replay(quick.connection, None, None),
        jobs.rebuild(quick.workspace.connections.preview("web", {"table_prefix": "shop"})),
    ):
        quick.run(job)
        (table,) = quick.tables()
        assert {name: quick.types(table)[name] for name in wanted} == wanted
    quick.run(jobs.retype(quick.connection, "track_order", "properties_total", ColumnType.TIMESTAMP))
    assert quick.types("shop_track_order")["properties_total"] == "timestamp"


def test_tables_that_get_new_names_get_the_types_that_are_declared(quick: Lake) -> None:
    quick.sync_of(track("Order", "m1", properties={"total": 1}))
    changes = {"table_naming": "plain", "types": "order:properties.total=string"}
    quick.run(jobs.rebuild(quick.workspace.connections.preview("web", changes)))
    assert quick.types("order")["properties_total"] == "string"


def test_numbers_can_be_decimal_at_once(quick: Lake) -> None:
    set_types(quick, numbers="decimal", types="properties.n=bigint")
    quick.sync_of(track("Order", "m1", properties={"total": 12, "n": 5, "big": 2**63 - 1}))
    quick.sync_of(track("Order", "m2", properties={"total": 12.5, "n": 5}))
    assert quick.types("track_order")["properties_n"] == "bigint"
    rows = quick.rows("track_order")
    assert [row["properties_total"] for row in rows] == [Decimal(12), Decimal("12.5")]
    assert rows[0]["properties_big"] == Decimal(2**63 - 1)
    assert "_rescued_data" not in rows[0]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("properties.total", "PLACE=TYPE"),
        ("=decimal", "PLACE=TYPE"),
        ("page:=decimal", "PLACE=TYPE"),
        ("a=b=string", "PLACE=TYPE"),
        ("properties.total=money", "use one of bigint, boolean, decimal"),
        ("properties.total=", "is not a column type"),
        ("properties..total=decimal", "empty part"),
        (".total=decimal", "empty part"),
        ("receivedAt=string", "received_at is of the envelope, and always made as timestamp"),
        ("a=string, page:message_id=string", "message_id is of the envelope"),
        ("user_id=bigint", "user_id is of the envelope"),
        ("_rescued_data=bigint", "eventlake's own"),
        ("day=bigint", "eventlake's own"),
        ("track_*:properties.a=bigint", "is not a table"),
        ("Order Completed:properties.a=bigint", "is not a table"),
    ],
)
def test_a_wrong_declaration_is_refused_with_what_is_right(quick: Lake, text: str, told: str) -> None:
    with pytest.raises(InvalidSettingsError, match="types=") as error:
        set_types(quick, types=text)
    assert told in str(error.value)
    assert quick.connection.settings.types == ""


def test_declarations_are_kept_as_they_are_understood() -> None:
    text = " page:properties.orderTotal = decimal(38,6) ,, context.*Id=string"
    made = SegmentSettings(database="web", types=text)
    assert made.types == "page:properties_order_total=decimal(38,6), context_*_id=string"
    assert SegmentSettings.model_validate(made.model_dump()) == made


# Laws

PATTERNS = st.lists(
    st.builds(
        "{}={}".format,
        st.sampled_from(["*", "properties.*", "traits.*", "context.*", "*_id", "*a*", "page:*"]),
        st.sampled_from([kind.value for kind in SEGMENT_TYPES]),
    ),
    max_size=3,
).map(", ".join)
NUMBERS = st.sampled_from(["inferred", "decimal"])


@settings(max_examples=12)
@given(st.lists(copies(), min_size=1, max_size=6), PATTERNS, NUMBERS, st.randoms(use_true_random=False))
def test_with_declared_types_nothing_is_lost_and_order_does_not_matter(
    lines: list[bytes], types: str, numbers: str, dice: Any
) -> None:
    lines = [with_id(line, f"id{number}") for number, line in enumerate(lines)]

    def load(groups: list[list[bytes]]) -> tuple[Any, Any]:
        with new_lake() as lake:
            set_types(lake, types=types, numbers=numbers)
            for group in groups:
                lake.put(*group)
            assert balanced(lake.sync())
            rows = all_rows(lake)
            assert {n: lost(line, rows[f"id{n}"]) for n, line in enumerate(lines) if lost(line, rows[f"id{n}"])} == {}
            return rows, {table: lake.types(table) for table in lake.tables()}

    shuffled = dice.sample(lines, len(lines))
    cut = dice.randint(0, len(lines))
    assert load([lines]) == load([part for part in (shuffled[:cut], shuffled[cut:]) if part])
