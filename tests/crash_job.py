"""A run in a process of its own that kills itself, without any clean-up, at its n-th change to lake or database.

Processes are forked from one that has loaded all libraries: hundreds of them start in the time of a few.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa

from eventlake.control.connections import Connection
from eventlake.storage.local import LocalStorage
from eventlake.storage.objects import ObjectStorage
from eventlake.sync import jobs
from eventlake.sync.run import run
from eventlake.workspace import Workspace
from runner_without_spark import InProcess

CHANGES = {"write", "create", "move", "delete", "delete_folder", "open_output", "put"}

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["crash_job", "stepwise"])


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


def carried_out(workspace: Workspace, kind: str) -> None:
    connection = workspace.connections.get("web")
    job = {"sync": jobs.sync, "replay": lambda one: jobs.replay(one, None, None), "rebuild": _renamed}[kind](connection)
    run(workspace, job, InProcess())


def _renamed(connection: Connection) -> jobs.Job:
    settings = connection.settings.model_copy(update={"table_prefix": "x"})
    return jobs.rebuild(connection._replace(settings=settings))


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
    here, there = _processes.Pipe(duplex=False)
    process = _processes.Process(target=_die_at, args=(folder, kind, change, since, dict(os.environ), there))
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
