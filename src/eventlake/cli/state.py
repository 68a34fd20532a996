"""What all commands share: the workspace they work in, and how errors reach the user."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Protocol

import typer

from eventlake.cli import output
from eventlake.errors import EventLakeError, InvalidSettingsError, NotFoundError
from eventlake.runners.remote import RemoteRunner
from eventlake.runners.spark import SparkRunner
from eventlake.sync.steps import Runner
from eventlake.workspace import Workspace

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON for scripts instead of tables.")]

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
        talk=lambda text: output.talk.print(f"EMR: {text}", style="dim"),
        patience=place.settings.spark.patience,
    )


def exit_code(error: EventLakeError) -> int:
    """2 when the command was wrong, 1 when it failed."""
    return 2 if isinstance(error, InvalidSettingsError | NotFoundError) else 1
