"""What all commands share: the workspace they work in, and how errors reach the user."""

import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Protocol, Self, TypeVar

import typer

from eventlake.cli import output
from eventlake.control.connections import Connection
from eventlake.errors import BusyError, EventLakeError, InvalidSettingsError, NotFoundError
from eventlake.runners.choice import Surroundings, runner_of
from eventlake.sync.remote_steps import STEPS
from eventlake.sync.steps import Runner
from eventlake.workspace import Lake, Workspace

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


LakeOption = Annotated[str, typer.Option("--lake", metavar="LAKE", help="The lake, if it is not the default one.")]


def lake(name: str) -> Lake:
    return workspace().lake(name)


def surroundings(place: Lake) -> Surroundings:
    return Surroundings(
        place.storage,
        place.archive,
        place.settings.aws.options,
        place.workspace.folder,
        talk=lambda text: output.talk.print(f"EMR: {text}", style="dim"),
        busy=output.talk.status,
    )


class ClosingRunner(Runner, Protocol):
    def close(self) -> None: ...


class Runners:
    """The runner of each lake, which starts Spark when the first task comes. All are closed at the end.

    A process has one Spark: lakes that ask for the same share it, and for another the one before is stopped.
    """

    def __init__(self, place: Workspace, *, transient: bool = False) -> None:
        self._place = place
        self._transient = transient
        self._spark: tuple[object, ClosingRunner] | None = None  # with the settings that it has
        self._remote: dict[str, ClosingRunner] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with ExitStack() as closing:
            for made in (*self._remote.values(), *(self._spark or ())[1:]):
                closing.callback(made.close)

    def of(self, name: str) -> ClosingRunner:
        lake = self._place.lake(name)
        settings = lake.settings.runner
        if settings.kind == "spark":
            if self._spark and self._spark[0] != settings:
                self._spark[1].close()
                self._spark = None
            if not self._spark:
                self._spark = settings, self._made(lake)
            return self._spark[1]
        if name not in self._remote:
            # Who stops the process must stop what it started elsewhere; without this only Ctrl-C would.
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            self._remote[name] = self._made(lake)
        return self._remote[name]

    def _made(self, lake: Lake) -> ClosingRunner:
        return runner_of(lake.settings.runner, surroundings(lake), STEPS, transient=self._transient)


def connections(place: Workspace, names: list[str] | None) -> list[Connection]:
    """The connections that are meant, each once; all if none is named."""
    found = [one for name in names for one in place.connections.find(name)] if names else place.connections.all()
    return list({(one.source.id, one.lake): one for one in found}.values())


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
