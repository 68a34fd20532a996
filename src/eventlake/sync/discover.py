"""Which raw files a run takes. Never by a time cursor: a file is taken if and only if the ledger does not have it."""

from dataclasses import dataclass

from eventlake.archive import layout as archive
from eventlake.control.ledger import IndexFile
from eventlake.control.sources import Source
from eventlake.lake.layout import INDEX
from eventlake.sync.dedupe import Mode
from eventlake.sync.index import Index, found_sound, within
from eventlake.sync.jobs import Job
from eventlake.sync.staged import RawFile
from eventlake.workspace import Workspace


@dataclass(frozen=True)
class Found:
    files: list[RawFile]
    index: Index
    searched: list[IndexFile]  # the sound files of the index that can hold copies
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
    index = index_of(workspace, job.source)
    return Found(files, index, within(index.sound, days), gone=0)


def _loaded(workspace: Workspace, job: Job) -> Found:
    """The files that were loaded, as far as they can hold events that the job wants."""
    present = {stored.path: stored for stored in archive.raw_files(workspace.storage, job.source.id)}
    files: list[RawFile] = []
    gone = 0
    for path, loaded in sorted(workspace.ledger.raw_files(job.source.id).items()):
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
    index = index_of(workspace, job.source)
    return Found(files, index, index.sound, gone)


def index_of(workspace: Workspace, source: Source) -> Index:
    stored = workspace.storage.files(f"{INDEX}/source={source.id}")
    return found_sound(workspace.ledger.index_files(source.id), {file.path: file.size for file in stored})
