"""One small file layer over pyarrow file systems.

Paths are relative to the root, with `/` between the parts. A `Storage` can be pickled: Spark tasks open their own.
"""

import contextlib
import hashlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import fs

from eventlake.errors import InvalidSettingsError, PermissionMissingError, TransientError


def new_digest() -> "hashlib.blake2b":
    """The hash by which files are recognised."""
    return hashlib.blake2b(digest_size=16)


class StoredFile(NamedTuple):
    """A file as a listing shows it; `etag` changes when the content does."""

    path: str
    size: int
    etag: str


class Storage:
    """The files below one root. Every write appears whole or not at all; every method may be called again."""

    def __init__(self, root: str) -> None:
        if "://" in root:
            scheme = root.partition("://")[0]
            raise InvalidSettingsError(
                f"lake root {root!r}: the scheme {scheme}:// is not supported",
                fix="use a folder of this machine",
            )
        self.root = str(Path(root).resolve())
        self._files = fs.LocalFileSystem()

    def __reduce__(self) -> tuple[type["Storage"], tuple[str]]:
        return Storage, (self.root,)

    def full(self, path: str) -> str:
        return f"{self.root}/{path}"

    def files(self, folder: str) -> Iterator[StoredFile]:
        """All files below a folder, in order of their paths; none if there is no such folder."""
        selector = fs.FileSelector(self.full(folder), allow_not_found=True, recursive=True)
        found = [info for info in self._files.get_file_info(selector) if info.is_file]
        for info in sorted(found, key=lambda info: info.path):
            yield StoredFile(info.path[len(self.root) + 1 :], info.size, f"{info.mtime_ns}")

    def folders(self, folder: str) -> list[str]:
        """The names of the folders in a folder."""
        selector = fs.FileSelector(self.full(folder), allow_not_found=True)
        found = self._files.get_file_info(selector)
        return sorted(info.base_name for info in found if info.type == fs.FileType.Directory)

    def stat(self, path: str) -> StoredFile | None:
        info = self._files.get_file_info(self.full(path))
        return StoredFile(path, info.size, f"{info.mtime_ns}") if info.is_file else None

    def open_input(self, path: str) -> pa.NativeFile:
        """A file for reading at any position."""
        return pa.memory_map(self.full(path)) if Path(self.full(path)).stat().st_size else pa.BufferReader(b"")

    def open_stream(self, path: str) -> Any:
        """A file for reading from start to end."""
        return Path(self.full(path)).open("rb")

    def open_output(self, path: str) -> pa.NativeFile:
        """A file to write to. It is not atomic: write to a path that nobody reads before it is complete."""
        Path(self.full(path)).parent.mkdir(parents=True, exist_ok=True)
        return pa.OSFile(self.full(path), "wb")

    def read(self, path: str) -> bytes:
        return Path(self.full(path)).read_bytes()

    def digest(self, path: str) -> str | None:
        """A hash of a file's content; None if there is no such file."""
        try:
            with self.open_stream(path) as file:
                return hashlib.file_digest(file, new_digest).hexdigest()
        except FileNotFoundError:
            return None

    def write(self, path: str, content: bytes) -> None:
        """Write a whole file; readers see the old content or the new, and it survives a power cut."""
        target = Path(self.full(path))
        temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise _translated(error, self.full(path)) from error

    def move(self, source: str, target: str) -> None:
        """Give a file its final name. Once it has that name, doing it again has no effect."""
        destination = Path(self.full(target))
        try:
            destination.parent.mkdir(parents=True, exist_ok=True)
            Path(self.full(source)).replace(destination)
        except FileNotFoundError:
            if not destination.exists():
                raise
        except OSError as error:
            raise _translated(error, self.full(target)) from error

    def settle(self) -> None:
        """Return when everything that was written before survives a power cut."""
        os.sync()  # one call for a thousand files; a call per file would take a thousand times as long

    def delete(self, path: str) -> None:
        Path(self.full(path)).unlink(missing_ok=True)

    def delete_folder(self, folder: str) -> None:
        """Remove a folder and all in it."""
        if Path(self.full(folder)).is_dir():
            self._files.delete_dir(self.full(folder))


def _translated(error: OSError, path: str) -> Exception:
    if isinstance(error, PermissionError) or error.errno == 30:  # EROFS, a read-only file system
        return PermissionMissingError(
            f"may not write {path}: {error.strerror}",
            fix="give this user the right to write to the lake's folder",
        )
    return TransientError(f"cannot write {path}: {error.strerror}", fix="check the disk, then run the sync again")
