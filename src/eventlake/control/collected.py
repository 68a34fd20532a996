"""How many events collectors took, by source and hour.

A collector counts from the day it was set up, so what is stored is how far it had counted by the end of an hour:
writing that again changes nothing. What came in an hour is the difference to the hour before.
"""

from typing import NamedTuple

import sqlalchemy as sa

from eventlake.control import database as db
from eventlake.control import service_tables as tables
from eventlake.timetable import MINUTE

HOUR = 60 * MINUTE
_KEPT = 35 * 24 * HOUR
_NOBODY = ""  # marks that a place has begun, if it has counted nothing yet


class Taken(NamedTuple):
    accepted: int = 0
    refused: int = 0
    copies: int = 0  # of those accepted, left out of the archive: their message came in the day before

    def plus(self, other: "Taken") -> "Taken":
        return Taken(*(one + more for one, more in zip(self, other, strict=True)))

    def minus(self, other: "Taken") -> "Taken":
        return Taken(*(max(0, one - less) for one, less in zip(self, other, strict=True)))


class Collected:
    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def begin(self, place: str, now: int, totals: dict[str, Taken]) -> None:
        """A collector begins to write down how far it has counted: what it counted before came nobody knows when."""
        with self._engine.connect() as connection:
            if connection.execute(sa.select(sa.exists().where(tables.collected.c.place == place))).scalar():
                return
        self.note(place, now - HOUR, {_NOBODY: Taken(), **totals})

    def note(self, place: str, now: int, totals: dict[str, Taken]) -> None:
        """How far the collector of a place has counted by now; source id → totals."""
        hour = now // HOUR * HOUR
        rows = [{"place": place, "source_id": key, "hour": hour, **one._asdict()} for key, one in totals.items()]
        with self._engine.begin() as connection:
            db.upsert(connection, tables.collected, rows)
            self._forget_old(connection, hour - _KEPT)

    def _forget_old(self, connection: sa.Connection, before: int) -> None:
        """Of hours that nobody asks about any more, only the last is needed: the next is counted from there."""
        table, later = tables.collected.c, tables.collected.alias()
        same = sa.and_(later.c.place == table.place, later.c.source_id == table.source_id)
        newer = sa.exists().where(same, later.c.hour > table.hour, later.c.hour <= before)
        connection.execute(tables.collected.delete().where(table.hour <= before, newer))

    def between(self, start: int, stop: int, source_id: str | None = None) -> dict[str, Taken]:
        """What came in [start, stop), of full hours; source id → sums over all places."""
        last, first = self._totals(stop - 1, source_id), self._totals(start - 1, source_id)
        sums: dict[str, Taken] = {}
        for (place, source), total in last.items():
            if source == _NOBODY:
                continue
            came = total.minus(first.get((place, source), Taken()))
            sums[source] = sums.get(source, Taken()).plus(came)
        return sums

    def _totals(self, until: int, source_id: str | None) -> dict[tuple[str, str], Taken]:
        """How far each collector had counted by the end of the hour in which a moment is."""
        table = tables.collected.c
        wanted = [table.hour <= until // HOUR * HOUR, *([table.source_id == source_id] if source_id else [])]
        newest = sa.select(table.place, table.source_id, sa.func.max(table.hour).label("hour")).where(*wanted)
        last = newest.group_by(table.place, table.source_id).subquery()
        on = sa.and_(table.place == last.c.place, table.source_id == last.c.source_id, table.hour == last.c.hour)
        query = sa.select(table.place, table.source_id, table.accepted, table.refused, table.copies)
        with self._engine.connect() as connection:
            rows = connection.execute(query.select_from(sa.join(tables.collected, last, on))).all()
        return {(row.place, row.source_id): Taken(row.accepted, row.refused, row.copies) for row in rows}
