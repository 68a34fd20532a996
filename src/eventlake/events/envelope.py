"""What an event is: the six calls of Segment's spec, and when a line is none of them."""

from typing import Any

CALLS = frozenset({"identify", "track", "page", "screen", "group", "alias"})


def reject_reason(event: Any, call: Any = None) -> str | None:
    """Why a parsed line is not an event, as one of Segment's discard codes; None if it is one.

    Only what makes a line unusable counts: an event without user ids, or with a text where an object is expected,
    is loaded as it is. If a `call` is given, that is its type, however it is written there.
    """
    if not isinstance(event, dict):
        return "not_an_object"
    call = event.get("type") if call is None else call
    if call is None:
        return "type_not_defined"
    if not isinstance(call, str) or call not in CALLS:
        return "type_not_known"
    if call == "track":
        name = event.get("event")
        if name is None or name == "":
            return "event_not_defined"
        if not isinstance(name, str):
            return "event_not_string"
    return None


def is_there(value: Any) -> bool:
    """Whether an id tells who or what is meant: it is neither nothing, nor blank, nor something of several values."""
    if isinstance(value, str):
        return bool(value.strip())
    return value is not None and not isinstance(value, dict | list)
