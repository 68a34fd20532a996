"""HTTP as uvicorn speaks it, with bounds for clients that are slow or send without end."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD = 32 << 10  # bytes of a request before its body
HEAD_SECONDS = 10.0
MAX_PIPELINED = 16  # requests that came before the answers to those before them


class BoundedProtocol(HttpToolsProtocol):
    """Hangs up when a request's head is too long or takes too long."""

    _head_bytes = 0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._expect_head()

    def _expect_head(self) -> None:
        self._head_bytes = 0
        self._stop_timer()
        self._timer = self.loop.call_later(HEAD_SECONDS, self._hang_up)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _hang_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._timer is not None:  # the head is not complete yet
            self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes > MAX_HEAD:
            self._hang_up()
        cycle: Any = self.cycle  # None before the first request, whatever its type says
        if self._timer is None and (cycle is None or cycle.response_complete):
            self._expect_head()  # something came that is no request yet

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_bytes += len(name) + len(value)  # also of trailers, which come after the head
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._stop_timer()
        self._head_bytes = 0
        super().on_headers_complete()
        if len(self.pipeline) > MAX_PIPELINED:
            self._hang_up()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._timer is None:
            self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)
