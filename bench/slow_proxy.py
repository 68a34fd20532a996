"""A proxy that lets every request wait, as a network would: slow_proxy.py PORT PORT-BEHIND MILLISECONDS."""

from __future__ import annotations

import asyncio
import sys
from typing import cast

import uvloop


class _Side(asyncio.Protocol):
    """One side of a connection: what it receives goes to the other, a new request after a while."""

    def __init__(self, delay: float) -> None:
        self.transport: asyncio.Transport | None = None
        self.other: _Side | None = None
        self.delay = delay  # of the server's side, none
        self.has_answered = True  # since the last request, of the other side
        self._held: list[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self.other is None or self._held is not None:  # not connected yet, or a request that waits
            self._held = [*(self._held or ()), data]
        elif self.delay and self.other.has_answered:
            self.other.has_answered = False
            self._held = [data]
            asyncio.get_running_loop().call_later(self.delay, self.let_go)
        else:
            self._pass(data)

    def let_go(self) -> None:
        held, self._held = self._held or [], None
        self._pass(b"".join(held))

    def _pass(self, data: bytes) -> None:
        if not self.delay:
            self.has_answered = True
        if data and self.other and self.other.transport and not self.other.transport.is_closing():
            self.other.transport.write(data)

    def connection_lost(self, _error: Exception | None) -> None:
        if self.other and self.other.transport:
            self.other.transport.close()


async def serve(port: int, behind: int, delay: float) -> None:
    loop = asyncio.get_running_loop()

    class Client(_Side):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            loop.create_task(self._connect())  # noqa: RUF006 # it ends at once

        async def _connect(self) -> None:
            _, server = await loop.create_connection(lambda: _Side(0), "127.0.0.1", behind)
            server.other = self
            self.other = server
            if self._held is not None:
                server.has_answered = False
                loop.call_later(self.delay, self.let_go)

    listening = await loop.create_server(lambda: Client(delay), "127.0.0.1", port)
    await listening.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]) / 1000))
