"""The tasks of a step on the workers of a Connect server.

What a step needs lies in one file of the lake's staging folder: what its tasks share, then the tasks, one after the
other. A worker reads what they share once, and of the tasks only its own. So a step may be of any size, whatever a
message to the server may hold.
"""

import functools
import importlib
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from eventlake.errors import InvalidSettingsError
from eventlake.runners import wire
from eventlake.runners.node_storage import NodeStorage
from eventlake.runners.task_errors import explaining_errors
from eventlake.runners.wire import Step
from eventlake.storage.base import Part, Storage

NEEDED = ("isal", "jsonschema_rs", "msgspec", "numpy", "pyarrow")  # by every step
RESULT = "task bigint, result binary"  # as Spark writes a schema


class StepToDo(Struct, frozen=True, forbid_unknown_fields=True):
    """What a worker is told of a step."""

    function: str  # module:name
    lake: NodeStorage
    archive: NodeStorage
    annexes: list[NodeStorage]
    path: str  # of the file, in the lake
    bounds: list[int]  # where its parts begin, and where the last of them ends


def work(content: bytes, batches: Iterable[Any]) -> Iterator[Any]:
    """Carry out the tasks whose numbers come; gives the result of each with its number."""
    import pyarrow as pa  # noqa: PLC0415 - nobody but a worker needs it

    there = _there(content)
    for batch in batches:
        for number in batch.column(0).to_pylist():
            result = explaining_errors(there.step.function, there.context, there.task(number))
            yield pa.RecordBatch.from_pydict(
                {"task": pa.array([number], pa.int64()), "result": pa.array([wire.encoded(result)], pa.binary())}
            )


@functools.lru_cache(maxsize=1)  # a worker does one step at a time, and mostly several tasks of it
def _there(content: bytes) -> "_There":
    return _There(wire.decoded(content, StepToDo, "what a worker is told"))


class _There:
    """A step, as a worker sees it."""

    def __init__(self, told: StepToDo) -> None:
        module, _, name = told.function.partition(":")
        self.step = Step(getattr(importlib.import_module(module), name), lambda *_: None)
        self._told = told
        self._lake = told.lake.storage()
        raw = (place.storage() for place in (told.archive, *told.annexes))
        self._storages: tuple[Storage, ...] = (self._lake, *raw)

    @functools.cached_property
    def context(self) -> Any:
        return self._part(0, self.step.types.context)

    def task(self, number: int) -> Any:
        return self._part(1 + number, self.step.types.task)

    def _part(self, number: int, kind: Any) -> Any:
        path, (start, stop) = self._told.path, self._told.bounds[number : number + 2]
        where = self._lake.full(path)
        try:
            (content,) = self._lake.read_parts([Part(path, start, stop - start)])
        except FileNotFoundError as error:
            raise InvalidSettingsError(
                f"the workers of the Connect server do not see {where}",
                fix="put lake and archive where this machine and the workers reach them under the same name: s3://…, "
                "gs://…, abfss://…, or a folder that all of them mount",
            ) from error
        return wire.decoded_part(content.to_pybytes(), kind, self._storages, where)
