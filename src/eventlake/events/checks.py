"""What is wrong with an event that was sent, by Segment's discard codes."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from eventlake.events.envelope import CALLS, is_there

_OBJECTS = ("context", "integrations", "properties", "traits")


class Problem(NamedTuple):
    code: str
    message: str


def problems(event: Mapping[str, Any], *, takes_records: bool = False) -> list[Problem]:
    """Everything for which an event is refused; empty if it is fine.

    Sources that send records of a cloud application do so in calls of a type of their own: `extract`.
    """
    return list(_problems(event, takes_records=takes_records))


def _problems(event: Mapping[str, Any], *, takes_records: bool) -> Iterator[Problem]:
    call = event.get("type")
    is_record = takes_records and call == "extract"
    if call is None:
        yield Problem("type_not_defined", "type is required")
    elif not is_record and (not isinstance(call, str) or call not in CALLS):
        yield Problem("type_not_known", f"type must be one of {', '.join(sorted(CALLS))}")
    if not is_record:
        yield from _id_problems(event, call)
    elif not is_there(event.get("recordId")):
        yield Problem("record_id_not_defined", "recordId is required for extract, and must be one value")
    if call == "track" or is_record:
        yield from _name_problems(event, call)
    if call in ("page", "screen"):
        for key in ("name", "category"):
            if event.get(key) is not None and not isinstance(event[key], str):
                yield Problem(f"{key}_not_string", f"{key} must be a string")
    for key in _OBJECTS:
        if event.get(key) is not None and not isinstance(event[key], dict):
            yield Problem(f"{key}_not_object", f"{key} must be an object")
    if isinstance(event.get("context"), dict):
        yield from _consent_problems(event["context"])


def _name_problems(event: Mapping[str, Any], call: Any) -> Iterator[Problem]:
    name = event.get("event")
    if name is None or name == "":
        yield Problem("event_not_defined", f"event is required for {call}")
    elif not isinstance(name, str):
        yield Problem("event_not_string", "event must be a string")


def _id_problems(event: Mapping[str, Any], call: Any) -> Iterator[Problem]:
    # An empty text is what RudderStack's SDK for browsers sends for nobody: it is no id, and no mistake beside one.
    sent = {key: event[key] for key in ("userId", "anonymousId") if event.get(key) is not None}
    wrong = [key for key, value in sent.items() if not isinstance(value, str)]
    if not sent:
        yield Problem("no_user_anon_id", "userId or anonymousId is required")
    elif wrong or not any(sent.values()):
        yield Problem("id_not_string", f"{' and '.join(wrong or sent)} must be a string that is not empty")
    needed = {"group": "groupId", "alias": "userId"}.get(call if isinstance(call, str) else "")
    if needed and sent and not (isinstance(event.get(needed), str) and event[needed]):
        yield Problem("id_required", f"{needed} is required for {call}")


def _consent_problems(context: Mapping[str, Any]) -> Iterator[Problem]:
    if "consent" not in context:
        return
    consent = context["consent"]
    preferences = consent.get("categoryPreferences") if isinstance(consent, dict) else None
    if preferences is None:
        yield Problem(
            "consent_categorypreferences_should_exist", "context.consent must have an object categoryPreferences"
        )
    elif not isinstance(preferences, dict):
        yield Problem(
            "consent_categorypreferences_fields_should_be_object",
            "context.consent.categoryPreferences must be an object",
        )
    elif not all(isinstance(value, bool) for value in preferences.values()):
        yield Problem(
            "consent_categorypreferences_fields_should_be_bool",
            "every member of context.consent.categoryPreferences must be true or false",
        )
    version = consent.get("version") if isinstance(consent, dict) else None
    if isinstance(version, str | bool | dict | list):
        yield Problem("consent_version_should_be_number", "context.consent.version must be a number")
    device = context.get("device")
    advertising = device.get("advertisingId") if isinstance(device, dict) else None
    if advertising is not None and not isinstance(advertising, str):
        yield Problem("device_advertisingid_should_be_string", "context.device.advertisingId must be a string")
