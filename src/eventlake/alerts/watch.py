"""Looks at runs that ended and at what did not come, notes what people should be told, and tells them."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from eventlake.alerts import channels, rules
from eventlake.alerts.rules import About
from eventlake.control.alerts import Alert, Alerts, Kind, Subscription
from eventlake.control.connections import Connection
from eventlake.control.due import is_awaited
from eventlake.control.ledger import Ledger
from eventlake.control.run_lines import STOPPED, LastLoaded, RunLine
from eventlake.timetable import DAY, MINUTE
from eventlake.workspace import Workspace

_LOOK_BACK = DAY  # at the first look: what was told before is not told again
_OVERLAP = 6 * 60 * MINUTE
_PATIENCE = 6 * 60 * MINUTE  # with syncs that began on the day before
_SHARES = (Kind.RESCUED, Kind.QUARANTINED, Kind.BLOCKED)
_COLLECTS = 8 * DAY  # a source of which a collector took nothing for so long has its events from elsewhere
CONSOLE = ""  # the channel of those who look at the console: nothing is delivered to it


Key = tuple[str, str]
"""Source id and lake."""


class _Wish(NamedTuple):
    """Somebody wants to be told of something; without a source, of all."""

    kind: Kind
    source_id: str | None
    channel: str
    threshold: float


class Watch:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._alerts: Alerts = workspace.alerts
        self._looked_until = workspace.clock.now() - _LOOK_BACK
        self._seen: set[str] = set()  # runs that were looked at, as far back as looks go
        self._day_told: int | None = None
        self._compared: dict[Key, int] = {}  # until when what came was compared with the week before

    def look(self) -> int:
        """Note what is to be told; how many things that were."""
        now = self._workspace.clock.now()
        connections = {(one.source.id, one.lake): one for one in self._workspace.connections.all() if one.enabled}
        names = {key: one.name for key, one in connections.items()}
        wishes = [_Wish(kind, None, CONSOLE, kind.threshold or 0) for kind in Kind]
        wishes += [_wish(one) for one in self._alerts.subscriptions()]
        found, seen, compared = 0, set(self._seen), dict(self._compared)
        told = [*self._of_runs(names, wishes, seen, compared), *self._of_connections(connections, wishes, now)]
        if (day := self._day_to_tell(now)) != self._day_told:
            told += self._of_a_day(names, wishes, day)
        for wish, alert in told:
            if alert is not None:
                found += not self._alerts.is_known(alert.id)
                self._alerts.add(alert._replace(at=now), [wish.channel] if wish.channel else [])
        # Only now: what could not be noted is found again by the next look.
        self._seen, self._compared, self._looked_until, self._day_told = seen, compared, now, day
        return found

    def deliver(self) -> int:
        """Tell people what is to be told now; how many attempts that took."""
        attempts = 0
        while (claimed := self._alerts.claim()) is not None:
            alert, delivery = claimed
            attempts += 1
            channel = self._workspace.settings.channels.get(delivery.channel)
            if channel is None:
                self._alerts.delivered(delivery, "eventlake.toml has no such channel any more")
                continue
            try:
                channels.send(channel, alert.message, self._workspace.settings.console.url)
                self._alerts.delivered(delivery)
            except channels.NotDeliveredError as error:
                self._alerts.delivered(delivery, str(error))
        return attempts

    def _of_runs(
        self, names: Mapping[Key, str], wishes: list[_Wish], seen: set[str], compared: dict[Key, int]
    ) -> Iterator[tuple[_Wish, Alert | None]]:
        # A run may be noted as ended long after the moment that it says, if its commit took long.
        ended = self._workspace.runs.ended_after(self._looked_until - _OVERLAP)
        seen.intersection_update(run.run_id for run in ended)
        for run in ended:
            if run.run_id in seen:
                continue
            seen.add(run.run_id)
            if run.kind != "sync" or (run.source_id, run.lake) not in names:
                continue
            about = About(run.source_id, run.lake, names[run.source_id, run.lake])
            failures = self._workspace.runs.failures_until(run)
            for wish in wishes:
                if wish.source_id in (None, run.source_id):
                    yield wish, _of_run(wish, about, run, failures)
            if run.status == "finished":
                yield from self._volume(about, run, wishes, compared)

    def _volume(
        self, about: About, run: RunLine, wishes: list[_Wish], compared: dict[Key, int]
    ) -> Iterator[tuple[_Wish, Alert | None]]:
        """Of each quarter of a day of which all is loaded by a sync that finished: was it like a week before?"""
        key, step = (about.source_id, about.lake), rules.VOLUME_OF
        ledger = Ledger(self._workspace.engine, about.lake)  # also of a lake that cannot be used at the moment
        if compared.get(key, 0) >= run.started_at // step * step:
            return
        until = run.started_at
        if not self._is_collected(about.source_id, until):  # it comes late, nobody here knows how late
            until = min(until, ledger.last_received(about.source_id) or 0)
        end = until // step * step
        for start in range(max(compared.get(key, 0), end - _LOOK_BACK), end, step):
            rows, before = (ledger.loaded_between(about.source_id, at, at + step) for at in (start, start - 7 * DAY))
            for wish in wishes:
                if wish.kind is Kind.VOLUME and wish.source_id in (None, about.source_id):
                    yield wish, rules.volume(about, start, rows, before, wish.threshold)
        compared[key] = max(compared.get(key, 0), end)

    def _is_collected(self, source_id: str, now: int) -> bool:
        taken = self._workspace.collected.between(now - _COLLECTS, now, source_id).get(source_id)
        return taken is not None and taken.accepted > 0

    def _of_connections(
        self, connections: Mapping[Key, Connection], wishes: list[_Wish], now: int
    ) -> Iterator[tuple[_Wish, Alert | None]]:
        last_loaded, last_sync = self._workspace.runs.last_loaded(), self._workspace.runs.last_of_each()
        for key, connection in connections.items():
            about, last = About(*key, connection.name), last_loaded.get(key)
            for wish in wishes:
                if wish.kind is Kind.NO_DATA and wish.source_id in (None, key[0]) and last is not None:
                    alert = rules.no_data(about, last, now, wish.threshold)
                    is_told = alert is not None and not self._is_awaited(
                        connection, last, last_sync.get(key), wish, now
                    )
                    yield wish, alert if is_told else None

    def _is_awaited(
        self, connection: Connection, since: LastLoaded, last: RunLine | None, wish: _Wish, now: int
    ) -> bool:
        failures = self._workspace.runs.failures_until(last) + 1 if last and last.status == "failed" else 0
        patience = int(wish.threshold * rules.HOUR)
        return is_awaited(connection.settings.timetable, now, since.at, last, failures=failures, patience=patience)

    def _day_to_tell(self, now: int) -> int:
        """The last day that is over, and whose syncs are: one that began before midnight may still be going on."""
        today = now // DAY
        going_on = [run for run in self._workspace.runs.lines(None, status="running") if run.started_at < today * DAY]
        return today - 2 if going_on and now < today * DAY + _PATIENCE else today - 1

    def _of_a_day(
        self, names: Mapping[Key, str], wishes: list[_Wish], day: int
    ) -> Iterator[tuple[_Wish, Alert | None]]:
        """What is told once a day, of a day that is over."""
        counts = self._workspace.runs.counts(day * DAY, (day + 1) * DAY, per=DAY)
        for source_id, lake in (key[1:] for key, one in counts.items() if one.loaded):
            wanted = [wish for wish in wishes if wish.kind is Kind.NEW_COLUMNS and wish.source_id in (None, source_id)]
            if (source_id, lake) in names:
                runs = self._workspace.runs.begun_between(source_id, day * DAY, (day + 1) * DAY)
                ended = [run for run in runs if run.lake == lake and run.status == "finished"]
                reports = [run.report for run in ended if run.report]
                about = About(source_id, lake, names[source_id, lake])
                for wish in wanted:
                    yield wish, rules.new_columns(about, day, reports)


def _of_run(wish: _Wish, about: About, run: RunLine, failures: int) -> Alert | None:
    if wish.kind is Kind.SYNC_FAILED:
        if run.status == "failed":
            return None if run.error_code in STOPPED else rules.sync_failed(about, run, failures + 1)
        return rules.recovered(about, run, failures)
    if wish.kind in _SHARES and run.status == "finished":
        return rules.share(wish.kind, about, run.run_id, run.counts, wish.threshold)
    return None


def _wish(subscription: Subscription) -> _Wish:
    return _Wish(subscription.kind, subscription.source_id, subscription.channel, subscription.threshold or 0)
