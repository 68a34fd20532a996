"""Looks at runs that ended and at what did not come, notes what people should be told, and tells them."""

from collections.abc import Iterator
from typing import NamedTuple

from eventlake.alerts import channels, rules
from eventlake.alerts.rules import About
from eventlake.control.alerts import Alert, Alerts, Kind, Subscription
from eventlake.control.run_lines import STOPPED, RunLine
from eventlake.timetable import DAY, MINUTE
from eventlake.workspace import Workspace

_LOOK_BACK = DAY  # at the first look: what was told before is not told again
_OVERLAP = 6 * 60 * MINUTE
_PATIENCE = 6 * 60 * MINUTE  # with syncs that began on the day before
_SHARES = (Kind.RESCUED, Kind.QUARANTINED, Kind.BLOCKED)
CONSOLE = ""  # the channel of those who look at the console: nothing is delivered to it


class _Wish(NamedTuple):
    """Somebody wants to be told of something; without a source, of all."""

    kind: Kind
    source_id: str | None
    channel: str
    threshold: float


class Watch:
    def __init__(self, place: Workspace) -> None:
        self._place = place
        self._alerts: Alerts = place.alerts
        self._looked_until = place.clock.now() - _LOOK_BACK
        self._seen: set[str] = set()  # runs that were looked at, as far back as looks go
        self._day_told: int | None = None

    def look(self) -> int:
        """Note what is to be told; how many things that were."""
        now = self._place.clock.now()
        names = {(one.source.id, one.lake): one.name for one in self._place.connections.all() if one.enabled}
        wishes = [_Wish(kind, None, CONSOLE, kind.threshold or 0) for kind in Kind]
        wishes += [_wish(one) for one in self._alerts.subscriptions()]
        found, seen = 0, set(self._seen)
        for wish, alert in [*self._of_runs(names, wishes, seen), *self._of_connections(names, wishes, now)]:
            if alert is not None:
                found += not self._alerts.is_known(alert.id)
                self._alerts.add(alert._replace(at=now), [wish.channel] if wish.channel else [])
        # Only now: what could not be noted is found again by the next look.
        self._seen, self._looked_until, self._day_told = seen, now, self._day_to_tell(now)
        return found

    def deliver(self) -> int:
        """Tell people what is to be told now; how many attempts that took."""
        attempts = 0
        while (claimed := self._alerts.claim()) is not None:
            alert, delivery = claimed
            attempts += 1
            channel = self._place.settings.channels.get(delivery.channel)
            if channel is None:
                self._alerts.delivered(delivery, "eventlake.toml has no such channel any more")
                continue
            try:
                channels.send(channel, alert, self._place.settings.console.url)
                self._alerts.delivered(delivery)
            except channels.NotDeliveredError as error:
                self._alerts.delivered(delivery, str(error))
        return attempts

    def _of_runs(
        self, names: dict[tuple[str, str], str], wishes: list[_Wish], seen: set[str]
    ) -> Iterator[tuple[_Wish, Alert | None]]:
        # A run may be noted as ended long after the moment that it says, if its commit took long.
        ended = self._place.runs.ended_after(self._looked_until - _OVERLAP)
        seen.intersection_update(run.run_id for run in ended)
        for run in ended:
            if run.run_id in seen:
                continue
            seen.add(run.run_id)
            if run.kind != "sync" or (run.source_id, run.lake) not in names:
                continue
            about = About(run.source_id, run.lake, names[run.source_id, run.lake])
            failures = self._place.runs.failures_until(run)
            for wish in wishes:
                if wish.source_id in (None, run.source_id):
                    yield wish, _of_run(wish, about, run, failures)

    def _of_connections(
        self, names: dict[tuple[str, str], str], wishes: list[_Wish], now: int
    ) -> Iterator[tuple[_Wish, Alert | None]]:
        loaded = self._place.runs.last_loaded()
        for (source_id, lake), name in names.items():
            about = About(source_id, lake, name)
            for wish in wishes:
                if wish.source_id not in (None, source_id):
                    continue
                if wish.kind is Kind.NO_DATA and (source_id, lake) in loaded:
                    yield wish, rules.no_data(about, loaded[source_id, lake], now, wish.threshold)
        day = self._day_to_tell(now)
        if day != self._day_told:
            yield from self._of_yesterday(names, wishes, day)

    def _day_to_tell(self, now: int) -> int:
        """The last day that is over, and whose syncs are: one that began before midnight may still be going on."""
        today = now // DAY
        going_on = [run for run in self._place.runs.lines(None, status="running") if run.started_at < today * DAY]
        return today - 2 if going_on and now < today * DAY + _PATIENCE else today - 1

    def _of_yesterday(
        self, names: dict[tuple[str, str], str], wishes: list[_Wish], day: int
    ) -> Iterator[tuple[_Wish, Alert | None]]:
        """What is told once a day, of a day that is over."""
        history = self._place.runs
        rows = {key[1:]: one.loaded for key, one in history.counts(day * DAY, (day + 1) * DAY, per=DAY).items()}
        week_before = {
            key[1:]: one.loaded for key, one in history.counts((day - 7) * DAY, (day - 6) * DAY, per=DAY).items()
        }
        for (source_id, lake), name in names.items():
            about = About(source_id, lake, name)
            reports = None
            for wish in wishes:
                if wish.source_id not in (None, source_id):
                    continue
                if wish.kind is Kind.VOLUME:
                    before = week_before.get((source_id, lake), 0)
                    yield wish, rules.volume(about, day, rows.get((source_id, lake), 0), before, wish.threshold)
                if wish.kind is Kind.NEW_COLUMNS and rows.get((source_id, lake)):
                    if reports is None:
                        runs = self._place.lake(lake).runs.begun_between(source_id, day * DAY, (day + 1) * DAY)
                        reports = [run.report for run in runs if run.report and run.status == "finished"]
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
