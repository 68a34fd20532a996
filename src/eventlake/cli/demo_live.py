"""The part of the demo that is sent over HTTP to a collector."""

import base64
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eventlake.demo import events as demo
from eventlake.demo.events import Recipe

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
