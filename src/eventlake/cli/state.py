"""What all commands share: the workspace they work in, and how errors reach the user."""

import getpass
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from eventlake.cli import output
from eventlake.errors import BusyError, EventLakeError, InvalidSettingsError, NotFoundError

if TYPE_CHECKING:
    from eventlake.library.changes import Changes
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

    workspace = Workspace.open(_folder)
    at_the_end.callback(workspace.close)
    return workspace


def changes() -> "Changes":
    """The workspace as one that is changed: every change is noted in the audit log, as one of the console is."""
    from eventlake.library.changes import Changes  # noqa: PLC0415 - takes its time to load
    from eventlake.library.workspace import Workspace  # noqa: PLC0415

    workspace = Workspace.open(_folder)
    at_the_end.callback(workspace.close)
    return Changes(workspace, who())


def who() -> str:
    """Whom the audit log names."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container may run as a number that has no name
        user = f"user {os.getuid()}"
    return f"{user} on the command line"


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


class Attempts:
    """What is tried for several lakes or connections: one that fails does not hold up the others."""

    def __init__(self, of: int) -> None:
        self._of = of
        self.failed: list[EventLakeError] = []

    @contextmanager
    def one(self, name: str) -> Iterator[None]:
        """Try it for one of them; that it failed is told at once."""
        try:
            yield
        except EventLakeError as error:
            self.failed.append(error)
            if self._of > 1:
                output.talk.print(output.printable(f"{name}: {error}"), style="red")

    def end(self, *, is_partly: bool = False) -> None:
        """End the command with what came of them: the first error if there is nothing else, or the code for a part."""
        if self.failed and len(self.failed) == self._of:
            raise self.failed[0]
        if self.failed or is_partly:
            raise typer.Exit(PARTLY)


def exit_code(error: EventLakeError) -> int:
    """What the program ends with; docs/cli.md has the table."""
    if isinstance(error, BusyError):
        return BUSY
    return MISUSED if isinstance(error, InvalidSettingsError | NotFoundError) else FAILED
