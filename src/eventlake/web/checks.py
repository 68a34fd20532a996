"""Tests of connections that go on: each step is known as soon as it has ended.

Each is a process of its own: it tries Spark, of which a process has only one. What came of the last test of a
connection is remembered until the console ends.
"""

import json
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Any

from fastapi import Request

from eventlake.control.connections import Connection
from eventlake.doctor.steps import steps_of
from eventlake.library.workspace import Workspace
from eventlake.web.access import TooManyError

_SECONDS = 120.0
_GRACE = 10.0  # to end what a step has started elsewhere
_AT_ONCE = 2  # each may start Spark


class Check:
    """A test of a connection: the steps that have ended, and the names of those that have not."""

    def __init__(self, workspace: Workspace, connection: Connection) -> None:
        self.name = connection.full_name
        self.steps: list[dict[str, Any]] = []
        self.is_over = False
        self._names = [step.name for step in steps_of(workspace.lake(connection.lake))]
        words = [sys.executable, "-m", "eventlake.doctor", str(workspace.folder), connection.lake]
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._timer = threading.Timer(_SECONDS, self.end)
        self._timer.daemon = True
        self._timer.start()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> list[str]:
        """The steps that have not ended; the first of them is being tried."""
        return [] if self.is_over else self._names[len(self.steps) :]

    @property
    def has_passed(self) -> bool:
        return self.is_over and all(step["status"] != "failed" for step in self.steps)

    def _listen(self) -> None:
        try:
            with self._process as process:
                for line in process.stdout or ():
                    with suppress(ValueError):  # what a library has to say is no step
                        self.steps.append({"fix": "", **json.loads(line)})
            self._timer.cancel()
        finally:
            self._close()

    def _close(self) -> None:
        if len(self.steps) < len(self._names) and all(step["status"] != "failed" for step in self.steps[-1:]):
            self.steps.append(
                {
                    "step": self._names[len(self.steps)],
                    "status": "failed",
                    "detail": "the test ended here; each has two minutes",
                    "fix": f"run it where the workspace is: eventlake connection check {self.name}",
                }
            )
        self.is_over = True

    def end(self) -> None:
        """Let the process end what it has started elsewhere, and itself."""
        self._process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE)
        self._process.kill()
        self._thread.join()


class Checks:
    """The last test of each connection."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._last: dict[str, Check] = {}
        self._lock = threading.Lock()

    def begin(self, connection: Connection) -> Check:
        """Test a connection; if that goes on already, it is that test."""
        with self._lock:
            going = [one for one in self._last.values() if not one.is_over]
            for one in going:
                if one.name == connection.full_name:
                    return one
            if len(going) >= _AT_ONCE:
                raise TooManyError(10, f"{_AT_ONCE} connections are being tested", fix="test this one after them")
            self._last[connection.full_name] = Check(self._workspace, connection)
            return self._last[connection.full_name]

    def of(self, connection: Connection) -> Check | None:
        """The last test of a connection, if there was one."""
        return self._last.get(connection.full_name)

    def close(self) -> None:
        for one in self._last.values():
            if not one.is_over:
                one.end()


def checks_of(request: Request) -> Checks:
    found: Checks = request.app.state.checks
    return found
