"""From sealed logs to the raw archive.

Doing it again changes nothing, so a crash at any line does no harm: the names of archive files come from the log's
name, a file that is there is not written again, and the log goes last. Copies are left out on the way, by the ids of
the last 24 hours; those of this log are remembered only when its files are in the archive.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from isal import igzip, isal_zlib

from eventlake.archive import layout
from eventlake.collector import log
from eventlake.collector.log import Record
from eventlake.collector.recent import RecentIds
from eventlake.storage.base import Storage

MAX_BYTES = 100_000_000  # of JSON in an archive file, as with Segment


class Rolled(NamedTuple):
    archived: Counter[str]  # events, by source
    copies: Counter[str]
    files: list[str]
    damaged: int  # bytes of the log that were no records; the log is kept then


def roll(path: Path, storage: Storage, recent: RecentIds, *, max_bytes: int = MAX_BYTES) -> Rolled:
    """Put the events of a sealed log into the archive, then remove the log."""
    name = log.name_of(path)
    records, damaged = log.read(path)
    new = recent.new(records)
    files = []
    for target, lines in _archive_files(name, new, max_bytes):
        _put(storage, target, lines)
        files.append(target)
    recent.add(name, new)
    if damaged:
        path.rename(path.with_name(f"{name}.damaged"))
    else:
        path.unlink()
    archived = _by_source(new)
    return Rolled(archived, _by_source(records) - archived, files, damaged)


def _by_source(records: list[Record]) -> Counter[str]:
    return Counter(record.source_id for record in records)


def _put(storage: Storage, target: str, lines: list[bytes]) -> None:
    """Write an archive file, if an attempt before did not. If that one's has other events, those that it lacks."""
    if storage.create(target, igzip.compress(_content(lines), compresslevel=2, mtime=0)):
        return
    held = Counter(archived_lines(storage.read(target)) or [])  # of a damaged file none, so they are written once more
    missing = list((Counter(lines) - held).elements())
    if missing:
        _put(storage, f"{target.removesuffix('.gz')}-again.gz", missing)


def archived_lines(content: bytes) -> list[bytes] | None:
    """The lines of an archive file; None if it is damaged."""
    try:
        text: bytes = igzip.decompress(content)
    except (EOFError, OSError, isal_zlib.error):  # type: ignore[misc] # it is an exception class
        return None
    return text.splitlines()


def _content(lines: list[bytes]) -> bytes:
    return b"\n".join(lines) + b"\n"


def _archive_files(name: str, records: list[Record], max_bytes: int) -> Iterator[tuple[str, list[bytes]]]:
    """Path and lines of each file: one per source and day, or more where a file would be too large."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(layout.path(record.source_id, record.received, name), []).append(record)
    for path, group in groups.items():
        for number, lines in enumerate(_parts([record.event for record in group], max_bytes)):
            yield f"{path}-{number}.gz", lines


def _parts(lines: list[bytes], max_bytes: int) -> Iterator[list[bytes]]:
    part: list[bytes] = []
    size = 0
    for line in lines:
        if part and size + len(line) + 1 > max_bytes:
            yield part
            part, size = [], 0
        part.append(line)
        size += len(line) + 1
    if part:
        yield part
