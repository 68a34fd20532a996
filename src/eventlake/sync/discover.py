"""Which raw files a run takes. Never by a time cursor: a file is taken if and only if the ledger does not have it."""

from typing import NamedTuple

from eventlake.archive import layout as archive
from eventlake.errors import InternalError
from eventlake.lake.layout import DAY
from eventlake.sync.dedupe import Mode
from eventlake.sync.jobs import Job
from eventlake.sync.staged import RawFile
from eventlake.workspace import Workspace


class Found(NamedTuple):
    files: list[RawFile]
    index_files: list[str]  # the part of the index that is searched for duplicates
    lost_index_files: list[str]  # parts of the index that are no longer in the lake
    gone: int  # raw files of a replay that are no longer in the archive


def discover(workspace: Workspace, job: Job) -> Found:
    return _unloaded(workspace, job) if job.mode is Mode.SYNC else _loaded(workspace, job)


def _unloaded(workspace: Workspace, job: Job) -> Found:
    ledger = workspace.ledger.raw_files(job.source.id)
    files: list[RawFile] = []
    seen_before = False
    for stored in archive.raw_files(workspace.storage, job.source.id):
        loaded = ledger.get(stored.path)
        if loaded is None or (loaded.size, loaded.etag) != (stored.size, stored.etag):
            files.append(RawFile(len(files), *stored))
            seen_before |= loaded is not None
    # A file that was loaded and then changed may hold events of any age that are in the lake already.
    days = None if seen_before else job.source.settings.lookback_days
    index, lost = _index(workspace, job, days)
    if files and lost:
        raise InternalError(
            f"the index of message ids lost {lost[0]}: copies of its messages would not be noticed",
            fix=f"`eventlake verify {job.source.slug} --repair` makes it anew from the raw archive",
        )
    return Found(files, index, lost, gone=0)


def _loaded(workspace: Workspace, job: Job) -> Found:
    """The files that were loaded, as far as they can hold events that the job wants."""
    present = {stored.path: stored for stored in archive.raw_files(workspace.storage, job.source.id)}
    files: list[RawFile] = []
    gone = 0
    for path, loaded in sorted(workspace.ledger.raw_files(job.source.id).items()):
        if loaded.first_received is None or loaded.last_received is None:
            continue
        if job.scope and (loaded.last_received < job.scope.start or loaded.first_received >= job.scope.stop):
            continue
        if path in present:
            files.append(RawFile(len(files), *present[path]))
        else:
            gone += 1
    return Found(files, *_index(workspace, job), gone)


def _index(workspace: Workspace, job: Job, days: int | None = None) -> tuple[list[str], list[str]]:
    """The files of the index that are there, and those that are lost; only of the last days, if they are given.

    Only days with syncs count: neither a long pause nor a clock that jumped makes the look-back shorter.
    """
    files = workspace.ledger.index_files(job.source.id)
    if days is not None:
        wanted = sorted({file.synced_at // DAY for file in files})[-days - 1 :]  # today is not over
        files = [file for file in files if file.synced_at // DAY in wanted]
    paths = [file.path for file in files]
    there = [path for path in paths if workspace.storage.stat(path)]
    return there, sorted(set(paths) - set(there))
