"""Steps that workers of a Connect server carry out for tests."""

import os
import signal
import time
from pathlib import Path

from eventlake.errors import UploadDeniedError
from eventlake.runners.wire import Step, registry


def thrice(context: int, task: int) -> int:
    return context * 3 * task


def size_of(context: str, task: int) -> int:
    return len(context) + task


def code_of(context: str, task: str) -> list[str]:
    """Where the code that a worker runs is, and which process this is."""
    from eventlake.native.library import library
    from eventlake.runners import connect_worker

    return [connect_worker.__file__, str(os.getpid()), "in C" if library() else "one by one"]


def slow(folder: str, seconds: float) -> int:
    """Shows that it goes on, until it is stopped or the time is over."""
    shown, end, count = Path(folder, str(os.getpid())), time.monotonic() + seconds, 0
    while time.monotonic() < end:
        count += 1
        shown.write_text(str(count))
        time.sleep(0.05)
    return count


def dies_once(folder: str, task: int) -> int:
    """Kills its worker when a task is tried for the first time."""
    try:
        Path(folder, f"tried-{task}").touch(exist_ok=False)
    except FileExistsError:
        return task
    os.kill(os.getpid(), signal.SIGKILL)
    return -1


def denied(context: str, task: int) -> int:
    raise UploadDeniedError(f"may not upload {context} {task}", fix="grant s3:PutObject")


def without_room(context: str, task: int) -> int:
    raise OSError(28, "No space left on device", context)


def puzzled(context: str, task: int) -> int:
    raise ZeroDivisionError(f"{context} {task}")


def liar(context: int, task: int) -> int:
    return -task


def _not_less(context: object, task: object, result: object) -> str | None:
    return "it is less than nothing" if isinstance(result, int) and result < 0 else None


FUNCTIONS = (thrice, size_of, code_of, slow, dies_once, denied, without_room, puzzled, liar)
STEPS = registry(*(Step(function, _not_less) for function in FUNCTIONS))
