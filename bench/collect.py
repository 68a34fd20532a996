"""The load benchmark of the collector: events per second and how long requests take, with every event on disk.

The load comes from one process of this machine, over connections that stay open, as SDKs of servers do it.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil  # type: ignore[import-untyped]
import uvloop
from rich.console import Console
from rich.table import Table

from bench.contestants import EVENTLAKE
from eventlake.demo import events as demo
from eventlake.demo.events import Recipe
from eventlake.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

_DISTINCT = 2000  # events, sent again and again with other ids
_TARGETS = {1: 2500, 100: 20_000}  # events per batch → events per second, on two cores with the load


@dataclass
class Result:
    batch: int
    seconds: float
    events: int
    latencies: list[float]
    refused: int
    peak_mb: float
    end_mb: float

    @property
    def per_second(self) -> float:
        return self.events / self.seconds

    def quantile(self, share: float) -> float:
        """Milliseconds within which this share of the requests was answered."""
        ordered = sorted(self.latencies)
        return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class _Messages:
    """Requests, each with ids of its own."""

    def __init__(self, key: str, batch: int) -> None:
        lines = list(demo.lines(Recipe(_DISTINCT)))
        self._events = [_as_sent(json.loads(line)) for line in lines]
        self._batch = batch
        token = base64.b64encode(f"{key}:".encode()).decode()
        self._head = (
            f"POST /v1/{'batch' if batch > 1 else 'track'} HTTP/1.1\r\nHost: localhost\r\n"
            f"Authorization: Basic {token}\r\nContent-Type: application/json\r\nContent-Length: "
        ).encode()

    def requests(self, client: int) -> Iterator[bytes]:
        """Made before they are sent, as far as possible: the load must not wait for itself."""
        tracks = [text for text in self._events if b'"type":"track"' in text] if self._batch == 1 else self._events
        number = 0
        while True:
            parts = []
            for _ in range(self._batch):
                text = tracks[(number + client * 97) % len(tracks)]
                parts.append(text.replace(b"~~~~~~~~~~~~~~~~", b"%04x-%011x" % (client, number), 1))
                number += 1
            body = b'{"batch":[' + b",".join(parts) + b"]}" if self._batch > 1 else parts[0]
            yield self._head + str(len(body)).encode() + b"\r\n\r\n" + body


def _as_sent(event: dict[str, object]) -> bytes:
    """An event as an SDK sends it: without what the server adds."""
    for key in ("receivedAt", "originalTimestamp", "projectId", "version"):
        event.pop(key, None)
    event["messageId"] = "~" * 16
    event["userId"] = event.get("userId") or "u1"
    return json.dumps(event, separators=(",", ":")).encode()


async def _client(port: int, requests: Iterator[bytes], until: float, result: Result) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.perf_counter() < until:
        request = next(requests)
        started = time.perf_counter()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
        result.latencies.append(time.perf_counter() - started)
        if head.startswith(b"HTTP/1.1 200"):
            result.events += result.batch
        else:
            result.refused += 1
    writer.close()


async def _load(port: int, key: str, batch: int, seconds: float, clients: int, supervisor: psutil.Process) -> Result:
    result = Result(batch, 0, 0, [], 0, 0, 0)
    messages = _Messages(key, batch)
    started = time.perf_counter()
    tasks = [
        asyncio.create_task(_client(port, messages.requests(client), started + seconds, result))
        for client in range(clients)
    ]
    while any(not task.done() for task in tasks):
        await asyncio.sleep(0.5)
        result.end_mb = _memory(supervisor)
        result.peak_mb = max(result.peak_mb, result.end_mb)
    await asyncio.gather(*tasks)
    result.seconds = time.perf_counter() - started
    return result


def _memory(supervisor: psutil.Process) -> float:
    total = 0
    for process in [supervisor, *supervisor.children(recursive=True)]:
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total / 1e6


def _run(options: argparse.Namespace, batch: int) -> Result:
    with tempfile.TemporaryDirectory(prefix="eventlake-collect-") as folder:
        place = Workspace.create(Path(folder) / "workspace")
        _, key = place.connections.add_source("load")
        command = [str(EVENTLAKE), "-C", str(place.folder), "collect", "--port", "0"]
        collector = subprocess.Popen(
            [*command, "--workers", str(options.workers), "--roll-seconds", "10"], stderr=subprocess.PIPE
        )
        assert collector.stderr is not None
        port = int(collector.stderr.readline().split(b":")[2].split()[0])
        time.sleep(1)
        try:
            return uvloop.run(_load(port, key, batch, options.seconds, options.clients, psutil.Process(collector.pid)))
        finally:
            collector.terminate()
            collector.communicate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20, help="of load for each size (%(default)s)")
    parser.add_argument("--clients", type=int, default=32, help="connections (%(default)s)")
    parser.add_argument("--workers", type=int, default=2, help="processes of the collector (%(default)s)")
    parser.add_argument("--batch", default="1,100", help="events in a request, with commas (%(default)s)")
    options = parser.parse_args()
    table = Table("events per request", "requests/s", "events/s", "target", "p50 ms", "p99 ms", "refused", "peak MB")
    for batch in map(int, options.batch.split(",")):
        result = _run(options, batch)
        row = (
            f"{result.per_second / batch:,.0f}",
            f"{result.per_second:,.0f}",
            f"{_TARGETS.get(batch, 0):,}",
            f"{result.quantile(0.5):.1f}",
            f"{result.quantile(0.99):.1f}",
            str(result.refused),
            f"{result.peak_mb:.0f} (at the end {result.end_mb:.0f})",
        )
        table.add_row(str(batch), *row)
    Console().print(table)


if __name__ == "__main__":
    main()
