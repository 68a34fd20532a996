"""A connection: a source in a lake."""

from typing import NamedTuple

from eventlake.control.settings import ConnectionSettings
from eventlake.control.sources import Source
from eventlake.lake.dialects import Dialect
from eventlake.lake.kept_connection import KeptConnection
from eventlake.settings import DEFAULT_LAKE


class Connection(NamedTuple):
    """A source in a lake."""

    source: Source
    lake: str
    enabled: bool
    settings: ConnectionSettings

    @property
    def name(self) -> str:
        """What people call it: the source, and the lake unless it is the default one."""
        return self.source.slug if self.lake == DEFAULT_LAKE else f"{self.source.slug}/{self.lake}"

    @property
    def full_name(self) -> str:
        return f"{self.source.slug}/{self.lake}"

    @property
    def dialect(self) -> Dialect:
        """How events become tables."""
        return self.settings.dialect(self.source.id, self.source.slug, self.lake)

    @property
    def database(self) -> str:
        """What holds its tables."""
        return self.dialect.database

    def kept(self, now: int, workspace_id: str, *, connected: bool) -> KeptConnection:
        """What its lake keeps of it."""
        return KeptConnection(
            at=now,
            slug=self.source.slug,
            name=self.source.name,
            source_enabled=self.source.enabled,
            connected=connected,
            enabled=self.enabled,
            settings=self.settings.model_dump(mode="json"),
            workspace_id=workspace_id,
        )
