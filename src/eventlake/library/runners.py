"""Where the tasks of each lake are carried out."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock, Timer
from typing import Any, Protocol, Self

from eventlake.errors import BusyError, EventLakeError
from eventlake.runners.base import Runner
from eventlake.runners.choice import Surroundings, runner_in, runner_of
from eventlake.tasks.registry import STEPS
from eventlake.workspace import Lake, Workspace

IDLE = 120.0  # seconds
_SUBMITTED = ("emr", "emr-serverless", "databricks")

Around = Callable[[Lake], Surroundings]
"""What a runner of a lake finds around it."""


class _Closing(Runner, Protocol):
    def close(self) -> None: ...


def quietly(lake: Lake) -> Surroundings:
    """For runners that tell nobody what they do."""
    settings, workspace = lake.settings, lake.workspace
    return Surroundings(
        lake.storage,
        lake.archive,
        workspace.all_annexes,
        lake.folders.stage,
        settings.aws.options,
        settings.azure.options,
        workspace.folder,
    )


def spark_log(lake: Lake) -> Path:
    return lake.workspace.folder / "logs" / "spark.log"


def logged(lake: Lake) -> Surroundings:
    """For runners that tell nobody what they do, but let Spark write its log into the workspace's folder."""
    return replace(quietly(lake), spark_log=spark_log(lake))


def giving_way(lake: Lake) -> Surroundings:
    """The same, for runners beside something that cannot wait."""
    return replace(logged(lake), gives_way=True)


class Runners:
    """The runner of each lake, which starts Spark when the first task comes. All are closed at the end.

    A process has one Spark. Lakes that ask for the same share it; for another, the one before is stopped, unless a run
    is using it. What was submitted to a cluster is ended when no run has needed it for a while: it holds a place there,
    and costs. May be used from several threads.
    """

    def __init__(
        self,
        workspace: Workspace,
        around: Around = quietly,
        *,
        transient: bool = False,
        idle: float = IDLE,
    ) -> None:
        self._workspace = workspace
        self._around = around
        self._transient = transient
        self._made: dict[tuple[str, str], _Closing] = {}
        self._annexes: dict[tuple[str, str], list[str]] = {}  # that a driver on a cluster was told of
        self._spark: tuple[str, dict[str, str]] | None = None  # master and configuration of the Spark that is there
        self._uses = 0  # of that Spark
        self._idle = idle
        self._needed: Counter[tuple[str, str]] = Counter()  # by how many runs, of what was submitted
        self._endings: dict[tuple[str, str], Timer] = {}
        self._lock = Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            endings, self._endings = self._endings, {}
        for ending in endings.values():
            ending.cancel()
        made, self._made, self._spark = self._made, {}, None
        with ExitStack() as closing:
            for runner in made.values():
                closing.callback(runner.close)

    @contextmanager
    def of(self, name: str, cluster_id: str = "") -> Iterator[Runner]:
        """The runner of a lake, for as long as a run needs it; on EMR perhaps on another cluster than the lake's."""
        settings = self._workspace.lake(name).settings.runner
        if settings.kind == "emr" and cluster_id:
            settings = settings.model_copy(update={"cluster_id": cluster_id})
        key = name, settings.cluster_id if settings.kind == "emr" else ""
        with self._lock:
            if settings.kind == "spark":
                self._make_room((settings.master, settings.conf))
                self._uses += 1
            if key not in self._made:
                lake = self._workspace.lake(name)
                self._made[key] = runner_of(settings, self._around(lake), STEPS, transient=self._transient)
            runner = self._made[key]
        try:
            if settings.kind in _SUBMITTED:
                self._begin(key)
                self._tell_of_annexes(key)
            yield runner
        finally:
            with self._lock:
                self._uses -= settings.kind == "spark"
            if settings.kind in _SUBMITTED:
                self._end(key)

    def _begin(self, key: tuple[str, str]) -> None:
        with self._lock:
            self._needed[key] += 1
            if ending := self._endings.pop(key, None):
                ending.cancel()

    def _end(self, key: tuple[str, str]) -> None:
        with self._lock:
            self._needed[key] -= 1
            if not self._needed[key] and key in self._made:
                self._endings[key] = ending = Timer(self._idle, self._end_if_idle, [key])
                ending.daemon = True
                ending.start()

    def _end_if_idle(self, key: tuple[str, str]) -> None:
        with self._lock:
            runner = None if self._needed[key] else self._made.get(key)
        if runner:
            with suppress(EventLakeError):  # a cluster that is away: its driver gives up by itself
                runner.close()  # a run that begins at this very moment has it submitted once more

    def _tell_of_annexes(self, key: tuple[str, str]) -> None:
        """A driver knows the annexes that there were when it was submitted: where others are, another is."""
        now = [annex.root for annex in self._workspace.all_annexes()]
        if self._annexes.setdefault(key, now) != now:
            self._made[key].close()  # the next step submits one
            self._annexes[key] = now

    def _make_room(self, wanted: tuple[str, dict[str, str]]) -> None:
        """Stop the Spark that is there if it is another than the one that is wanted."""
        if self._spark not in (None, wanted):
            if self._uses:
                raise BusyError(
                    "a run of another lake uses a Spark with other settings, and a process has only one",
                    fix="wait until it ends; or give both lakes the same master and conf",
                )
            for (name, _), runner in list(self._made.items()):
                if self._workspace.lake(name).settings.runner.kind == "spark":
                    runner.close()
        self._spark = wanted


class SessionRunners:
    """The runner of each lake, all in one session of Spark Connect that somebody else has opened, and closes."""

    def __init__(self, workspace: Workspace, session: Any) -> None:
        self._workspace = workspace
        self._session = session
        self._made: dict[str, Runner] = {}
        self._lock = Lock()

    @contextmanager
    def of(self, name: str, cluster_id: str = "") -> Iterator[Runner]:
        del cluster_id  # is for EMR
        with self._lock:
            if name not in self._made:
                self._made[name] = runner_in(self._session, quietly(self._workspace.lake(name)), STEPS)
            runner = self._made[name]
        yield runner

    def close(self) -> None:
        """Leave the session to whoever has opened it."""
