"""Makes single demo events: who calls what, from which app, with which clock."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import msgspec

from eventlake.demo.apps import IOS, SERVER, WEB, App, AppName, Visit, all_apps
from eventlake.demo.tracks import TrackMix

if TYPE_CHECKING:
    from eventlake.demo.dice import Dice
    from eventlake.demo.faults import Event
    from eventlake.demo.people import Person

Call = Literal["page", "track", "identify", "screen", "group", "alias"]

# Percent of the calls; which app a track call comes from depends on its event.
_SHARES: tuple[tuple[int, Call, AppName], ...] = (
    (35, "page", WEB),
    (45, "track", WEB),
    (4, "identify", WEB),
    (3, "identify", IOS),
    (2, "identify", SERVER),
    (8, "screen", IOS),
    (1, "group", WEB),
    (1, "group", SERVER),
    (1, "alias", WEB),
)
_CALLS = [(call, app) for percent, call, app in _SHARES for _ in range(percent)]
_EVENTS_PER_PERSON = 25
_MOST_PEOPLE = 20_000
_SECONDS = tuple(f":{number:02d}" for number in range(60))
_MILLISECONDS = tuple(f".{number:03d}Z" for number in range(1000))


class EventMaker:
    """Makes one event after the other, of `events` in all; who did what depends on the dice alone."""

    def __init__(self, dice: Dice, *, events: int, track_types: int, project_id: str) -> None:
        self._dice = dice
        self._apps = all_apps(dice, population=min(_MOST_PEOPLE, 50 + events // _EVENTS_PER_PERSON))
        self._tracks = TrackMix(track_types)
        self._project_id = project_id

    def make_event(self, received_ms: int) -> tuple[Event, int]:
        """Make the event received at this time, and tell when its sender's clock says it was sent."""
        dice = self._dice
        call, app_name = dice.pick(_CALLS)
        track = self._tracks.draw(dice) if call == "track" else None
        app = self._apps[track.app if track else app_name]
        # A product of two, so that some people come often and most come rarely.
        person = app.people[int(dice.random() * dice.random() * len(app.people))]
        visit = dice.pick(app.visits)
        sent_ms = received_ms - dice.between(15, 400) + person.clock_skew_ms
        waited_ms = _wait(app, dice)
        event = self._envelope(call, app, person, visit)
        if track:
            event["event"] = track.event
            event["properties"] = track.properties(dice, person)
        event["messageId"] = _message_id(app, sent_ms - waited_ms, dice)
        event["originalTimestamp"] = iso(sent_ms - waited_ms)
        event["sentAt"] = iso(sent_ms)
        event["timestamp"] = iso(received_ms - waited_ms)  # without the skew of the sender's clock
        event["receivedAt"] = iso(received_ms)
        return event, sent_ms

    def _envelope(self, call: Call, app: App, person: Person, visit: Visit) -> Event:
        event: Event = {
            "type": call,
            "channel": app.channel,
            "version": 2,
            "projectId": self._project_id,
            "anonymousId": person.anonymous_id,
            "userId": person.user_id if person.signed_in else None,
            "context": msgspec.Raw(visit.context_head + person.context_tail),
            "integrations": app.integrations,
            "_metadata": app.metadata,
        }
        match call:
            case "page" | "screen":
                event["name"] = visit.name
                event["properties"] = visit.properties
                if visit.category:
                    event["category"] = visit.category
            case "identify":
                event["userId"] = person.user_id
                event["traits"] = person.traits
            case "group":
                event["userId"] = person.user_id
                event["groupId"] = person.account.group_id
                event["traits"] = person.account.traits
            case "alias":
                event["userId"] = person.user_id
                event["previousId"] = person.anonymous_id
            case "track":
                pass  # its event and properties are drawn, not known from the visit
        return event


def _wait(app: App, dice: Dice) -> int:
    """Tell how long a call waits to be sent: moments, or hours on a phone without a network."""
    if dice.chance(app.offline_share):
        return dice.between(600_000, 8 * 3_600_000)
    return 5 + int(dice.random() * dice.random() * dice.random() * app.longest_wait_ms)


def _message_id(app: App, called_ms: int, dice: Dice) -> str:
    if app.message_id_prefix is None:
        return dice.uuid().upper()
    return f"{app.message_id_prefix}{called_ms}-{dice.uuid()}"


def iso(time_ms: int) -> str:
    return _minute(time_ms // 60_000) + _SECONDS[time_ms // 1000 % 60] + _MILLISECONDS[time_ms % 1000]


@lru_cache(maxsize=10_000)
def _minute(number: int) -> str:
    return datetime.fromtimestamp(number * 60, UTC).isoformat()[:16]
