"""The index of message ids: which files of it are sound, and how those that are not are made anew.

Duplicates are known by the index, so a run that went on without a part of it would let copies in. Everything that the
index holds is in the data files too: a file that is gone, cut off or damaged is made anew from them, before anything
is compared with it.
"""

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eventlake.control.ledger import IndexFile, LakeFile
from eventlake.lake import ids
from eventlake.lake.layout import DAY, INDEX, STAGE
from eventlake.storage.base import Storage


class NewIds(NamedTuple):
    """A file with the ids of messages that are new in the index."""

    path: str
    messages: int
    checksum: int


class IdWriter:
    """Writes files of messages to the staging folder of a run."""

    def __init__(self, storage: Storage, run_id: str) -> None:
        self._storage = storage
        self._folder = f"{STAGE}/{run_id}"

    def index(self, messages: ids.Ids) -> NewIds | None:
        path = self.file(messages, "ids")
        return NewIds(path, len(messages), ids.checksum(messages)) if path else None

    def file(self, messages: ids.Ids, name: str) -> str | None:
        if not len(messages):
            return None
        path = f"{self._folder}/{name}-{uuid.uuid4().hex}"
        with self._storage.open_output(path) as sink:
            ids.write(sink, messages)
        return path


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


def named(parts: Iterable[tuple[NewIds, int]], source_id: str, run_id: str) -> dict[str, IndexFile]:
    """The files that the index gains from parts and their times, by the names they have in the staging folder."""
    return {
        part.path: IndexFile(
            path=f"{INDEX}/source={source_id}/{run_id}-{number}.ids",
            run_id=run_id,
            messages=part.messages,
            checksum=f"{part.checksum:032x}",
            synced_at=synced_at,
        )
        for number, (part, synced_at) in enumerate(parts)
    }


@dataclass(frozen=True)
class ReindexContext:
    run_id: str
    storage: Storage
    sound: tuple[str, ...]


class Unindexed(NamedTuple):
    """A data file whose messages may be missing in the index."""

    path: str
    segment_type: str


ROWS_PER_TASK = 1_000_000


def reindex_tasks(files: Iterable[LakeFile], rows_per_task: int = ROWS_PER_TASK) -> list[list[Unindexed]]:
    """Data files in groups of about so many rows."""
    tasks: list[list[Unindexed]] = []
    room = 0
    for file in files:
        if room <= 0:
            tasks.append([])
            room = rows_per_task
        tasks[-1].append(Unindexed(file.path, file.segment_type))
        room -= file.rows
    return tasks


def reindex(context: ReindexContext, files: list[Unindexed]) -> NewIds | None:
    """Write the ids of rows that no sound file of the index has. A data file that is gone or broken has none.

    `verify --repair` brings its rows back, and their ids with them.
    """
    rows = ids.joined([ids.empty(ids.INDEX_FIELDS), *(_rows(context.storage, file) for file in files)])
    missing = np.ones(len(rows), bool)
    for path in context.sound:
        with ids.opened(context.storage, path) as file:
            missing &= ~np.isin(_whole(rows), _whole(file.read(ids.ALL, ids.INDEX_FIELDS)))
    return IdWriter(context.storage, context.run_id).index(rows.take(missing).ordered())


def _rows(storage: Storage, file: Unindexed) -> ids.Ids:
    try:
        with storage.open_input(file.path) as source:
            rows = pq.read_table(source, columns=["message_id", "received_at"])
    except (pa.ArrowInvalid, OSError):
        return ids.empty(ids.INDEX_FIELDS)
    hashes = [ids.message_hash(message_id) for message_id in rows.column("message_id").to_pylist()]
    received = rows.column("received_at").cast(pa.int64()).to_numpy()
    table = np.full(len(hashes), ids.table_key(file.segment_type), ids.FIELDS["table"])
    return ids.Ids({**ids.from_digests(hashes), "received": received, "table": table})


def _whole(rows: ids.Ids) -> ids.Array:
    """Rows that can be compared as a whole: the same message may be in the lake twice, after the look-back."""
    whole = np.empty(len(rows), [(name, ids.FIELDS[name]) for name in ids.INDEX_FIELDS])
    for name in ids.INDEX_FIELDS:
        whole[name] = rows[name]
    return whole
