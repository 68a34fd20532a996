"""Who changed what, and when, wherever they did it."""

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

    def latest(self, limit: int = 100, *, before: int | None = None, text: str = "") -> list[Entry]:
        """Newest first; those before an entry, and those with a text in who did it, what was done, or to what."""
        columns = (tables.audit.c.who, tables.audit.c.action, tables.audit.c.target)
        conditions: list[sa.ColumnElement[bool]] = [tables.audit.c.id < before] if before else []
        conditions += [sa.or_(*(one.icontains(text, autoescape=True) for one in columns))] if text else []
        query = sa.select(tables.audit).where(*conditions).order_by(tables.audit.c.id.desc()).limit(limit)
        with self._engine.connect() as connection:
            return [Entry(**row._mapping) for row in connection.execute(query)]
