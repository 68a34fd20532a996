"""What is an event and what is not."""

from typing import Any

import pytest

from eventlake.events.envelope import reject_reason


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ([], "not_an_object"),
        ("track", "not_an_object"),
        (None, "not_an_object"),
        ({}, "type_not_defined"),
        ({"type": None}, "type_not_defined"),
        ({"Type": "track"}, "type_not_defined"),
        ({"type": ""}, "type_not_known"),
        ({"type": "Track"}, "type_not_known"),
        ({"type": "delete"}, "type_not_known"),
        ({"type": 5}, "type_not_known"),
        ({"type": ["track"]}, "type_not_known"),
        ({"type": {}}, "type_not_known"),
        ({"type": "track"}, "event_not_defined"),
        ({"type": "track", "event": None}, "event_not_defined"),
        ({"type": "track", "event": ""}, "event_not_defined"),
        ({"type": "track", "Event": "x"}, "event_not_defined"),
        ({"type": "track", "event": 0}, "event_not_string"),
        ({"type": "track", "event": ["x"]}, "event_not_string"),
        ({"type": "track", "event": "x"}, None),
        ({"type": "track", "event": " "}, None),
        *(({"type": call}, None) for call in ("identify", "page", "screen", "group", "alias")),
        ({"type": "page", "event": 5}, None),
    ],
)
def test_a_line_is_an_event_or_the_reason_why_not_is_told(event: Any, reason: str | None) -> None:
    assert reject_reason(event) == reason
