"""What a lake keeps of a connection, for whoever has to build the workspace database anew.

Manifests note the settings by which each run went. What was changed since, and what was switched off, is here.
"""

from collections.abc import Callable, Iterator
from typing import Any, Self

import msgspec

from eventlake.lake.layout import Folders
from eventlake.storage.base import Storage


class KeptConnection(msgspec.Struct, frozen=True):
    at: int  # when it was so
    slug: str
    name: str
    source_enabled: bool
    connected: bool
    enabled: bool
    settings: dict[str, Any]
    workspace_id: str = ""  # whose connection it is; early notes do not tell

    def packed(self) -> bytes:
        return msgspec.json.format(msgspec.json.encode(self))

    @classmethod
    def unpacked(cls, content: bytes) -> Self:
        """Raises msgspec.DecodeError if it is none."""
        return msgspec.json.decode(content, type=cls)


def keep(storage: Storage, path: str, workspace_id: str, current: Callable[[], KeptConnection | None]) -> None:
    """Note a connection as it is now, unless that is noted already; forget it if it is no more.

    It may change while this goes on, and then another does the same: whoever writes last looks once more.
    """
    wanted = current()
    while True:
        before = _noted(storage, path)
        if before is not None and before.workspace_id not in ("", workspace_id):
            return  # several workspaces may share a bucket
        if wanted is None:
            storage.delete(path)
        elif not _are_alike(before, wanted):
            storage.write(path, wanted.packed())
        now = current()
        if _are_alike(now, wanted):
            return
        wanted = now


def _noted(storage: Storage, path: str) -> KeptConnection | None:
    try:
        return KeptConnection.unpacked(storage.read(path))
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def _are_alike(one: KeptConnection | None, other: KeptConnection | None) -> bool:
    """Whether they say the same, whenever that was."""
    if one is None or other is None:
        return one is other
    return msgspec.structs.replace(one, at=other.at) == other


def path_of(folders: Folders, source_id: str) -> str:
    return f"{folders.books}/connections/source={source_id}.json"


def sources(storage: Storage, folders: Folders) -> Iterator[str]:
    """The ids of the sources of which a lake has a note."""
    for file in storage.files(f"{folders.books}/connections"):
        source_id = file.path.rpartition("/source=")[2].removesuffix(".json")
        if file.path == path_of(folders, source_id):
            yield source_id
