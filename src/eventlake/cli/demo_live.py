"""The part of the demo that is sent over HTTP to a collector."""

import base64
import itertools
import json
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eventlake.cli import output
from eventlake.cli.serve import CONSOLE_PORT, tell
from eventlake.collector.options import Options
from eventlake.demo import events as demo
from eventlake.demo.events import Recipe
from eventlake.serve.supervisor import Supervisor

_BY_SERVER = (
    "receivedAt",
    "originalTimestamp",
    "projectId",
    "version",
    "messageId",
    "sentAt",
    "timestamp",
    "_metadata",
)
_CALLS: dict[str, tuple[str, ...]] = {  # what Segment's SDK for Python wants in each call
    "identify": ("traits",),
    "track": ("event", "properties"),
    "page": ("category", "name", "properties"),
    "screen": ("category", "name", "properties"),
    "group": ("groupId", "traits"),
}


_AT_ONCE = 6  # live events
_ODD = [{"type": "track", "userId": "u1"}]  # refused: it has no event


@contextmanager
def collector(workspace: Path) -> Iterator[str]:
    """A collector of the workspace; gives its address."""
    command = [sys.executable, "-m", "eventlake", "-C", str(workspace), "collect", "--port", "0", "--workers", "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            yield _address(process)
        finally:
            process.terminate()


def _address(process: subprocess.Popen[str]) -> str:
    said = []
    for line in process.stderr or ():
        if line.startswith("Collecting on "):
            return line.split()[2]
        said.append(line)
    raise RuntimeError("the collector did not start: " + "".join(said))


def serve(workspace: Path, write_key: str) -> None:
    """Run everything, with live events, until somebody stops it."""
    console, collector = _free_ports(CONSOLE_PORT, Options().port)
    address = f"http://127.0.0.1:{collector}"
    parts = {
        "collector": ["collect", "--port", str(collector), "--workers", "1"],
        "scheduler": ["schedule"],
        "console": ["console", "--port", str(console), "--collector-url", address],
    }
    threading.Thread(target=_keep_sending, args=(address, write_key), daemon=True).start()
    Supervisor(workspace, parts, tell).run()
    output.talk.print(f"Stopped. Go on any time: eventlake -C {workspace} serve")


def _free_ports(*wanted: int) -> list[int]:
    """These ports, or others in place of those that are taken."""
    found = []
    for port in wanted:
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                one.bind(("127.0.0.1", 0))
            found.append(one.getsockname()[1])
    return found


def _keep_sending(address: str, write_key: str) -> None:
    """A few events every second, some of them odd, as long as the process lives."""
    for seed in itertools.count(100):
        now = datetime.now(UTC)
        recipe = Recipe(60, seed=seed, until=now, hours=1, conflict_share=0.02)
        events = [_as_sent(json.loads(line)) for line in demo.lines(recipe)]
        for start in range(0, len(events), _AT_ONCE):
            with suppress(OSError):  # the collector may be starting, or ending
                _send_plainly(address, write_key, [*events[start : start + _AT_ONCE], *_ODD[seed % 10 != 0 :]])
            time.sleep(1)


def send(address: str, write_key: str, recipe: Recipe) -> str:
    """Send events, with Segment's SDK if it is installed; which way they went."""
    events = [_as_sent(json.loads(line)) for line in demo.lines(recipe)]
    events = [event for event in events if event["type"] in _CALLS]
    try:
        from segment.analytics import Client  # noqa: PLC0415 # it may be installed or not
    except ImportError:
        _send_plainly(address, write_key, events)
        return f"{len(events)} events with plain HTTP"
    _send_with_sdk(Client(write_key, host=address, max_queue_size=len(events)), events)
    return f"{len(events)} events with Segment's SDK for Python"


def _as_sent(event: dict[str, Any]) -> dict[str, Any]:
    """An event without what SDKs and servers add."""
    return {key: value for key, value in event.items() if key not in _BY_SERVER and value is not None}


def _send_with_sdk(client: Any, events: Sequence[dict[str, Any]]) -> None:
    for event in events:
        who = {"user_id": event.get("userId"), "anonymous_id": event.get("anonymousId")}
        what = {"group_id" if key == "groupId" else key: event.get(key) for key in _CALLS[event["type"]]}
        getattr(client, event["type"])(**who, **what, context=event.get("context"))
    client.flush()
    client.join()


def _send_plainly(address: str, write_key: str, events: Sequence[dict[str, Any]]) -> None:
    token = base64.b64encode(f"{write_key}:".encode()).decode()
    headers = {"Authorization": f"Basic {token}", "Content-Type": "application/json"}
    for start in range(0, len(events), 100):
        body = json.dumps({"batch": events[start : start + 100]}).encode()
        request = urllib.request.Request(f"{address}/v1/batch", body, headers)  # noqa: S310 # our own collector
        with urllib.request.urlopen(request, timeout=30):  # noqa: S310
            pass
