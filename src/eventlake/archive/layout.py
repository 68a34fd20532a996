"""Where raw files lie: Segment's own layout, `segment-logs/<source id>/<UTC day in ms>/<name>.gz`."""

from collections.abc import Iterator

from eventlake.events import instants
from eventlake.storage.base import Storage, StoredFile

ROOT = "segment-logs"
DAY_MS = 86_400_000
FORWARDED = "forwarded-"  # how files are called whose events another source's plan has blocked, or is about


def folder(source_id: str) -> str:
    return f"{ROOT}/{source_id}"


def path(source_id: str, received_micros: int, name: str) -> str:
    day = received_micros // 1000 // DAY_MS * DAY_MS
    return f"{folder(source_id)}/{day}/{name}"


def day_micros(raw_path: str) -> int:
    """The start of the day that a raw file's folder names; 1970 if the folder is not a day."""
    day = raw_path.split("/")[-2]
    micros = int(day) * 1000 if day.isascii() and day.isdigit() and len(day) <= 15 else 0
    return micros if micros <= instants.LAST else 0


def raw_files(storage: Storage, source_id: str) -> Iterator[StoredFile]:
    """All raw files of a source; hidden files (uploads under way, listings) are not raw files."""
    for file in storage.files(folder(source_id)):
        if not file.path.rpartition("/")[2].startswith((".", "_")):
            yield file
