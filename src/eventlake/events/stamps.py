"""What a collector adds to an event: the envelope of its batch, times, ids, where it came from.

The names and rules are Segment's. Nothing that was sent is lost: a client's `timestamp` becomes `originalTimestamp`,
and of two values for one thing the event's own stays.
"""

import hashlib
import ipaddress
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eventlake.events import instants
from eventlake.events.instants import FIRST, LAST, to_milliseconds

MAX_MESSAGE_ID = 100
API_VERSION = 2


@dataclass(frozen=True)
class Reception:
    """How a request came in."""

    source_id: str
    received: int  # microseconds since 1970
    from_client: bool = False  # a browser or an app, not a server: then the address is the user's
    ip: str | None = None
    call: str | None = None  # the type of event that the route stands for
    sent_at: Any = None
    envelope: Mapping[str, Any] | None = None  # what a batch says of all its events
    sends_records: bool = False  # the source may send extract calls as well


def stamped(event: dict[str, Any], reception: Reception) -> dict[str, Any]:
    """The event as it is stored. It has passed the checks."""
    stored = dict(event)
    stored.pop("writeKey", None)
    _merge(stored, reception)
    _add_ip(stored, reception)
    category = stored.get("category")
    if category and stored.get("type") == "page":
        stored["properties"] = {"category": category, **(stored.get("properties") or {})}
    stored["messageId"] = message_id(stored.get("messageId"))
    stored.update(_times(stored, reception))
    stored.setdefault("channel", "client" if reception.from_client else "server")
    stored.setdefault("version", API_VERSION)
    stored["projectId"] = reception.source_id
    return stored


def with_type(event: dict[str, Any], reception: Reception) -> dict[str, Any]:
    """The event with the type that its route stands for."""
    return {**event, "type": reception.call} if reception.call else event


def _merge(stored: dict[str, Any], reception: Reception) -> None:
    for key in ("context", "integrations"):
        common = (reception.envelope or {}).get(key)
        if isinstance(common, dict) and common:
            stored[key] = {**common, **(stored.get(key) or {})}


def _add_ip(stored: dict[str, Any], reception: Reception) -> None:
    context = stored.get("context") or {}
    wanted = reception.from_client or context.get("direct") is True
    if wanted and reception.ip and "ip" not in context and _is_ipv4(reception.ip):
        stored["context"] = {**context, "ip": reception.ip}


def _is_ipv4(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).version == 4  # addresses of IPv6 are not collected, as with Segment
    except ValueError:
        return False


def message_id(sent: Any) -> str:
    """The id of a message: as it was sent if it can be one, else made up.

    One that is too long is cut and gets its hash, so that copies still have the same id.
    """
    if isinstance(sent, int) and not isinstance(sent, bool):
        sent = str(sent)
    if not isinstance(sent, str) or not sent.strip():
        return f"api-{uuid.uuid4()}"
    if len(sent) <= MAX_MESSAGE_ID:
        return sent
    digest = hashlib.blake2b(sent.encode(), digest_size=16).hexdigest()
    return f"{sent[: MAX_MESSAGE_ID - len(digest) - 1]}-{digest}"


def _times(stored: Mapping[str, Any], reception: Reception) -> dict[str, Any]:
    received = to_milliseconds(reception.received)
    sent_at = stored.get("sentAt") or reception.sent_at
    original = stored.get("timestamp") or stored.get("originalTimestamp")
    corrected = corrected_time(_micros(original), _micros(sent_at), reception.received)
    times = {
        "originalTimestamp": original or received,
        "timestamp": to_milliseconds(corrected),
        "receivedAt": received,
    }
    return times | ({"sentAt": sent_at} if sent_at else {})


def corrected_time(original: int | None, sent: int | None, received: int) -> int:
    """When an event happened by the server's clock, given times by the device's clock and the time of receipt."""
    if original is None:
        return received
    if sent is None:
        return original
    corrected = received - (sent - original)
    return corrected if FIRST <= corrected <= LAST else original


def _micros(text: Any) -> int | None:
    instant = instants.parse(text) if isinstance(text, str) else None
    return instant.micros if instant else None
