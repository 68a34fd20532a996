"""What all commands share: the workspace they work in, and how errors reach the user."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Protocol, TypeVar

import typer

from eventlake.cli import output
from eventlake.errors import BusyError, EventLakeError, InvalidSettingsError, NotFoundError
from eventlake.runners.remote import RemoteRunner
from eventlake.runners.spark import SparkRunner
from eventlake.sync.remote_steps import STEPS
from eventlake.sync.steps import Runner
from eventlake.workspace import Workspace

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON for scripts instead of tables.")]

Answer = TypeVar("Answer")

_folder = Path()


def use_folder(folder: Path) -> None:
    global _folder  # noqa: PLW0603 - the one option that stands before the command
    _folder = folder


def folder() -> Path:
    return _folder


def workspace() -> Workspace:
    return Workspace.open(_folder)


def spark_log(place: Workspace) -> Path:
    return place.folder / "logs" / "spark.log"


class ClosingRunner(Runner, Protocol):
    def close(self) -> None: ...


@contextmanager
def runner(place: Workspace, *, transient: bool = False) -> Iterator[ClosingRunner]:
    """A runner that starts Spark when the first task comes, and stops it at the end; if asked, on its own cluster."""
    made = _remote(place, transient) if place.settings.runner != "spark" else _spark(place)
    try:
        yield made
    finally:
        made.close()


def _spark(place: Workspace) -> SparkRunner:
    spark = place.settings.spark
    return SparkRunner(spark.master, spark.conf, spark_log(place), patience=spark.patience)


def _remote(place: Workspace, transient: bool) -> RemoteRunner:
    from eventlake.cli.emr import launcher  # noqa: PLC0415 - only what runs on AWS needs it

    # Who stops the process must stop what it started elsewhere; without this only Ctrl-C would.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return RemoteRunner(
        place.storage,
        launcher(place, transient=transient),
        STEPS,
        talk=lambda text: output.talk.print(f"EMR: {text}", style="dim"),
        patience=place.settings.spark.patience,
    )


WaitOption = Annotated[
    float,
    typer.Option("--wait", min=0, metavar="SECONDS", help="Wait so long for a source that another run holds; or inf."),
]


def patiently(seconds: float, what: str, attempt: Callable[[], Answer]) -> Answer:
    """Do something as soon as no other run holds the source, after some seconds at most."""
    deadline, is_told = time.monotonic() + seconds, False
    while True:
        try:
            return attempt()
        except BusyError:
            if time.monotonic() >= deadline:
                raise
        if not is_told:
            output.talk.print(f"{what}: waiting for another run to end", style="dim")
            is_told = True
        time.sleep(0.2)


FAILED, MISUSED, PARTLY, BUSY = 1, 2, 3, 4


def exit_code(error: EventLakeError) -> int:
    """What the program ends with; docs/cli.md has the table."""
    if isinstance(error, BusyError):
        return BUSY
    return MISUSED if isinstance(error, InvalidSettingsError | NotFoundError) else FAILED
