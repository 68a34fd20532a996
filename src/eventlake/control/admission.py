"""Which tables a source may not have: those that were dropped, and those for which there was no room."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa

from eventlake.control import database as db

REMEMBERED = 2000  # refused tables of a source: anybody with a write key can make up more


class DroppedTable(NamedTuple):
    """A table that was dropped. As long as this stands, its events are left out."""

    table_key: str
    rows: int
    run_id: str
    at: int


class RefusedTable(NamedTuple):
    """A new table for which there was no room; its lines are in quarantine."""

    table_key: str
    lines: int
    runs: int  # in which it was refused
    at: int  # when it was refused last


class Decisions(NamedTuple):
    """What a run changes. Recording it twice has no further effect."""

    dropped: list[DroppedTable] = []  # noqa: RUF012 # nobody changes it
    allowed: list[str] = []  # noqa: RUF012 # keys of tables whose rules are taken away
    refused: list[RefusedTable] | None = None  # all that are remembered from now on; None if that stays as it is


class Admission:
    def __init__(self, engine: sa.Engine, lake: str) -> None:
        self._engine = engine
        self._lake = lake

    def dropped(self, source_id: str) -> list[DroppedTable]:
        return [DroppedTable(**row) for row in self._select(db.dropped_tables, source_id)]

    def refused(self, source_id: str) -> list[RefusedTable]:
        return [RefusedTable(**row) for row in self._select(db.refused_tables, source_id)]

    def _select(self, table: sa.Table, source_id: str) -> list[dict[str, Any]]:
        fields = [column for column in table.c if column.name not in ("lake", "source_id")]
        query = sa.select(*fields).where(*_of(table, self._lake, source_id)).order_by(table.c.table_key)
        with self._engine.connect() as connection:
            return [dict(row._mapping) for row in connection.execute(query)]


def _of(table: sa.Table, lake: str, source_id: str) -> tuple[sa.ColumnElement[bool], ...]:
    return table.c.lake == lake, table.c.source_id == source_id


def record(connection: sa.Connection, lake: str, source_id: str, decisions: Decisions) -> None:
    """Make a run's decisions the truth, as part of what else it changes."""
    of_source = {"lake": lake, "source_id": source_id}
    rules, refused = db.dropped_tables, db.refused_tables
    if decisions.allowed:
        old = [{"old": name} for name in decisions.allowed]
        ours = _of(rules, lake, source_id)
        connection.execute(rules.delete().where(*ours, rules.c.table_key == sa.bindparam("old")), old)
    db.upsert(connection, rules, [{**table._asdict(), **of_source} for table in decisions.dropped])
    if decisions.refused is not None:
        connection.execute(refused.delete().where(*_of(refused, lake, source_id)))
        db.upsert(connection, refused, [{**table._asdict(), **of_source} for table in decisions.refused])


def remembered(
    before: Iterable[RefusedTable], lines: Mapping[str, int], at: int, *, allowed: Collection[str] = ()
) -> list[RefusedTable]:
    """What is remembered after a run that refused some lines: first of all names that come again and again."""
    known = {table.table_key: table for table in before if table.table_key not in allowed}
    for name, count in lines.items():
        old = known.get(name)
        known[name] = RefusedTable(name, count + old.lines if old else count, old.runs + 1 if old else 1, at)
    ranked = sorted(known.values(), key=lambda table: (-table.runs, -table.lines, table.table_key))
    return ranked[:REMEMBERED]
