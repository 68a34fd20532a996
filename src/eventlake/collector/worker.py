"""A process that answers requests. The supervisor starts it (see `server`)."""

import asyncio
import json
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from eventlake.collector.addresses import Addresses
from eventlake.collector.app import Collector
from eventlake.collector.counters import Counters
from eventlake.collector.group_commit import GroupCommit
from eventlake.collector.http_protocol import BoundedProtocol
from eventlake.collector.keys import WriteKeys
from eventlake.collector.log import Log
from eventlake.collector.options import Options, Spool
from eventlake.collector.rate import RateLimit
from eventlake.collector.rejects import Rejects
from eventlake.collector.status import Status
from eventlake.collector.suppressing import Suppressing
from eventlake.workspace import Workspace


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # uvicorn would end the process by the signal before the log is handed on


async def serve(folder: Path, name: str, listening: socket.socket, options: Options) -> None:
    place = Workspace.open(folder)
    spool = Spool(place.folder)
    bytes_, seconds = options.roll_bytes, options.roll_seconds
    log = GroupCommit(Log(spool.logs, name, max_bytes=bytes_, max_seconds=seconds, request=spool.request))
    counters = Counters(spool.counters, name)
    suppressing = Suppressing(place.suppressions)
    suppressing.start()
    app = Collector(
        WriteKeys(place.sources),
        log,
        Rejects(spool.rejects, name),
        counters,
        RateLimit(options.requests_per_second / options.workers),
        place.clock,
        Status(spool, counters, place.clock),
        Addresses(options.trusted_proxies, options.public_url),
        suppressing,
        options.strict,
    )
    log.start()
    # Nothing about requests is logged: addresses, keys and payloads are not for logs.
    config = uvicorn.Config(
        app,
        http=BoundedProtocol,
        loop="none",  # it runs already
        lifespan="off",
        access_log=False,
        log_level="warning",
        server_header=False,
        proxy_headers=False,  # it would believe what the client says: see `addresses`
        timeout_keep_alive=60,
        timeout_graceful_shutdown=10,
        backlog=2048,
        limit_concurrency=4096,
        ws="none",
    )
    server = _Server(config)
    loop = asyncio.get_running_loop()

    def stop() -> None:
        server.should_exit = True
        loop.remove_reader(sys.stdin)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    loop.add_reader(sys.stdin, stop)  # it ends when the supervisor does
    try:
        await server.serve(sockets=[listening])
    finally:
        suppressing.stop()
        await log.stop()


def main() -> None:
    folder, name, handle, options = sys.argv[1:]
    listening = socket.socket(fileno=int(handle))
    import uvloop  # noqa: PLC0415 # only here: a supervisor needs none

    uvloop.run(serve(Path(folder), name, listening, Options(**json.loads(options))))


if __name__ == "__main__":
    main()
