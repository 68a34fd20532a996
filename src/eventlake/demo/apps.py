"""The three apps that send demo events, each with its people, its pages or screens, and its library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from eventlake.demo import people
from eventlake.demo import vocabulary as words
from eventlake.demo.shop import CATALOGUE

if TYPE_CHECKING:
    from eventlake.demo.dice import Dice

AppName = Literal["web", "ios", "server"]
WEB: Final[AppName] = "web"
IOS: Final[AppName] = "ios"
SERVER: Final[AppName] = "server"

_encode = msgspec.json.Encoder().encode
_VISITS = 400  # different page views; enough that no two users seem to walk the same way


@dataclass(frozen=True, slots=True)
class Visit:
    """A page or screen somebody looks at, with the part of `context` that tells of it, encoded once."""

    name: str
    category: str | None
    properties: msgspec.Raw
    context_head: bytes  # opens the object that the person's `context_tail` closes


@dataclass(frozen=True, slots=True)
class App:
    channel: str
    people: list[people.Person]
    visits: list[Visit]
    metadata: msgspec.Raw
    integrations: msgspec.Raw
    message_id_prefix: str | None  # before the time of the call; without one, ids are plain upper-case UUIDs
    longest_wait_ms: int  # between the call and its batch being sent
    offline_share: float  # of calls that wait for hours until the device is back on line


def all_apps(dice: Dice, population: int) -> dict[AppName, App]:
    """Make the apps with about so many people in all."""
    companies = people.accounts(dice)
    return {
        WEB: App(
            channel="client",
            people=people.web_visitors(dice, companies, 1 + population * 6 // 10),
            visits=[_page(dice) for _ in range(_VISITS)],
            metadata=msgspec.Raw(b'{"bundled":["Segment.io"],"unbundled":[]}'),
            integrations=msgspec.Raw(b'{"Segment.io":true}'),
            message_id_prefix="ajs-next-",
            longest_wait_ms=1_500,
            offline_share=0.0,
        ),
        IOS: App(
            channel="mobile",
            people=people.app_users(dice, companies, 1 + population * 3 // 10),
            visits=[_screen(name) for name in words.SCREENS],
            metadata=msgspec.Raw(b'{"bundled":[],"unbundled":["Firebase"]}'),
            integrations=msgspec.Raw(b'{"All":true,"Firebase":false}'),
            message_id_prefix=None,
            longest_wait_ms=30_000,
            offline_share=0.03,
        ),
        SERVER: App(
            channel="server",
            people=people.customers(dice, companies, 1 + population // 10),
            visits=[Visit("", None, msgspec.Raw(b"{}"), b"{")],
            metadata=msgspec.Raw(b'{"nodeVersion":"v22.20.0","jsRuntime":"node"}'),
            integrations=msgspec.Raw(b"{}"),
            message_id_prefix="node-next-",
            longest_wait_ms=10_000,
            offline_share=0.0,
        ),
    }


def _page(dice: Dice) -> Visit:
    name, category, path = dice.pick(words.PAGES)
    title = name
    if dice.chance(0.5):
        product = dice.pick(CATALOGUE)
        name, category, title = "Product", "Shop", str(product["name"])
        path = str(product["url"]).removeprefix(words.SHOP)
    search, campaign = "", None
    if path == "/search":
        search = f"?q={dice.pick(words.SEARCHES).replace(' ', '+')}"
    elif dice.chance(0.15):
        source, medium, campaign_name, content = dice.pick(words.CAMPAIGNS)
        campaign = {"source": source, "medium": medium, "name": campaign_name, "content": content}
        search = f"?utm_source={source}&utm_medium={medium}&utm_campaign={campaign_name}"
    page = {
        "path": path,
        "referrer": dice.pick(words.REFERRERS),
        "search": search,
        "title": f"{title} | Fern & Fold",
        "url": f"{words.SHOP}{path}{search}",
    }
    properties = {**page, "name": name} | ({"category": category} if category else {})
    context = {"page": page} | ({"campaign": campaign} if campaign else {})
    return Visit(name, category, msgspec.Raw(_encode(properties)), _encode(context)[:-1] + b",")


def _screen(name: str) -> Visit:
    properties = {"name": name, "orientation": "portrait", "dark_mode": len(name) % 2 == 0}
    return Visit(name, None, msgspec.Raw(_encode(properties)), b"{")
