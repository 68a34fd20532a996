"""Which raw files a run takes. Never by a time cursor: a file is taken if and only if the ledger does not have it."""

from collections.abc import Iterable
from dataclasses import dataclass

from eventlake.control.ledger import IndexFile
from eventlake.storage.base import StoredFile
from eventlake.sync.index import within
from eventlake.sync.jobs import Job
from eventlake.sync.state import LakeState
from eventlake.tasks.scope import Mode
from eventlake.tasks.staged import RawFile


@dataclass(frozen=True)
class Found:
    files: list[RawFile]
    searched: list[IndexFile]  # the sound files of the index that can hold copies
    gone: int = 0  # raw files of a replay that are no longer in the archive


def discover(job: Job, state: LakeState, archive: Iterable[StoredFile]) -> Found:
    """What a run takes of the raw files that are in the archive now."""
    return _unloaded(job, state, archive) if job.mode is Mode.SYNC else _loaded(job, state, archive)


def _unloaded(job: Job, state: LakeState, archive: Iterable[StoredFile]) -> Found:
    files: list[RawFile] = []
    seen_before = False
    for stored in archive:
        loaded = state.raw_files.get(stored.path)
        if loaded is None or (loaded.size, loaded.etag) != (stored.size, stored.etag):
            files.append(RawFile(len(files), *stored))
            seen_before |= loaded is not None
    # A file that was loaded and then changed may hold events of any age that are in the lake already.
    days = None if seen_before else job.connection.settings.lookback_days
    return Found(files, within(state.index.sound, days))


def _loaded(job: Job, state: LakeState, archive: Iterable[StoredFile]) -> Found:
    """The files that were loaded, as far as they can hold events that the job wants."""
    present = {stored.path: stored for stored in archive}
    files: list[RawFile] = []
    gone = 0
    for path, loaded in sorted(state.raw_files.items()):
        left_out = loaded.quarantined or loaded.blocked
        if job.only_left_out and not left_out:
            continue
        if loaded.first_received is None or loaded.last_received is None:
            if not left_out:
                continue
        elif job.scope and (loaded.last_received < job.scope.start or loaded.first_received >= job.scope.stop):
            continue
        if path in present:
            files.append(RawFile(len(files), *present[path]))
        else:
            gone += 1
    return Found(files, state.index.sound, gone)
