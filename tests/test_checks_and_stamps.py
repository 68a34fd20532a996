"""What a collector adds to events, by Segment's documented examples, and what it refuses."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlake.events import checks
from eventlake.events.instants import FIRST, LAST, parse, to_milliseconds
from eventlake.events.stamps import MAX_MESSAGE_ID, Reception, corrected_time, message_id, stamped, with_type


def micros(text: str) -> int:
    instant = parse(text)
    assert instant
    return instant.micros


NOW = micros("2015-12-12T19:11:01.266Z")


def stored(event: dict[str, Any], **reception: Any) -> dict[str, Any]:
    return stamped(event, Reception("src1", **({"received": NOW} | reception)))


@pytest.mark.parametrize(
    ("day", "original", "sent", "received", "expected"),
    [
        ("2015-12-12", "19:11:01.152", "19:11:01.169", "19:11:01.266", "19:11:01.249"),
        ("2019-06-21", "16:33:26.060", "16:33:26.060", "16:33:26.158", "16:33:26.158"),
    ],
)
def test_the_clock_of_the_device_is_corrected(day: str, original: str, sent: str, received: str, expected: str) -> None:
    original, sent, received, expected = (f"{day}T{time}Z" for time in (original, sent, received, expected))
    event = stored({"timestamp": original, "sentAt": sent}, received=micros(received))
    assert event["timestamp"] == expected
    assert event["originalTimestamp"] == original
    assert event["receivedAt"] == received
    assert event["sentAt"] == sent


def test_times_that_are_missing_or_no_times() -> None:
    received = to_milliseconds(NOW)
    assert stored({})["timestamp"] == stored({})["originalTimestamp"] == received
    assert stored({"timestamp": "2020-01-01T00:00:00Z"})["timestamp"] == "2020-01-01T00:00:00.000Z"
    odd = stored({"timestamp": "yesterday", "sentAt": 5})
    assert (odd["originalTimestamp"], odd["timestamp"], odd["sentAt"]) == ("yesterday", received, 5)
    node = stored({"originalTimestamp": "2015-12-12T19:11:01.152Z"}, sent_at="2015-12-12T19:11:01.169Z")
    assert node["timestamp"] == "2015-12-12T19:11:01.249Z"


@given(st.integers(-(10**17), 10**17), st.integers(-(10**17), 10**17), st.integers(0, 10**16))
def test_a_corrected_time_can_always_be_written(original: int, sent: int, received: int) -> None:
    if FIRST <= original <= LAST:
        assert to_milliseconds(corrected_time(original, sent, received))


@given(st.none() | st.integers() | st.booleans() | st.text(max_size=300) | st.lists(st.integers()))
def test_a_message_id_is_a_text_of_at_most_100_characters(sent: Any) -> None:
    made = message_id(sent)
    assert 0 < len(made) <= MAX_MESSAGE_ID
    assert made.strip()
    if isinstance(sent, str) and sent.strip():
        assert made == message_id(sent)
        assert made == sent or len(sent) > MAX_MESSAGE_ID


def test_long_ids_that_begin_alike_stay_different() -> None:
    assert message_id("x" * 200 + "1") != message_id("x" * 200 + "2")


@pytest.mark.parametrize(
    "event",
    [
        {"type": "track", "event": "x", "userId": "", "anonymousId": "a"},  # RudderStack's SDK for browsers
        {"type": "page", "anonymousId": "a", "userId": None, "name": None},
        {"type": "identify", "userId": "u", "traits": None},
        {"type": "alias", "userId": "u", "previousId": "p"},
        {"type": "group", "anonymousId": "a", "groupId": "g"},
        {"type": "track", "event": "x", "userId": "u", "context": {"consent": {"categoryPreferences": {"a": True}}}},
    ],
)
def test_events_as_sdks_send_them_are_fine(event: dict[str, Any]) -> None:
    assert checks.problems(event) == []


KEYS = ["type", "event", "userId", "anonymousId", "properties", "traits", "context", "name", "groupId"]


@given(
    st.dictionaries(
        st.sampled_from(KEYS),
        st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just({}) | st.just([]) | st.just("track"),
    )
)
def test_any_event_is_checked_without_an_error_and_any_that_passes_can_be_stamped(event: dict[str, Any]) -> None:
    if not checks.problems(event):
        assert stored(event)["messageId"]


# What is stored, member by member


def reception(**fields: Any) -> Reception:
    return Reception("src1", **({"received": NOW} | fields))


RECEIVED = "2015-12-12T19:11:01.266Z"


def test_an_event_is_stored_with_all_that_the_collector_knows_of_it() -> None:
    event = {"type": "page", "messageId": "m1", "writeKey": "secret", "name": "Home"}
    assert stored(event) == {
        "type": "page",
        "messageId": "m1",
        "name": "Home",
        "originalTimestamp": RECEIVED,
        "timestamp": RECEIVED,
        "receivedAt": RECEIVED,
        "channel": "server",
        "version": 2,
        "projectId": "src1",
    }
    assert event["writeKey"] == "secret", "what the caller holds is not changed"


def test_what_an_event_says_of_itself_stays() -> None:
    event = {"channel": "browser", "version": 1, "projectId": "mine", "receivedAt": "1999-01-01T00:00:00Z"}
    made = stored(event, from_client=True)
    assert (made["channel"], made["version"]) == ("browser", 1)
    assert (made["projectId"], made["receivedAt"]) == ("src1", RECEIVED), "but these two are the collector's"
    assert stored({}, from_client=True)["channel"] == "client"


@pytest.mark.parametrize(
    ("event", "sent_at", "expected"),
    [
        ({}, None, None),
        ({}, "2015-12-12T19:11:00Z", "2015-12-12T19:11:00Z"),
        ({"sentAt": "2015-12-12T19:11:01Z"}, "2015-12-12T19:11:00Z", "2015-12-12T19:11:01Z"),
        ({"sentAt": None}, "2015-12-12T19:11:00Z", "2015-12-12T19:11:00Z"),
    ],
)
def test_the_event_tells_when_it_was_sent_before_its_batch_does(
    event: dict[str, Any], sent_at: Any, expected: Any
) -> None:
    made = stored(event, sent_at=sent_at)
    assert made.get("sentAt") == expected
    assert ("sentAt" in made) == bool(expected or "sentAt" in event)


def test_a_timestamp_counts_before_an_original_one() -> None:
    made = stored({"timestamp": "2020-01-01T00:00:00Z", "originalTimestamp": "2010-01-01T00:00:00Z"})
    assert (made["originalTimestamp"], made["timestamp"]) == ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00.000Z")


@pytest.mark.parametrize(
    ("event", "properties"),
    [
        ({"type": "page", "category": "Docs"}, {"category": "Docs"}),
        ({"type": "page", "category": "Docs", "properties": {"a": 1}}, {"category": "Docs", "a": 1}),
        ({"type": "page", "category": "Docs", "properties": {"category": "own"}}, {"category": "own"}),
        ({"type": "page", "category": "", "properties": {"a": 1}}, {"a": 1}),
        ({"type": "page", "properties": {"a": 1}}, {"a": 1}),
        ({"type": "screen", "category": "Docs", "properties": {"a": 1}}, {"a": 1}),
        ({"type": "page", "category": "Docs", "properties": None}, {"category": "Docs"}),
    ],
)
def test_the_category_of_a_page_is_a_property_too(event: dict[str, Any], properties: dict[str, Any]) -> None:
    made = stored(event)
    assert made["properties"] == properties
    assert made.get("category") == event.get("category")


@pytest.mark.parametrize("key", ["context", "integrations"])
@pytest.mark.parametrize(
    ("common", "own", "expected"),
    [
        ({"a": 1}, None, {"a": 1}),
        ({"a": 1, "b": 2}, {"b": 3}, {"a": 1, "b": 3}),
        ({}, {"b": 3}, {"b": 3}),
        ("text", {"b": 3}, {"b": 3}),
        (None, {"b": 3}, {"b": 3}),
    ],
)
def test_what_a_batch_says_of_all_its_events_is_added_to_each(key: str, common: Any, own: Any, expected: Any) -> None:
    event = {} if own is None else {key: own}
    made = stored(event, envelope={key: common, "userId": "not for all"})
    assert made[key] == expected
    assert "userId" not in made
    assert event == ({} if own is None else {key: own})


@pytest.mark.parametrize(
    ("fields", "context", "ip"),
    [
        ({"from_client": True, "ip": "1.2.3.4"}, None, "1.2.3.4"),
        ({"from_client": True, "ip": "1.2.3.4"}, {"locale": "de"}, "1.2.3.4"),
        ({"from_client": True, "ip": "1.2.3.4"}, {"ip": "5.6.7.8"}, "5.6.7.8"),
        ({"from_client": True, "ip": "1.2.3.4"}, {"ip": None}, None),
        ({"from_client": True, "ip": "::1"}, None, None),
        ({"from_client": True, "ip": "unknown"}, None, None),
        ({"from_client": True}, None, None),
        ({"ip": "1.2.3.4"}, None, None),
        ({"ip": "1.2.3.4"}, {"direct": True}, "1.2.3.4"),
        ({"ip": "1.2.3.4"}, {"direct": 1}, None),
        ({"ip": "1.2.3.4"}, {"direct": False}, None),
    ],
)
def test_the_address_of_a_browser_is_kept_and_that_of_a_server_is_not(
    fields: dict[str, Any], context: Any, ip: str | None
) -> None:
    made = stored({} if context is None else {"context": context}, **fields)
    assert (made.get("context") or {}).get("ip") == ip
    rest = {key: value for key, value in (made.get("context") or {}).items() if key != "ip"}
    assert rest == {key: value for key, value in (context or {}).items() if key != "ip"}


@pytest.mark.parametrize(
    ("sent", "kept"),
    [("m", "m"), (5, "5"), (0, "0"), ("x" * 100, "x" * 100), ("é", "é"), (-(10**30), f"-1{'0' * 30}")],
)
def test_a_message_id_that_can_be_one_is_kept(sent: Any, kept: str) -> None:
    assert stored({"messageId": sent})["messageId"] == kept


@pytest.mark.parametrize("sent", [None, "", True, False, [], ["m"], {"a": 1}, 1.5])
def test_for_what_cannot_be_a_message_id_one_is_made_up(sent: Any) -> None:
    made = [stored({"messageId": sent})["messageId"] for _ in range(2)]
    assert all(re.fullmatch(r"api-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", one) for one in made)
    assert made[0] != made[1]


def test_a_long_message_id_is_cut_in_the_same_way_for_ever() -> None:
    assert message_id("x" * 101) == "x" * 67 + "-9c543fd357ad2f0a833eb0a7d0c9cd90"


def test_an_event_has_the_type_of_its_route() -> None:
    event = {"type": "page", "a": 1}
    assert with_type(event, reception(call="track")) == {"type": "track", "a": 1}
    assert with_type(event, reception()) == {"type": "page", "a": 1}


@pytest.mark.parametrize(
    ("original", "sent", "received", "expected"),
    [
        (None, 5, 100, 100),
        (None, None, 100, 100),
        (40, None, 100, 40),
        (40, 50, 100, 90),
        (0, 0, 100, 100),
        (LAST, 0, 1, LAST),
        (FIRST, 1, 0, FIRST),
        (LAST - 1, 0, 1, LAST),
        (FIRST + 1, 1, 0, FIRST),
    ],
)
def test_a_time_is_corrected_by_what_the_clocks_differ(
    original: int | None, sent: int | None, received: int, expected: int
) -> None:
    assert corrected_time(original, sent, received) == expected
