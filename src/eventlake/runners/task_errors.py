"""Errors of tasks: explained where they happen, and what they were where only the text of a Spark error arrives."""

import functools
import gc
import re
import sys
from collections.abc import Callable
from typing import TypeVar

from eventlake import errors
from eventlake.errors import EventLakeError, SetupError, TransientError

Task = TypeVar("Task")
Result = TypeVar("Result")
Context = TypeVar("Context")


def explaining_errors(function: Callable[[Context, Task], Result], context: Context, task: Task) -> Result:
    _freeze()
    try:
        return function(context, task)
    except OSError as error:
        raise errors.of_system(error) from error


@functools.cache
def _freeze() -> None:
    """Once in each worker, which looks for garbage after every task: spare it what libraries made when they loaded."""
    gc.freeze()


_OURS = re.compile(r"eventlake\.errors\.(?P<kind>\w+): (?P<problem>(?s:.*?))\n\s*Fix: (?P<fix>.*)")


def translated(step: str, error: Exception, place: object) -> EventLakeError:
    """The error that a task raised, as far as it is one of ours: Spark brings only its text."""
    step = step.replace("_", " ")  # it is called like a function
    if ours := _OURS.search(str(error)):
        kind: type[EventLakeError] = getattr(errors, ours["kind"])
        return kind(f"Spark could not {step}: {ours['problem']}", fix=ours["fix"])
    if "No module named 'eventlake'" in str(error):
        return SetupError(
            f"Spark could not {step}: the Python that its workers run does not have eventlake",
            fix="install it there; or, if the workers are on this machine, set "
            f"PYSPARK_PYTHON={sys.executable} before Spark is started: they run `python3` unless told otherwise",
        )
    fix = f"see {place}, then run it again: nothing was published"
    return TransientError(f"Spark could not {step}: {reason(error)}", fix=fix)


def reason(error: Exception) -> str:
    """The line of a Java or Python stack that tells most."""
    stripped = [line.strip() for line in str(error).splitlines()]
    lines = [line for line in stripped if line and not line.startswith("at ")]
    told = [line for line in lines if "Error: " in line or "Exception: " in line]
    return (told or lines or [type(error).__name__])[-1][:500]
