"""The Spark driver on a cluster: does what a run elsewhere asks for, until it says bye or falls silent."""

import base64
import os
import sys
import threading
import time
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from eventlake.errors import EventLakeError, TransientError, of_system
from eventlake.runners import wire
from eventlake.runners.mailbox import Mailbox
from eventlake.runners.node_storage import NodeStorage, node_storage
from eventlake.runners.spark import SparkRunner
from eventlake.runners.wire import Failure, Greeting, Request, Steps
from eventlake.storage.base import Storage

POLL_SECONDS = 1.0
SILENCE_SECONDS = 600.0  # after which a run is taken for dead


class Session(Struct, frozen=True, forbid_unknown_fields=True):
    """What the driver is told: which lake it works for, where raw files are, and where its session is."""

    lake: NodeStorage
    archive: NodeStorage
    annexes: list[NodeStorage]
    folder: str
    silence: float


def described(
    lake: Storage,
    archive: Storage,
    folder: str,
    *,
    annexes: Iterable[Storage] = (),
    silence: float = SILENCE_SECONDS,
) -> str:
    """A session as the command line takes it: as base64, for YARN takes braces and dollars for its own."""
    elsewhere = [node_storage(annex, with_role=True) for annex in annexes]
    session = Session(node_storage(lake), node_storage(archive), elsewhere, folder, silence)
    return base64.urlsafe_b64encode(wire.encoded(session)).decode()


def main(told: str, steps: Steps, package: str | None = None) -> None:
    """Serve a session; workers get the package, if Spark does not have it already."""
    session = wire.decoded(base64.urlsafe_b64decode(told), Session, "the session that was submitted")
    raw = [place.storage() for place in (session.archive, *session.annexes)]
    mailbox = Mailbox(session.lake.storage(), session.folder, steps, raw)
    _Silence(mailbox, session.silence).start()
    runner = SparkRunner(None, {}, None, package=package)
    try:
        mailbox.greet(Greeting(runner.parallelism, runner.version))
        _serve(mailbox, runner)
    finally:
        runner.close()


def _serve(mailbox: Mailbox, runner: SparkRunner) -> None:
    number = 1
    while not mailbox.is_over():
        answer = _answer(mailbox, runner, number)
        if answer is None:
            time.sleep(POLL_SECONDS)
            continue
        mailbox.answer(number, answer)
        number += 1


def _answer(mailbox: Mailbox, runner: SparkRunner, number: int) -> list[Any] | Failure | None:
    """What comes of a request; None if it is not there."""
    try:
        request: Request | None = mailbox.request(number)
        if request is None:
            return None
        step, context, tasks = request
        return runner.run(step.function, context, tasks, lambda done: mailbox.tell_progress(number, done))
    except EventLakeError as error:
        return Failure.of(error)
    except OSError as error:
        return Failure.of(of_system(error))
    except Exception as error:
        fix = "see the cluster's logs, then run it again"
        return Failure.of(TransientError(f"{type(error).__name__}: {error}", fix=fix))


class _Silence(threading.Thread):
    """Ends the process when nobody waits for it any more, also in the middle of a step."""

    def __init__(self, mailbox: Mailbox, seconds: float) -> None:
        super().__init__(daemon=True)
        self._mailbox = mailbox
        self._seconds = seconds

    def run(self) -> None:
        sign, since = None, time.monotonic()
        while time.monotonic() - since < self._seconds:
            time.sleep(self._seconds / 20)
            try:
                now = self._mailbox.life_sign()
                if self._mailbox.is_over():
                    self._end("the run is over")
            except EventLakeError:
                continue
            if now is not None and now != sign:
                sign, since = now, time.monotonic()
        self._end("no sign of life from the run for too long")

    def _end(self, why: str) -> None:
        """Give the driver a moment to end by itself, then end it."""
        time.sleep(self._seconds / 20)
        sys.stderr.write(f"eventlake: {why}; giving up\n")
        sys.stderr.flush()
        os._exit(1)
