"""Which raw files a run takes. Never by a time cursor: a file is taken if and only if the ledger does not have it."""

from dataclasses import dataclass

from eventlake.archive import layout as archive
from eventlake.control.connections import Connection
from eventlake.control.ledger import IndexFile
from eventlake.lake.layout import INDEX
from eventlake.sync.dedupe import Mode
from eventlake.sync.index import Index, found_sound, within
from eventlake.sync.jobs import Job
from eventlake.sync.staged import RawFile
from eventlake.workspace import Lake


@dataclass(frozen=True)
class Found:
    files: list[RawFile]
    index: Index
    searched: list[IndexFile]  # the sound files of the index that can hold copies
    gone: int  # raw files of a replay that are no longer in the archive


def discover(lake: Lake, job: Job) -> Found:
    return _unloaded(lake, job) if job.mode is Mode.SYNC else _loaded(lake, job)


def _unloaded(lake: Lake, job: Job) -> Found:
    ledger = lake.ledger.raw_files(job.connection.source.id)
    files: list[RawFile] = []
    seen_before = False
    for stored in archive.raw_files(lake.archive, job.connection.source.id):
        loaded = ledger.get(stored.path)
        if loaded is None or (loaded.size, loaded.etag) != (stored.size, stored.etag):
            files.append(RawFile(len(files), *stored))
            seen_before |= loaded is not None
    # A file that was loaded and then changed may hold events of any age that are in the lake already.
    days = None if seen_before else job.connection.settings.lookback_days
    index = index_of(lake, job.connection)
    return Found(files, index, within(index.sound, days), gone=0)


def _loaded(lake: Lake, job: Job) -> Found:
    """The files that were loaded, as far as they can hold events that the job wants."""
    present = {stored.path: stored for stored in archive.raw_files(lake.archive, job.connection.source.id)}
    files: list[RawFile] = []
    gone = 0
    for path, loaded in sorted(lake.ledger.raw_files(job.connection.source.id).items()):
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
    index = index_of(lake, job.connection)
    return Found(files, index, index.sound, gone)


def index_of(lake: Lake, connection: Connection) -> Index:
    stored = lake.storage.files(f"{INDEX}/source={connection.source.id}")
    return found_sound(lake.ledger.index_files(connection.source.id), {file.path: file.size for file in stored})
