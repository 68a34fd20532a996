"""What all commands share: the workspace they work in, and how errors reach the user."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from eventlake.errors import EventLakeError, InvalidSettingsError, NotFoundError
from eventlake.runners.spark import SparkRunner
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


@contextmanager
def spark(place: Workspace) -> Iterator[SparkRunner]:
    """A runner that starts Spark when the first task comes, and stops it at the end."""
    spark = place.settings.spark
    runner = SparkRunner(spark.master, spark.conf, spark_log(place), patience=spark.patience)
    try:
        yield runner
    finally:
        runner.close()


def exit_code(error: EventLakeError) -> int:
    """2 when the command was wrong, 1 when it failed."""
    return 2 if isinstance(error, InvalidSettingsError | NotFoundError) else 1
