"""Which messages came in during the last 24 hours: files of sorted hashes, looked at where they lie.

Looking takes no memory that grows with the traffic, and a restart forgets nothing. Files are merged like the levels of
a log-structured tree, so that there are few of them, and go when all in them is older than the period.

Whatever is read of them is compared with their checksums. A file that is damaged is never believed (see `mend`).
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from eventlake.collector.log import Record
from eventlake.lake import ids
from eventlake.lake.ids import ALL, DamageError, IdFile, Ids
from eventlake.storage.local import LocalStorage

PERIOD = 24 * 3600 * 1_000_000  # microseconds
FAN = 8  # files of about one size, before they become one
FILE, SET_ASIDE = ".ids", ".damaged"
_FIELDS = ("high", "low", "received")


class RecentIds:
    """The messages of the last day, in a folder."""

    def __init__(self, folder: Path, *, fan: int = FAN) -> None:
        self._folder = folder
        self._fan = fan
        self._whole: dict[Path, tuple[int, int]] = {}  # files whose checksum was right, with size and time

    def new(self, records: list[Record]) -> list[Record]:
        """The records that are no copies: none of the same message was kept within the period before or after."""
        if not records:
            return []
        messages = _messages(records)
        order = np.lexsort([messages["received"], messages["low"], messages["high"]])
        ordered = messages.take(order)
        is_new = np.ones(len(records), bool)
        for path in self._files():
            _strike_out(is_new, ordered, _opened(path))
        _strike_out_repeated(is_new, ordered)
        return [records[at] for at in np.sort(order[is_new]).tolist()]

    def add(self, name: str, records: list[Record]) -> None:
        """Remember the messages of these records. May be done twice."""
        if records:
            self.write(name, _messages(records))
            oldest = max(record.received for record in records) - PERIOD
            self._merge(oldest)
            self._forget(oldest)

    def write(self, name: str, messages: Ids) -> None:
        """Remember messages in a file of this name, in place of what it held."""
        content = pa.BufferOutputStream()
        ids.write(content, messages.ordered("received"))
        LocalStorage(str(self._folder)).write(f"{name}{FILE}", content.getvalue().to_pybytes())

    def damaged(self) -> list[Path]:
        """The files that are not what was written."""
        return [path for path in self._files() if not self._is_whole(path)]

    def set_aside(self, path: Path) -> Path:
        """Keep a damaged file under a name that nobody looks for."""
        return path.rename(path.with_name(f"{path.stem}-{time.time_ns()}{SET_ASIDE}"))

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob(f"*{FILE}"))

    def _is_whole(self, path: Path) -> bool:
        found = path.stat()
        state = (found.st_size, found.st_mtime_ns)
        if self._whole.get(path) != state:
            try:
                _opened(path).read(ALL, _FIELDS)
            except DamageError:
                return False
            self._whole[path] = state
        return True

    def _merge(self, oldest: int) -> None:
        for paths in self._levels():
            if len(paths) < self._fan:
                continue
            read = [_opened(path).read(ALL, _FIELDS) for path in paths]
            merged = ids.joined(read).ordered("received")
            is_first = np.append(True, ~(_same_as_next(merged) & (np.diff(merged["received"]) == 0)))
            self.write(f"merged-{time.time_ns()}", merged.take(is_first & (merged["received"] >= oldest)))
            for path in paths:
                self._remove(path)

    def _levels(self) -> Iterator[list[Path]]:
        levels: dict[int, list[Path]] = {}
        for path in self._files():
            levels.setdefault(int(np.log(path.stat().st_size) / np.log(self._fan)), []).append(path)
        yield from levels.values()

    def _forget(self, oldest: int) -> None:
        for path in self._files():
            received: Any = _opened(path).read(ALL, ["received"])["received"]
            if not len(received) or int(received.max()) < oldest:
                self._remove(path)

    def _remove(self, path: Path) -> None:
        path.unlink()
        self._whole.pop(path, None)


def _opened(path: Path) -> IdFile:
    """Raises DamageError, also when the file is read."""
    with path.open("rb") as file:
        if file.read(len(ids.MAGIC)) != ids.MAGIC:
            raise DamageError("it does not begin as one with checksums")
    return IdFile(pa.memory_map(str(path)), fields=_FIELDS)


def _strike_out(is_new: Any, ordered: Ids, file: IdFile) -> None:
    """Mark what was kept in this file within the period as not new. A message may be in it more than once."""
    at = file.positions(ALL, ordered)
    which = np.flatnonzero(at >= 0)
    at = at[which]
    held = file.read(ALL, _FIELDS) if len(which) else ids.empty(_FIELDS)
    while len(which):
        near = np.abs(ordered["received"][which] - held["received"][at]) <= PERIOD
        is_new[which[near]] = False
        which, at = which[~near], at[~near] + 1
        inside = at < len(held)
        which, at = which[inside], at[inside]
        same = (held["high"][at] == ordered["high"][which]) & (held["low"][at] == ordered["low"][which])
        which, at = which[same], at[same]


def _strike_out_repeated(is_new: Any, ordered: Ids) -> None:
    """Of several records of one message, mark those that come within the period after one that is kept as not new.

    A record that is itself a copy decides nothing: whether a later one is kept must not depend on which records
    happened to be in one log.
    """
    same = _same_as_next(ordered)
    received = ordered["received"]
    kept: int | None = None
    for row in np.flatnonzero(np.append(same, False) | np.append(False, same)).tolist():
        if row == 0 or not same[row - 1]:  # another message
            kept = None
        if kept is not None and received[row] - received[kept] <= PERIOD:
            is_new[row] = False
        elif is_new[row]:
            kept = row


def _same_as_next(ordered: Ids) -> Any:
    """Which rows but the last are of the same message as the row after them."""
    return (ordered["high"][1:] == ordered["high"][:-1]) & (ordered["low"][1:] == ordered["low"][:-1])


def _messages(records: list[Record]) -> Ids:
    received = np.fromiter((record.received for record in records), "<i8", len(records))
    return Ids({**ids.from_digests([record.message_hash for record in records]), "received": received})
