"""What all commands share: the workspace they work in, and how errors reach the user."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from eventlake.cli import output
from eventlake.errors import BusyError, EventLakeError, InvalidSettingsError, NotFoundError

if TYPE_CHECKING:
    from eventlake.workspace import Lake, Workspace

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON for scripts instead of tables.")]

Answer = TypeVar("Answer")

_folder = Path()

at_the_end = ExitStack()  # what a command leaves to be closed when it is done, however it ends


def use_folder(folder: Path) -> None:
    global _folder  # noqa: PLW0603 - the one option that stands before the command
    _folder = folder


def folder() -> Path:
    return _folder


def workspace() -> "Workspace":
    from eventlake.workspace import Workspace  # noqa: PLC0415 - help shall be there at once

    place = Workspace.open(_folder)
    at_the_end.callback(place.close)
    return place


LakeOption = Annotated[str, typer.Option("--lake", metavar="LAKE", help="The lake, if it is not the default one.")]


def lake(name: str) -> "Lake":
    return workspace().lake(name)


DialectOption = Annotated[
    Literal["segment", "rudderstack"],
    typer.Option("--dialect", help="Tables as in Segment Data Lakes, or as in RudderStack's S3 data lake."),
]

WaitOption = Annotated[
    float,
    typer.Option(
        "--wait", min=0, metavar="SECONDS", help="How long to wait for a connection that another run holds; or inf."
    ),
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
