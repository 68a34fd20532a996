"""Which raw files a run takes. Never by a time cursor: a file is taken if and only if the ledger does not have it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from eventlake.archive import layout
from eventlake.archive.annexes import Annex
from eventlake.control.ledger import IndexFile, LoadedFile
from eventlake.errors import EventLakeError
from eventlake.storage.base import StoredFile
from eventlake.sync.index import Index, within
from eventlake.sync.jobs import Job
from eventlake.sync.state import LakeState
from eventlake.sync.work import Work
from eventlake.tasks.scope import Mode
from eventlake.tasks.staged import RawFile


@dataclass(frozen=True)
class Found:
    files: list[RawFile]
    searched: list[IndexFile]  # the sound files of the index that can hold copies
    gone: int = 0  # raw files of a replay that are no longer in the archive
    out_of_reach: Mapping[str, str] = field(default_factory=dict)  # annexes that nobody could look into, and why


def discover(work: Work, state: LakeState) -> Found:
    """What a run takes of the raw files that are in the archive now."""
    job, ledger, source_id = work.job, work.lake.ledger, work.job.connection.source.id
    archive = list(layout.raw_files(work.lake.archive, source_id))
    if job.mode is Mode.SYNC:
        annexed, out_of_reach = _wanted(work.annexes)
        there = [*archive, *annexed]
        found = unloaded(job, state.index, there, ledger.loaded(source_id, [file.path for file in there]))
        return replace(found, out_of_reach=out_of_reach)
    # A replay does without no annex: it would take the rows from there for rows whose raw files are gone.
    there = [*archive, *(file for annex in work.annexes for file in annex.there())]
    return loaded(job, state.index, there, ledger.raw_files(source_id))


def _wanted(annexes: Sequence[Annex]) -> tuple[list[StoredFile], dict[str, str]]:
    """The raw files of annexes that a sync is to load. One that is away does not hold up the rest of the source."""
    files: list[StoredFile] = []
    out_of_reach: dict[str, str] = {}
    for annex in annexes:
        try:
            files += annex.wanted()
        except EventLakeError as error:
            out_of_reach[annex.note.address] = error.problem
    return files, out_of_reach


def unloaded(job: Job, index: Index, archive: Iterable[StoredFile], before: Iterable[tuple[str, int, str]]) -> Found:
    """The files that were not loaded before, or have changed since."""
    left = {file.path: file for file in archive}
    seen_before = False
    for known in before:
        now = left.get(known[0])
        if now == known:
            del left[known[0]]
        elif now is not None:
            seen_before = True
    files = [RawFile(number, *file) for number, file in enumerate(left.values())]
    # A file that was loaded and then changed may hold events of any age that are in the lake already.
    days = None if seen_before else job.connection.settings.lookback_days
    return Found(files, within(index.sound, days))


def loaded(job: Job, index: Index, archive: Iterable[StoredFile], before: Mapping[str, LoadedFile]) -> Found:
    """The files that were loaded, as far as they can hold events that the job wants."""
    present = {stored.path: stored for stored in archive}
    files: list[RawFile] = []
    gone = 0
    for path, file in sorted(before.items()):
        left_out = file.quarantined or file.blocked or file.suppressed
        if job.only_left_out and not left_out:
            continue
        if file.first_received is None or file.last_received is None:
            if not left_out:
                continue
        elif job.scope and (file.last_received < job.scope.start or file.first_received >= job.scope.stop):
            continue
        if path in present:
            files.append(RawFile(len(files), *present[path]))
        else:
            gone += 1
    return Found(files, index.sound, gone)
