"""A collector as users run it: processes of its own, spoken to over HTTP."""

import base64
import gzip
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from conftest import with_database
from eventlake.workspace import CONFIG, Workspace

PROGRAM = Path(sys.executable).with_name("eventlake")
SECONDS = 60


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Collector:
    """Runs `eventlake collect` in a workspace until it is stopped or killed."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        settings: str = "",
        prepare: Callable[[], None] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        if not (folder / CONFIG).exists():
            Workspace.create(folder)
            with_database(folder)
            if settings:
                (folder / CONFIG).write_text(f'workspace_id = "test"\n{settings}')
            self.key = Workspace.open(folder).connections.add_source("web", source_id="src1")[1]
        self._options = options
        self._prepare = prepare
        self._environment = environment

    def __enter__(self) -> Self:
        self.start()
        return self

    def start(self) -> None:
        # Each worker takes a second to start: most tests need one.
        few = ("--port", "0", "--workers", "1", "--roll-seconds", "0.2")
        command = [str(PROGRAM), "-C", str(self.folder), "collect", *few]
        self.process = subprocess.Popen(
            [*command, *self._options],
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=self._prepare,  # noqa: PLW1509
            env=self._environment,
        )
        assert self.process.stderr
        line = self._heard = ""
        while "Collecting on" not in line:
            line = self.process.stderr.readline()
            self._heard += line
            assert line, "the collector ended"
        self.port = int(line.split(":")[2].split()[0])
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                assert self.get("/health").status == 200
                return
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.05)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.stop()

    def stop(self) -> str:
        """Stop it as `kill` and Ctrl-C do; what it said."""
        self.process.send_signal(signal.SIGTERM)
        _, said = self.process.communicate(timeout=SECONDS)
        return self._heard + str(said)

    def kill(self) -> None:
        """Kill all its processes at once."""
        for pid in (self.process.pid, *self.workers()):
            os.kill(pid, signal.SIGKILL)
        self.process.communicate(timeout=SECONDS)

    def workers(self) -> list[int]:
        pid = self.process.pid
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def request(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, named)
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.request("GET", path, b"", headers)

    def post(self, path: str, content: Any, *, key: str | None = None, **headers: str) -> Answer:
        """Send JSON, or bytes as they are, with the write key as Basic authentication does it."""
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        token = base64.b64encode(f"{key or self.key}:".encode()).decode()
        return self.request("POST", path, body, {"Authorization": f"Basic {token}"} | headers)

    def archived(self) -> list[dict[str, Any]]:
        """All events of the raw archive, after the collector was stopped."""
        return [json.loads(line) for line in self.lines()]

    def lines(self) -> list[bytes]:
        files = sorted((self.folder / "lake" / "segment-logs").rglob("*.gz"))
        return [line for file in files for line in gzip.decompress(file.read_bytes()).splitlines()]
