"""Write keys: which source a request is for."""

import time
from typing import NamedTuple

from eventlake.control.sources import Sources, key_hash

_SECONDS = 2.0  # after which a key that was revoked or added shows


class KeyHolder(NamedTuple):
    """The source that a write key belongs to."""

    source_id: str
    slug: str
    name: str
    enabled: bool
    sends_records: bool = False  # of a cloud application, in extract calls


class WriteKeys:
    """Looks keys up by their hash, which is all that is stored: how long it takes tells nothing about a key."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._holders: dict[str, KeyHolder] = {}
        self._read_at = float("-inf")

    def holder(self, key: str) -> KeyHolder | None:
        self._refresh()
        return self._holders.get(key_hash(key))

    def slugs(self) -> dict[str, str]:
        """Source id → slug, of the sources that have a key."""
        self._refresh()
        return {holder.source_id: holder.slug for holder in self._holders.values()}

    def _refresh(self) -> None:
        if time.monotonic() - self._read_at > _SECONDS:
            self._read()

    def _read(self) -> None:
        self._read_at = time.monotonic()  # also if it fails: not every request shall wait for a database that is away
        try:
            hashes, of_records = self._sources.key_hashes(), self._sources.of_records()
        except Exception:  # whatever it is, the keys that were valid still are
            if not self._holders:
                self._read_at = float("-inf")
                raise
            return
        self._holders = {
            hashed: KeyHolder(*source[:4], sends_records=source.id in of_records) for hashed, source in hashes.items()
        }
