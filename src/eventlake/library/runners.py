"""Where the tasks of each lake are carried out."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Protocol, Self

from eventlake.runners.choice import Surroundings, runner_of
from eventlake.sync.remote_steps import STEPS
from eventlake.sync.steps import Runner
from eventlake.workspace import Lake, Workspace


class _Closing(Runner, Protocol):
    def close(self) -> None: ...


def quietly(lake: Lake) -> Surroundings:
    """For runners that tell nobody what they do."""
    return Surroundings(lake.storage, lake.archive, lake.settings.aws.options, lake.workspace.folder)


class Runners:
    """The runner of each lake, which starts Spark when the first task comes. All are closed at the end.

    A process has one Spark: lakes that ask for the same share it, and for another the one before is stopped.
    """

    def __init__(
        self,
        workspace: Workspace,
        around: Callable[[Lake], Surroundings] = quietly,
        *,
        transient: bool = False,
    ) -> None:
        self._workspace = workspace
        self._around = around
        self._transient = transient
        self._spark: tuple[object, _Closing] | None = None  # with the settings that it has
        self._remote: dict[str, _Closing] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        made, self._spark, self._remote = [*self._remote.values(), *(self._spark or ())[1:]], None, {}
        with ExitStack() as closing:
            for runner in made:
                closing.callback(runner.close)

    def of(self, name: str) -> Runner:
        lake = self._workspace.lake(name)
        settings = lake.settings.runner
        if settings.kind == "spark":
            if self._spark and self._spark[0] != settings:
                self._spark[1].close()
                self._spark = None
            if not self._spark:
                self._spark = settings, self._made(lake)
            return self._spark[1]
        if name not in self._remote:
            self._remote[name] = self._made(lake)
        return self._remote[name]

    def _made(self, lake: Lake) -> _Closing:
        return runner_of(lake.settings.runner, self._around(lake), STEPS, transient=self._transient)
