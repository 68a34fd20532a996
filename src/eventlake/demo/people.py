"""Who sends demo events: people who return, each with a device or an account of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from eventlake.demo import vocabulary as words

if TYPE_CHECKING:
    from collections.abc import Callable

    from eventlake.demo.dice import Dice

_encode = msgspec.json.Encoder().encode
_ACCOUNTS = 120


@dataclass(frozen=True, slots=True)
class Account:
    """A company that buys for its offices: what `group` calls are about."""

    group_id: str
    name: str
    traits: msgspec.Raw


@dataclass(frozen=True, slots=True)
class Person:
    """Someone who uses one of the apps; what stays the same from event to event is encoded once."""

    user_id: str
    anonymous_id: str | None
    signed_in: bool
    first_name: str
    last_name: str
    email: str
    account: Account
    traits: msgspec.Raw
    context_tail: bytes  # the members of `context` that belong to the person, up to its closing brace
    clock_skew_ms: int


def accounts(dice: Dice) -> list[Account]:
    return [_account(dice, number) for number in range(_ACCOUNTS)]


def web_visitors(dice: Dice, companies: list[Account], count: int) -> list[Person]:
    return [_person(dice, companies, _web_context, signed_in=0.45) for _ in range(count)]


def app_users(dice: Dice, companies: list[Account], count: int) -> list[Person]:
    return [_person(dice, companies, _ios_context, signed_in=0.75) for _ in range(count)]


def customers(dice: Dice, companies: list[Account], count: int) -> list[Person]:
    """Make the people the back end knows: always by their userId, never by a device."""
    return [_person(dice, companies, _server_context, signed_in=1.0, device=False) for _ in range(count)]


def _account(dice: Dice, number: int) -> Account:
    name = f"{dice.pick(words.COMPANY_NAMES)} {number + 1}"
    city = dice.pick(words.CITIES)
    traits = {
        "name": name,
        "industry": dice.pick(words.INDUSTRIES),
        "employees": dice.between(2, 900),
        "plan": dice.pick(words.PLANS),
        "createdAt": _past_day(dice),
        "website": f"https://account-{number + 1}.example",
        "total billed": dice.below(9_000_000) / 100,
        "address": {"city": city.name, "country": city.country},
    }
    return Account(f"acc_{dice.number(6)}", name, msgspec.Raw(_encode(traits)))


def _person(
    dice: Dice,
    companies: list[Account],
    context: Callable[[Dice, words.City, Account, str], dict[str, object]],
    *,
    signed_in: float,
    device: bool = True,
) -> Person:
    first, last, city = dice.pick(words.FIRST_NAMES), dice.pick(words.LAST_NAMES), dice.pick(words.CITIES)
    user_id = f"usr_{dice.number(8)}"
    email = f"{user_id}@mail.example"
    account = dice.pick(companies)
    traits = {
        "email": email,
        "firstName": first,
        "lastName": last,
        "age": dice.between(18, 79),
        "createdAt": _past_day(dice),
        "plan": dice.pick(words.PLANS),
        "newsletter": dice.chance(0.4),
        "lifetimeValue": dice.below(400_000) / 100,
        "address": {"city": city.name, "country": city.country, "postalCode": dice.number(5)},
        "company": {"id": account.group_id, "name": account.name},
    }
    return Person(
        user_id=user_id,
        anonymous_id=dice.uuid() if device else None,
        signed_in=dice.chance(signed_in),
        first_name=first,
        last_name=last,
        email=email,
        account=account,
        traits=msgspec.Raw(_encode(traits)),
        context_tail=_encode(context(dice, city, account, email))[1:],
        clock_skew_ms=_clock_skew(dice) if device else 0,
    )


def _web_context(dice: Dice, city: words.City, _account: Account, _email: str) -> dict[str, object]:
    browser = dice.pick(words.BROWSERS)
    context: dict[str, object] = {
        "userAgent": browser.user_agent,
        "locale": city.locale,
        "timezone": city.timezone,
        "library": {"name": "analytics.js", "version": "next-1.81.0"},
        "ip": _ip(dice),
    }
    if browser.brand:
        brands = [{"brand": browser.brand, "version": words.BROWSER_VERSION}]
        context["userAgentData"] = {"brands": brands, "mobile": browser.mobile, "platform": browser.platform}
    return context


def _ios_context(dice: Dice, city: words.City, _account: Account, _email: str) -> dict[str, object]:
    phone, (version, build) = dice.pick(words.PHONES), dice.pick(words.APP_VERSIONS)
    wifi, system = dice.chance(0.6), dice.pick(words.IOS_VERSIONS)
    return {
        "app": {"name": "Fern & Fold", "version": version, "build": build},
        "device": {
            "id": dice.uuid().upper(),
            "manufacturer": "Apple",
            "model": phone.model,
            "type": "ios",
        },
        "library": {"name": "analytics-swift", "version": "1.9.1"},
        "locale": city.locale,
        "location": {"city": city.name, "latitude": city.latitude, "longitude": city.longitude},
        "network": {"carrier": dice.pick(words.CARRIERS), "cellular": not wifi, "wifi": wifi},
        "os": {"name": "iOS", "version": system},
        "screen": {"width": phone.width, "height": phone.height, "density": 3},
        "timezone": city.timezone,
        "userAgent": f"Mozilla/5.0 (iPhone; CPU iPhone OS {system.replace('.', '_')} like Mac OS X)",
        "ip": _ip(dice),
    }


def _server_context(dice: Dice, city: words.City, account: Account, email: str) -> dict[str, object]:
    return {
        "library": {"name": "@segment/analytics-node", "version": "2.3.0"},
        "app": {"name": "orders-api", "version": "2026.10.3"},
        "groupId": account.group_id,
        "locale": city.locale,
        "timezone": city.timezone,
        "traits": {"email": email, "plan": dice.pick(words.PLANS), "role": dice.pick(words.ROLES)},
        "instance": {"region": "eu-central-1", "pod": f"orders-api-{dice.number(5)}"},
    }


def _ip(dice: Dice) -> str:
    return f"{dice.pick(('192.0.2', '198.51.100', '203.0.113'))}.{dice.between(1, 254)}"  # kept for examples


def _past_day(dice: Dice) -> str:
    year, month, day = dice.between(2021, 2025), dice.between(1, 12), dice.between(1, 28)
    return f"{year}-{month:02d}-{day:02d}T{dice.below(24):02d}:30:00.000Z"


def _clock_skew(dice: Dice) -> int:
    """Most devices are within two seconds of the truth, one in fifty is off by up to a day."""
    limit = 86_400_000 if dice.chance(0.02) else 2_000
    return dice.between(-limit, limit)
