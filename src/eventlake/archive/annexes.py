"""Annexes: places elsewhere whose files are raw files of a source, and are read where they are.

What is noted about an annex is in the archive itself, beside the raw files of its source. So every lake of the source
has it, and it outlives the workspace database.
"""

import gzip
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self

import msgspec

from eventlake.archive import layout
from eventlake.archive.whole import WholeArchive
from eventlake.errors import DamagedError, NotFoundError
from eventlake.storage.base import Storage, StoredFile
from eventlake.storage.local import LocalStorage


class Note(msgspec.Struct, frozen=True):
    """What is known of an annex: the files that were there when it was noted, or that whatever is there counts."""

    address: str
    files: tuple[StoredFile, ...] | None  # by their whole addresses; None if syncs are to look for more

    def packed(self) -> bytes:
        return gzip.compress(msgspec.json.encode(self), compresslevel=1, mtime=0)

    @classmethod
    def unpacked(cls, content: bytes) -> Self:
        return msgspec.json.decode(gzip.decompress(content), type=cls)


class Annex(NamedTuple):
    storage: Storage
    note: Note

    def wanted(self) -> Iterator[StoredFile]:
        """The raw files that a sync is to load, by their whole addresses. Of one that is gone the sync will tell."""
        return iter(self.note.files) if self.note.files is not None else self.there()

    def there(self) -> Iterator[StoredFile]:
        """The raw files that are there now."""
        return files_of(self.storage)


def files_of(storage: Storage) -> Iterator[StoredFile]:
    """All raw files of an annex, by their whole addresses."""
    if isinstance(storage, LocalStorage) and not Path(storage.root).is_dir():  # say, a disk that is not mounted
        raise NotFoundError(
            f"there is no folder {storage.root}", fix="see whether its disk is there, then run it again"
        )
    for file in layout.raw_files_below(storage, ""):
        yield file._replace(path=storage.full(file.path))


def keep(archive: Storage, source_id: str, note: Note) -> None:
    """Note an annex. Files that were noted before stay noted, for they may not be loaded yet."""
    path = _path_of(source_id, note.address)
    before = _read(archive, path) if archive.stat(path) else None
    if before and before.files and note.files is not None:
        now = {file.path for file in note.files}
        note = Note(note.address, (*note.files, *(file for file in before.files if file.path not in now)))
    archive.write(path, note.packed())


def forget(archive: Storage, source_id: str, address: str) -> None:
    archive.delete(_path_of(source_id, address))


def notes(archive: Storage, source_id: str) -> list[Note]:
    """What is noted of a source."""
    return [_read(archive, path) for path in _paths(archive, f"{layout.ANNEXES}/{source_id}")]


def annexes(archive: Storage, source_id: str, storage_at: Callable[[str], Storage]) -> list[Annex]:
    return [Annex(storage_at(note.address), note) for note in notes(archive, source_id)]


def whole_archive(archive: Storage, of_source: Sequence[Annex]) -> WholeArchive:
    """The archive as runs of a source read it."""
    return WholeArchive(archive, tuple(annex.storage for annex in of_source))


def addresses(archive: Storage) -> list[str]:
    """Where the annexes of all sources are. Of a note that is damaged the next sync of its source tells."""
    found = set()
    for path in _paths(archive, layout.ANNEXES):
        with suppress(DamagedError):
            found.add(_read(archive, path).address)
    return sorted(found)


def _paths(archive: Storage, folder: str) -> list[str]:
    return [file.path for file in archive.files(folder) if not layout.is_hidden(file.path)]


def _read(archive: Storage, path: str) -> Note:
    try:
        return Note.unpacked(archive.read(path))
    except (OSError, EOFError, ValueError) as error:  # of gzip and of msgspec
        raise DamagedError(
            f"{archive.full(path)} does not tell which raw files are read in place: {error}",
            fix="delete it, and name the place once more: eventlake import SOURCE --in-place ADDRESS",
        ) from error


def _path_of(source_id: str, address: str) -> str:
    return f"{layout.ANNEXES}/{source_id}/{hashlib.sha256(address.encode()).hexdigest()[:16]}.json.gz"
