"""What people were told of, who wants to be told of what, and what is still to be delivered."""

import uuid
from collections.abc import Callable, Collection, Iterable
from enum import StrEnum
from typing import NamedTuple

import sqlalchemy as sa

from eventlake.control import service_tables as tables
from eventlake.errors import InvalidSettingsError, NotFoundError
from eventlake.timetable import DAY, MINUTE

ATTEMPTS = 10  # to deliver an alert
_CLAIMED = 5 * MINUTE  # for one attempt; whoever dies in it leaves it to another
_LONGEST_PAUSE = 60 * MINUTE
_KEPT = 90 * DAY


class Kind(StrEnum):
    """What people can be told of. A threshold means what the description says."""

    SYNC_FAILED = "sync_failed"
    NO_DATA = "no_data"
    VOLUME = "volume"
    RESCUED = "rescued"
    QUARANTINED = "quarantined"
    BLOCKED = "blocked"
    NEW_COLUMNS = "new_columns"

    @property
    def description(self) -> str:
        return _KINDS[self][0]

    @property
    def threshold(self) -> float | None:
        """The default; None if there is nothing to choose."""
        return _KINDS[self][1]


_KINDS: dict[Kind, tuple[str, float | None]] = {
    Kind.SYNC_FAILED: ("A sync failed for the 1st, 5th or 20th time in a row, or works again.", None),
    Kind.NO_DATA: ("Nothing was loaded for this many hours.", 24),
    Kind.VOLUME: (
        "What came in a quarter of a day differs by more than this many percent from the same hours of last week.",
        50,
    ),
    Kind.RESCUED: ("A sync had more than this many values per hundred lines that did not fit their columns.", 5),
    Kind.QUARANTINED: ("More than this many percent of a sync's lines were not events.", 5),
    Kind.BLOCKED: ("More than this many percent of a sync's lines were blocked.", 5),
    Kind.NEW_COLUMNS: ("New tables and columns, once a day.", None),
}


class Message(NamedTuple):
    """What a channel delivers: an alert, or a sample of one, which has a kind that no alert has."""

    id: str
    at: int
    kind: str
    lake: str | None
    source_id: str | None
    subject: str
    body: str
    link: str


SAMPLE = "sample"


class Alert(NamedTuple):
    id: str  # made of what it is about: nothing is told twice
    at: int
    kind: Kind
    lake: str | None
    source_id: str | None
    subject: str
    body: str
    link: str  # a page of the console

    @property
    def message(self) -> Message:
        return Message(**self._asdict() | {"kind": self.kind.value})


class Subscription(NamedTuple):
    id: str
    kind: Kind
    source_id: str | None  # None: of all sources
    channel: str
    threshold: float | None
    created_at: int


class Delivery(NamedTuple):
    alert_id: str
    channel: str
    attempts: int
    next_at: int | None
    delivered_at: int | None
    problem: str | None


class Alerts:
    """`channels` are the names of those that the settings have."""

    def __init__(self, engine: sa.Engine, now: Callable[[], int], channels: Collection[str]) -> None:
        self._engine = engine
        self._now = now
        self._channels = channels

    def subscriptions(self) -> list[Subscription]:
        query = sa.select(tables.subscriptions).order_by(tables.subscriptions.c.created_at, tables.subscriptions.c.id)
        with self._engine.connect() as connection:
            return [Subscription(**row._mapping)._replace(kind=Kind(row.kind)) for row in connection.execute(query)]

    def subscribe(
        self, kind: Kind, channel: str, *, source_id: str | None = None, threshold: float | None = None
    ) -> Subscription:
        if channel not in self._channels:
            known = ", ".join(sorted(self._channels)) or "there is none yet"
            raise NotFoundError(
                f"there is no channel {channel!r}",
                fix=f"use one of: {known}; a new one gets a section [channels.NAME] in eventlake.toml",
            )
        if threshold is not None and (kind.threshold is None or not 0 < threshold <= 100_000):
            raise InvalidSettingsError(
                f"{threshold:g} is no threshold for {kind.value}",
                fix="leave it out" if kind.threshold is None else f"a number above 0, such as {kind.threshold:g}",
            )
        chosen = threshold if threshold is not None else kind.threshold
        for one in self.subscriptions():
            if (one.kind, one.channel, one.source_id, one.threshold) == (kind, channel, source_id, chosen):
                return one
        made = Subscription(uuid.uuid4().hex[:12], kind, source_id, channel, chosen, self._now())
        with self._engine.begin() as connection:
            connection.execute(tables.subscriptions.insert().values(made._asdict()))
        return made

    def unsubscribe(self, subscription_id: str) -> Subscription:
        found = next((one for one in self.subscriptions() if one.id == subscription_id), None)
        if found is None:
            raise NotFoundError(f"there is no subscription {subscription_id!r}", fix="see the list of subscriptions")
        with self._engine.begin() as connection:
            connection.execute(tables.subscriptions.delete().where(tables.subscriptions.c.id == subscription_id))
        return found

    def latest(self, limit: int = 100, *, source_id: str | None = None) -> list[Alert]:
        """Newest first."""
        wanted = [tables.alerts.c.source_id == source_id] if source_id else []
        query = (
            sa.select(tables.alerts).where(*wanted).order_by(tables.alerts.c.at.desc(), tables.alerts.c.id).limit(limit)
        )
        with self._engine.connect() as connection:
            return [_alert(row) for row in connection.execute(query)]

    def deliveries(self, alert_ids: Iterable[str]) -> list[Delivery]:
        query = sa.select(tables.deliveries).where(tables.deliveries.c.alert_id.in_(list(alert_ids)))
        with self._engine.connect() as connection:
            return [Delivery(**row._mapping) for row in connection.execute(query)]

    def is_known(self, alert_id: str) -> bool:
        with self._engine.connect() as connection:
            return bool(connection.scalar(sa.select(sa.exists().where(tables.alerts.c.id == alert_id))))

    def add(self, alert: Alert, channels: Iterable[str]) -> None:
        """Note an alert, and that these channels are to be told; what is noted already is left as it is."""
        with self._engine.begin() as connection:
            old = sa.select(tables.alerts.c.id).where(tables.alerts.c.at < self._now() - _KEPT)
            connection.execute(tables.deliveries.delete().where(tables.deliveries.c.alert_id.in_(old)))
            connection.execute(tables.alerts.delete().where(tables.alerts.c.at < self._now() - _KEPT))
            _insert_unless_there(connection, tables.alerts, alert._asdict())
            for channel in channels:
                row = {"alert_id": alert.id, "channel": channel, "attempts": 0, "next_at": self._now()}
                _insert_unless_there(connection, tables.deliveries, row)

    def claim(self) -> tuple[Alert, Delivery] | None:
        """One alert that is to be delivered now; whoever gets it has some minutes to do it."""
        due = sa.select(tables.deliveries).where(tables.deliveries.c.next_at <= self._now())
        with self._engine.begin() as connection:
            for row in connection.execute(due.order_by(tables.deliveries.c.next_at).limit(20)).all():
                here = _of(Delivery(**row._mapping))
                claimed = connection.execute(
                    tables.deliveries.update()
                    .where(here, tables.deliveries.c.next_at == row.next_at)
                    .values(next_at=self._now() + _CLAIMED, attempts=row.attempts + 1)
                )
                alert = connection.execute(sa.select(tables.alerts).where(tables.alerts.c.id == row.alert_id)).first()
                if claimed.rowcount == 1 and alert is not None:
                    return _alert(alert), Delivery(**row._mapping)._replace(attempts=row.attempts + 1)
        return None

    def delivered(self, delivery: Delivery, problem: str | None = None) -> None:
        """What came of an attempt. One that failed is made again, after a pause that grows."""
        pause = min(MINUTE << (delivery.attempts - 1), _LONGEST_PAUSE)
        values: dict[str, object] = {"problem": problem, "next_at": None}
        if problem is None:
            values |= {"delivered_at": self._now()}
        elif delivery.attempts < ATTEMPTS:
            values |= {"next_at": self._now() + pause}
        with self._engine.begin() as connection:
            connection.execute(tables.deliveries.update().where(_of(delivery)).values(values))


def _of(delivery: Delivery) -> sa.ColumnElement[bool]:
    table = tables.deliveries.c
    return sa.and_(table.alert_id == delivery.alert_id, table.channel == delivery.channel)


def _alert(row: sa.Row[tuple[object, ...]]) -> Alert:
    found = Alert(**row._mapping)
    return found._replace(kind=Kind(found.kind))


def _insert_unless_there(connection: sa.Connection, table: sa.Table, row: dict[str, object]) -> None:
    """Also if another does the same at this moment."""
    here = sa.and_(*(column == row[column.name] for column in table.primary_key.columns))
    values = sa.select(*(sa.literal(value, table.c[name].type) for name, value in row.items()))
    query = table.insert().from_select(list(row), values.where(sa.not_(sa.exists().where(here))))
    with connection.begin_nested() as attempt:
        try:
            connection.execute(query)
        except sa.exc.IntegrityError:
            attempt.rollback()
