"""HTTP as uvicorn speaks it, with bounds for clients that are slow or send without end."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD = 32 << 10  # bytes of a request before its body
HEAD_SECONDS = 10.0
STALL_SECONDS = 10.0  # in which a client must take an answer, if more of its requests wait to be read
MAX_PIPELINED = 16  # requests that wait for the answers to those before them; what comes after them is not read yet
MAX_UNREAD = 1 << 20  # bytes
_PIECE = 16 << 10  # bytes that are read at a time: they may hold many requests


class BoundedProtocol(HttpToolsProtocol):
    """Hangs up when a request's head is too long or takes too long, and reads no faster than it answers."""

    _head_bytes = 0
    _timer: asyncio.TimerHandle | None = None
    _stall_timer: asyncio.TimerHandle | None = None
    _unread = b""  # came, but is not to be read before some requests are answered
    _answering: Any = None  # the request under way; `cycle` is the one that was read last

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

    def _stop_stall_timer(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None

    def _hang_up(self) -> None:
        self._give_up_answers()
        if not self.transport.is_closing():
            self.transport.abort()

    def _give_up_answers(self) -> None:
        """Nobody will read the answers to what was read: what is under way must not try to write them."""
        self._unread = b""
        for cycle in (self._answering, *(waiting for waiting, _ in self.pipeline)):
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        self.pipeline.clear()

    def data_received(self, data: bytes) -> None:
        self._unread += data
        if len(self._unread) > MAX_UNREAD:
            self._hang_up()
        self._read_on()

    def _read_on(self) -> None:
        """Read what came, unless too many requests wait for their answers."""
        while self._unread and len(self.pipeline) < MAX_PIPELINED and not self.transport.is_closing():
            piece, self._unread = self._unread[:_PIECE], self._unread[_PIECE:]
            self._read(piece)
        self._stop_stall_timer()
        if self._unread:
            self.flow.pause_reading()
            self._stall_timer = self.loop.call_later(STALL_SECONDS, self._hang_up)
            if self._timer is not None:  # half a head was read: it is not the client that keeps us waiting
                self._stop_timer()
                self._timer = self.loop.call_later(HEAD_SECONDS, self._hang_up)

    def _read(self, data: bytes) -> None:
        if self._timer is not None:  # the head is not complete yet
            self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes > MAX_HEAD:
            self._hang_up()
        cycle: Any = self.cycle  # None before the first request, whatever its type says
        if self._timer is None and (cycle is None or cycle.response_complete):
            self._expect_head()  # something came that is no request yet

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._unread:
            self.loop.call_soon(self._read_on)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_bytes += len(name) + len(value)  # also of trailers, which come after the head
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._stop_timer()
        self._head_bytes = 0
        super().on_headers_complete()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._timer is None:
            self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._stop_stall_timer()
        self._give_up_answers()
        super().connection_lost(exc)
