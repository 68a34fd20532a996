"""Runs the parts of eventlake as processes of their own, and keeps them running.

If one dies, another takes its place after a pause that grows as long as it keeps dying; the others do not notice. If
the supervisor dies, its parts end as well: they look whether it is still there.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

PARENT = "EVENTLAKE_PARENT"  # in the environment of a part: the process with which it ends
FAREWELL = 90.0  # seconds that a part has to end
_LOOK_EVERY = 0.2
_SHORTEST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
_STEADY = 60.0  # seconds after which a part counts as well again

Tell = Callable[[str, str], None]
"""Which part says what."""


@dataclass
class _Part:
    name: str
    words: Sequence[str]
    process: subprocess.Popen[str] | None = None
    started_at: float = 0.0
    pause: float = _SHORTEST_PAUSE
    not_before: float = 0.0


class Supervisor:
    """`parts` are commands of eventlake, by name."""

    def __init__(self, folder: Path, parts: Mapping[str, Sequence[str]], tell: Tell) -> None:
        self._folder = folder
        self._parts = [_Part(name, words) for name, words in parts.items()]
        self._tell = tell
        self._stopping = threading.Event()

    def run(self) -> int:
        """Go on until SIGTERM or SIGINT; how many parts could not end by themselves."""
        with self._signals():
            while not self._stopping.is_set():
                for part in self._parts:
                    self._keep(part)
                self._stopping.wait(_LOOK_EVERY)
            return self._stop()

    def stop(self) -> None:
        self._stopping.set()

    def _keep(self, part: _Part) -> None:
        now = time.monotonic()
        if part.process is not None:
            code = part.process.poll()
            if code is None:
                if now - part.started_at > _STEADY:
                    part.pause = _SHORTEST_PAUSE
                return
            self._tell(part.name, f"ended with {code}; starting another in {part.pause:g} s")
            part.process, part.not_before = None, now + part.pause
            part.pause = min(2 * part.pause, _LONGEST_PAUSE)
        if now >= part.not_before:
            self._start(part)

    def _start(self, part: _Part) -> None:
        command = [sys.executable, "-m", "eventlake", "-C", str(self._folder), *part.words]
        part.process = subprocess.Popen(  # noqa: S603 # nothing of it comes from outside
            command,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=os.environ | {PARENT: str(os.getpid())},
            # Ctrl-C is for the supervisor, which tells its parts. Not in sessions of their own, for then Linux would
            # share the cores out among sessions, and priorities count within one only.
            process_group=0,
        )
        part.started_at = time.monotonic()
        threading.Thread(target=self._pass_on, args=(part.name, part.process), daemon=True).start()

    def _pass_on(self, name: str, process: subprocess.Popen[str]) -> None:
        for line in process.stderr or ():
            self._tell(name, line.rstrip("\n"))

    def _stop(self) -> int:
        """End all parts, each in its own way: what it has in hand is finished or given up safely."""
        running = [part for part in self._parts if part.process is not None]
        for part in running:
            if part.process is not None:
                with suppress(ProcessLookupError):
                    part.process.send_signal(signal.SIGTERM)
        deadline, stubborn = time.monotonic() + FAREWELL, 0
        for part in running:
            if part.process is None:
                continue
            try:
                part.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                stubborn += 1
                self._tell(part.name, "does not end; it is killed. Nothing that was acknowledged is lost")
                with suppress(ProcessLookupError):
                    os.killpg(part.process.pid, signal.SIGKILL)
                part.process.wait()
        return stubborn

    @contextmanager
    def _signals(self) -> Iterator[None]:
        def stop(_number: int, _frame: FrameType | None) -> None:
            self._stopping.set()

        before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def end_with_parent(*, look_every: float = 1.0) -> None:
    """In a part: end as on SIGTERM when the supervisor is gone, however it went."""
    parent = os.environ.get(PARENT, "")
    if not parent.isdigit():
        return

    def watch() -> None:
        while os.getppid() == int(parent):
            time.sleep(look_every)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()
