"""Lets what a collector holds come to the archive now, for a sync that wants all that was acknowledged.

If a collector runs, it is asked by a file that its workers look at; they hand on their logs, and the supervisor rolls
them as always. If none runs, nobody writes to the logs that are there, and they are rolled here, under the same lock.
Either way nobody waits long, and what does not come in time comes later.
"""

import os
import time
from typing import NamedTuple

from eventlake.collector import condition, log
from eventlake.collector.backlog import Backlog, Held
from eventlake.collector.lock import only_one
from eventlake.collector.options import Spool
from eventlake.collector.roller import Roller
from eventlake.errors import BusyError
from eventlake.reports.words import either
from eventlake.workspace import Workspace

PATIENCE = 5.0  # seconds
_LOOK_EVERY = 0.05


class Waiting(NamedTuple):
    """What is not in the archive yet."""

    held: dict[str, Held]  # source id → its events
    within: float | None = None  # seconds after which it is there, if all goes well; None if no collector runs
    problem: str | None = None  # why it cannot be written to the archive
    unseen: str | None = None  # why it is not known what is missing

    def notice(self, source_id: str) -> str | None:
        """For people; None if nothing of this source waits."""
        if self.unseen:
            return f"what the collector holds cannot be seen: {self.unseen}"
        if source_id not in self.held:
            return None
        what = either(self.held[source_id].events, "event that is", "events that are")
        text = f"the collector holds {what} not in the archive yet"
        if self.problem:
            return f"{text}: {self.problem}"
        if self.within is None:
            return f"{text}; no collector is running: the next sync or the next start of one takes them"
        return f"{text}; they reach it within {max(1, round(self.within))} s"


def bring(workspace: Workspace, patience: float = PATIENCE) -> Waiting:
    """Let the events of a workspace's collector come to the archive; what is still missing."""
    if not workspace.has_folder:
        return Waiting({})
    try:
        spool = Spool(workspace.folder)
        return _brought(workspace, spool, patience) if log.waiting(spool.logs) else Waiting({})
    except OSError as error:  # no reason not to load what is in the archive
        return Waiting({}, unseen=str(error))


def _brought(workspace: Workspace, spool: Spool, patience: float) -> Waiting:
    deadline = time.monotonic() + patience
    try:
        with only_one(spool.lock, "a collector is running", fix="ask it"):
            roller = Roller(workspace, condition.load(spool).roll_seconds, tell=lambda _text: None)
            roller.seal_left()
            while time.monotonic() < deadline and roller.one():
                pass
        return _waiting(spool, None)
    except BusyError:
        _ask(spool, deadline)
        return _waiting(spool, condition.load(spool).roll_seconds)


def _ask(spool: Spool, deadline: float) -> None:
    """Ask a collector that runs, and wait until the logs that are there now are gone."""
    wanted = {log.name_of(path) for path in log.waiting(spool.logs)}
    spool.request.touch(mode=0o600)
    now = time.time_ns()
    os.utime(spool.request, ns=(now, now))
    while time.monotonic() < deadline and not condition.load(spool).archive_problem:
        if wanted.isdisjoint(map(log.name_of, log.waiting(spool.logs))):
            return
        time.sleep(_LOOK_EVERY)


def _waiting(spool: Spool, within: float | None) -> Waiting:
    return Waiting(Backlog(spool.logs).look(), within, condition.load(spool).archive_problem)
