"""Who changed what, and when, through the console or the HTTP API."""

from collections.abc import Callable
from typing import Any, NamedTuple

import sqlalchemy as sa

from eventlake.control import service_tables as tables


class Entry(NamedTuple):
    id: int
    at: int
    who: str
    action: str
    target: str
    before: Any
    after: Any


class AuditLog:
    def __init__(self, engine: sa.Engine, now: Callable[[], int]) -> None:
        self._engine = engine
        self._now = now

    def note(self, who: str, action: str, target: str, *, before: Any = None, after: Any = None) -> None:
        row = {"at": self._now(), "who": who, "action": action, "target": target, "before": before, "after": after}
        with self._engine.begin() as connection:
            connection.execute(tables.audit.insert().values(row))

    def latest(self, limit: int = 100, *, before: int | None = None) -> list[Entry]:
        """Newest first; those before an entry."""
        conditions = [tables.audit.c.id < before] if before else []
        query = sa.select(tables.audit).where(*conditions).order_by(tables.audit.c.id.desc()).limit(limit)
        with self._engine.connect() as connection:
            return [Entry(**row._mapping) for row in connection.execute(query)]
