"""The index of message ids: which files of it are sound, and how those that are not are made anew.

Duplicates are known by the index, so a run that went on without a part of it would let copies in. Everything that the
index holds is in the data files too: a file that is gone, cut off or damaged is made anew from them, before anything
is compared with it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from eventlake.control.ledger import IndexFile, LakeFile
from eventlake.errors import DamagedIdsError
from eventlake.lake import ids
from eventlake.lake.layout import DAY
from eventlake.sync.work import Work
from eventlake.tasks import examine
from eventlake.tasks.id_files import NewIds
from eventlake.tasks.reindex import ReindexContext, Unindexed, reindex

Made = TypeVar("Made")


class Index(NamedTuple):
    """The index of a source as a run finds it."""

    sound: list[IndexFile]  # as far as their sizes tell
    lost: list[IndexFile]  # gone or cut off, with what else their runs added


def found_sound(files: Iterable[IndexFile], sizes: Mapping[str, int]) -> Index:
    """Compare what the ledger knows with the sizes of the files that are there."""
    return parted(files, lambda file: sizes.get(file.path) in ids.index_sizes(file.messages))


def parted(files: Iterable[IndexFile], is_sound: Callable[[IndexFile], bool]) -> Index:
    """The index, with all of a run's files lost if one of them is.

    The rest of them would not be what the run reported.
    """
    known = list(files)
    of_runs = {file.run_id for file in known if not is_sound(file)}
    return Index(
        [file for file in known if file.run_id not in of_runs], [file for file in known if file.run_id in of_runs]
    )


def within(files: Sequence[IndexFile], days: int | None) -> list[IndexFile]:
    """The files of the last days with syncs, and of today, which is not over; all of them if no number is given.

    Only days with syncs count: neither a long pause nor a clock that jumped makes the look-back shorter.
    """
    if days is None:
        return list(files)
    wanted = set(sorted({file.synced_at // DAY for file in files})[-days - 1 :])
    return [file for file in files if file.synced_at // DAY in wanted]


class Reindexed(NamedTuple):
    """Files of the index that were made anew, in place of others."""

    parts: tuple[NewIds, ...] = ()
    replaced: tuple[IndexFile, ...] = ()

    @property
    def messages(self) -> int:
        return sum(part.messages for part in self.parts)

    @property
    def as_report(self) -> dict[str, int | str]:
        checksum = ids.sum_checksums(part.checksum for part in self.parts)
        return {"messages": self.messages, "checksum": f"{checksum:032x}"}

    @property
    def synced_at(self) -> int:
        """As old as what was lost: else a look-back would begin anew with it, or end at once."""
        return max(file.synced_at for file in self.replaced)


def named(parts: Iterable[tuple[NewIds, int]], folder: str, run_id: str) -> dict[str, IndexFile]:
    """The files that the index gains from parts and their times, by the names they have in the staging folder."""
    return {
        part.path: IndexFile(
            path=f"{folder}/{run_id}-{number}.ids",
            run_id=run_id,
            messages=part.messages,
            checksum=f"{part.checksum:032x}",
            synced_at=synced_at,
        )
        for number, (part, synced_at) in enumerate(parts)
    }


ROWS_PER_TASK = 1_000_000


def reindex_tasks(
    files: Iterable[LakeFile], partition_width: int, rows_per_task: int = ROWS_PER_TASK
) -> list[list[Unindexed]]:
    """Data files in groups of about so many rows, those of a partition together."""
    tasks: list[list[Unindexed]] = []
    room, last = 0, None
    of_messages = ((file.first_received // partition_width, file) for file in files if not file.owner)
    for partition, file in sorted(of_messages, key=lambda one: (one[0], one[1].path)):
        if room <= 0 and partition != last:
            tasks.append([])
            room = rows_per_task
        tasks[-1].append(Unindexed(file.path, file.table_key))
        room, last = room - file.rows, partition
    return tasks


def with_index(
    work: Work, index: Index, data_files: Sequence[LakeFile], use: Callable[[Index, Reindexed], Made]
) -> Made:
    """What `use` makes of the index and of the part of it that was lost, made anew from the data files.

    A part that turns out to be damaged counts as lost, and `use` is called again.
    """
    while True:
        try:
            return use(index, _reindexed(work, index, data_files))
        except DamagedIdsError:
            checked = _checked(work, index)
            if checked == index:
                raise  # what is damaged is not the index
            index = checked


def _reindexed(work: Work, index: Index, data_files: Sequence[LakeFile]) -> Reindexed:
    if not index.lost:
        return Reindexed()
    files = data_files or work.lake.ledger.data_files(work.job.connection.source.id)  # damage shows when it is read
    dialect = work.job.connection.dialect
    routes = dialect.routes(frozenset(file.table_key for file in files))
    context = ReindexContext(
        work.folder,
        work.lake.storage,
        dialect,
        tuple(file.path for file in index.sound),
        tuple(sorted(route for route in routes if len(route) > 1)),
    )
    parts = work.spread("reindex", reindex, context, reindex_tasks(files, dialect.date_partition.width))
    return Reindexed(tuple(part for part in parts if part), tuple(index.lost))


def _checked(work: Work, index: Index) -> Index:
    """The index after every file of it was read: what is damaged in it counts as lost."""
    context = examine.ExamineContext(work.lake.storage, work.archive, work.job.connection.dialect)
    all_seen = work.spread("check", examine.examine_index, context, [file.path for file in index.sound])
    sound = {
        file
        for file, seen in zip(index.sound, all_seen, strict=True)
        if seen.whole == examine.Messages(file.messages, int(file.checksum, 16))
    }
    return parted([*index.sound, *index.lost], sound.__contains__)
