"""Spreading work over a Connect server, to which a client sends plans and no RDDs.

The steps are the same as on any other Spark. A step is a plan of as many rows as it has tasks, each in a partition of
its own; a function over Arrow batches carries out the task whose number it gets. What comes back is typed data, which
is checked like that of any other cluster: of what a server answers, nothing is executed here.
"""

import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol, TypeVar

from eventlake.azure.vault import forget
from eventlake.errors import EventLakeError, SignInDeniedError, TransientError
from eventlake.runners import wire
from eventlake.runners.connect_errors import explained, is_out_of_reach
from eventlake.runners.connect_session import Session, differs, working
from eventlake.runners.connect_worker import RESULT, StepToDo
from eventlake.runners.node_storage import node_storage
from eventlake.runners.watch import Progress, Watch
from eventlake.runners.wire import Request, Steps
from eventlake.storage.base import Storage

Task = TypeVar("Task")
Result = TypeVar("Result")
Context = TypeVar("Context")


class Way(Protocol):
    """How to get at a session."""

    name: str  # of the server, for messages

    def open(self) -> Session: ...

    def close(self, session: Session, *, is_lost: bool = False) -> None: ...


class ConnectRunner:
    """Runs tasks in a session of a Connect server, which is opened with the first task and ends with `close`.

    One that the server has forgotten, or that was lost with it, is replaced for the next step. A step in which no task
    ends for `patience` seconds is given up. Only functions that are among the `steps` can be asked for.
    """

    def __init__(
        self,
        way: Way,
        storage: Storage,
        archive: Storage,
        steps: Steps,
        *,
        annexes: Callable[[], Iterable[Storage]] = tuple,
        stage: str,
        patience: float,
        talk: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._way = way
        self._storage = storage
        self._archive = archive
        self._annexes = annexes
        self._steps = steps
        self._stage = stage  # the folder below which what is under way is put down
        self._patience = patience
        self._talk = talk
        self._session: Session | None = None
        self._lock = threading.Lock()

    @property
    def parallelism(self) -> int:
        with self._translating("start"):
            return self._open().parallelism

    @property
    def where(self) -> Mapping[str, str]:
        return {}

    def run(
        self,
        function: Callable[[Context, Task], Result],
        context: Context,
        tasks: Sequence[Task],
        progress: Progress | None = None,
    ) -> list[Result]:
        if not tasks:
            return []
        request = Request(self._steps[function.__name__], context, tasks)
        step = function.__name__
        with self._translating(step), self._put_down(request) as told:
            found = self._collected(step, told, len(tasks), progress)
        answer = wire.decoded_answer(wire.joined_answer(found), request, f"what {self._way.name} answered")
        assert isinstance(answer, list)  # noqa: S101 - failures are raised
        return answer

    def close(self) -> None:
        self._let_go()

    def _let_go(self, *, is_lost: bool = False) -> None:
        with self._lock:
            session, self._session = self._session, None
        if session is not None:
            self._way.close(session, is_lost=is_lost)

    def _open(self) -> Session:
        with self._lock:
            if self._session is not None and not self._session.is_alive():
                self._session = None
            if self._session is None:
                self._session = self._way.open()
                version, cores = self._session.version, self._session.parallelism
                self._talk(f"Spark {version} runs there, {cores} tasks at once")
                if differs(version):
                    self._talk(f"Spark {version} is newer than PySpark here: if a step fails, that may be why")
            return self._session

    @contextmanager
    def _put_down(self, request: Request) -> Iterator[bytes]:
        """What a worker is told of a step; the step itself is a file in the lake for as long as it runs."""
        # A number, and a time: what is left behind is swept like the staging folders of runs.
        folder = f"{self._stage}/{time.time_ns()}"
        parts = [wire.encoded(request.context), *map(wire.encoded, request.tasks)]
        bounds = [0]
        for part in parts:
            bounds.append(bounds[-1] + len(part))
        function = f"{request.step.function.__module__}:{request.step.function.__name__}"
        annexes = [node_storage(annex, with_role=True) for annex in self._annexes()]
        told = StepToDo(
            function, node_storage(self._storage), node_storage(self._archive), annexes, f"{folder}/request", bounds
        )
        self._storage.put(told.path, b"".join(parts))
        try:
            yield wire.encoded(told)
        finally:
            with suppress(EventLakeError):
                self._storage.delete_folder(folder)

    def _collected(self, step: str, told: bytes, tasks: int, progress: Progress | None) -> list[bytes]:
        session = self._open()
        spark = session.spark
        operation = _Operation(spark, tasks)
        watch = Watch(operation, progress, self._patience)
        plan = spark.range(0, tasks, 1, tasks).mapInArrow(working(session.library, told), RESULT)
        try:
            with operation, watch:
                rows = plan.collect()
        except Exception as error:
            if watch.cancelled:
                raise watch.cancelled from error
            if watch.gave_up:
                raise TransientError(
                    f"Spark could not {step}: no task ended for {self._patience:g} seconds",
                    fix=f"see the logs of {self._way.name}: is it busy, or does the storage hang? Then run it again",
                ) from error
            raise
        if watch.cancelled:  # a moment too late
            raise watch.cancelled
        found = {row.task: bytes(row.result) for row in rows}
        if sorted(found) != list(range(tasks)):
            raise wire.refused(f"what {self._way.name} answered", f"{len(found)} results of {tasks} tasks")
        return [found[number] for number in range(tasks)]

    @contextmanager
    def _translating(self, step: str) -> Iterator[None]:
        """Let what Spark, and the way to it, raise become an error of ours."""
        try:
            yield
        except EventLakeError:
            raise
        except Exception as error:
            if is_out_of_reach(error):
                self._let_go(is_lost=True)  # there may be another server by the next step
            problem = explained(step, error, self._way.name)
            if problem is None:
                raise
            if isinstance(problem, SignInDeniedError):
                forget()  # the token may be another by now
            raise problem from error


class _Operation:
    """A `Job`: what the thread that made this asks of a session while the context lasts."""

    def __init__(self, spark: Any, tasks: int) -> None:
        self._spark = spark
        self._tasks = tasks
        self._tag = f"eventlake-{uuid.uuid4().hex}"
        self._thread = threading.get_ident()
        self._done = 0

    def __enter__(self) -> None:
        self._spark.addTag(self._tag)  # to what this thread asks for
        self._spark.registerProgressHandler(self._note)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with suppress(Exception):  # there may be more important things to tell
            self._spark.removeProgressHandler(self._note)
            self._spark.removeTag(self._tag)
            if kind is not None and not issubclass(kind, Exception):  # whoever stops this does not want it to go on
                self.cancel()

    def _note(self, stages: Any = None, **_: Any) -> None:
        if threading.get_ident() == self._thread:  # else it is about what another thread asked for
            self._done = max(self._done, min(self._tasks, sum(stage.num_completed_tasks for stage in stages or ())))

    def done(self) -> int:
        return self._done

    def cancel(self) -> None:
        self._spark.interruptTag(self._tag)

    def is_lost(self, _: Exception, /) -> bool:
        return False
