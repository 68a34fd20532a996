"""Which events of a request are stored, and the reasons for those that are not."""

from dataclasses import replace
from typing import Any, NamedTuple

from msgspec import Raw

from eventlake.collector.intake import (
    MAX_EVENT,
    MAX_EVENTS,
    MAX_STORED,
    TOO_DEEP,
    BadRequestError,
    Intake,
    is_too_deep,
)
from eventlake.collector.log import Record, message_hash
from eventlake.events import checks
from eventlake.events.checks import Problem
from eventlake.events.stamps import Reception, stamped, with_type
from eventlake.events.suppression import NOBODY
from eventlake.reading import exact_json
from eventlake.reading.exact_json import NotJsonError, Parsed
from eventlake.reading.named import Hides, names

SECRET = frozenset({"writeKey"})  # never stored
SAMPLE = 500  # characters of an event that was refused


class Rejected(NamedTuple):
    """An event that is not stored, and why."""

    number: int  # its place in the request, from 0
    problems: list[Problem]
    sample: str


class Checked(NamedTuple):
    """What becomes of the events of a request."""

    records: list[Record]
    rejected: list[Rejected]
    suppressed: int = 0  # of people of whom nothing is kept


def checked(intake: Intake, reception: Reception, hides: Hides = NOBODY.hides) -> Checked:
    """The events as they are stored, and those that are refused. Of one that `hides`, nothing is kept."""
    if intake.is_batch and not intake.events:
        return Checked([], [Rejected(0, [Problem("empty_batch", "the batch has no events")], "")])
    if len(intake.events) > MAX_EVENTS:  # one note for all of them
        problem = Problem("too_many_events", f"a batch must not have more than {MAX_EVENTS} events")
        return Checked([], [Rejected(0, [problem], "")])
    reception = replace(reception, sent_at=intake.sent_at, envelope=intake.common)
    records, rejected, size, suppressed = [], [], 0, 0
    for index, item in enumerate(intake.events):
        taken = _taken(item, reception, hides)
        if taken is None:
            suppressed += 1
        elif isinstance(taken, Record):
            records.append(taken)
            size += len(taken.event)
            if size > MAX_STORED:
                raise BadRequestError("payload_too_large", "with what the batch says of all, its events are too large")
        else:
            rejected.append(Rejected(index, taken, _sample(item)))
    return Checked(records, rejected, suppressed)


def refused(intake: Intake, problem: Problem, hides: Hides) -> list[Rejected]:
    """All events of a request, none of which is stored for the same reason. Of one that `hides`, no sample is kept."""
    found = [
        Rejected(index, [problem], "" if names(hides, *_parsed(item)) else _sample(item))
        for index, item in enumerate(intake.events[:MAX_EVENTS])
    ]
    return found or [Rejected(0, [problem], "")]


def _parsed(item: dict[str, Any] | Raw) -> Parsed:
    """An event as an object, and what has no place in it; None for what is none."""
    if not isinstance(item, Raw):
        return Parsed(item, [])
    try:
        return Parsed(None, []) if is_too_deep(bytes(item)) else exact_json.parse(bytes(item))
    except NotJsonError:
        return Parsed(None, [])


def _taken(item: dict[str, Any] | Raw, reception: Reception, hides: Hides) -> Record | list[Problem] | None:
    event, set_aside = Parsed(item, [])
    sent = None
    if isinstance(event, Raw):
        text = bytes(event)
        if len(text) > MAX_EVENT:
            return [Problem("event_too_large", f"an event must not be larger than {MAX_EVENT >> 10} KB")]
        if is_too_deep(text):
            return [Problem("nested_too_deeply", TOO_DEEP)]
        try:
            event, set_aside = exact_json.parse(text)
        except NotJsonError as error:
            return [Problem("bad_request", str(error))]
        sent = text if set_aside else None
    if not isinstance(event, dict):
        return [Problem("bad_request", "an event must be an object")]
    if names(hides, event, set_aside):  # before what is wrong with it is noted
        return None
    event = with_type(event, reception)
    problems = checks.problems(event, takes_records=reception.sends_records)
    if problems:
        return problems
    stored = stamped(event, reception)
    if hides(stored):  # by what the batch says of all its events
        return None
    line = exact_json.encode(stored) if sent is None else exact_json.rewritten(sent, stored, without=SECRET)
    hashed = message_hash(reception.source_id, stored["messageId"])
    return Record(reception.source_id, reception.received, hashed, line)


def _sample(item: dict[str, Any] | Raw) -> str:
    """The beginning of an event, without its write key."""
    if isinstance(item, Raw) and (len(bytes(item)) > MAX_EVENT or is_too_deep(bytes(item))):
        return ""
    try:
        event = exact_json.parse(bytes(item)).value if isinstance(item, Raw) else item
        if isinstance(event, dict):
            event = {key: value for key, value in event.items() if key not in SECRET}
        return exact_json.json_text(event)[:SAMPLE]
    except (NotJsonError, RecursionError):
        return ""  # what is no JSON cannot be searched for a key
