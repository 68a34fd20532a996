"""A run in a bucket makes few requests: each costs time and money, however little it is about."""

import gzip
import json
import re
import socket
import socketserver
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from conftest import Lake, new_bucket, settings_for
from eventlake.archive import layout as archive
from runner_without_spark import InProcess
from servers import S3Server

_REQUEST = re.compile(rb"(GET|PUT|POST|HEAD|DELETE) (\S+) HTTP/1\.1\r\n")
TABLES, FILES = 60, 6


class Counting(socketserver.ThreadingTCPServer):
    """Passes on what comes, and counts the requests in it."""

    daemon_threads = True

    def __init__(self, behind: int) -> None:
        self.behind = behind
        self.made: Counter[str] = Counter()
        super().__init__(("127.0.0.1", 0), _Passing)


class _Passing(socketserver.BaseRequestHandler):
    server: Counting

    def handle(self) -> None:
        with socket.create_connection(("127.0.0.1", self.server.behind)) as server:
            back = threading.Thread(target=_pass_on, args=(server, self.request), daemon=True)
            back.start()
            while data := self.request.recv(1 << 20):
                if request := _REQUEST.match(data):  # a client sends the next one when it has the last answer
                    self.server.made[f"{request[1].decode()} {_what(request[2].decode())}"] += 1
                server.sendall(data)


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    while data := source.recv(1 << 20):
        target.sendall(data)


def _what(path: str) -> str:
    """Which kind of file a request is about."""
    for name in ("segment-stage", "segment-data/data", "segment-logs"):
        if name in path:
            return name
    return "other"


@pytest.fixture
def counting(s3: S3Server) -> Iterator[Counting]:
    port = urlsplit(s3.endpoint).port
    assert port
    with Counting(port) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


class Wide(InProcess):
    parallelism = FILES  # a task for each raw file


def events(file: int) -> bytes:
    def event(number: int) -> dict[str, Any]:
        return {
            "type": "track",
            "event": f"E{number % TABLES}",
            "messageId": f"{file}-{number}",
            "properties": {"a": 1},
        }

    return gzip.compress("\n".join(json.dumps(event(number)) for number in range(2 * TABLES)).encode())


def test_pieces_that_lie_together_come_with_one_request_and_nothing_is_asked_for_twice(
    s3: S3Server, counting: Counting, tmp_path: Path
) -> None:
    there = S3Server(f"http://127.0.0.1:{counting.server_address[1]}")
    lake = Lake(tmp_path, Wide(), settings=settings_for(there, new_bucket(s3)))
    for number in range(FILES):
        path = archive.path("src1", lake.workspace.clock.now(), f"{number}.gz")
        lake.place.archive.write(path, events(number))
    counting.made.clear()
    lake.sync()
    data_files = lake.place.ledger.data_files("src1")
    assert sum(file.rows for file in data_files) == 2 * TABLES * FILES
    made = counting.made
    pieces = TABLES * FILES
    # Staged files are written once, each file of data once aside and once moved.
    assert made["GET segment-logs"] <= 2 * FILES, made
    # Of each staged file, a task of publishing fetches what it wants at once, however many tables that is.
    assert made["GET segment-stage"] + made["HEAD segment-stage"] < pieces / 3, made
    assert made["PUT segment-stage"] <= len(data_files) + 4 * FILES, made
    assert made["PUT segment-data/data"] == len(data_files), made
    assert made["GET segment-data/data"] + made["HEAD segment-data/data"] <= 2, made
    # Deleting is one request for a thousand files.
    assert made["DELETE segment-stage"] == 0, made
    assert sum(made.values()) < 2.2 * len(data_files) + 120, made
