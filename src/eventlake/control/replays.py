"""Replays that are under way, part by part, so that one which was interrupted can go on where it ended."""

from typing import NamedTuple

import sqlalchemy as sa

from eventlake.control import database as db


class PendingReplay(NamedTuple):
    """What was asked for, and what is left of it. A connection has one at most."""

    source_id: str
    asked_from: int | None
    asked_to: int | None
    start: int  # of what is left
    table_keys: list[str] | None
    parts: int
    done: int


class Replays:
    """The replays of a lake that are not finished."""

    def __init__(self, engine: sa.Engine, lake: str) -> None:
        self._engine = engine
        self._lake = lake

    def pending(self, source_id: str) -> PendingReplay | None:
        columns = [column for column in db.replays.c if column.name != "lake"]
        with self._engine.connect() as connection:
            found = connection.execute(sa.select(*columns).where(self._here(source_id))).first()
        return PendingReplay(**found._mapping) if found else None

    def put(self, replay: PendingReplay) -> None:
        """Note a replay that begins, in place of any other, or how far it is."""
        with self._engine.begin() as connection:
            db.upsert(connection, db.replays, [{"lake": self._lake, **replay._asdict()}])

    def finished(self, source_id: str) -> None:
        with self._engine.begin() as connection:
            connection.execute(db.replays.delete().where(self._here(source_id)))

    def _here(self, source_id: str) -> sa.ColumnElement[bool]:
        return sa.and_(db.replays.c.lake == self._lake, db.replays.c.source_id == source_id)
