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
from contextlib import contextmanager
from types import FrameType

from eventlake.collector import log
from eventlake.collector.options import Options, Spool
from eventlake.collector.recent import RecentIds
from eventlake.collector.roll import Rolled, roll
from eventlake.control.locks import only_one
from eventlake.errors import EventLakeError, SetupError
from eventlake.workspace import Workspace

_LOOK_EVERY = 0.2  # seconds
_RESTART_AFTER = 1.0
_TRY_AGAIN_AFTER = 10.0
_FAREWELL = 30.0  # for a worker to answer its last requests
_PATIENCE = 20.0  # for the workers of a supervisor that was killed to end

_BUSY = "another collector is running in this workspace"

Tell = Callable[[str], None]


class Supervisor:
    def __init__(self, place: Workspace, options: Options, tell: Tell) -> None:
        self._place = place
        self._options = options
        self._tell = tell
        self._spool = Spool(place.folder)
        self._recent = RecentIds(self._spool.recent)
        self._workers: dict[str, subprocess.Popen[bytes]] = {}
        self._stopping = False
        self._not_before = 0.0  # for the next attempt to roll, after one that failed

    def run(self, ready: Callable[[int], None]) -> int:
        """Serve until SIGTERM or SIGINT; `ready` is told the port. How many logs could not be rolled in the end."""
        self._spool.make()
        # Workers hold the lock too: what they write to must not be taken for what was left behind.
        lock = only_one(self._spool.folder / "lock", _BUSY, fix="stop it, or use its port", patience=_PATIENCE)
        with lock as held, self._signals():
            for path in log.left_open(self._spool.logs):  # of processes that were killed
                log.seal(path)
            with _listening(self._options) as listening:
                inherited = (listening.fileno(), held)
                for number in range(self._options.workers):
                    self._start(f"w{number}", inherited)
                ready(listening.getsockname()[1])
                while not self._stopping:
                    self._restart_dead(inherited)
                    if not self._roll_one():
                        time.sleep(_LOOK_EVERY)
            self._stop()
            for path in log.left_open(self._spool.logs):  # of a worker that could not seal it
                log.seal(path)
            self._not_before = 0
            while self._roll_one():
                pass
            return len(log.sealed(self._spool.logs))

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
        command = [sys.executable, "-m", "eventlake.collector.worker", str(self._place.folder), name]
        self._workers[name] = subprocess.Popen(  # noqa: S603 # nothing of it comes from a request
            [*command, str(inherited[0]), options],
            pass_fds=inherited,
            start_new_session=True,  # Ctrl-C is for the supervisor, which tells the workers
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

    def _roll_one(self) -> bool:
        """Roll the next log; whether that was done, and the one after it may follow."""
        if time.monotonic() < self._not_before:
            return False
        try:
            waiting = log.sealed(self._spool.logs)
            if waiting:
                self._told(roll(waiting[0], self._place.storage, self._recent))
            return bool(waiting)
        except (EventLakeError, OSError, ValueError) as error:
            problem = error.problem if isinstance(error, EventLakeError) else str(error)
            self._tell(f"cannot write to the archive: {problem}; trying again, nothing is lost")
            self._not_before = time.monotonic() + _TRY_AGAIN_AFTER
            return False

    def _told(self, rolled: Rolled) -> None:
        if rolled.events or rolled.copies:
            copies = f", {rolled.copies:,} copies left out" if rolled.copies else ""
            self._tell(f"{rolled.events:,} events to the archive in {len(rolled.files)} files{copies}")
        if rolled.damaged:
            self._tell(f"{rolled.damaged} bytes of a log are damaged; the log is kept as *.damaged")

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
