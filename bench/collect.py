"""The load benchmark of the collector: events per second and how long requests take, with every event on disk.

The load comes from one process of this machine, over connections that stay open, as SDKs of servers do it.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import statistics
import subprocess
import tempfile
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil  # type: ignore[import-untyped]
import uvloop
from rich.console import Console
from rich.table import Table

from bench.busy import PAGES_PER_SECOND, Served
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


def _beside(options: argparse.Namespace, batches: list[int]) -> Table:
    """Each size in turn alone and beside a console and a replay, so that neither has the quieter machine."""
    found: dict[tuple[int, bool], list[Result]] = {}
    with tempfile.TemporaryDirectory(prefix="eventlake-collect-") as folder:
        served = Served(Path(folder) / "workspace", events=options.events, workers=options.workers)
        try:
            for number in range(options.rounds):
                for is_busy in (False, True) if number % 2 else (True, False):
                    with served.busy() if is_busy else nullcontext():
                        for batch in batches:
                            whole = psutil.Process(served.process.pid)
                            load = _load(served.port, served.key, batch, options.seconds, options.clients, whole)
                            found.setdefault((batch, is_busy), []).append(uvloop.run(load))
        finally:
            served.close()
    table = Table("events per request", "alone, events/s", "beside, events/s", "share", "p99 ms alone", "beside")
    for batch in batches:
        alone, beside = found[batch, False], found[batch, True]
        rates = [statistics.median(one.per_second for one in some) for some in (alone, beside)]
        slow = [f"{statistics.median(one.quantile(0.99) for one in some):.0f}" for some in (alone, beside)]
        table.add_row(str(batch), *(f"{rate:,.0f}" for rate in rates), f"{rates[1] / rates[0]:.0%}", *slow)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20, help="of load for each size (%(default)s)")
    parser.add_argument("--clients", type=int, default=32, help="connections (%(default)s)")
    parser.add_argument("--workers", type=int, default=2, help="processes of the collector (%(default)s)")
    parser.add_argument("--batch", default="1,100", help="events in a request, with commas (%(default)s)")
    parser.add_argument(
        "--beside",
        action="store_true",
        help=f"compare with a collector beside a console that is asked for {PAGES_PER_SECOND} pages a second, and a "
        "replay that does not end; all in one `eventlake serve`",
    )
    parser.add_argument("--rounds", type=int, default=4, help="of --beside (%(default)s)")
    parser.add_argument("--events", type=int, default=300_000, help="in the replay of --beside (%(default)s)")
    options = parser.parse_args()
    batches = [int(batch) for batch in options.batch.split(",")]
    if options.beside:
        Console().print(_beside(options, batches))
        return
    table = Table("events per request", "requests/s", "events/s", "target", "p50 ms", "p99 ms", "refused", "peak MB")
    for batch in batches:
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
