"""Products and properties of the shop's track events, as the ecommerce spec names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from eventlake.demo import vocabulary as words

if TYPE_CHECKING:
    from eventlake.demo.dice import Dice
    from eventlake.demo.people import Person

Properties = dict[str, object]


def _catalogue() -> list[dict[str, str | float]]:
    products: list[dict[str, str | float]] = []
    for number, (category, name, cents) in enumerate(words.PRODUCTS):
        for turn, variant in enumerate(words.VARIANTS):
            path = f"{name.lower().replace(' ', '-')}-{variant}"
            product: dict[str, str | float] = {
                "product_id": f"{1000 + 7 * number + 211 * turn}",
                "sku": f"FF-{category[:2].upper()}-{number:02d}{turn}",
                "category": category,
                "name": name,
                "brand": words.BRANDS[(number + turn) % len(words.BRANDS)],
                "variant": variant,
                "price": cents / 100,
                "url": f"{words.SHOP}/p/{path}",
            }
            products.append(product)
    return products


CATALOGUE = _catalogue()
# Members of a products array, encoded once: they are most of the bytes of a shop's events.
_ITEM_KEYS = ("product_id", "sku", "name", "price", "category")
_ITEMS = [
    msgspec.Raw(msgspec.json.encode({key: item[key] for key in _ITEM_KEYS} | {"quantity": 1 + index % 3}))
    for index, item in enumerate(CATALOGUE)
]


def product(dice: Dice, _person: Person) -> Properties:
    return {**dice.pick(CATALOGUE), "position": dice.between(1, 24)}


def product_viewed(dice: Dice, _person: Person) -> Properties:
    chosen = dice.pick(CATALOGUE)
    return {**chosen, "currency": dice.pick(words.CURRENCIES), "value": chosen["price"], "quantity": 1}


def cart_product(dice: Dice, _person: Person) -> Properties:
    return {"cart_id": short_id(dice), **dice.pick(CATALOGUE), "quantity": dice.between(1, 4)}


def wishlist_product(dice: Dice, _person: Person) -> Properties:
    return {"wishlist_id": short_id(dice), "wishlist_name": "Living Room", **dice.pick(CATALOGUE)}


def product_shared(dice: Dice, person: Person) -> Properties:
    return {
        "share_via": dice.pick(("email", "whatsapp", "link")),
        "share_message": "Look what I found",
        "recipient": f"friend-of-{person.email}",
        **dice.pick(CATALOGUE),
    }


def review(dice: Dice, _person: Person) -> Properties:
    return {
        "product_id": dice.pick(CATALOGUE)["product_id"],
        "review_id": short_id(dice),
        "review_body": dice.pick(words.REVIEWS),
        "rating": str(dice.between(1, 5)),  # text, as in the spec
    }


def product_list(dice: Dice, _person: Person) -> Properties:
    category = str(dice.pick(CATALOGUE)["category"])
    return {"list_id": f"list_{category.lower()}", "category": category, "products": _items(dice, 3)}


def product_list_filtered(dice: Dice, person: Person) -> Properties:
    return {
        **product_list(dice, person),
        "filters": [{"type": "price", "value": f"under-{dice.between(1, 9) * 50}"}],
        "sorts": [{"type": "price", "value": dice.pick(("asc", "desc"))}],
    }


def search(dice: Dice, _person: Person) -> Properties:
    return {"query": dice.pick(words.SEARCHES), "results": dice.below(80)}


def cart(dice: Dice, _person: Person) -> Properties:
    return {"cart_id": short_id(dice), "products": _items(dice, 3)}


def order(dice: Dice, _person: Person) -> Properties:
    cents, shipping = dice.between(1_500, 160_000), dice.pick((0, 490, 990))
    discount = dice.pick((0, 0, 500, 1_000))
    total = cents + shipping - discount
    return {
        "checkout_id": short_id(dice),
        "order_id": f"FF-{dice.number(8)}",
        "affiliation": "Web Shop",
        "subtotal": cents / 100,
        "total": total / 100,
        "revenue": (cents - discount) / 100,
        "value": total / 100,
        "shipping": shipping / 100,
        "tax": total * 19 // 119 / 100,
        "discount": discount / 100,
        "coupon": dice.pick(words.COUPONS) if discount else None,
        "currency": dice.pick(words.CURRENCIES),
        "products": _items(dice, 3),
    }


def checkout_step(dice: Dice, _person: Person) -> Properties:
    return {
        "checkout_id": short_id(dice),
        "step": dice.between(1, 4),
        "shipping_method": dice.pick(words.SHIPPING_METHODS),
        "payment_method": dice.pick(words.PAYMENT_METHODS),
    }


def payment(dice: Dice, person: Person) -> Properties:
    return {**checkout_step(dice, person), "order_id": f"FF-{dice.number(8)}"}


def coupon(dice: Dice, _person: Person) -> Properties:
    order_id, cart_id = f"FF-{dice.number(8)}", short_id(dice)
    return {"order_id": order_id, "cart_id": cart_id, "coupon_id": dice.pick(words.COUPONS)}


def coupon_applied(dice: Dice, person: Person) -> Properties:
    return {**coupon(dice, person), "coupon_name": "Autumn", "discount": dice.between(5, 40) * 0.5}


def coupon_denied(dice: Dice, person: Person) -> Properties:
    return {**coupon(dice, person), "coupon_name": "Autumn", "reason": dice.pick(words.REASONS)}


def promotion(dice: Dice, _person: Person) -> Properties:
    index = dice.below(len(words.PROMOTIONS))
    return {
        "promotion_id": f"promo_{index + 1}",
        "creative": f"banner_{dice.pick('abc')}",
        "name": words.PROMOTIONS[index],
        "position": dice.pick(("home_top", "list_side")),
    }


def _items(dice: Dice, most: int) -> list[msgspec.Raw]:
    first = dice.below(len(_ITEMS) - most)
    return _ITEMS[first : first + dice.between(1, most)]


def short_id(dice: Dice) -> str:
    return f"{dice.bits(48):012x}"
