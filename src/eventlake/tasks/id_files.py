"""Files of message ids that tasks write to the staging folder of a run."""

import uuid
from typing import NamedTuple

from eventlake.lake import ids
from eventlake.storage.base import Storage


class NewIds(NamedTuple):
    """A file with the ids of messages that are new in the index."""

    path: str
    messages: int
    checksum: int


class IdWriter:
    """Writes files of messages to the staging folder of a run."""

    def __init__(self, storage: Storage, folder: str) -> None:
        self._storage = storage
        self._folder = folder

    def index(self, messages: ids.Ids) -> NewIds | None:
        path = self.file(messages, "ids")
        return NewIds(path, len(messages), ids.checksum(messages)) if path else None

    def file(self, messages: ids.Ids, name: str) -> str | None:
        if not len(messages):
            return None
        path = f"{self._folder}/{name}-{uuid.uuid4().hex}"
        with self._storage.open_output(path) as sink:
            ids.write(sink, messages)
        return path
