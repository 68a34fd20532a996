"""Events that tell another source what was not as planned, in the form that Segment documents."""

import hashlib
from collections.abc import Iterator
from typing import Any

from eventlake.policies import trees
from eventlake.policies.rules import Decision, RulesDocument
from eventlake.policies.schemas import Violation

EVENT = "Violation Generated"
USER_ID = "schema-violations"


def forwarded(document: RulesDocument, decision: Decision, message_id: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The ids of the sources that hear of an event, each with what it hears.

    The same event gives the same messages each time, so that one that is told twice is in the other source once.
    """
    enforcement = document.enforcement
    if enforcement.forwarding_violations_to:
        for violation in decision.verdict.violations:
            told = _violation(document, decision.verdict.event, violation, message_id)
            yield enforcement.forwarding_violations_to, told
    if enforcement.forwarding_blocked_events_to and decision.verdict.blocked:
        yield enforcement.forwarding_blocked_events_to, decision.verdict.event


def _violation(document: RulesDocument, event: dict[str, Any], violation: Violation, message_id: str) -> dict[str, Any]:
    what = f"{message_id}\0{violation.type}\0{violation.field}"
    context = event.get("context")
    kept = {key: context[key] for key in ("app", "library") if isinstance(context, dict) and key in context}
    plan = document.plan
    return {
        "type": "track",
        "event": EVENT,
        "userId": USER_ID,
        "messageId": f"sch-{hashlib.blake2b(what.encode('utf-8', 'replace'), digest_size=16).hexdigest()}",
        "forwardedFromProject": document.source_id,
        "receivedAt": event.get("receivedAt"),
        "timestamp": event.get("timestamp") or event.get("receivedAt"),
        "context": kept,
        "properties": {
            "appVersion": trees.get(context, ("app", "version")),
            "eventMessageID": message_id,
            "eventName": event.get("event") or event.get("name"),
            "eventSentAt": event.get("sentAt"),
            "eventTimestamp": event.get("timestamp"),
            "eventType": event.get("type"),
            "sourceID": document.source_id,
            "sourceName": document.source_name,
            "sourceSlug": document.source_slug,
            "trackingPlanID": plan.id if plan else None,
            "trackingPlanName": plan.name if plan else None,
            "violationDescription": violation.description,
            "violationField": violation.field,
            "violationType": violation.type,
        },
    }
