"""Which messages came in during the last 24 hours: files of sorted hashes, looked at where they lie.

Looking takes no memory that grows with the traffic, and a restart forgets nothing. Files are merged like the levels of
a log-structured tree, so that there are few of them, and go when all in them is older than the period.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from eventlake.collector.log import Record
from eventlake.lake import ids
from eventlake.lake.ids import IdFile, Ids, Share
from eventlake.storage.local import LocalStorage

PERIOD = 24 * 3600 * 1_000_000  # microseconds
_FIELDS = ("high", "low", "received")
_ALL = Share(0, ids.BUCKETS)
_FAN = 8  # files of about one size, before they become one


class RecentIds:
    """The messages of the last day, in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def new(self, records: list[Record]) -> list[Record]:
        """The records whose message did not come before, neither among them nor in the period before."""
        if not records:
            return []
        messages = _messages(records)
        order = np.lexsort([messages["received"], messages["low"], messages["high"]])
        ordered = messages.take(order)
        is_new = np.append(True, ~_same_as_next(ordered))
        for path in self._files():
            file = IdFile(pa.memory_map(str(path)), fields=_FIELDS)
            at = file.positions(_ALL, ordered)
            known = np.flatnonzero(at >= 0)
            before = file.read(_ALL, ["received"])["received"][at[known]]
            is_new[known[np.abs(ordered["received"][known] - before) <= PERIOD]] = False
        kept = np.zeros(len(records), bool)
        kept[order[is_new]] = True
        return [record for record, keep in zip(records, kept, strict=True) if keep]

    def add(self, name: str, records: list[Record]) -> None:
        """Remember the messages of these records. May be done twice."""
        if records:
            self._write(name, _messages(records).ordered("received"))
            oldest = max(record.received for record in records) - PERIOD
            self._merge(oldest)
            self._forget(oldest)

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("*.ids"))

    def _write(self, name: str, messages: Ids) -> None:
        content = pa.BufferOutputStream()
        ids.write(content, messages)
        LocalStorage(str(self._folder)).write(f"{name}.ids", content.getvalue().to_pybytes())

    def _merge(self, oldest: int) -> None:
        for paths in self._levels():
            if len(paths) < _FAN:
                continue
            merged = ids.joined([self._read(path) for path in paths]).ordered("received")
            name = f"merged-{time.time_ns()}"
            is_last = np.append(~_same_as_next(merged), True)
            self._write(name, merged.take(is_last & (merged["received"] >= oldest)))
            for path in paths:
                path.unlink()

    def _levels(self) -> Iterator[list[Path]]:
        levels: dict[int, list[Path]] = {}
        for path in self._files():
            levels.setdefault(int(np.log(path.stat().st_size) / np.log(_FAN)), []).append(path)
        yield from levels.values()

    def _read(self, path: Path) -> Ids:
        return IdFile(pa.memory_map(str(path)), fields=_FIELDS).read(_ALL, _FIELDS)

    def _forget(self, oldest: int) -> None:
        for path in self._files():
            received: Any = IdFile(pa.memory_map(str(path)), fields=_FIELDS).read(_ALL, ["received"])["received"]
            if not len(received) or int(received.max()) < oldest:
                path.unlink()


def _same_as_next(ordered: Ids) -> Any:
    """Which rows but the last are of the same message as the row after them."""
    return (ordered["high"][1:] == ordered["high"][:-1]) & (ordered["low"][1:] == ordered["low"][:-1])


def _messages(records: list[Record]) -> Ids:
    received = np.fromiter((record.received for record in records), "<i8", len(records))
    return Ids({**ids.from_digests([record.message_hash for record in records]), "received": received})
