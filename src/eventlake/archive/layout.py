"""Where raw files lie: Segment's own layout, `segment-logs/<source id>/<UTC day in ms>/<name>.gz`."""

import re
from collections.abc import Iterator

from eventlake.events import instants
from eventlake.storage.base import Storage, StoredFile

ROOT = "segment-logs"
ANNEXES = f"{ROOT}/_annexes"  # what is noted about raw files that stay where they are: see `annexes`
DAY_MS = 86_400_000
_RUDDERSTACKS_DAY = re.compile(r"(\d\d)-(\d\d)-(\d{4})", re.ASCII)
FORWARDED = "forwarded-"  # how files are called whose events another source's plan has blocked, or is about


def folder(source_id: str) -> str:
    return f"{ROOT}/{source_id}"


def path(source_id: str, received_micros: int, name: str) -> str:
    day = received_micros // 1000 // DAY_MS * DAY_MS
    return f"{folder(source_id)}/{day}/{name}"


def day_micros(raw_path: str) -> int:
    """The start of the day that a raw file's folder names, as Segment or RudderStack do; 1970 if it names none."""
    day = raw_path.split("/")[-2]
    if month_first := _RUDDERSTACKS_DAY.fullmatch(day):
        instant = instants.parse("{2}-{0}-{1}T00:00:00Z".format(*month_first.groups()))
        return instant.micros if instant else 0
    micros = int(day) * 1000 if day.isascii() and day.isdigit() and len(day) <= 15 else 0
    return micros if micros <= instants.LAST else 0


def sources(storage: Storage) -> list[str]:
    """The ids of the sources that have raw files in the archive."""
    return [name for name in storage.folders(ROOT) if not is_hidden(name)]


def raw_files(storage: Storage, source_id: str) -> Iterator[StoredFile]:
    """All raw files of a source that are in the archive."""
    return raw_files_below(storage, folder(source_id))


def raw_files_below(storage: Storage, folder: str) -> Iterator[StoredFile]:
    """All files of a folder but hidden ones: uploads under way and listings are not raw files."""
    return (file for file in storage.files(folder) if not is_hidden(file.path))


def is_hidden(path: str) -> bool:
    return path.rpartition("/")[2].startswith((".", "_"))
