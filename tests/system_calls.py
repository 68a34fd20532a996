"""A recorder of what a process asks of the disk, at the place where Python asks the operating system.

It is no part of the program under test and replaces nothing of it: the functions of `os` do what they always do, and
are told on the way. `recorded_in` gives the environment in which a whole program, with all its processes, is recorded.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

CHANGES = ("write", "fsync", "fdatasync", "ftruncate", "link", "rename", "replace", "unlink", "remove", "mkdir", "open")
_MAKES = os.O_CREAT | os.O_TRUNC


class Call(NamedTuple):
    name: str
    path: str  # of the file that is changed; the new one if it gets another name

    @property
    def file(self) -> str:
        return Path(self.path).name


def before_each_change(notice: Callable[[Call], None]) -> None:
    """Call a function before every change that this process makes to a file. There is no way back."""
    for name in CHANGES:
        inner = getattr(os, name)

        def outer(*args: Any, _name: str = name, _inner: Any = inner, **kwargs: Any) -> Any:
            if _name != "open" or args[1] & _MAKES:
                notice(Call(_name, _path(_name, args)))
            return _inner(*args, **kwargs)

        setattr(os, name, outer)

    def opened(event: str, args: tuple[Any, ...]) -> None:
        # What is opened with open() does not pass through the functions of `os`.
        if event == "open" and isinstance(args[0], str) and isinstance(args[1], str) and set(args[1]) & set("wax+"):
            notice(Call("open", args[0]))

    sys.addaudithook(opened)


def _path(name: str, args: tuple[Any, ...]) -> str:
    place = args[1] if name in ("link", "rename", "replace") else args[0]
    return str(Path(f"/proc/self/fd/{place}").readlink()) if isinstance(place, int) else str(place)


# A whole program


def recorded_in(folder: Path) -> dict[str, str]:
    """The environment for a program whose calls are to be recorded in a folder."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        f"import system_calls\nsystem_calls.record({str(folder)!r})\n"
    )
    return {**os.environ, "PYTHONPATH": str(folder)}


def record(folder: str) -> None:
    """Write down every change before it is made, and let it wait while a file `hold-<call>` is in the folder."""
    journal = os.open(f"{folder}/journal", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    write, exists, sleep = os.write, os.path.exists, time.sleep

    def notice(call: Call) -> None:
        write(journal, json.dumps([os.getpid(), *call]).encode() + b"\n")
        while exists(f"{folder}/hold-{call.name}"):
            sleep(0.01)

    before_each_change(notice)


def journal(folder: Path) -> list[Call]:
    """The changes so far, of all processes."""
    return [Call(*json.loads(line)[1:]) for line in (folder / "journal").read_text().splitlines()]
