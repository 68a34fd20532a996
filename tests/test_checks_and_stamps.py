"""What a collector adds to events, by Segment's documented examples, and what it refuses."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlake.events import checks
from eventlake.events.instants import FIRST, LAST, parse, to_milliseconds
from eventlake.events.stamps import MAX_MESSAGE_ID, Reception, corrected_time, message_id, stamped


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
    if isinstance(sent, str) and sent:
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
