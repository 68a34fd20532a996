"""How a run here and a Spark driver on a cluster talk: through files in the lake's staging folder.

The run stays where its database and its locks are; only tasks travel. Nothing must be reachable from outside for it, on
either side, and a file that is written twice is the same file. One folder is one session:

    hello          the driver is up; tells how many tasks it does at once
    request-<n>    a function, what its tasks share, and the tasks
    progress-<n>   how many of them are done
    result-<n>     what they gave, or the error that stopped them
    alive          is written again and again by the run; the driver gives up when it no longer is
    bye            there is nothing more to do

Requests are pickles, and whoever may write them may also replace the package that reads them. Results come to the
machine that has the workspace, so of those only the types that tasks return are read.
"""

import io
import json
import pickle
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from eventlake.aws.session import AwsOptions
from eventlake.errors import InternalError
from eventlake.storage.base import Storage

# All that results are made of. What a task returns must be named here.
_IN_RESULTS = {
    ("builtins", "frozenset"),
    ("builtins", "set"),
    ("collections", "Counter"),
    ("eventlake.lake.parquet", "DataFile"),
    ("eventlake.lake.staging", "IdSegment"),
    ("eventlake.lake.staging", "Segment"),
    ("eventlake.schema.evolve", "Sighting"),
    ("eventlake.schema.types", "Seen"),
    ("eventlake.sync.dedupe", "Count"),
    ("eventlake.sync.dedupe", "DedupeResult"),
    ("eventlake.sync.dedupe", "NewIds"),
    ("eventlake.sync.inspect", "Difference"),
    ("eventlake.sync.inspect", "FileSeen"),
    ("eventlake.sync.inspect", "Messages"),
    ("eventlake.sync.publish", "Published"),
    ("eventlake.sync.staged", "FileCount"),
    ("eventlake.sync.staged", "RawFile"),
    ("eventlake.sync.staged", "StageResult"),
    ("eventlake.sync.staged", "StagedTable"),
    ("numpy", "dtype"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy.core.multiarray", "scalar"),
}


class Request(NamedTuple):
    function: Callable[[Any, Any], Any]
    context: Any
    tasks: Sequence[Any]


class Failure(NamedTuple):
    """An error, as it travels."""

    kind: str  # a class of `eventlake.errors`
    problem: str
    fix: str


class Mailbox:
    """One session; both sides have one."""

    def __init__(self, storage: Storage, folder: str) -> None:
        self._storage = storage
        self.folder = folder

    def _path(self, name: str) -> str:
        return f"{self.folder}/{name}"

    def _json(self, name: str) -> dict[str, Any] | None:
        try:
            told: dict[str, Any] = json.loads(self._storage.read(self._path(name)))
        except FileNotFoundError:
            return None
        return told

    # The run's side

    def ask(self, number: int, request: Request) -> None:
        content = io.BytesIO()
        _Requests(content).dump(request)
        self._storage.write(self._path(f"request-{number}"), content.getvalue())

    def greeting(self) -> dict[str, Any] | None:
        """What the driver said when it came up; None before."""
        return self._json("hello")

    def progress(self, number: int) -> int:
        told = self._json(f"progress-{number}")
        return int(told["done"]) if told else 0

    def result(self, number: int) -> list[Any] | Failure | None:
        """What came of a request; None if it is not done."""
        try:
            content = self._storage.read(self._path(f"result-{number}"))
        except FileNotFoundError:
            return None
        if content.startswith(b"{"):
            return Failure(**json.loads(content))
        results: list[Any] = _Results(io.BytesIO(content)).load()
        return results

    def show_alive(self, count: int) -> None:
        self._storage.write(self._path("alive"), str(count).encode())

    def say_bye(self) -> None:
        self._storage.write(self._path("bye"), b"")

    def remove(self) -> None:
        self._storage.delete_folder(self.folder)

    # The driver's side

    def greet(self, **told: Any) -> None:
        self._storage.write(self._path("hello"), json.dumps(told).encode())

    def request(self, number: int) -> Request | None:
        try:
            content = self._storage.read(self._path(f"request-{number}"))
        except FileNotFoundError:
            return None
        asked: Request = pickle.loads(content)  # noqa: S301 - see above
        return asked

    def tell_progress(self, number: int, done: int) -> None:
        self._storage.write(self._path(f"progress-{number}"), json.dumps({"done": done}).encode())

    def answer(self, number: int, results: list[Any] | Failure) -> None:
        content = json.dumps(results._asdict()).encode() if isinstance(results, Failure) else pickle.dumps(results)
        self._storage.write(self._path(f"result-{number}"), content)

    def life_sign(self) -> str | None:
        """Changes while the run is alive."""
        found = self._storage.stat(self._path("alive"))
        return found.etag if found else None

    def is_over(self) -> bool:
        return self._storage.stat(self._path("bye")) is not None


class _Requests(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, AwsOptions):  # nodes act in their own role
            return AwsOptions, (obj.region,)
        return NotImplemented


class _Results(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _IN_RESULTS:
            return super().find_class(module, name)
        raise InternalError(
            f"a result holds {module}.{name}, which no task returns",
            fix="see who else writes to the lake's staging folder; run it again",
        )
