"""The supervisor: opens the port, starts workers and keeps them running, and rolls their logs into the archive.

It never touches a request. If a worker dies, what it acknowledged is in its log; another takes its place. If the
supervisor dies, its workers end with it, and the next start finds their logs.
"""

import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from eventlake.collector import log
from eventlake.collector.counters import NO_SOURCE, Counters
from eventlake.collector.lock import only_one
from eventlake.collector.options import Options, Spool
from eventlake.collector.roller import Roller, Tell
from eventlake.control.collected import Taken
from eventlake.errors import EventLakeError, SetupError
from eventlake.workspace import Workspace

_LOOK_EVERY = 0.2  # seconds
_RESTART_AFTER = 1.0
_FAREWELL = 30.0  # for a worker to answer its last requests
_NOTE_EVERY = 10.0
_PATIENCE = 20.0  # for the workers of a supervisor that was killed to end

_BUSY = "another collector is running in this workspace"


class Supervisor:
    def __init__(self, workspace: Workspace, options: Options, tell: Tell) -> None:
        self._workspace = workspace
        self._options = options
        self._tell = tell
        self._spool = Spool(workspace.folder)
        self._workers: dict[str, subprocess.Popen[bytes]] = {}
        self._counters = Counters(self._spool.counters, "supervisor")
        self._noted_at = float("-inf")
        self._stopping = False

    def run(self, ready: Callable[[int], None]) -> int:
        """Serve until SIGTERM or SIGINT; `ready` is told the port. How many logs could not be rolled in the end."""
        self._spool.make()
        # Workers hold the lock too: what they write to must not be taken for what was left behind.
        lock = only_one(self._spool.lock, _BUSY, fix="stop it, or use its port", patience=_PATIENCE)
        with lock as held, self._signals():
            roller = Roller(self._workspace, self._options.roll_seconds, self._tell)
            roller.seal_left()  # of processes that were killed
            with suppress(EventLakeError, OSError):
                self._workspace.collected.begin(self._name, self._workspace.clock.now(), self._totals())
            with _listening(self._options) as listening:
                inherited = (listening.fileno(), held)
                for number in range(self._options.workers):
                    self._start(f"w{number}", inherited)
                ready(listening.getsockname()[1])
                while not self._stopping:
                    self._restart_dead(inherited)
                    self._note_counts()
                    if not roller.one():
                        time.sleep(_LOOK_EVERY)
            self._stop()
            roller.seal_left()  # of a worker that could not seal it
            while roller.one():
                pass
            self._note_counts(now=True)
            with suppress(EventLakeError):
                self._workspace.presence.gone("collector")
            return roller.left()

    @contextmanager
    def _signals(self) -> Iterator[None]:
        def stop(_number: int, _frame: FrameType | None) -> None:
            self._stopping = True

        before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _start(self, name: str, inherited: tuple[int, int]) -> None:
        options = json.dumps(dataclasses.asdict(self._options))
        command = [sys.executable, "-m", "eventlake.collector.worker", str(self._workspace.folder), name]
        self._workers[name] = subprocess.Popen(  # noqa: S603 # nothing of it comes from a request
            [*command, str(inherited[0]), options],
            pass_fds=inherited,
            process_group=0,  # Ctrl-C is for the supervisor, which tells the workers; see `serve.supervisor`
            stdin=subprocess.PIPE,  # closed when the supervisor dies: see `worker`
        )

    def _restart_dead(self, inherited: tuple[int, int]) -> None:
        for name, worker in list(self._workers.items()):
            if worker.poll() is not None:
                self._tell(f"worker {name} ended with {worker.returncode}; starting another")
                try:
                    for path in self._spool.logs.glob(f"{name}-*{log.OPEN}"):
                        log.seal(path)
                    self._start(name, inherited)
                except OSError as error:
                    self._tell(f"cannot start another worker: {error}; trying again")
                time.sleep(_RESTART_AFTER)

    def _note_counts(self, *, now: bool = False) -> None:
        """Now and then, tell the workspace how many events came; it does without if it must."""
        if not now and time.monotonic() - self._noted_at < _NOTE_EVERY:
            return
        self._noted_at = time.monotonic()
        with suppress(EventLakeError, OSError):
            self._workspace.collected.note(self._name, self._workspace.clock.now(), self._totals())
            self._workspace.presence.here("collector")

    @property
    def _name(self) -> str:
        """Of the place where it collects."""
        return f"{socket.gethostname()}:{self._workspace.folder}"

    def _totals(self) -> dict[str, Taken]:
        return {
            source: Taken(counts["events_stored"], counts["events_rejected"], counts["events_copies"])
            for source, counts in self._counters.sums().items()
            if source != NO_SOURCE
        }

    def _stop(self) -> None:
        for worker in self._workers.values():
            worker.send_signal(signal.SIGTERM)
        for worker in self._workers.values():
            try:
                worker.wait(_FAREWELL)
            except subprocess.TimeoutExpired:
                worker.kill()  # what it acknowledged is in its log
                worker.wait()


@contextmanager
def _listening(options: Options) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((options.host, options.port))
        except OSError as error:
            raise SetupError(
                f"cannot listen on {options.host}:{options.port}: {os.strerror(error.errno or 0)}",
                fix="choose another with --host and --port, or stop what uses it",
            ) from error
        listening.listen(2048)
        listening.set_inheritable(True)
        yield listening
