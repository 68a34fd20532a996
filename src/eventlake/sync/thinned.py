"""The index without some of its messages: those of a table that is dropped, or of people who must not be in the lake.

A file that changes is written anew and keeps its time, by which copies are looked for. What is left of a run's index is
no longer what the run reported, so all files of that run belong to the one that changed them.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from eventlake.control.ledger import IndexFile
from eventlake.lake import ids
from eventlake.sync.index import Index, Reindexed
from eventlake.sync.work import Work
from eventlake.tasks.id_files import IdWriter, NewIds

Change = Callable[[ids.Ids], ids.Ids | None]
"""What is left of the messages of a file; None if all are."""


class Thinned(NamedTuple):
    """What becomes of the index."""

    parts: tuple[tuple[NewIds, int], ...] = ()  # in the staging folder, with the times of the files that they replace
    taken: tuple[IndexFile, ...] = ()  # over from runs whose other files changed
    replaced: tuple[IndexFile, ...] = ()
    made: Reindexed = Reindexed()  # of a part that was lost

    @property
    def as_report(self) -> dict[str, int | str]:
        """How many messages belong to this run now that others had brought, and their checksum."""
        sums = [int(file.checksum, 16) for file in self.taken] + [part.checksum for part, _ in self.parts]
        messages = sum(file.messages for file in self.taken) + sum(part.messages for part, _ in self.parts)
        return {"messages": messages, "checksum": f"{ids.sum_checksums(sums):032x}"}


def thinned(work: Work, index: Index, made: Reindexed, change: Change) -> Thinned:
    storage, writer = work.lake.storage, IdWriter(work.lake.storage, work.folder)

    def changed(path: str) -> tuple[bool, NewIds | None]:
        """Whether a file changes, and what is left of it then."""
        with ids.opened(storage, path) as stored:
            left = change(stored.read(ids.ALL, ids.INDEX_FIELDS))
            return (False, None) if left is None else (True, writer.index(left))

    anew: list[NewIds] = []
    for part in made.parts:
        is_changed, rest = changed(part.path)
        left = rest if is_changed else part
        anew += [left] if left else []
    made = made._replace(parts=tuple(anew))
    parts: list[tuple[NewIds, int]] = [(part, made.synced_at) for part in made.parts]
    whole, replaced = [], list(made.replaced)
    for file in index.sound:
        is_changed, rest = changed(file.path)
        if not is_changed:
            whole.append(file)
            continue
        replaced.append(file)
        parts += [(rest, file.synced_at)] if rest else []
    runs = {file.run_id for file in replaced}
    taken = tuple(file for file in whole if file.run_id in runs)
    return Thinned(tuple(parts), taken, tuple(replaced), made)


def without_messages(work: Work, index: Index, made: Reindexed, removed: Sequence[str]) -> Thinned:
    """The index without the messages that are in some files."""
    storage = work.lake.storage
    gone = [ids.empty(ids.INDEX_FIELDS)]
    for path in removed:
        with ids.opened(storage, path) as file:
            part = file.read(ids.ALL, ids.INDEX_FIELDS)
            gone.append(ids.Ids({name: values.copy() for name, values in part.arrays.items()}))
    rows = _names(ids.joined(gone))

    def without(messages: ids.Ids) -> ids.Ids | None:
        stays = ~np.isin(_names(messages), rows)
        return None if stays.all() else messages.take(stays)

    return thinned(work, index, made, without)


def _names(messages: ids.Ids) -> Any:
    """What tells a row of the index from all others: a message may be there twice, received at two times."""
    return np.rec.fromarrays([messages[name] for name in ("high", "low", "received")])
