"""Columns and types as a user sees them."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from conftest import InProcess, Lake, SetClock, track
from eventlake.sync import jobs
from eventlake.sync.work import Sizes
from eventlake.tasks.staged import StageSizes


def test_the_whole_event_is_flattened_with_its_containers_as_prefix(lake: Lake) -> None:
    lake.put(
        {
            **track("Order Completed"),
            "channel": "client",
            "projectId": "p1",
            "version": 2,
            "_metadata": {"bundled": ["a"], "bundledIds": []},
            "integrations": {"All": True, "Mixpanel": False},
            "context": {"userAgent": "UA", "library": {"name": "analytics.js", "version": "1.2"}},
            "properties": {"billing_address": "Street 1", "nothing": None, "products": [{"price": 1.50, "id": "x"}]},
        }
    )
    lake.sync()
    row = lake.row("track_order_completed")
    assert row["event"] == "Order Completed"
    assert "event_text" not in row
    assert row["context_user_agent"] == "UA"
    assert row["context_library_name"] == "analytics.js"
    assert row["properties_billing_address"] == "Street 1"
    assert row["integrations_all"] is True
    assert (row["channel"], row["project_id"], row["type"], row["version"]) == ("client", "p1", "track", 2)
    assert json.loads(row["metadata_bundled"]) == ["a"]
    assert json.loads(row["properties_products"]) == [{"price": 1.5, "id": "x"}]
    assert "properties_nothing" not in row, "a null makes no column"
    assert "_rescued_data" not in row, "made only when it is needed"


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2], "bigint"),
        ([1, 1.5], "decimal(38,6)"),
        ([1.5], "decimal(38,6)"),
        ([True, False], "boolean"),
        (["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.123456+02:00", "2026-01-01T00:00:00"], "timestamp"),
        (["2026-01-01"], "string"),
        (["a"], "string"),
        ([1, "x"], "string"),
        ([1, True], "string"),
        ([[1], "x"], "string"),
        (["2026-01-01T00:00:00Z", "soon"], "string"),
    ],
)
def test_a_type_follows_from_all_values_of_the_run(lake: Lake, values: list[object], kind: str) -> None:
    for number, value in enumerate(values):
        lake.put(track(message_id=f"m{number}", properties={"x": value}))
    lake.sync()
    assert lake.types("track_clicked")["properties_x"] == kind
    assert set(lake.types("track_clicked").values()) <= {"bigint", "boolean", "decimal(38,6)", "string", "timestamp"}


def test_an_existing_column_keeps_its_type_and_what_does_not_fit_is_kept_beside(lake: Lake) -> None:
    first = {"whole": 1, "number": 1.5, "flag": True, "at": "2026-01-01T00:00:00Z", "text": "a"}
    lake.sync_of(track("T", "m0", properties=first))
    types = lake.types("track_t")
    lake.sync_of(
        track("T", "m1", properties={"whole": 1.9, "number": 3, "flag": "maybe", "at": "soon", "text": 42}),
        track(
            "T",
            "m2",
            properties={
                "whole": "12",
                "number": "12.50",
                "flag": "true",
                "at": "2026-01-01T01:00:00+01:00",
                "text": True,
            },
        ),
        track("T", "m3", properties={"whole": 2**80, "number": 0.1234567, "flag": 1, "at": 5, "text": {"a": [1]}}),
        track(
            "T",
            "m4",
            properties={
                "whole": [1],
                "number": 10**40,
                "flag": None,
                "at": "2026-01-01T00:00:00.1234567Z",
                "text": [1],
            },
        ),
    )
    assert {name: lake.types("track_t")[name] for name in types} == types
    rows = {row["message_id"]: row for row in lake.rows("track_t")}

    def cells(message: str) -> list[object]:
        return [rows[message][f"properties_{name}"] for name in ("whole", "number", "flag", "text")]

    def rescued(message: str) -> dict[str, object]:
        entries = json.loads(rows[message]["_rescued_data"] or "{}")
        return {place.removeprefix("/properties/"): entry["value"] for place, entry in entries.items()}

    assert cells("m1") == [1, Decimal("3.000000"), None, "42"]
    assert rescued("m1") == {"whole": 1.9, "flag": "maybe", "at": "soon"}
    assert cells("m2") == [12, Decimal("12.500000"), True, "true"]
    assert rescued("m2") == {"number": "12.50"}
    assert cells("m3") == [None, Decimal("0.123457"), True, '{"a":[1]}']
    assert rescued("m3") == {"whole": 2**80, "number": 0.1234567, "flag": 1, "at": 5}
    assert rows["m3"]["properties_text"] == '{"a":[1]}'
    assert rescued("m4") == {"whole": [1], "number": 10**40, "at": "2026-01-01T00:00:00.1234567Z"}
    assert rows["m4"]["properties_at"].microsecond == 123456
    report = lake.place.runs.get(None).report
    assert report
    assert report[0]["rescued"] == 11
    assert report[1]["rescued"]["properties_whole"] == 3


def test_rounded_values_need_not_be_kept(lake: Lake) -> None:
    lake.workspace.connections.change("web", {"rescue_rounded": "false"})
    lake.sync_of(track(properties={"latitude": 52.520008123, "at": "2026-01-01T00:00:00.1234567Z"}))
    row = lake.row("track_clicked")
    assert row["properties_latitude"] == Decimal("52.520008")
    assert "_rescued_data" not in row


def test_new_columns_come_last_and_old_files_show_null(lake: Lake) -> None:
    lake.sync_of(track("T", "m1", properties={"b": 1, "a": 1}))
    before = list(lake.types("track_t"))
    report = lake.sync_of(track("T", "m2", properties={"aa": 2}, userId="u1"))
    after = list(lake.types("track_t"))
    assert after[: len(before)] == before
    assert after[len(before) :] == ["user_id", "properties_aa"]
    assert report[1]["new_columns"] == [
        {"name": "user_id", "type": "string"},
        {"name": "properties_aa", "type": "bigint"},
    ]
    assert [row["properties_aa"] for row in lake.rows("track_t")] == [None, 2]


def test_the_catalog_tells_when_each_column_came_and_from_which_run(lake: Lake) -> None:
    first = lake.sync_of(track("T", "m1", properties={"a": 1}))[0]["run_id"]
    second = lake.sync_of(track("T", "m2", properties={"b": 1}))[0]["run_id"]
    history = {event.column: event for event in lake.place.catalog.history("web", "track_t")}
    assert history["properties_a"].run_id == first
    assert history["properties_b"].run_id == second
    assert history["properties_b"].at > history["properties_a"].at


def test_a_field_that_is_an_array_in_one_event_and_text_in_another(lake: Lake) -> None:
    lake.sync_of(track("Video Playback Started", "m1", properties={"ad_asset_id": ["a1", "a2"]}))
    lake.sync_of(track("Video Playback Started", "m2", properties={"ad_asset_id": "a3"}))
    assert [row["properties_ad_asset_id"] for row in lake.rows("track_video_playback_started")] == ['["a1","a2"]', "a3"]


def test_an_array_stays_an_array_among_texts(lake: Lake) -> None:
    lake.sync_of(track("Clicked", "m0", properties={"n": 1}))
    lake.sync_of(*(track("Clicked", f"m{n}", properties={"n": v}) for n, v in enumerate(["text", [1, "2"], "[1]"], 1)))
    rescued = [json.loads(row["_rescued_data"])["/properties/n"]["value"] for row in lake.rows("track_clicked")[1:]]
    assert rescued == ["text", [1, "2"], "[1]"]


def test_long_column_names_are_cut_and_stay_apart(lake: Lake) -> None:
    keys = ["k" * 300 + "1", "k" * 300 + "2"]
    lake.sync_of(track(properties={key: number for number, key in enumerate(keys)}))
    names = [name for name in lake.types("track_clicked") if name.startswith("properties_k")]
    assert len(names) == 2
    assert all(len(name) == 250 for name in names)


def test_past_the_column_limit_the_most_used_columns_win(lake: Lake) -> None:
    lake.workspace.connections.change("web", {"column_limit": "20"})
    lines = [track(message_id=f"m{n}", properties={"often": n, f"rare{n}": n}) for n in range(40)]
    report = lake.sync_of(*lines)
    types = lake.types("track_clicked")
    assert "properties_often" in types
    assert len([name for name in types if name != "_rescued_data"]) == 20
    kept = [row["_rescued_data"] for row in lake.rows("track_clicked") if row["_rescued_data"]]
    shown = [
        v
        for row in lake.rows("track_clicked")
        for k, v in row.items()
        if k.startswith("properties_rare") and v is not None
    ]
    assert len(kept) + len(shown) == 40
    assert any("column" in notice for notice in report[0]["notices"])


def test_a_file_holds_only_values_of_its_own_rows(lake: Lake) -> None:
    hours = {"first-locale": "2026-01-05T10:00:00Z", "second-locale": "2026-01-05T11:00:00Z"}
    lake.sync_of(
        *(
            track(message_id=f"{locale} {number}", receivedAt=received, context={"locale": locale})
            for locale, received in hours.items()
            for number in range(40)
        )
    )
    files = [path.read_bytes() for path in lake.root.glob("segment-data/data/**/*.parquet")]
    texts = {frozenset(locale for locale in hours if locale.encode() in content) for content in files}
    assert texts == {frozenset({locale}) for locale in hours}


def test_of_two_values_at_one_place_the_second_is_marked(lake: Lake) -> None:
    lake.sync_of(track("Clicked", "m1", properties={"n": 1}))
    line = json.dumps(track("Clicked", "m2", properties={"n": "n/a"})).encode()
    lake.sync_of(line.replace(b'"n/a"', b'"n/a", "n": 5'))
    rescued = json.loads(lake.rows("track_clicked")[1]["_rescued_data"])
    assert {place: entry["value"] for place, entry in rescued.items()} == {
        "/properties/n": "n/a",
        "/properties/n~#2": 5,
    }


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize(
    ("sent", "hour", "is_kept"),
    [
        ("2026-11-14T10:20:30Z", "10", False),
        ("2026-11-14 10:20:30", "10", True),
        (1794651630, "10", True),
        (1794651630123, "10", True),
        ("Sat, 14 Nov 2026 10:20:30 GMT", "10", True),
        (True, "00", True),
        ("soon", "00", True),
        ({"at": 1}, "00", False),
    ],
)
def test_the_time_of_receipt_is_read_as_well_as_one_can(
    tmp_path: Path, at_once: bool, sent: object, hour: str, is_kept: bool
) -> None:
    sizes = Sizes(stage=StageSizes(at_once=at_once))
    lake = Lake(tmp_path / "workspace", InProcess(), sizes=sizes, clock=SetClock())
    lake.put(track("T", "m1", receivedAt=sent), track("T", "m2"), day="2026-11-14")
    lake.sync()
    row = lake.rows("track_t")[0]
    assert row["received_at"].strftime("%Y-%m-%d %H") == f"2026-11-14 {hour}"
    files = [path for path in lake.data_files() if "day=2026-11-14" in path]
    assert [path.split("/")[-2] for path in files] == [f"hr={hour}"]
    kept = json.loads(row.get("_rescued_data") or "{}")
    assert (kept.get("/receivedAt", {}).get("value") == sent) == is_kept


def test_exact_casts_leave_what_is_of_another_kind_without_a_cell(lake: Lake) -> None:
    odd = {"whole": "042", "flag": "yes", "at": "2026-11-02"}
    lake.sync_of(track("T", "m1", properties={"whole": 1, "flag": True, "at": "2026-01-01T00:00:00Z"}))
    lake.sync_of(track("T", "m2", timestamp="2026-11-02 10:00:00", properties=odd))
    places = [f"properties_{name}" for name in odd]

    def second() -> dict[str, object]:
        return lake.rows("track_t")[1]

    assert [second()[name] for name in places[:2]] == [42, True]
    assert str(second()["properties_at"]) == "2026-11-02 00:00:00+00:00"
    assert str(second()["timestamp"]) == "2026-11-02 10:00:00+00:00"
    lake.workspace.connections.change("web", {"casts": "exact"})
    lake.run(jobs.replay(lake.connection, None, None))
    assert [second()[name] for name in (*places, "timestamp")] == [None] * 4
    kept = json.loads(str(second()["_rescued_data"]))
    assert {place: entry["reason"] for place, entry in kept.items()} == {
        "/properties/whole": "not a bigint",
        "/properties/flag": "not a boolean",
        "/properties/at": "not a timestamp",
        "/timestamp": "not a timestamp",
    }
    lake.workspace.connections.change("web", {"casts": "best_effort"})
    lake.run(jobs.replay(lake.connection, None, None))
    assert second()["properties_whole"] == 42


@pytest.mark.parametrize("at_once", [True, False])
def test_an_object_for_a_column_of_text_is_json_text_there(tmp_path: Path, at_once: bool) -> None:
    lake = Lake(tmp_path / "workspace", InProcess(), sizes=Sizes(stage=StageSizes(at_once=at_once)), clock=SetClock())
    lake.sync_of(track("T", "m1", properties={"a": "x", "b": {"c": "y"}, "n": 1}))
    later = {"a": {"k": 1.50, "l": {"m": [1]}}, "b": {"c": {"d": True}, "e": 2}, "n": {"o": 3}}
    lake.sync_of(
        json.dumps(track("T", "m2", properties=later)).replace("1.5", "1.50").encode(),
        track("T", "m3", properties={"a": "z", "b": {"c": "w"}}),
        track("U", "m4", properties={"a": {"k": 1}}),
    )
    rows = {row["message_id"]: row for row in lake.rows("track_t")}
    assert rows["m2"]["properties_a"] == '{"k":1.50,"l":{"m":[1]}}'
    assert rows["m2"]["properties_b_c"] == '{"d":true}'
    assert rows["m2"]["properties_b_e"] == 2
    assert rows["m2"]["properties_n_o"] == 3  # numbers hold no objects
    assert [rows["m3"][name] for name in ("properties_a", "properties_b_c")] == ["z", "w"]
    assert not [name for name in lake.types("track_t") if name.startswith(("properties_a_", "properties_b_c_"))]
    assert lake.types("track_u")["properties_a_k"] == "bigint"  # where there was no such column
    lake.workspace.connections.change("web", {"casts": "exact"})
    lake.sync_of(track("T", "m5", properties={"a": {"k": 7}}))
    assert {row["message_id"]: row for row in lake.rows("track_t")}["m5"]["properties_a_k"] == 7


def test_objects_whose_members_have_columns_keep_them(lake: Lake) -> None:
    lake.sync_of(track("T", "m1", properties={"a": "x"}), track("T", "m2", properties={"a": {"k": 1}}))
    lake.sync_of(track("T", "m3", properties={"a": {"k": 2}}))
    assert [row["properties_a_k"] for row in lake.rows("track_t")] == [None, 1, 2]


def test_properties_that_were_a_text_once_are_columns_all_the_same(lake: Lake) -> None:
    lake.sync_of({**track("T", "m1"), "properties": "oops", "context": "oops"})
    lake.sync_of(track("T", "m2", properties={"a": 1}) | {"context": {"ip": "1.2.3.4"}})
    rows = {row["message_id"]: row for row in lake.rows("track_t")}
    assert [rows["m2"][name] for name in ("properties_a", "context_ip", "properties")] == [1, "1.2.3.4", None]
