"""Whatever lies in the archive: the run finishes, every line is loaded or quarantined, and the books balance."""

import gzip
import json
import os
from typing import Any

import pytest

from conftest import Lake, track


def books(report: list[dict[str, Any]]) -> dict[str, int]:
    return {key: value for key, value in report[0]["books"].items() if key != "checksum" and value}


def quarantined(lake: Lake) -> list[dict[str, Any]]:
    return lake.query(
        "select line, reason, detail, size, content from __segment_datalake.quarantine order by raw_file, line"
    )


NOT_EVENTS = {
    b'{"type":"track","event":"x"': "not_json",
    b"hello": "not_json",
    b'{"type":"track","event":"\xff\xfe"}': "not_utf8",
    b"[1,2]": "not_an_object",
    b'"text"': "not_an_object",
    b"12": "not_an_object",
    b"null": "not_an_object",
    b'{"event":"x"}': "type_not_defined",
    b'{"type":null}': "type_not_defined",
    b'{"type":"delete"}': "type_not_known",
    b'{"type":["track"],"event":"x"}': "type_not_known",
    b'{"type":"track"}': "event_not_defined",
    b'{"type":"track","event":""}': "event_not_defined",
    b'{"type":"track","event":5}': "event_not_string",
    b'{"type":"track","event":{"a":1}}': "event_not_string",
    b'{"a":' * 3000 + b"1" + b"}" * 3000: "nested_too_deeply",
    b'{"type":"track","event":"x"} {"type":"page"}': "not_json",
}


def test_lines_that_are_not_events_are_kept_with_place_and_reason(lake: Lake) -> None:
    good = json.dumps(track()).encode()
    lake.put(good, *NOT_EVENTS)
    report = lake.sync()
    assert books(report) == {"lines": 1 + len(NOT_EVENTS), "loaded": 1, "quarantined": len(NOT_EVENTS)}
    kept = quarantined(lake)
    assert [(row["line"], row["reason"]) for row in kept] == list(enumerate(NOT_EVENTS.values(), 2))
    assert [row["content"] for row in kept] == list(NOT_EVENTS)


def test_odd_but_readable_files_are_read(lake: Lake) -> None:
    event = [json.dumps(track(message_id=f"m{number}")).encode() for number in range(8)]
    lake.put_bytes(b"", name="empty.gz")
    lake.put_bytes(gzip.compress(b""), name="empty-inside.gz")
    lake.put_bytes(event[0] + b"\n" + event[1], name="not-gzip.gz")
    lake.put_bytes(
        gzip.compress(b"\xef\xbb\xbf" + event[2] + b"\r\n\r\n   \n\n" + event[3] + b"\r\n"), name="bom-crlf-blank.gz"
    )
    lake.put_bytes(gzip.compress(event[4] + b"\n") + gzip.compress(event[5]), name="two-members.gz")
    report = lake.sync()
    assert books(report) == {"lines": 6, "loaded": 6}
    assert [row["message_id"] for row in lake.rows("track_clicked")] == [f"m{number}" for number in range(6)]


def test_a_file_that_breaks_off_fails_alone_and_is_tried_again(lake: Lake) -> None:
    whole = gzip.compress(
        b"\n".join(json.dumps(track(message_id=f"bad{n}", noise=os.urandom(50).hex())).encode() for n in range(500))
    )
    broken = lake.put_bytes(whole[: len(whole) // 2], name="broken.gz")
    lake.put(track(message_id="good"), track(message_id="bad7"), name="good.gz")
    report = lake.sync()
    assert [failure["file"] for failure in report[0]["failed_files"]] == [str(broken.relative_to(lake.root))]
    assert "EOFError" in report[0]["failed_files"][0]["error"]
    assert books(report) == {"lines": 2, "loaded": 2}, "no row of the broken file, not even in place of a readable copy"
    assert lake.place.runs.get(None).outcome == "Partial Success"

    assert [f["file"] for f in lake.sync()[0]["failed_files"]] == [str(broken.relative_to(lake.root))]
    broken.write_bytes(whole)
    assert books(lake.sync()) == {"lines": 500, "loaded": 499, "duplicates": 1}
    assert len(lake.rows("track_clicked")) == 501
    assert lake.sync()[0]["notices"] == ["No data found"]


def test_a_line_of_50_megabytes_does_not_stop_the_others(lake: Lake) -> None:
    huge = json.dumps(track(message_id="huge", properties={"text": "x" * 50_000_000})).encode()
    lake.put(track(message_id="before"), huge, track(message_id="after"))
    assert books(lake.sync()) == {"lines": 3, "loaded": 2, "quarantined": 1}
    (line,) = quarantined(lake)
    assert (line["line"], line["reason"], line["size"]) == (2, "line_too_long", len(huge))
    assert huge.startswith(line["content"])


ENVELOPE = [
    "messageId",
    "anonymousId",
    "userId",
    "context",
    "properties",
    "integrations",
    "sentAt",
    "timestamp",
    "receivedAt",
]
WRONG = [5, 1.5, True, "text", "", [], [1], {}, {"a": 1}]


def test_wrong_kinds_in_every_envelope_field_are_loaded(lake: Lake) -> None:
    lines = [
        {**track("Odd", message_id=f"{field}-{number}"), field: value}
        for field in ENVELOPE
        for number, value in enumerate(WRONG)
    ]
    report = lake.sync_of(*lines)
    assert books(report) == {"lines": len(lines), "loaded": len(lines)}
    assert lake.types("track_odd")["user_id"] == "string"
    assert lake.types("track_odd")["sent_at"] == "timestamp"
    rows = lake.rows("track_odd")
    assert {row["user_id"] for row in rows} >= {"5", "1.5", "true", "text", "[1]"}
    assert all(row["message_id"] and row["received_at"] for row in rows)
    kept = [entry for row in rows for entry in json.loads(row["_rescued_data"] or "{}").items()]
    assert ("/sentAt", {"value": 5, "reason": "not a timestamp"}) in kept
    assert ("/receivedAt", {"value": "text", "reason": "not a timestamp"}) in kept
    assert ("/messageId", {"value": "", "reason": "not a message id"}) in kept


def test_without_a_time_of_receipt_the_day_of_the_raw_file_counts(lake: Lake) -> None:
    lake.put(track(message_id="m1", receivedAt=None), track(message_id="m2", receivedAt="soon"), day="2026-02-03")
    lake.sync()
    assert [(row["day"], row["hr"]) for row in lake.rows("track_clicked")] == [("2026-02-03", "00")] * 2


def test_events_without_ids_are_all_kept_and_stay_the_same_when_read_again(lake: Lake) -> None:
    lake.put(*[track(message_id=None, anonymousId=None)] * 3, name="ids.gz")
    assert books(lake.sync()) == {"lines": 3, "loaded": 3}
    ids = [row["message_id"] for row in lake.rows("track_clicked")]
    assert len(set(ids)) == 3
    os.utime(lake.root / "segment-logs/src1/1794700800000/ids.gz", ns=(1, 1))  # looks changed: read again
    assert books(lake.sync()) == {"lines": 3, "duplicates": 3}
    assert [row["message_id"] for row in lake.rows("track_clicked")] == ids


@pytest.mark.parametrize(
    "moment",
    ["0001-01-01T00:00:00Z", "1969-12-31T23:59:59.999999Z", "2262-04-12T00:00:00Z", "9999-12-31T23:59:59.999999Z"],
)
def test_dates_before_1970_and_after_2262(lake: Lake, moment: str) -> None:
    lake.put(track(receivedAt=moment, properties={"at": moment}))
    lake.sync()
    text_of = "strftime({}, '%Y-%m-%d %H:%M:%S.%f')"
    columns = f"{text_of.format('received_at')} as r, {text_of.format('properties_at')} as p, day, hr"
    row = lake.query(f"select {columns} from web.track_clicked")
    text = moment.replace("T", " ").removesuffix("Z")
    expected = text if "." in text else text + ".000000"
    assert row == [{"r": expected, "p": expected, "day": moment[:10], "hr": moment[11:13]}]


def raw_track(properties: str) -> bytes:
    head = '"type":"track","event":"Clicked","messageId":"m1","receivedAt":"2026-11-15T10:00:00Z"'
    return f'{{{head},"properties":{properties}}}'.encode()


@pytest.mark.parametrize(
    ("number", "kind", "text"),
    [
        ("9007199254740993", "bigint", "9007199254740993"),
        ("9223372036854775807", "bigint", "9223372036854775807"),
        ("-9223372036854775808", "bigint", "-9223372036854775808"),
        ("9223372036854775808", "decimal(38,6)", "9223372036854775808.000000"),
        ("1234567890123456789012345678901234567890", "string", "1234567890123456789012345678901234567890"),
        ("1e400", "string", "1e400"),
        ("1e3", "decimal(38,6)", "1000.000000"),
        ("0.1", "decimal(38,6)", "0.100000"),
        ("12345678901234567.891", "decimal(38,6)", "12345678901234567.891000"),
        ("9" * 5000, "string", "9" * 5000),
    ],
)
def test_numbers_of_every_size_are_exact(lake: Lake, number: str, kind: str, text: str) -> None:
    lake.put(raw_track(f'{{"n":{number}}}'))
    lake.sync()
    assert lake.types("track_clicked")["properties_n"] == kind
    assert str(lake.row("track_clicked")["properties_n"]) == text


def test_what_no_column_can_hold_is_rescued(lake: Lake) -> None:
    lake.put(
        raw_track(
            '{"nan":NaN,"half":"\\ud800x","\\udfff":1,"dup":1,"dup":2,"dup":3,"empty":{},"tiny":1e-400,"nul":"a\\u0000b"}'
        )
    )
    lake.sync()
    row = lake.row("track_clicked")
    assert (row["properties_dup"], row["properties_nul"], row["properties_tiny"]) == (1, "a\0b", 0)
    rescued = {place: entry["value"] for place, entry in lake.rescued("track_clicked").items()}
    assert rescued == {
        "/properties/nan": "NaN",
        "/properties/half": "\ud800x",
        "/properties/\udfff": 1,
        "/properties/dup": 2,
        "/properties/dup~#2": 3,
        "/properties/empty": {},
        "/properties/tiny": 1e-400,
    }
    assert '"value":1e-400' in row["_rescued_data"]


def test_keys_that_share_a_column_keep_all_values(lake: Lake) -> None:
    lake.put(raw_track('{"productId":1,"product_id":2,"Product ID":3,"a":{"b":4},"a_b":5,"":6,"X":7,"x":8}'))
    lake.sync()
    row = lake.row("track_clicked")
    assert (row["properties_product_id"], row["properties_a_b"], row["properties_x"]) == (1, 4, 7)
    rescued = {place: entry["value"] for place, entry in lake.rescued("track_clicked").items()}
    assert rescued == {
        "/properties/product_id": 2,
        "/properties/Product ID": 3,
        "/properties/a_b": 5,
        "/properties/x": 8,
    }
    assert 6 in row.values()


def test_ten_thousand_keys_fill_the_columns_and_the_rest_is_rescued(lake: Lake) -> None:
    lake.put(track(properties={f"key {number}": number for number in range(10_000)}))
    report = lake.sync()
    assert len(lake.types("track_clicked")) <= 2001
    rescued = lake.rescued("track_clicked")
    columns = [value for name, value in lake.row("track_clicked").items() if name.startswith("properties_key")]
    assert sorted([v for v in columns if v is not None] + [e["value"] for e in rescued.values()]) == list(range(10_000))
    assert any("did not fit" in notice for notice in report[0]["notices"])


@pytest.mark.long
def test_three_thousand_event_names_are_three_thousand_tables(lake: Lake) -> None:
    lake.put(*(track(f"Event Number {number}", f"m{number}") for number in range(3000)))
    report = lake.sync()
    assert books(report) == {"lines": 3000, "loaded": 3000}
    assert len(report) == 3001
    assert len(lake.tables()) == 3000


def test_five_hundred_levels_of_nesting(lake: Lake) -> None:
    nested = '{"a":' * 500 + "1" + "}" * 500
    lists = "[" * 500 + "2" + "]" * 500
    lake.put(raw_track(f'{{"deep":{nested},"lists":{lists}}}'))
    assert books(lake.sync()) == {"lines": 1, "loaded": 1}
    row = lake.row("track_clicked")
    assert row["properties_lists"] == lists
    (deep,) = [value for name, value in row.items() if name.startswith("properties_deep")]
    assert deep.count('{"a":') == 500 - 30


def test_other_spellings_of_the_time_of_receipt_and_of_the_message_id_do_not_take_their_columns(lake: Lake) -> None:
    odd = {"received_at": "2001-01-01T00:00:00Z", "message_id": "other", "received": {"at": 5}}
    lake.sync_of({**odd, **track()})
    row = lake.row("track_clicked")
    assert (row["message_id"], row["day"]) == ("m1", "2026-11-15")
    rescued = {place: entry["value"] for place, entry in lake.rescued("track_clicked").items()}
    assert rescued == {"/received_at": "2001-01-01T00:00:00Z", "/message_id": "other", "/received/at": 5}


def test_bad_lines_of_a_file_that_breaks_off_are_not_kept_twice(lake: Lake) -> None:
    lines = [
        b"bad",
        *(json.dumps(track(message_id=f"m{n}", noise=os.urandom(500).hex())).encode() for n in range(3000)),
    ]
    whole = gzip.compress(b"\n".join(lines))
    broken = lake.put_bytes(whole[: len(whole) * 9 // 10])
    lake.put(b"also bad")
    lake.sync()
    lake.sync()
    assert [row["content"] for row in quarantined(lake)] == [b"also bad"]
    broken.write_bytes(whole)
    lake.sync()
    assert sorted(row["content"] for row in quarantined(lake)) == [b"also bad", b"bad"]
