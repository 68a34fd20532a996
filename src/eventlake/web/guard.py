"""What every answer bears and every request must keep to: headers, hosts, sizes. Plain ASGI, around everything else."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_BYTES = 1 << 20  # of a request's body

# Nothing from elsewhere, nothing inline, no frame around it: what an event's name holds stays text, whatever it is.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
_NOT_KEPT = (b"cache-control", b"no-store")
_TOO_LARGE = b"the request is larger than a megabyte\n"
_HSTS = (b"strict-transport-security", b"max-age=31536000")


class Guard:
    """`hosts` are the names by which it may be asked: a page elsewhere must not reach it under a name of its own."""

    def __init__(self, app: App, *, hosts: frozenset[str], is_encrypted: bool) -> None:
        self._app = app
        self._hosts = hosts
        self._headers = [*_HEADERS, *([_HSTS] if is_encrypted else [])]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        if _name(headers.get(b"host", b"").decode("latin-1")) not in self._hosts:
            await _refuse(send, 421, b"this is not its address: see [console] url in eventlake.toml\n")
            return
        if int(_digits(headers.get(b"content-length", b"0"))) > MOST_BYTES:
            await _refuse(send, 413, _TOO_LARGE)
            return
        if scope["path"].startswith("/api/"):  # JSON is taken for what it is, whatever the client calls it
            named = [one for one in scope["headers"] if one[0] != b"content-type"]
            scope = {**scope, "headers": [*named, (b"content-type", b"application/json")]}
        left, is_begun = MOST_BYTES, False

        async def bounded() -> Message:
            """The body, of which nobody said how long it is: past the limit it is as if the client had gone."""
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            return message if left >= 0 else {"type": "http.disconnect"}

        async def with_headers(message: Message) -> None:
            nonlocal is_begun
            if left < 0 and not is_begun:
                return  # what it would say of a client that has gone is not for this one
            if message["type"] == "http.response.start":
                is_begun = True
                given = {name for name, _ in message["headers"]}
                kept = [] if b"cache-control" in given else [_NOT_KEPT]
                message = {**message, "headers": [*message["headers"], *self._headers, *kept]}
            await send(message)

        try:
            await self._app(scope, bounded, with_headers)
        except Exception:
            if left >= 0:
                raise
        if left < 0 and not is_begun:
            await _refuse(send, 413, _TOO_LARGE)


async def _refuse(send: Send, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close"), *_HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _digits(text: bytes) -> bytes:
    return text if text.isdigit() else b"0"  # the server refuses what is no number


def _name(host: str) -> str:
    """A host without its port."""
    if host.startswith("["):
        return host.partition("]")[0].lstrip("[").lower()
    return host.partition(":")[0].lower()
