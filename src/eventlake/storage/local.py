"""A lake in a folder of this machine, or of a network file system that renames atomically."""

import contextlib
import errno
import os
import uuid
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eventlake.storage import private
from eventlake.storage.base import TIMEOUT, Part, Storage, StoredFile, answered

if TYPE_CHECKING:
    import pyarrow as pa

# pyarrow is loaded when it is needed: commands that only ask the database shall answer at once.


class LocalStorage(Storage):
    def __init__(self, root: str, *, timeout: float = TIMEOUT) -> None:
        super().__init__(str(Path(root).resolve()), timeout=timeout)

    @cached_property
    def _files(self) -> Any:
        return _fs().LocalFileSystem()

    def __reduce__(self) -> tuple[Any, ...]:
        return _opened, (type(self), self.root, self.timeout)

    def _make_folder_of(self, path: Path) -> None:
        """Make the folder of a file. The lake's own is for its owner only, so that what is below needs no care."""
        private.make_folder(Path(self.root))
        path.parent.mkdir(parents=True, exist_ok=True)

    def files(self, folder: str) -> Iterator[StoredFile]:
        return iter(self._listed(folder))

    @answered
    def _listed(self, folder: str) -> list[StoredFile]:
        selector = _fs().FileSelector(self.full(folder), allow_not_found=True, recursive=True)
        found = [info for info in self._files.get_file_info(selector) if info.is_file]
        if not found:
            self._refuse_below_a_file(folder)
        found.sort(key=lambda info: info.path)
        return [StoredFile(info.path[len(self.root) + 1 :], info.size, f"{info.mtime_ns}") for info in found]

    @answered
    def folders(self, folder: str) -> list[str]:
        selector = _fs().FileSelector(self.full(folder), allow_not_found=True)
        found = self._files.get_file_info(selector)
        if not found:
            self._refuse_below_a_file(folder)
        return sorted(info.base_name for info in found if info.type == _fs().FileType.Directory)

    def _refuse_below_a_file(self, folder: str) -> None:
        """What is not there may come; but what has a file where a folder should be is no empty lake."""
        with contextlib.suppress(FileNotFoundError):
            Path(self.full(folder)).stat()

    @answered
    def stat(self, path: str) -> StoredFile | None:
        info = self._files.get_file_info(self.full(path))
        return StoredFile(path, info.size, f"{info.mtime_ns}") if info.is_file else None

    @answered
    def open_input(self, path: str) -> "pa.NativeFile":
        import pyarrow as pa  # noqa: PLC0415

        return pa.memory_map(self.full(path))

    @answered
    def open_stream(self, path: str) -> Any:
        return Path(self.full(path)).open("rb")

    @answered
    def open_output(self, path: str) -> "pa.NativeFile":
        import pyarrow as pa  # noqa: PLC0415

        self._make_folder_of(Path(self.full(path)))
        return pa.OSFile(self.full(path), "wb")

    @answered
    def put(self, path: str, content: Any) -> None:
        target = Path(self.full(path))
        try:
            target.write_bytes(content)
        except FileNotFoundError:  # the folder is there for all files but the first
            self._make_folder_of(target)
            target.write_bytes(content)

    @answered
    def read_parts(self, parts: Sequence[Part]) -> "list[pa.Buffer]":
        import pyarrow as pa  # noqa: PLC0415

        found = []
        path, file = "", None
        with contextlib.ExitStack() as open_files:
            for part in parts:
                if file is None or part.path != path:
                    open_files.close()
                    path, file = part.path, open_files.enter_context(Path(self.full(part.path)).open("rb"))
                file.seek(part.start)
                found.append(pa.py_buffer(file.read(part.size)))
        return found

    @answered
    def read(self, path: str, limit: int = -1) -> bytes:
        with Path(self.full(path)).open("rb") as file:
            return file.read(limit)

    @answered
    def write(self, path: str, content: bytes) -> None:
        target = Path(self.full(path))
        self._make_folder_of(target)
        with _written_aside(target, content) as aside:
            aside.replace(target)
        sync_folder(target.parent)

    @answered
    def create(self, path: str, content: bytes) -> bool:
        target = Path(self.full(path))
        self._make_folder_of(target)
        with _written_aside(target, content) as aside:
            try:
                os.link(aside, target)  # unlike a rename, it never replaces a file
            except FileExistsError:
                return target.read_bytes() == content
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                # Some file systems know no links. Runs of a source hold its lock, so nobody comes in between.
                if target.exists():
                    return target.read_bytes() == content
                aside.replace(target)
        sync_folder(target.parent)
        return True

    @answered
    def move(self, source: str, target: str) -> None:
        destination = Path(self.full(target))
        self._make_folder_of(destination)
        try:
            Path(self.full(source)).replace(destination)
        except FileNotFoundError:
            if not destination.exists():
                raise

    def settle(self) -> None:
        # One call for a thousand files; a call per file would take a thousand times as long. It waits for all that
        # the machine has to write, so it has no time limit.
        os.sync()

    @answered
    def delete(self, path: str) -> None:
        Path(self.full(path)).unlink(missing_ok=True)

    @answered
    def delete_folder(self, folder: str) -> None:
        if Path(self.full(folder)).is_dir():
            self._files.delete_dir(self.full(folder))


_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS)


def _fs() -> Any:
    from pyarrow import fs  # noqa: PLC0415

    return fs


def sync_folder(folder: Path) -> None:
    """Let the name of a new file survive a power cut too."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _opened(kind: type[LocalStorage], root: str, timeout: float) -> LocalStorage:
    return kind(root, timeout=timeout)


@contextlib.contextmanager
def _written_aside(target: Path, content: bytes) -> Iterator[Path]:
    """The content on disk, under a name that nobody looks for and that is gone afterwards."""
    aside = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    try:
        with aside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        yield aside
    finally:
        aside.unlink(missing_ok=True)
