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

    def note(self, place: str, now: int, totals: dict[str, Taken]) -> None:
        """How far the collector of a place has counted by now; source id → totals."""
        hour = now // HOUR * HOUR
        with self._engine.begin() as connection:
            known = sa.select(sa.exists().where(tables.collected.c.place == place))
            if not connection.execute(known).scalar():  # it counted before anybody wrote that down: nobody knows when
                hour -= HOUR
            rows = [{"place": place, "source_id": key, "hour": hour, **one._asdict()} for key, one in totals.items()]
            db.upsert(connection, tables.collected, rows)

    def between(self, start: int, stop: int, source_id: str | None = None) -> dict[str, Taken]:
        """What came in [start, stop), of full hours; source id → sums over all places."""
        last, first = self._totals(stop - 1, source_id), self._totals(start - 1, source_id)
        sums: dict[str, Taken] = {}
        for (place, source), total in last.items():
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
