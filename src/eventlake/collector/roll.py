"""From sealed logs to the raw archive.

Doing it again changes nothing, so a crash at any line does no harm: the names of archive files come from the log's
name, a file that is there is not written again, and the log goes last. Copies are left out on the way, by the ids of
the last 24 hours; those of this log are remembered only when its files are in the archive.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from isal import igzip

from eventlake.archive import layout
from eventlake.collector import log
from eventlake.collector.log import Record
from eventlake.collector.recent import RecentIds
from eventlake.storage.base import Storage

MAX_BYTES = 100_000_000  # of JSON in an archive file, as with Segment


class Rolled(NamedTuple):
    events: int
    copies: int
    files: list[str]
    damaged: int  # bytes of the log that were no records; the log is kept then


def roll(path: Path, storage: Storage, recent: RecentIds) -> Rolled:
    """Put the events of a sealed log into the archive, then remove the log."""
    records, damaged = log.read(path)
    new = recent.new(records)
    files = []
    for target, content in _archive_files(path.stem, new):
        # If there is one, it has these events: no other log makes a file of this name.
        storage.create(target, igzip.compress(content, compresslevel=2, mtime=0))
        files.append(target)
    recent.add(path.stem, new)
    if damaged:
        path.rename(path.with_suffix(".damaged"))
    else:
        path.unlink()
    return Rolled(len(new), len(records) - len(new), files, damaged)


def _archive_files(stem: str, records: list[Record]) -> Iterator[tuple[str, bytes]]:
    """Path and content of each file: one per source and day, or more where a file would be too large."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(layout.path(record.source_id, record.received, stem), []).append(record)
    for path, group in groups.items():
        for number, lines in enumerate(_parts([record.event for record in group])):
            yield f"{path}-{number}.gz", b"\n".join(lines) + b"\n"


def _parts(lines: list[bytes]) -> Iterator[list[bytes]]:
    part: list[bytes] = []
    size = 0
    for line in lines:
        if part and size + len(line) + 1 > MAX_BYTES:
            yield part
            part, size = [], 0
        part.append(line)
        size += len(line) + 1
    if part:
        yield part
