"""A lake's files for DuckDB, wherever they are: `lake://<path>`. It reads those it is told of, and no others."""

import os
import threading
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from fsspec import AbstractFileSystem

from eventlake.storage.base import Storage

_PROTOCOL = "lake"
_UNCHANGED_SINCE = datetime.fromtimestamp(0, UTC)


class LakeFiles(AbstractFileSystem):  # type: ignore[misc] # fsspec has no types
    """As much of a file system as DuckDB asks for to read files whose names it is given.

    There is no way to write: a query may hold a COPY wherever DuckDB takes one, and the lake stays as it is.
    """

    cachable = False

    def __init__(self, storage: Storage, protocol: str = _PROTOCOL) -> None:
        super().__init__()
        self.protocol = protocol
        self._storage = storage
        self._sizes: dict[str, int] = {}
        self.failures: dict[str, Exception] = {}  # by path; what DuckDB makes of them cannot be read

    def address(self, path: str, size: int) -> str:
        """Let DuckDB read a file; what it is called there."""
        self._sizes[path] = size
        return f"{self.protocol}://{path}"

    @property
    def addresses(self) -> list[str]:
        return [f"{self.protocol}://{path}" for path in self._sizes]

    def open(self, path: str, mode: str = "rb", **_: Any) -> Any:
        if mode != "rb":
            raise PermissionError("queries only read")
        name = self._known(path)
        try:
            return _Opened(self._storage.open_input(name))
        except Exception as error:
            self.failures[name] = error
            raise

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        name = self._known(path)
        return {"name": name, "size": self._sizes[name], "type": "file"}

    def modified(self, path: str) -> datetime:
        """DuckDB asks when a file was changed; a file of the lake never is."""
        del path
        return _UNCHANGED_SINCE

    def glob(self, path: str, **_: Any) -> list[str]:
        return [self._known(path)]  # queries name their files one by one

    def _known(self, path: str) -> str:
        name = path.removeprefix(f"{self.protocol}://")
        if name not in self._sizes:
            raise PermissionError(f"{name} is no file of a table that the query names")
        return name


class _Opened:
    """A file that threads read at the same time, each at a position of its own.

    DuckDB seeks and then reads, in two calls, and shares an open file between its threads: with one position for all,
    one thread would read where another was sent to. It opens a file many times and closes few of them, so one that is
    let go is closed.
    """

    def __init__(self, source: pa.NativeFile) -> None:
        self._source = source
        self._here = threading.local()

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self.tell(), os.SEEK_END: self._source.size()}[whence]
        self._here.position = base + offset
        return self.tell()

    def tell(self) -> int:
        return int(getattr(self._here, "position", 0))

    def read(self, size: int = -1) -> bytes:
        start = self.tell()
        rest = max(0, self._source.size() - start)
        content: bytes = self._source.read_at(rest if size < 0 else min(size, rest), start)
        self._here.position = start + len(content)
        return content

    def close(self) -> None:
        self._source.close()

    def __del__(self) -> None:
        self.close()
