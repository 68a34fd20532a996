"""Runs in processes of their own that stand still before each change to the lake, and after each to the database.

So several of them can be driven in any order, step by step, and killed wherever they stand.
"""

import os
import sys
import threading
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from crash_job import carried_out, processes, with_counted_storage
from eventlake.errors import BusyError
from eventlake.workspace import Workspace

BUSY = 4  # exit code
PATIENCE = 0.25  # seconds after which a run that says nothing is taken to wait for another


def _stepwise(folder: Path, kind: str, environment: dict[str, str], pipe: Any) -> None:
    os.environ.update(environment)  # that of the process it was forked from is older
    workspace = Workspace.open(folder)
    committed = threading.local()

    def stand_still(what: str) -> None:
        if threading.current_thread() is threading.main_thread():  # others only keep leases alive
            pipe.send(what)
            pipe.recv()

    def note(_: Any) -> None:
        committed.is_so = True

    def after_commit(*_: Any) -> None:
        if getattr(committed, "is_so", False):
            committed.is_so = False
            stand_still("database")

    sa.event.listen(workspace.engine, "commit", note)
    sa.event.listen(workspace.engine, "checkin", after_commit)
    with_counted_storage(workspace, stand_still)
    try:
        carried_out(workspace, kind)
    except BusyError:  # it was patient for long enough
        sys.exit(BUSY)


class Stepwise:
    """A run that is driven from outside."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.kind = kind
        self._pipe, there = processes().Pipe()
        self._process = processes().Process(target=_stepwise, args=(folder, kind, dict(os.environ), there))
        self._process.start()
        there.close()
        self._stands = self._pipe.poll(10 * PATIENCE) and self._heard()

    def _heard(self) -> bool:
        """Whether it stands still; else it has ended."""
        try:
            self._pipe.recv()
        except EOFError:
            self._process.join()
            return False
        return True

    @property
    def has_ended(self) -> bool:
        return not self._stands and self._process.exitcode is not None

    def step(self) -> bool:
        """Let it go on to where it stands still next; False if it has ended, or waits for another run."""
        if self._stands:
            self._pipe.send(None)
            self._stands = False
        if not self.has_ended and self._pipe.poll(PATIENCE):
            self._stands = self._heard()
        return self._stands

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
        self._stands = False

    @property
    def exit_code(self) -> int | None:
        return self._process.exitcode
