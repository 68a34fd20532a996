"""What travels between a run and its driver on a cluster: JSON, decoded against the types that a step declares.

Whoever may write to the lake's staging folder may write such a file, so nothing of it is believed because of where it
lies: it is of the declared type, no larger than what was asked for can be, and holds up to the check of its step, or it
is refused. Nothing of it is ever executed: functions are named, and both sides know the same names.
"""

import functools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypeVar, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Raw, Struct

from eventlake import errors
from eventlake.errors import EventLakeError, InternalError, TransientError
from eventlake.storage.base import Storage

SMALL_BYTES = 100_000  # greetings, progress, failures
REQUEST_BYTES = 1 << 30
ANSWER_BYTES = 64 << 20  # for any number of tasks, and
ANSWER_BYTES_PER_TASK = 16 << 20

T = TypeVar("T")


@dataclass(frozen=True)
class Step:
    """A function that travels by its name. Its annotations declare what goes in and what comes out."""

    function: Callable[[Any, Any], Any]
    problem: Callable[[Any, Any, Any], str | None]
    """Tells what cannot be true of a result, from what the tasks share and the task; None if all of it can."""

    @property
    def name(self) -> str:
        return self.function.__name__

    @functools.cached_property
    def types(self) -> "_Types":
        return _Types(*get_type_hints(self.function).values())


class _Types(NamedTuple):
    context: Any
    task: Any
    result: Any


Steps = Mapping[str, Step]


def registry(*steps: Step) -> Steps:
    return {step.name: step for step in steps}


class Request(NamedTuple):
    step: Step
    context: Any
    tasks: Sequence[Any]


class Failure(Struct, frozen=True, forbid_unknown_fields=True):
    """An error, as it travels."""

    kind: str  # a class of `eventlake.errors`
    problem: str
    fix: str

    @classmethod
    def of(cls, error: EventLakeError) -> "Failure":
        return cls(type(error).__name__, error.problem, error.fix)

    def error(self) -> EventLakeError:
        found = getattr(errors, self.kind, None)
        ours = isinstance(found, type) and issubclass(found, EventLakeError)
        kind: type[EventLakeError] = found if ours else TransientError  # type: ignore[assignment]
        return kind(self.problem, fix=self.fix)


class Greeting(Struct, frozen=True, forbid_unknown_fields=True):
    """What the driver says when it is up: how many tasks it does at once, and which Spark it is."""

    parallelism: Annotated[int, Meta(ge=1, le=100_000)]
    spark: Annotated[str, Meta(pattern=r"^[0-9A-Za-z.+_-]{1,50}$")]


class Progress(Struct, frozen=True, forbid_unknown_fields=True):
    done: Annotated[int, Meta(ge=0, le=100_000_000)]


class _Asked(Struct, frozen=True, forbid_unknown_fields=True):
    step: str
    context: Raw
    tasks: Raw


class _Answered(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    results: Raw = Raw()
    failure: Failure | None = None


def encoded(value: Any) -> bytes:
    return msgspec.json.encode(value, enc_hook=_named)


def decoded(content: bytes, kind: type[T], where: str) -> T:
    """A value of a type that needs no storage; `where` it was found is for the message."""
    value: T = _decoded(content, kind, where)
    return value


def decoded_part(content: bytes, kind: Any, storages: Sequence[Storage], where: str) -> Any:
    """What the tasks of a step share, or one of them; it may speak of these storages, and of no other."""
    return _decoded(content, kind, where, storages)


def joined_answer(results: Sequence[bytes]) -> bytes:
    """The answer to a request, of results that were encoded one by one."""
    return msgspec.json.encode(_Answered(results=Raw(b"[" + b",".join(results) + b"]")))


def encoded_request(request: Request) -> bytes:
    asked = _Asked(request.step.name, Raw(encoded(request.context)), Raw(encoded(request.tasks)))
    return msgspec.json.encode(asked)


def decoded_request(content: bytes, steps: Steps, storages: Sequence[Storage], where: str) -> Request:
    """A request that may speak of these storages, and of no other."""
    asked = decoded(content, _Asked, where)
    step = steps.get(asked.step)
    if step is None:
        raise refused(where, f"there is no step {asked.step[:100]!r}")
    context = _decoded(asked.context, step.types.context, where, storages)
    return Request(step, context, _decoded(asked.tasks, list[step.types.task], where, storages))  # type: ignore[name-defined]


def encoded_answer(answer: list[Any] | Failure) -> bytes:
    if isinstance(answer, Failure):
        return encoded(_Answered(failure=answer))
    return encoded(_Answered(results=Raw(encoded(answer))))


def decoded_answer(content: bytes, request: Request, where: str) -> list[Any] | Failure:
    """What came of a request, if that can have come of it."""
    answer = decoded(content, _Answered, where)
    if answer.failure is not None:
        return answer.failure
    results: list[Any] = _decoded(answer.results, list[request.step.types.result], where)  # type: ignore[name-defined]
    if len(results) != len(request.tasks):
        raise refused(where, f"{len(results)} results of {len(request.tasks)} tasks")
    for task, result in zip(request.tasks, results, strict=True):
        problem = request.step.problem(request.context, task, result)
        if problem:
            raise refused(where, problem)
    return results


def refused(where: str, why: str) -> InternalError:
    return InternalError(
        f"{where} is not what a run and its cluster write: {why}",
        fix="see who else may write to the lake's staging folder, and take that right away; then run it again: nothing "
        "of it was used",
    )


def _decoded(content: bytes | Raw, kind: Any, where: str, storages: Sequence[Storage] = ()) -> Any:
    try:
        return msgspec.json.decode(content, type=kind, dec_hook=functools.partial(_made, storages))
    except (ValueError, RecursionError) as error:  # all that msgspec raises, and what it lets through
        raise refused(where, str(error)[:300]) from error


def _named(value: Any) -> Any:
    """A storage by its address: who gets it knows how to reach it, and acts in a role of its own."""
    if isinstance(value, Storage):
        return value.root
    raise TypeError(f"a {type(value).__module__}.{type(value).__name__} cannot travel")


def _made(storages: Sequence[Storage], kind: Any, value: Any) -> Any:
    if get_origin(kind) is Counter:
        return Counter(msgspec.convert(value, dict[str, int]))
    if kind is Storage and storages:
        for storage in storages:
            if value == storage.root:
                return storage
        known = " or ".join(storage.root for storage in storages)
        raise ValueError(f"the lake is in {known}, not in {str(value)[:100]!r}")
    raise NotImplementedError(f"{kind} is not a type that travels")
