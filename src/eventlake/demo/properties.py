"""Properties of the track events that are not about shopping: the app's life, mail, accounts, features."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eventlake.demo import vocabulary as words
from eventlake.demo.shop import CATALOGUE, short_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from eventlake.demo.dice import Dice
    from eventlake.demo.people import Person

Properties = dict[str, object]


def nothing(_dice: Dice, _person: Person) -> Properties:
    return {}


def experiment(dice: Dice, _person: Person) -> Properties:
    index, variation = dice.below(len(words.EXPERIMENTS)), dice.below(2)
    return {
        "experiment_id": f"exp_{index + 1}",
        "experiment_name": words.EXPERIMENTS[index],
        "variation_id": f"exp_{index + 1}_{variation}",
        "variation_name": ("Control", "New")[variation],
    }


def email(dice: Dice, _person: Person) -> Properties:
    index = dice.below(len(words.EMAILS))
    return {
        "email_id": dice.uuid(),
        "email_subject": words.EMAILS[index],
        "campaign_id": f"mail_{index + 1}",
        "campaign_name": words.EMAILS[index].lower(),
    }


def email_link(dice: Dice, person: Person) -> Properties:
    return {**email(dice, person), "link_id": short_id(dice), "link_url": dice.pick(CATALOGUE)["url"]}


def app_version(dice: Dice, _person: Person) -> Properties:
    version, build = dice.pick(words.APP_VERSIONS)
    return {"version": version, "build": build}


def app_opened(dice: Dice, person: Person) -> Properties:
    return {**app_version(dice, person), "from_background": dice.chance(0.7)}


def app_updated(dice: Dice, person: Person) -> Properties:
    return {**app_version(dice, person), "previous_version": "4.10.0", "previous_build": "1164"}


def push(dice: Dice, _person: Person) -> Properties:
    return {
        "action": dice.pick(("Open", "Dismiss", "Snooze")),
        "campaign": {"name": "Back in stock", "medium": "Push", "content": "It is back", "source": "crm"},
    }


def deep_link(dice: Dice, _person: Person) -> Properties:
    return {"provider": "branch", "url": f"fernfold://product/{dice.pick(CATALOGUE)['product_id']}"}


def attribution(dice: Dice, _person: Person) -> Properties:
    source, medium, name, content = dice.pick(words.CAMPAIGNS)
    campaign = {"source": source, "medium": medium, "name": name, "content": content}
    return {"provider": "adjust", "campaign": campaign | {"ad_group": "lookalike_1"}}


def username(_dice: Dice, person: Person) -> Properties:
    return {"username": person.email}


def signed_up(dice: Dice, person: Person) -> Properties:
    return {
        "type": dice.pick(("organic", "invited")),
        "first_name": person.first_name,
        "last_name": person.last_name,
        "email": person.email,
        "username": person.email,
        "title": "Office Manager",
    }


def account_name(_dice: Dice, person: Person) -> Properties:
    return {"account_name": person.account.name}


def role(dice: Dice, _person: Person) -> Properties:
    return {"role": dice.pick(words.ROLES)}


def invite(dice: Dice, person: Person) -> Properties:
    return {
        "invitee_email": f"colleague-of-{person.email}",
        "invitee_first_name": dice.pick(words.FIRST_NAMES),
        "invitee_last_name": dice.pick(words.LAST_NAMES),
        "invitee_role": dice.pick(words.ROLES),
    }


def trial(dice: Dice, _person: Person) -> Properties:
    day = dice.between(1, 28)
    return {
        "trial_start_date": f"2026-09-{day:02d}T00:00:00.000Z",
        "trial_end_date": f"2026-10-{day:02d}T00:00:00.000Z",
        "trial_plan_name": dice.pick(words.PLANS),
    }


_SUBJECTS = ("board", "report", "template", "export", "filter", "comment", "upload")
_VALUES: tuple[tuple[str, Callable[[Dice], object]], ...] = (
    ("count", lambda dice: dice.below(500)),
    ("duration_seconds", lambda dice: dice.below(90_000) / 100),
    ("enabled", lambda dice: dice.chance(0.5)),
    ("label", lambda dice: dice.pick(words.SEARCHES)),
    ("opened_at", lambda dice: f"2026-10-{dice.between(1, 28):02d}T{dice.below(24):02d}:15:00.000Z"),
)


def feature(number: int) -> Callable[[Dice, Person], Properties]:
    """Make the properties of the invented event of this number: six keys of its own, the same every time."""
    own = []
    for turn in range(6):
        kind, value = _VALUES[(number + turn) % len(_VALUES)]
        own.append((f"{_SUBJECTS[(number * (turn + 1)) % len(_SUBJECTS)]}_{kind}", value))

    def properties(dice: Dice, _person: Person) -> Properties:
        return {"feature_id": number} | {key: value(dice) for key, value in own}

    return properties
