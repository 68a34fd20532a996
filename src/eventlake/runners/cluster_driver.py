"""The Spark driver on a cluster: does what a run elsewhere asks for, until it says bye or falls silent.

spark-submit … main.py <base64 of {"root": "s3://bucket/lake", "options": {…}, "folder": "segment-stage/…"}>
"""

import base64
import json
import os
import sys
import threading
import time
from typing import Any

from eventlake.aws.session import AwsOptions
from eventlake.errors import EventLakeError, TransientError, of_system
from eventlake.runners.mailbox import Failure, Mailbox, Request
from eventlake.runners.spark import SparkRunner
from eventlake.storage.s3 import S3Options, S3Storage

POLL_SECONDS = 1.0
SILENCE_SECONDS = 600.0  # after which a run is taken for dead


def described(storage: S3Storage, folder: str, silence: float = SILENCE_SECONDS) -> str:
    """What the driver is told: where its session is. Neither credentials nor a role: nodes act in their own.

    As base64, for YARN takes braces and dollars in a command for its own.
    """
    options = storage.options._asdict() | {"aws": {"region": storage.options.aws.region}}
    told = {"root": storage.root, "options": options, "folder": folder, "silence": silence}
    return base64.urlsafe_b64encode(json.dumps(told).encode()).decode()


def main() -> None:
    told = json.loads(base64.urlsafe_b64decode(sys.argv[1]))
    options = told["options"] | {"aws": AwsOptions(**told["options"]["aws"])}
    mailbox = Mailbox(S3Storage(told["root"], S3Options(**options)), told["folder"])
    _Silence(mailbox, told["silence"]).start()
    runner = SparkRunner(None, {}, None)
    try:
        mailbox.greet(parallelism=runner.parallelism, spark=runner.version)
        _serve(mailbox, runner)
    finally:
        runner.close()


def _serve(mailbox: Mailbox, runner: SparkRunner) -> None:
    number = 1
    while not mailbox.is_over():
        request = mailbox.request(number)
        if request is None:
            time.sleep(POLL_SECONDS)
            continue
        mailbox.answer(number, _answer(mailbox, runner, number, request))
        number += 1


def _answer(mailbox: Mailbox, runner: SparkRunner, number: int, request: Request) -> list[Any] | Failure:
    function, context, tasks = request
    try:
        return runner.run(function, context, tasks, lambda done: mailbox.tell_progress(number, done))
    except EventLakeError as error:
        told = error
    except OSError as error:
        told = of_system(error)
    except Exception as error:
        told = TransientError(f"{type(error).__name__}: {error}", fix="see the cluster's logs, then run it again")
    return Failure(type(told).__name__, told.problem, told.fix)


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


if __name__ == "__main__":
    main()
