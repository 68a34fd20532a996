"""The tracking API: which request means what, and what it is answered.

Plain ASGI, for it is the path of every event.
"""

import asyncio
import base64
import binascii
import re
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote

import msgspec

from eventlake.clock import Clock
from eventlake.collector import checking, intake, sdk_settings
from eventlake.collector.addresses import Addresses
from eventlake.collector.checking import Rejected
from eventlake.collector.counters import Counters
from eventlake.collector.group_commit import GroupCommit, NotStoredError
from eventlake.collector.intake import BadRequestError, Intake
from eventlake.collector.keys import KeyHolder, WriteKeys
from eventlake.collector.rate import RateLimit
from eventlake.collector.rejects import Reject, Rejects
from eventlake.collector.status import Status
from eventlake.collector.suppressing import Suppressing
from eventlake.events.checks import Problem
from eventlake.events.envelope import CALLS
from eventlake.events.instants import to_milliseconds
from eventlake.events.stamps import Reception

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

BODY_SECONDS = 20.0  # in which a client must have sent its body
_SHORT = {"t": "track", "i": "identify", "p": "page", "s": "screen", "g": "group", "a": "alias"}
_CALL_OF = {f"/v1/{name}": name for name in CALLS} | {f"/v1/{letter}": name for letter, name in _SHORT.items()}
_BATCHES = frozenset({"/v1/batch", "/v1/b", "/v1/import"})
_SETTINGS = re.compile(r"/v1/projects/([^/]+)/settings")
_GIF = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
_JSON = (b"content-type", b"application/json")
_CORS = [
    (b"access-control-allow-origin", b"*"),
    (b"access-control-allow-methods", b"GET, POST, OPTIONS"),
    (b"access-control-allow-headers", b"authorization, content-type, content-encoding, anonymousid, sentat"),
    (b"access-control-max-age", b"86400"),
]
_BODY_MAY_BE_UNREAD = frozenset({400, 404, 405, 408})
_MAX_SHOWN = 100  # errors in an answer
_encode = msgspec.json.encode


class Answer(NamedTuple):
    status: int
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...] = (_JSON,)


_SUCCESS = Answer(200, b'{"success":true}')
_HEALTHY = Answer(200, b'{"status":"ok"}')


class _Request(NamedTuple):
    scope: Scope
    headers: dict[bytes, bytes]

    @property
    def path(self) -> str:
        return str(self.scope["path"]).rstrip("/")

    def header(self, name: bytes) -> str:
        return self.headers.get(name, b"").decode("latin-1")

    @property
    def key(self) -> str | None:
        """The write key of Basic authentication: the user, without a password."""
        scheme, _, token = self.header(b"authorization").partition(" ")
        if scheme.lower() != "basic":
            return None
        try:
            return base64.b64decode(token, validate=True).decode().partition(":")[0] or None
        except (binascii.Error, ValueError):
            return None


@dataclass(frozen=True)
class Collector:
    """The ASGI application of one worker process."""

    keys: WriteKeys
    log: GroupCommit
    rejects: Rejects
    counters: Counters
    rate: RateLimit
    clock: Clock
    status: Status
    addresses: Addresses
    suppressing: Suppressing
    strict: bool = False  # answer 400 where Segment answers 200 and drops the event

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        self.counters.add("requests")
        try:
            answer = await self._answer(_Request(scope, dict(scope["headers"])), receive)
        except Exception as error:  # a mistake of ours must not tell what was sent, nor stop the process
            self.counters.add("errors")
            sys.stderr.write(f"a request met a mistake of the collector: {type(error).__name__}\n")
            answer = _refusal(500, "internal_error", "the events are not stored; send them again later")
        length = (b"content-length", str(len(answer.body)).encode())
        headers = [*answer.headers, length, *_CORS]
        if answer.status in _BODY_MAY_BE_UNREAD:
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else answer.body})

    async def _answer(self, request: _Request, receive: Receive) -> Answer:
        path, method = request.path, request.scope["method"]
        if method == "OPTIONS":
            return Answer(204, b"", ())
        if method in ("GET", "HEAD"):
            return await self._get(request, path)
        if method != "POST":
            return _refusal(405, "method_not_allowed", "use POST, or GET for images and settings")
        if path in _CALL_OF or path in _BATCHES or path == "/v1/validate":
            return await self._post(request, path, receive)
        return _refusal(404, "not_found", "there is nothing here; see docs/collector.md for the routes")

    async def _get(self, request: _Request, path: str) -> Answer:
        if path == "/health":
            return self._health()
        if path == "/metrics":
            text = await asyncio.to_thread(self.status.metrics, self.keys.slugs())
            return Answer(200, text.encode(), ((b"content-type", b"text/plain; version=0.0.4"),))
        if path.startswith("/v1/pixel/"):
            return await self._pixel(request, path.removeprefix("/v1/pixel/"))
        settings = _SETTINGS.fullmatch(path)
        if settings:
            return self._settings(unquote(settings.group(1)), request)
        if path == "/sourceConfig":
            return self._source_config(request)
        return _refusal(404, "not_found", "there is nothing here; see docs/collector.md for the routes")

    def _health(self) -> Answer:
        if self.log.is_failing:
            return _refusal(503, "service_unavailable", "the disk refuses events")
        problems = self.status.problems()
        return Answer(200, _encode({"status": "degraded", "problems": problems})) if problems else _HEALTHY

    def _settings(self, key: str, request: _Request) -> Answer:
        if self.keys.holder(key) is None:
            return _refusal(404, "invalid_write_key", "there is no such write key")
        public = self.addresses.public(request.scope, request.header(b"host"))
        if public is None:
            return _refusal(421, "misdirected_request", "the collector has another address: see --public-url")
        return Answer(200, _encode(sdk_settings.segment_settings(key, public)))

    def _source_config(self, request: _Request) -> Answer:
        query = parse_qs(request.scope["query_string"].decode("latin-1"))
        key = request.key or query.get("writeKey", [""])[0]
        holder = self.keys.holder(key)
        if holder is None:
            return _refusal(401, "invalid_write_key", "there is no such write key")
        return Answer(200, _encode(sdk_settings.rudderstack_config(key, holder)))

    async def _pixel(self, request: _Request, call: str) -> Answer:
        """Store what an image's address says. The answer is the image, whatever that is."""
        image = Answer(200, _GIF, ((b"content-type", b"image/gif"), (b"cache-control", b"no-store")))
        if call not in CALLS:
            return image
        try:
            sent = intake.pixel(request.scope["query_string"].decode("latin-1"))
        except BadRequestError as error:
            self._refuse(None, error.code, str(error))
            return image
        await self._take(request, sent, call, from_client=True)
        return image

    async def _post(self, request: _Request, path: str, receive: Receive) -> Answer:
        limit = intake.MAX_BATCH if path in _BATCHES or path == "/v1/validate" else intake.MAX_EVENT
        try:
            body = await _body(request, receive, limit)
            if path == "/v1/validate":
                return self._validate(request, intake.either(body))
            sent = intake.batch(body) if path in _BATCHES else intake.single(body)
        except BadRequestError as error:
            self._refuse(request.key, error.code, str(error))
            return _refusal(400, error.code, str(error))
        except TimeoutError:
            return _refusal(408, "timeout", f"the body did not come within {BODY_SECONDS:g} seconds")
        return await self._take(request, sent, _CALL_OF.get(path), from_client=bool(request.header(b"origin")))

    async def _take(self, request: _Request, sent: Intake, call: str | None, *, from_client: bool) -> Answer:
        key = request.key or sent.write_key
        holder = self.keys.holder(key) if key else None
        if holder is None:
            self._refuse(None, "invalid_write_key", "no write key, or one that is not known")
            return _refusal(401, "invalid_write_key", "give a write key, in Basic authentication or as writeKey")
        wait = self.rate.wait(holder.source_id)
        if wait:
            self.counters.add("requests_limited", source=holder.source_id)
            seconds = str(wait).encode()
            return _refusal(429, "too_many_requests", f"come again in {wait} seconds")._replace(
                headers=(_JSON, (b"retry-after", seconds), (b"x-ratelimit-reset", seconds))
            )
        now, hides = self.clock.now(), self.suppressing.hides(holder.source_id)
        if not holder.enabled:
            problem = Problem("source_disabled", "the source is switched off: `eventlake source enable` lets it in")
            return self._rejected(holder, now, checking.refused(sent, problem, hides), key)
        client, of_records = self.addresses.client(request.scope), holder.sends_records
        reception = Reception(holder.source_id, now, from_client, client, call, sends_records=of_records)
        try:
            records, rejected, suppressed = checking.checked(sent, reception, hides)
        except BadRequestError as error:
            self._refuse(key, error.code, str(error))
            return _refusal(400, error.code, str(error))
        if suppressed:
            self.counters.add("events_suppressed", suppressed, holder.source_id)
        if self.strict and rejected:
            return self._rejected(holder, now, rejected, key)
        if records:
            try:
                await self.log.append([record.line() for record in records])
            except NotStoredError:
                self.counters.add("storage_errors", source=holder.source_id)
                return _refusal(
                    503, "service_unavailable", "the events are not stored; send them again later"
                )._replace(headers=(_JSON, (b"retry-after", b"10")))
            self.counters.add("events_stored", len(records), holder.source_id)
        return self._rejected(holder, now, rejected, key) if rejected else _SUCCESS

    def _rejected(self, holder: KeyHolder, now: int, rejected: list[Rejected], key: str | None) -> Answer:
        """Note events that are refused. As with Segment, the answer does not tell; in strict mode it does."""
        self.counters.add("events_rejected", len(rejected), holder.source_id)
        time = to_milliseconds(now)
        self._note([Reject(time, holder.source_id, *one.problems[0], one.sample) for one in rejected], key)
        return Answer(400, _encode({"success": False, "errors": _shown(rejected)})) if self.strict else _SUCCESS

    def _note(self, rejects: list[Reject], key: str | None) -> None:
        """Keep what was refused, without the key, if the disk takes it: the answer does not depend on that."""
        try:
            self.rejects.add([reject.bounded(key) for reject in rejects])
        except OSError:
            self.counters.add("rejects_lost", len(rejects), rejects[0].source)

    def _validate(self, request: _Request, sent: Intake) -> Answer:
        """Tell all that is wrong, and store nothing."""
        key = request.key or sent.write_key
        holder = self.keys.holder(key) if key else None
        if holder is None:
            return _refusal(401, "invalid_write_key", "give a write key, in Basic authentication or as writeKey")
        try:
            reception = Reception(holder.source_id, self.clock.now(), sends_records=holder.sends_records)
            rejected = checking.checked(sent, reception).rejected
        except BadRequestError as error:
            return _refusal(400, error.code, str(error))
        return Answer(200, _encode({"valid": not rejected, "errors": _shown(rejected)}))

    def _refuse(self, key: str | None, code: str, message: str) -> None:
        holder = self.keys.holder(key) if key else None
        source = holder.source_id if holder else None
        self.counters.add("requests_refused", source=source)
        self._note([Reject(to_milliseconds(self.clock.now()), source, code, message, "")], key)


def _shown(rejected: list[Rejected]) -> list[dict[str, Any]]:
    errors = [{"index": one.number, **problem._asdict()} for one in rejected for problem in one.problems]
    return errors[:_MAX_SHOWN]


def _refusal(status: int, code: str, message: str) -> Answer:
    return Answer(status, _encode({"success": False, "code": code, "message": message}))


async def _body(request: _Request, receive: Receive, limit: int) -> bytes:
    """The body of a request, unpacked. Raises BadRequestError and TimeoutError."""
    parts, size = [], 0
    async with asyncio.timeout(BODY_SECONDS):
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise BadRequestError("bad_request", "the body breaks off")
            part = message.get("body", b"")
            size += len(part)
            if size > limit:
                raise BadRequestError("payload_too_large", f"the body is larger than {limit >> 10} KB")
            parts.append(part)
            if not message.get("more_body"):
                break
    return intake.unpacked(b"".join(parts), request.header(b"content-encoding").strip().lower(), limit)
