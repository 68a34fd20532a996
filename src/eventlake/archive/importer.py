"""Putting existing raw files into the archive.

A file's name in the archive comes from its content: importing the same file again, under any name, finds it there.
The content is kept as it is; a plain file is only compressed.
"""

import hashlib
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from isal import igzip

from eventlake.archive import layout
from eventlake.archive.reader import Lines, UnreadableFileError, read_lines
from eventlake.errors import InvalidSettingsError
from eventlake.events import instants
from eventlake.reading import exact_json
from eventlake.storage.base import Storage, new_digest

_PIECE = 1 << 20  # bytes copied at a time
_LOOK_AT = 1000  # lines searched for the day on which a file's events were received


class Imported(NamedTuple):
    file: Path
    path: str
    is_new: bool


def find_raw_files(places: Iterable[Path]) -> list[Path]:
    """The files that were named, and all files in the folders that were. One that holds no JSON at all is refused."""
    found = []
    for place in places:
        if place.is_dir():
            found += sorted(
                file for file in place.rglob("*") if file.is_file() and not file.name.startswith((".", "_"))
            )
        elif place.is_file():
            found.append(place)
        else:
            raise InvalidSettingsError(f"there is no file or folder {place}", fix="name existing raw files")
    for file in found:
        with file.open("rb") as raw:
            refuse_other_than_json(raw, str(file))
    return found


def refuse_other_than_json(raw: Any, name: str) -> None:
    """Refuse a file that cannot be a raw file; one that cannot be read is let in: what is wrong with it a sync says."""
    if not _may_hold_events(raw):
        raise InvalidSettingsError(
            f"{name} holds no JSON: not one of its lines is a JSON value",
            fix="give files with one JSON object per line, plain or gzipped; nothing was added to the archive",
        )


def _may_hold_events(raw: Any) -> bool:
    """Whether a line of a file is JSON, or no line can be read."""
    is_blank = True
    with suppress(UnreadableFileError):
        for block in read_lines(raw):
            if not isinstance(block, Lines):
                return True  # a line that is too long is known by its beginning only
            if any(map(_is_json, block.lines)):
                return True
            is_blank = False
        return is_blank
    return True


def _is_json(line: bytes) -> bool:
    try:
        exact_json.parse(line)
    except exact_json.NotJsonError:
        return False
    return True


def import_file(storage: Storage, source_id: str, file: Path, *, now_micros: int) -> Imported:
    """Copy one raw file into the archive, unless it is there."""
    with file.open("rb") as raw:
        name = f"{hashlib.file_digest(raw, new_digest).hexdigest()}.gz"
    day = _received_day(file)
    if day is None:  # the content does not tell: it may be in the archive under any day
        there = next((raw.path for raw in layout.raw_files(storage, source_id) if raw.path.endswith(f"/{name}")), None)
        if there:
            return Imported(file, there, is_new=False)
        day = _folder_day(file, now_micros)
    target = layout.path(source_id, day, name)
    if storage.stat(target):
        return Imported(file, target, is_new=False)
    hidden = f"{target.rpartition('/')[0]}/.{uuid.uuid4().hex}"
    with file.open("rb") as raw, storage.open_output(hidden) as sink:
        if raw.read(2) == b"\x1f\x8b":
            raw.seek(0)
            shutil.copyfileobj(raw, sink, _PIECE)
        else:
            raw.seek(0)
            with igzip.IGzipFile(filename="", fileobj=sink, mode="wb", compresslevel=2, mtime=0) as compressed:
                shutil.copyfileobj(raw, compressed, _PIECE)
    storage.move(hidden, target)
    return Imported(file, target, is_new=True)


def _received_day(file: Path) -> int | None:
    """When the first event of a file that tells it was received."""
    with file.open("rb") as raw:
        for event in _first_events(raw):
            received = event.get("receivedAt")
            instant = instants.parse(received) if isinstance(received, str) else None
            if instant:
                return instant.micros
    return None


def _folder_day(file: Path, now_micros: int) -> int:
    """The day that a folder of a Segment archive names; else today."""
    return int(file.parent.name) * 1000 if re.fullmatch(r"\d{12,13}", file.parent.name) else now_micros


def _first_events(raw: Any) -> Iterator[dict[str, Any]]:
    looked_at = 0
    try:
        for block in read_lines(raw):
            for line in block.lines if isinstance(block, Lines) else ():
                looked_at += 1
                if looked_at > _LOOK_AT:
                    return
                try:
                    value = exact_json.parse(line).value
                except exact_json.NotJsonError:
                    continue
                if isinstance(value, dict):
                    yield value
    except UnreadableFileError:
        return  # the sync will say so, with the file's name
