"""From the body of a request to the events that it brings."""

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from isal import isal_zlib
from msgspec import Raw

from eventlake.collector import batch_text
from eventlake.reading import exact_json
from eventlake.reading.exact_json import NotJsonError

# Segment's limits.
MAX_EVENT = 32 << 10
MAX_BATCH = 500 << 10
MAX_EVENTS = 2500

MAX_STORED = 8 * MAX_BATCH  # of one request, when each of its events has what the batch says of all
MAX_NESTING = 100
TOO_DEEP = f"more than {MAX_NESTING} levels of nesting"

MAX_MEMBERS = 100  # of a gzip body
MAX_DOTS = 20  # in a member of an image's address


class BadRequestError(Exception):
    """The whole request is refused, with 400."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass
class Intake:
    """What a request brought."""

    write_key: str | None = None
    events: list[dict[str, Any] | Raw] = field(default_factory=list)
    common: Mapping[str, Any] = field(default_factory=dict)  # what the batch says of all its events
    sent_at: Any = None
    is_batch: bool = False


class _Batch(msgspec.Struct):
    batch: list[Raw]
    writeKey: Any = None  # noqa: N815 # as it is sent
    sentAt: Any = None  # noqa: N815
    context: Any = None
    integrations: Any = None


_OF_ALL = frozenset(_Batch.__struct_fields__) - {"batch"}
_decode_batch = msgspec.json.Decoder(_Batch, float_hook=Raw).decode


def unpacked(body: bytes, encoding: str, limit: int) -> bytes:
    """The content of a body, which must not be larger than this, however small it comes. Raises BadRequestError."""
    if encoding == "gzip":
        body = _gunzipped(body, limit)
    elif encoding not in ("", "identity"):
        raise BadRequestError("bad_request", "Content-Encoding must be gzip or absent")
    if len(body) > limit:
        raise BadRequestError("payload_too_large", f"the body is larger than {limit >> 10} KB")
    return body


def _gunzipped(packed: bytes, limit: int) -> bytes:
    """What all members of a gzip body hold, up to a little more than the limit."""
    body = b""
    for _ in range(MAX_MEMBERS):
        decompressor = isal_zlib.decompressobj(wbits=31)
        try:
            body += decompressor.decompress(packed, max_length=limit + 1)
        except isal_zlib.error as error:  # type: ignore[misc] # it is an exception class
            raise BadRequestError("bad_request", "the body is not gzip, as Content-Encoding says") from error
        if len(body) > limit:
            return body
        if not decompressor.eof:
            raise BadRequestError("bad_request", "the gzip body breaks off")
        packed = decompressor.unused_data
        if not packed:
            return body
    raise BadRequestError("bad_request", f"the gzip body has more than {MAX_MEMBERS} members")


def single(body: bytes) -> Intake:
    """A request that is one event."""
    if is_too_deep(body):
        raise BadRequestError("bad_request", TOO_DEEP)
    try:
        event, set_aside = exact_json.parse(body)
    except NotJsonError as error:
        raise BadRequestError("bad_request", f"the body is not JSON: {error}") from error
    if not isinstance(event, dict):
        raise BadRequestError("bad_request", "the body is not a JSON object")
    key = event.get("writeKey")
    return Intake(key if isinstance(key, str) else None, [Raw(body) if set_aside else event])


def batch(body: bytes) -> Intake:
    """A request that is a batch of events."""
    try:
        sent = _decode_batch(body)
        if not batch_text.is_all(body, sent.batch):
            sent = _slowly_decoded(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        sent = _slowly_decoded(body)  # one event that is odd must not cost the others
    common = {"context": sent.context, "integrations": sent.integrations}
    if not (_is_small(sent.context) and _is_small(sent.integrations)):
        raise BadRequestError("payload_too_large", "what the batch says of all its events is too large or too deep")
    return Intake(
        sent.writeKey if isinstance(sent.writeKey, str) else None,
        list(sent.batch),
        {key: value for key, value in common.items() if isinstance(value, dict)},
        sent.sentAt if isinstance(sent.sentAt, str) else None,
        is_batch=True,
    )


def _slowly_decoded(body: bytes) -> _Batch:
    """The same for a batch with something that the fast decoder refuses or would drop."""
    if is_too_deep(body):
        raise BadRequestError("bad_request", TOO_DEEP)
    events: list[Raw] | None = None
    others: dict[str, Any] = {}
    try:
        for key, text in batch_text.members(body):
            if key == "batch" and isinstance(text, list):
                events = [*(events or []), *map(Raw, text)]
            elif key == "batch":
                raise BadRequestError("bad_request", "`batch` is not an array")
            elif key in _OF_ALL:
                if key in others:
                    raise BadRequestError("bad_request", f"`{key}` comes twice")
                others[key] = _of_all(key, text)
    except NotJsonError as error:
        raise BadRequestError("bad_request", f"the body is not JSON: {error}") from error
    if events is None:
        raise BadRequestError("bad_request", "the body has no array `batch`")
    return _Batch(events, **others)


def _of_all(key: str, text: bytes | list[bytes]) -> Any:
    """A member of the batch itself, which counts for all its events."""
    if isinstance(text, list):
        return None  # as anything else that is neither text nor object
    value, set_aside = exact_json.parse(text)
    if set_aside:
        raise BadRequestError("bad_request", f"`{key}` cannot be kept as it is: {set_aside[0].reason}")
    return value


def _is_small(common: Any) -> bool:
    try:
        text = exact_json.encode(common)
    except (RecursionError, msgspec.MsgspecError, TypeError):
        return False
    return len(text) <= MAX_EVENT and not is_too_deep(text)


# A text may lack its end: what comes here need not be JSON, and must not be looked at twice.
_NO_BRACKET = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[^][{}"]+', re.DOTALL)


def is_too_deep(text: bytes) -> bool:
    """Whether JSON is nested so deeply that to read it exactly takes long."""
    if text.count(b"{") + text.count(b"[") <= MAX_NESTING:
        return False
    depth = 0
    for bracket in _NO_BRACKET.sub(b"", text):
        depth += 1 if bracket in b"[{" else -1
        if depth > MAX_NESTING:
            return True
    return False


def either(body: bytes) -> Intake:
    """A batch if it looks like one, else an event."""
    try:
        return batch(body)
    except BadRequestError:
        return single(body)


def pixel(query: str) -> Intake:
    """An event in the address of an image: base64 in `data`, or members with dots for what lies deeper."""
    members = dict(parse_qsl(query, keep_blank_values=True))
    if "data" in members:
        text = members["data"].replace("-", "+").replace("_", "/")
        try:
            return single(base64.b64decode(text + "=" * (-len(text) % 4), validate=True))
        except (binascii.Error, ValueError) as error:
            raise BadRequestError("bad_request", "data is not base64") from error
    event: dict[str, Any] = {}
    for path, value in members.items():
        *parents, key = path.split(".", MAX_DOTS)
        place = event
        for parent in parents:
            below = place.setdefault(parent, {})
            if not isinstance(below, dict):
                raise BadRequestError("bad_request", "a member lies in something that is no object")
            place = below
        if key in place:
            raise BadRequestError("bad_request", "a member comes twice")
        place[key] = value
    write_key = event.get("writeKey")
    return Intake(write_key if isinstance(write_key, str) else None, [event])
