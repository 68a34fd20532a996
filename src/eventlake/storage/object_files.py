"""Files of an object store as Python knows files."""

import io
import tempfile
from typing import TYPE_CHECKING, Any

from eventlake.errors import TransientError
from eventlake.storage.base import StoredFile

if TYPE_CHECKING:
    from eventlake.storage.objects import ObjectStorage

READ_AT_ONCE = 8 << 20
_IN_MEMORY = 32 << 20  # an upload larger than this waits on the local disk


class Ranges(io.RawIOBase):
    """A file that is read by ranges: a broken connection costs one of them, not the whole file."""

    def __init__(self, storage: "ObjectStorage", file: StoredFile) -> None:
        self._storage = storage
        self._file = file
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._file.size}[whence]
        self._at = start + offset
        return self._at

    def size(self) -> int:
        return self._file.size

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        stop = min(self._at + len(view), self._file.size)
        if stop <= self._at:
            return 0
        try:
            content = self._storage.read_range(self._file.path, self._file.etag, self._at, stop)
        except TransientError as error:
            raise OSError(error.problem) from error  # what a reader of files expects
        view[: len(content)] = content
        self._at += len(content)
        return len(content)

    def readall(self) -> bytes:
        return b"".join(iter(lambda: self.read(READ_AT_ONCE) or b"", b""))


class Ahead(io.RawIOBase):
    """A file that is read from start to end: the next range of it comes while the one before is worked on."""

    def __init__(self, storage: "ObjectStorage", file: StoredFile) -> None:
        ranges = Ranges(storage, file)
        self._blocks = storage.ahead(iter(lambda: ranges.read(READ_AT_ONCE) or None, None))
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._left:
            self._left = memoryview(next(self._blocks, None) or b"")
        size = min(len(buffer), len(self._left))
        memoryview(buffer)[:size] = self._left[:size]
        self._left = self._left[size:]
        return size

    def close(self) -> None:
        self._blocks.close()
        super().close()


class Upload(io.RawIOBase):
    """A file on its way to the store: it is there when it is closed."""

    def __init__(self, storage: "ObjectStorage", path: str) -> None:
        self._storage = storage
        self._path = path
        self._content = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - closed with this file

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        return self._content.write(content)

    def tell(self) -> int:
        return self._content.tell()

    def close(self) -> None:
        if not self.closed:
            try:
                self._content.seek(0)
                self._storage.upload(self._path, self._content)
            finally:
                self._content.close()
                super().close()
