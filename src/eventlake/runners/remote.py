"""Running the tasks of a run on a Spark that is submitted to a cluster, and following it there."""

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, Protocol, TypeVar

from eventlake.errors import CancelledError, EventLakeError, TransientError
from eventlake.runners.mailbox import Mailbox
from eventlake.runners.wire import Failure, Request, Steps
from eventlake.storage.base import Storage

Task = TypeVar("Task")
Result = TypeVar("Result")
Context = TypeVar("Context")

POLL_SECONDS = 2.0
ALIVE_SECONDS = 30.0
LOOKS_PER_STATUS = 5


class State(Enum):
    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "ended"
    FAILED = "failed"


class Status(NamedTuple):
    """What the cluster tells of what was submitted."""

    state: State
    detail: str  # in the cluster's words
    logs: str = ""
    problem: EventLakeError | None = None  # what a failure means, if the cluster tells


NOT_STARTED = Status(State.FAILED, "it was not started")


class Launcher(Protocol):
    """Something that takes a spark-submit."""

    @property
    def where(self) -> Mapping[str, str]:
        """What it is submitted to, as reports tell it; always the same object."""

    def start(self, session: str) -> str:
        """Submit the driver for a session; returns what to call it."""

    def status(self) -> Status: ...

    def stop(self) -> None:
        """End what was started, whatever its state. May be called again."""


class RemoteRunner:
    """A `Runner` whose tasks are done elsewhere. The driver is submitted with the first step and ends with `close`.

    Only functions that are among the `steps` can be asked for.
    """

    def __init__(
        self,
        storage: Storage,
        launcher: Launcher,
        steps: Steps,
        *,
        stage: str,
        talk: Callable[[str], None] = lambda _: None,
        patience: float,
        poll: float = POLL_SECONDS,
    ) -> None:
        self._storage = storage
        self._launcher = launcher
        self._steps = steps
        self._stage = stage  # the folder below which what is under way is put down
        self._talk = talk
        self._patience = patience
        self._poll = poll
        self._lock = threading.RLock()  # one step at a time, whoever asks
        self._session: _Session | None = None
        self._since = 0.0  # something happened last

    @property
    def parallelism(self) -> int:
        with self._lock:
            session = self._open()
            if not session.parallelism:
                greeting = self._wait_for(session.mailbox.greeting, "start")
                session.parallelism = greeting.parallelism
                self._talk(f"Spark {greeting.spark} runs there, {session.parallelism} tasks at once")
            return session.parallelism

    @property
    def where(self) -> Mapping[str, str]:
        return self._launcher.where

    def run(
        self,
        function: Callable[[Context, Task], Result],
        context: Context,
        tasks: Sequence[Task],
        progress: Callable[[int], None] | None = None,
    ) -> list[Result]:
        with self._lock:
            return self._run(function, context, tasks, progress) if tasks else []

    def _run(
        self,
        function: Callable[[Context, Task], Result],
        context: Context,
        tasks: Sequence[Task],
        progress: Callable[[int], None] | None,
    ) -> list[Result]:
        _ = self.parallelism  # it is up
        session = self._open()
        mailbox, number = session.mailbox, next(session.numbers)
        request = Request(self._steps[function.__name__], context, tasks)
        mailbox.ask(number, request)
        done = 0

        def look() -> list[Result] | Failure | None:
            nonlocal done
            now = mailbox.progress(number)
            if now != done:
                done, self._since = now, time.monotonic()
            if progress:
                progress(done)
            return mailbox.result(number, request)

        try:
            found = self._wait_for(look, function.__name__)
        except CancelledError:
            self.close()  # else it would go on there
            raise
        if isinstance(found, Failure):
            raise found.error()
        results: list[Result] = found
        return results

    def close(self) -> None:
        """End the driver, and what was started for it."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._session is None:
            return
        session, self._session = self._session, None
        session.closed.set()
        try:
            with suppress(EventLakeError):
                session.mailbox.say_bye()
                if session.parallelism:  # it is up; else it must not come up
                    self._wait_for_end()
            has_ended = self._has_ended()
        finally:
            self._launcher.stop()
        if has_ended:  # else it looks for the last word there; it is swept later
            with suppress(EventLakeError):
                session.mailbox.remove()

    def _has_ended(self) -> bool:
        try:
            return self._launcher.status().state in (State.ENDED, State.FAILED)
        except EventLakeError:
            return False

    def _wait_for_end(self) -> None:
        """Give the driver a moment to end by itself, so that the cluster shows it as a success."""
        deadline = time.monotonic() + 10 * self._poll
        while not self._has_ended() and time.monotonic() < deadline:
            time.sleep(self._poll)

    def _open(self) -> "_Session":
        if self._session is None:
            # A number, and a time: what is left behind is swept like the staging folders of runs.
            session = self._session = _Session(Mailbox(self._storage, f"{self._stage}/{time.time_ns()}", self._steps))
            session.mailbox.show_alive(0)
            threading.Thread(target=session.stay_alive, daemon=True).start()
            # In a thread that is waited for: who interrupts this must not leave behind what was just started.
            try:
                with ThreadPoolExecutor(1) as pool:
                    what = pool.submit(self._launcher.start, session.mailbox.folder).result()
            except EventLakeError:
                self.close()  # the next source may have more luck
                raise
            self._talk(f"submitted {what}")
        return self._session

    def _wait_for(self, look: Callable[[], Any], what: str) -> Any:
        """What `look` finds, as soon as it finds something; an error if the driver ends before, or stands still."""
        self._since, told = time.monotonic(), ""
        trouble: TransientError | None = None
        status: Status | None = None
        looks = itertools.count()
        while True:
            try:
                if next(looks) % LOOKS_PER_STATUS == 0 or status is None:  # AWS allows less than one such call a second
                    status = self._launcher.status()
                found = look()  # after the status: it may have answered with its last breath
            except TransientError as error:  # of the network; hours of work need not be lost for it
                trouble = error
            else:
                trouble = None
                if found is not None:
                    return found
                if status.detail != told:
                    self._talk(f"{status.detail}{f', logs in {status.logs}' if status.logs and not told else ''}")
                    told, self._since = status.detail, time.monotonic()
                if status.state in (State.ENDED, State.FAILED):
                    self.close()  # another step may start another driver
                    raise status.problem or TransientError(
                        f"the cluster could not {what}: {status.detail}",
                        fix=f"see {status.logs or 'its logs'}, then run it again: nothing was published",
                    )
            if time.monotonic() - self._since > self._patience:
                with suppress(EventLakeError):
                    self.close()  # else what hangs would hold the cluster, and the next step
                raise trouble or TransientError(
                    f"the cluster could not {what}: nothing happened for {self._patience:g} seconds, and {told}",
                    fix="see its logs: is it busy? Then run it again: nothing was published",
                )
            time.sleep(self._poll)


@dataclass
class _Session:
    """One driver, from its submission to its end."""

    mailbox: Mailbox
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))  # of requests
    closed: threading.Event = field(default_factory=threading.Event)
    parallelism: int = 0  # as it told when it came up

    def stay_alive(self) -> None:
        for count in itertools.count(1):
            if self.closed.wait(ALIVE_SECONDS):
                return
            with suppress(EventLakeError):  # the next one may get through
                self.mailbox.show_alive(count)
