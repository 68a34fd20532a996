"""A run in a process of its own that kills itself, without any clean-up, at its n-th change to lake or database.

Processes are forked from one that has loaded all libraries: hundreds of them start in the time of a few.
"""

import functools
import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import sqlalchemy as sa

from eventlake.storage.local import LocalStorage
from eventlake.storage.objects import ObjectStorage
from eventlake.sync import jobs, requests
from eventlake.sync.carry_out import carry_out
from eventlake.sync.work import Sizes
from eventlake.workspace import Workspace
from runner_without_spark import InProcess

CHANGES = {"write", "create", "move", "delete", "delete_folder", "open_output", "put"}


@functools.cache
def processes() -> ForkServerContext:
    """Makes processes, by a server that has loaded all libraries."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["crash_job", "stepwise", "eventlake.control.suppressions", "pandas"])
    with pytest.MonkeyPatch.context() as environment:
        # Older versions of Python do not tell it where modules are, and it passes over what it cannot find.
        environment.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
        forkserver.ensure_running()
    return context


class Ended(NamedTuple):
    """How a run ended that was to be killed."""

    was_killed: bool
    changes: int  # before its end, if it was not


class CountedRequests(ObjectStorage):
    """A lake in an object store that tells before each request that changes something: a move is two."""

    before_change: Callable[[str], None]

    def attempt(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if args[0] in ("write", "create", "copy", "delete"):
            self.before_change(f"{args[0]} {args[1]}")
        return super().attempt(method, *args, **kwargs)


class CountedStorage(LocalStorage):
    """A lake on a disk that tells before it changes anything."""

    before_change: Callable[[str], None]

    def attempt(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if method.__name__ in CHANGES:
            self.before_change(f"{method.__name__} {args[0]}")
        return super().attempt(method, *args, **kwargs)

    def settle(self) -> None:
        self.before_change("settle")
        super().settle()


def counted(workspace: Workspace, before_change: Callable[[str], None]) -> None:
    """Let a workspace tell before each change to its lake and to its database."""
    sa.event.listen(workspace.engine, "commit", lambda _: before_change("database"))
    with_counted_storage(workspace, before_change)


def with_counted_storage(workspace: Workspace, before_change: Callable[[str], None]) -> None:
    """Let a workspace tell before each change to its lake."""
    storage = workspace.lake().storage
    counted: CountedRequests | CountedStorage
    if isinstance(storage, ObjectStorage):
        kind: type[CountedRequests] = type("Counted", (CountedRequests, type(storage)), {})
        counted = kind(storage.root, storage.options, timeout=storage.timeout)
    else:
        counted = CountedStorage(storage.root, timeout=storage.timeout)
    counted.before_change = before_change
    workspace.lake().__dict__["storage"] = counted


# What a rebuild changes, in each dialect.
ANEW = {"segment": {"table_prefix": "x"}, "rudderstack": {"time_window_layout": "dt=2006-01-02"}}


A_DAY_EACH = Sizes(bytes_per_part=1, bytes_per_part_and_core=0)  # the parts of a replay


def carried_out(workspace: Workspace, kind: str) -> None:
    connection = workspace.connections.get("web")
    match kind:
        case "sync":
            job = jobs.sync(connection)
        case "replay":
            job = requests.replay(workspace.lake(connection.lake), connection, None, None)
        case "rest of a replay":
            job = requests.rest_of_replay(workspace.lake(connection.lake), connection)
        case "rebuild":
            anew = ANEW[connection.settings.dialect_name]
            job = jobs.rebuild(workspace.connections.preview("web", anew))
        case _:
            raise ValueError(kind)
    for _ in carry_out(workspace, job, InProcess(), sizes=A_DAY_EACH):
        pass


def _die_at(folder: Path, kind: str, last: int, since: str, environment: dict[str, str], told: Any) -> None:
    os.environ.update(environment)  # that of the process it was forked from is older
    made = 0
    counts = not since

    def tick(what: str) -> None:
        nonlocal made, counts
        if counts and made == last:
            os.kill(os.getpid(), signal.SIGKILL)
        made += counts
        counts = counts or since in what

    workspace = Workspace.open(folder)
    counted(workspace, tick)
    carried_out(workspace, kind)
    told.send(made)


def killed_at(folder: Path, kind: str, change: int, *, since: str = "", after: float | None = None) -> Ended:
    """Carry out a job that dies at a change, or after some seconds, or not at all.

    Changes are counted from the beginning, or from the one whose name contains `since`. How far a run is, it notes in
    the database as time goes by, so one may make a change less than another: then it ends before it would have died.
    """
    here, there = processes().Pipe(duplex=False)
    process = processes().Process(target=_die_at, args=(folder, kind, change, since, dict(os.environ), there))
    process.start()
    there.close()
    process.join(after)
    if process.is_alive():
        process.kill()
        process.join()
    try:
        changes = here.recv()
    except EOFError:
        changes = 0
    assert process.exitcode in (0, -signal.SIGKILL), f"the run failed: exit code {process.exitcode}"
    assert process.exitcode or change < 0 or after or changes <= change, "it was not killed"
    return Ended(process.exitcode != 0, changes)
