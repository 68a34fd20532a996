"""What clients really send, each kind as a function that spoils one event of the corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.draft import quoted
from eventlake.demo.maker import iso

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.draft import Draft
    from eventlake.demo.dice import Dice

# Numbers


def big_integer(dice: Dice, draft: Draft) -> None:
    draft.put(f"{draft.body}/sku", dice.number(dice.between(20, 45)))


def fine_decimal(dice: Dice, draft: Draft) -> None:
    draft.put(f"{draft.body}/price", f"{dice.below(500)}.{dice.number(dice.between(7, 30))}")


def huge_exponent(dice: Dice, draft: Draft) -> None:
    digits = dice.between(1, 9)
    draft.put(
        f"{draft.body}/rating", dice.pick((f"{digits}e400", f"-{digits}.5e400", f"{digits}e-400", f"{digits}E+5"))
    )


def not_a_number(dice: Dice, draft: Draft) -> None:
    draft.put(f"{draft.body}/rating", dice.pick(("NaN", "Infinity", "-Infinity")))


def number_as_text(dice: Dice, draft: Draft) -> None:
    digits = dice.number(3)
    draft.put(f"{draft.body}/quantity", quoted(dice.pick((digits, f"{digits}.50", f"0{digits}", f"{digits}e2"))))


# Kinds


def other_kind(dice: Dice, draft: Draft) -> None:
    """Put another kind of value where most events have a price, a quantity, tags or a flag."""
    key = dice.pick(("price", "quantity", "gift", "tags", "order_id"))
    draft.put(f"{draft.body}/{key}", _any_kind(dice))


def late_kind(dice: Dice, draft: Draft) -> None:
    """Put another kind of value where all but the last events have whole numbers."""
    draft.put(f"{draft.body}/step", _any_kind(dice))


def _any_kind(dice: Dice) -> str:
    mark = dice.number(6)
    kinds = (
        quoted(f"n/a {mark}"),
        mark,
        f"{mark}.25",
        "true",
        f'{{"amount":{mark},"currency":"EUR"}}',
        f'["x{mark}",{mark}]',
        f'[{{"k":{mark}}},{{"k":"v{mark}"}}]',
    )
    return dice.pick(kinds)


def mixed_array(dice: Dice, draft: Draft) -> None:
    draft.add("items", f'["a{dice.number(4)}",{dice.number(4)},null,true,{{"k":{dice.number(4)}}},[{dice.number(4)}]]')


def empties(dice: Dice, draft: Draft) -> None:
    draft.add("options", dice.pick(("{}", "[]", '""', "[{}]", "[[]]", '{"inner":{}}', '{"inner":[]}')))


def nulls(dice: Dice, draft: Draft) -> None:
    draft.put(f"{draft.body}/{dice.pick(('price', 'quantity', 'products'))}", "null")
    draft.add("never_filled", "null")


# Keys


def spellings(dice: Dice, draft: Draft) -> None:
    """Name one thing in ways that differ only in case and separators."""
    pairs = (("productId", "product_id"), ("productId", "Product ID"), ("coupon", "Coupon"), ("planID", "PlanId"))
    for key in dice.pick(pairs):
        draft.add(key, quoted(f"s-{dice.number(7)}"))


def same_column(dice: Dice, draft: Draft) -> None:
    """Fill by two paths what is one column where paths are joined."""
    draft.add("address_city", quoted(f"c{dice.number(6)}"))
    draft.add("address", f'{{"city":{quoted(f"d{dice.number(6)}")}}}')


def repeated_key(dice: Dice, draft: Draft) -> None:
    key = dice.pick(("variant", "quantity", "campaign"))
    draft.add(key, dice.number(6))
    draft.add(key, dice.number(6))


_KEYS = (
    "",
    " ",
    ".",
    "a.b",
    "a/b",
    "$price",
    'say "x"',
    "a,b;{c}(d)\n\t=",
    "购买",
    "Größe",
    "🎉",
    "_id",
    "__proto__",
    "2024",
    "select",
    "_rescued_data",
    "k" * 300,
)


def hostile_key(dice: Dice, draft: Draft) -> None:
    draft.add(dice.pick(_KEYS), quoted(f"v{dice.number(7)}"))


def half_pair_in_key(dice: Dice, draft: Draft) -> None:
    draft.add('"half\\ud83c"', dice.number(7))


# Texts


NAMES = (
    "../../etc/passwd",
    "a/b\\c",
    'He said "no"',
    "'; drop table events; --",
    "购买完成",
    "🎉",
    "!!!",
    " Order  Completed ",
    "order_completed",
    "ORDER COMPLETED",
    "segment_type=page",
    "%2e%2e",
    "a\tb\nc",
    "CON",
    "N" + "a" * 299,
)


def hostile_name(dice: Dice, draft: Draft) -> None:
    if draft.call == "track":
        draft.put("event", quoted(dice.pick(NAMES)))


_TEXTS = (
    '"\\u0000"',
    '"a\\u0000b"',
    '"\\ud800"',
    '"half \\udc00 pair"',
    '"\\ud83c\\udf89"',
    '"line\\nbreak\\r\\n"',
    '"\u2028"',
    '"e\u0301"',
    '"\U0010ffff"',
    '"  spaces  "',
    '""',
    '"null"',
    '"NaN"',
    '"{\\"a\\":1}"',
    '"[1,2"',
    '"\\u003cb\\u003e"',
    '"\\\\N"',
)


def hostile_text(dice: Dice, draft: Draft) -> None:
    draft.put(f"{draft.body}/order_id", dice.pick(_TEXTS))


def long_text(dice: Dice, draft: Draft) -> None:
    draft.add("note", quoted(f"{dice.number(9)} " * dice.between(500, 2000)))


# Times


def odd_time(dice: Dice, draft: Draft) -> None:
    moment = iso(draft.received_ms - dice.below(10**9))
    day, _, clock = moment[:-1].partition("T")
    shapes = (
        f"{day}T{clock}+02:00",
        f"{day}T{clock}456Z",
        f"{day}T{clock}456789Z",
        f"{day}T{clock[:5]}Z",
        f"{day} {clock[:8]}",
        f"{day} {clock}",
        day,
        f"{day[5:7]}/{day[8:]}/{day[:4]}",
        f"2026-02-30T{clock}Z",
        f"2026-13-01T{clock}Z",
        f"{day}T25:61:61Z",
        "0000-00-00T00:00:00Z",
        f"9999-12-31T{clock}Z",
        f"1582-10-10T{clock}Z",
        "now",
    )
    key = dice.pick(("seen_at", "seen_at", "shipped_at"))
    draft.put(f"{draft.body}/{key}", quoted(dice.pick(shapes)))


def epoch_time(dice: Dice, draft: Draft) -> None:
    draft.put(f"{draft.body}/seen_at", str(draft.received_ms - dice.below(10**9)))


def impossible_call_time(dice: Dice, draft: Draft) -> None:
    key = dice.pick(("timestamp", "originalTimestamp", "sentAt"))
    draft.put(key, quoted(dice.pick(("2026-02-30T10:00:00.000Z", "yesterday", "", "+058872-08-01T00:00:00.000Z"))))


# Depth


def deep(dice: Dice, draft: Draft) -> None:
    levels = dice.pick((5, 20, 33, 60))
    draft.add("tree", '{"n":' * levels + dice.number(6) + "}" * levels)


ODDITIES: tuple[Callable[[Dice, Draft], None], ...] = (
    big_integer,
    fine_decimal,
    huge_exponent,
    not_a_number,
    number_as_text,
    other_kind,
    mixed_array,
    empties,
    nulls,
    spellings,
    same_column,
    repeated_key,
    hostile_key,
    half_pair_in_key,
    hostile_name,
    hostile_text,
    long_text,
    odd_time,
    epoch_time,
    impossible_call_time,
    deep,
)
