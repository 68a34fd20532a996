"""A lake's files for DuckDB, wherever they are: `lake://<path>`."""

from datetime import UTC, datetime
from typing import Any

from fsspec import AbstractFileSystem

from eventlake.storage.base import Storage

PROTOCOL = "lake"


class LakeFiles(AbstractFileSystem):  # type: ignore[misc] # fsspec has no types
    """As much of a file system as DuckDB asks for to read files whose names it is given."""

    protocol = PROTOCOL
    cachable = False

    def __init__(self, storage: Storage) -> None:
        super().__init__()
        self._storage = storage

    def _open(self, path: str, mode: str = "rb", **_: Any) -> Any:
        if mode != "rb":
            raise PermissionError("queries only read")
        return self._storage.open_stream(self._strip_protocol(path))

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        name = self._strip_protocol(path)
        found = self._storage.stat(name)
        if found is None:
            raise FileNotFoundError(path)
        return {"name": name, "size": found.size, "type": "file", "ETag": found.etag}

    def modified(self, path: str) -> datetime:
        """DuckDB asks when a file was changed; a file of the lake never is."""
        del path
        return datetime.fromtimestamp(0, UTC)

    def glob(self, path: str, **_: Any) -> list[str]:
        return [self._strip_protocol(path)]  # queries name their files one by one
