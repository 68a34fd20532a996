"""Hostile JSON: values and events that nobody wants to receive, ways to write them, and an exact way to read them.

`events()` gives Python dicts that are valid events. Their numbers are `int` or `Number`, which keeps the digits that
no Python number can hold. `written` gives the plain JSON of a value; `json_lines` writes it as badly as JSON allows.
What `json_lines` adds (keys that come twice, NaN, half surrogate pairs) never changes what the first of equal keys
says, so the line is still the same event.

`read_exactly` and `leaves` are the oracle of the laws: which values a line holds, and where.
"""

import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy


@dataclass(frozen=True)
class Number:
    """A JSON number as it is written."""

    digits: str


class Pairs(list[tuple[str, Any]]):
    """A JSON object with all its members, also those whose key came before."""


# Writing


def written(value: Any) -> str:
    """The plain JSON of a value."""
    return _Writer(random.Random(0), Manner()).text(value)


def plain_line(value: Any) -> bytes:
    return written(value).encode()


class Manner(NamedTuple):
    """The ways in which a line may be written badly."""

    repeats_keys: bool = False  # a key twice in one object, at any depth
    escapes: bool = False  # \u003a for a colon, \ud83c\udf89 for an emoji, \/ for a slash
    spaces: bool = False  # wherever JSON allows them
    breaks_pairs: bool = False  # half surrogate pairs in keys and values
    not_numbers: bool = False  # NaN, Infinity and -Infinity
    marks_bytes: bool = False  # a byte order mark in front


@st.composite
def json_lines(draw: DrawFn, values: SearchStrategy[Any] | None = None) -> bytes:
    """Lines that hold the given values (events, if none are given), written in hostile ways."""
    value = draw(events() if values is None else values)
    manner = Manner(*draw(st.tuples(*[st.booleans()] * len(Manner._fields))))
    writer = _Writer(random.Random(draw(st.integers(0, 2**16))), manner)
    text = writer.space() + writer.text(value) + writer.space()
    return (b"\xef\xbb\xbf" if manner.marks_bytes else b"") + text.encode()


def badly_written(value: Any, dice: random.Random) -> bytes:
    """The same by dice, for as many lines as one likes."""
    manner = Manner(*(dice.random() < 0.3 for _ in Manner._fields))
    writer = _Writer(dice, manner)
    return (b"\xef\xbb\xbf" if manner.marks_bytes else b"") + writer.text(value).encode()


_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}


class _Writer:
    def __init__(self, dice: random.Random, manner: Manner) -> None:
        self._dice = dice
        self._manner = manner

    def text(self, value: Any) -> str:
        if isinstance(value, dict):
            return self._object(list(value.items()))
        if isinstance(value, list):
            items = [self.text(item) for item in value]
            self._sprinkle(items, self._odd_value)
            return self._enclosed("[", items, "]")
        if isinstance(value, str):
            return '"' + "".join(map(self._character, value)) + '"'
        if isinstance(value, Number):
            return value.digits
        return json.dumps(value)

    def space(self) -> str:
        return "".join(self._dice.choices(" \t\r", k=self._dice.randrange(3))) if self._manner.spaces else ""

    def _object(self, pairs: list[tuple[str, Any]]) -> str:
        members = [self._member(key, self.text(value)) for key, value in pairs]
        if self._manner.repeats_keys and pairs and self._chance():
            which = self._dice.randrange(len(pairs))
            key, again = pairs[which][0], self._dice.choice(pairs)[1]
            members.insert(self._dice.randint(which + 1, len(members)), self._member(key, self.text(again)))
        self._sprinkle(members, self._odd_member)
        return self._enclosed("{", members, "}")

    def _member(self, key: str, text: str) -> str:
        return f"{self.text(key)}{self.space()}:{self.space()}{text}"

    def _enclosed(self, opening: str, items: list[str], closing: str) -> str:
        spaced = ",".join(f"{self.space()}{item}{self.space()}" for item in items)
        return f"{opening}{spaced or self.space()}{closing}"

    def _sprinkle(self, items: list[str], odd: Callable[[], str]) -> None:
        if (self._manner.breaks_pairs or self._manner.not_numbers) and self._chance():
            items.insert(self._dice.randint(0, len(items)), odd())

    def _odd_member(self) -> str:
        # A key that no event has by itself, so that nothing of the event is replaced.
        half_key = self._manner.breaks_pairs and self._chance()
        return f'"{self._half_pair() if half_key else ""}odd{self._dice.randrange(3)}":{self._odd_value()}'

    def _odd_value(self) -> str:
        kinds: list[Callable[[], str]] = []
        if self._manner.breaks_pairs:
            kinds.append(lambda: f'"{self._half_pair()}"')
            kinds.append(lambda: f'{{"x{self._half_pair()}":["{self._half_pair()}:"]}}')
        if self._manner.not_numbers:
            kinds.append(lambda: self._dice.choice(["NaN", "Infinity", "-Infinity"]))
        return self._dice.choice(kinds)()

    def _half_pair(self) -> str:
        return self._dice.choice(["\\ud800", "\\uDBFF", "\\udc00x", "a\\uDFFF", "\\udc00\\ud800"])

    def _character(self, character: str) -> str:
        if self._manner.escapes and self._chance():
            units = character.encode("utf-16-be", "surrogatepass").hex()
            units = units.upper() if self._chance() else units
            return "\\/" if character == "/" else "".join(f"\\u{unit}" for unit in re.findall("....", units))
        if character in _SHORT:
            return _SHORT[character]
        return f"\\u{ord(character):04x}" if character < " " else character

    def _chance(self) -> bool:
        return self._dice.random() < 0.3


# Numbers


_EDGES = [2**15, 2**31, 2**53, 2**63, 2**64, 10**18, 10**31, 10**32, 10**37, 10**39]
_ODD_NUMBERS = [
    "0",
    "-0",
    "-0.0",
    "0.0",
    "0e0",
    "0E-9",
    "0e400",
    "1.0",
    "1.10",
    "1.9",
    "1e5",
    "1E+5",
    "1e-5",
    "1e30",
    "1e31",
    "1e32",
    "1e400",
    "-1e400",
    "1e-400",
    "1e99999999999999999999",
    "1e-99999999999999999999",
    "0.1234567",
    "0.0000005",
    "0.0000015",
    "1.00000000",
    "9007199254740993.0",
    "9223372036854775807.0",
    "9223372036854775808.5",
    "1234567890123456789012345678901.123456",
    "99999999999999999999999999999999.999999",
    "99999999999999999999999999999999.9999999",
    "0." + "1" * 60,
    "1" * 30,
    "9" * 40,
    "7" * 4200,
    "7" * 5000,
]


def whole_numbers() -> SearchStrategy[int]:
    """Integers of every size, most of them next to a limit."""
    near = st.builds(
        lambda edge, step, sign: sign * (edge + step),
        st.sampled_from(_EDGES),
        st.integers(-2, 2),
        st.sampled_from([1, -1]),
    )
    return st.integers(-100, 100) | near | st.integers(-(10**40), 10**40)


def _number(negative: bool, whole: int, fraction: str, exponent: str) -> Number:
    return Number(f"{'-' * negative}{whole}{fraction}{exponent}")


def _made_up_numbers() -> SearchStrategy[Number]:
    fraction = st.integers(0, 10**12).map(lambda digits: f".{digits}")
    exponent = st.builds("{}{:+}".format, st.sampled_from("eE"), st.integers(-45, 45))
    whole = st.integers(0, 10) | st.integers(0, 10**40)
    return st.builds(_number, st.booleans(), whole, st.just("") | fraction, st.just("") | exponent)


def numbers() -> SearchStrategy[int | Number]:
    return whole_numbers() | st.sampled_from(_ODD_NUMBERS).map(Number) | _made_up_numbers()


# Text


_ODD_TEXTS = [
    "",
    " ",
    "0",
    "-0",
    "12",
    "012",
    "+12",
    "1.5",
    "12.50",
    "1e5",
    ".5",
    "5.",
    "1_000",
    "٣",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "1" * 30,
    "1" * 32 + ".5",
    "1" * 40,
    "true",
    "false",
    "True",
    "null",
    "NaN",
    "{}",
    "[]",
    '{"a":1,"a":2}',
    '"',
    "\\",
    "\\u003a",
    ":::",
    "\x00",
    "a\x00b",
    "\n",
    "\r\n",
    "\u2028",
    "\ufeff",
    "\x7f",
    "é",
    "e\u0301",
    "购买",
    "🎉",
    "👩‍👩‍👧",
    "\U0010ffff",
    "2024-02-29",
    "2024-02-29 12:00:00",
    "2023-02-29T12:00:00Z",
    "2024-02-29T24:00:00Z",
    "2024-02-29T23:59:60Z",
    "0000-12-31T23:59:59-01:00",
    "0001-01-01T00:00:00+01:00",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999Z",
    "9999-12-31T23:59:59-01:00",
    "20240229T120000Z",
]


_DAYS = st.builds("{:04}-{:02}-{:02}".format, st.integers(0, 9999), st.integers(1, 12), st.integers(1, 31))
_SECONDS = st.sampled_from(["", ":00", ":07", ":59", ":60"])
_FRACTIONS = st.sampled_from([".0", ".5", ".12", ".123", ".000001", ".1234567", ".1234560", ".123456789", ".000000001"])
_ZONES = st.sampled_from(
    ["Z", "", "+00:00", "-00:00", "+01", "-0330", "+05:45", "-23:59", "+14:00", "+24:00", "+09:60"]
)


def date_times() -> SearchStrategy[str]:
    """ISO-8601 date-times with 0 to 9 digits of a fraction and every form of zone; most of them exist."""
    days = st.sampled_from(["1969-12-31", "1970-01-01", "2000-02-29", "2024-03-10", "2100-02-29"]) | _DAYS
    minutes = st.builds("{:02}:{:02}".format, st.integers(0, 24), st.integers(0, 59))
    seconds = _SECONDS | st.builds(":{:02}{}".format, st.integers(0, 59), _FRACTIONS)
    return st.builds("{}T{}{}{}".format, days, minutes, seconds, _ZONES)


def texts() -> SearchStrategy[str]:
    return st.sampled_from(_ODD_TEXTS) | st.text(max_size=20) | date_times() | numbers().map(written)


# Keys, values, events


_ODD_KEYS = [
    *("productId", "product_id", "Product ID", "PRODUCT_ID", "productID", "product-id", "ProductId", "product id"),
    *("a", "A", "a_b", "a.b", "a b", "aB", "a/b", "a~b", "a__b", "_a", "a_", "b", "B"),
    *("", " ", "_", "__", ".", "/", "~", "~0", "~1", "~2", "~01", "a~2", "a/0", "//", "~~", ":", "\\u003a", '"'),
    *("é", "É", "ß", "İ", "购买", "数量", "🎉", "🎊", "\x00", "\u2028", "\ufeff"),
    *("year", "Month", "day", "hr", "table_key", "segmentType", "_rescued_data"),
    *("received_at", "messageid", "USER_ID", "key_", "1", "2FA", "null", "__proto__", "n" * 300, "購" * 100),
]


def keys() -> SearchStrategy[str]:
    """Keys that collide in snake case, differ only by case, are empty, not ASCII, or full of signs."""
    return st.sampled_from(_ODD_KEYS) | st.text(max_size=8)


def scalars() -> SearchStrategy[Any]:
    return st.none() | st.booleans() | numbers() | texts()


@st.composite
def _nested(draw: DrawFn, inner: SearchStrategy[Any]) -> Any:
    """A value below as many as 40 objects and arrays."""
    value = draw(inner)
    for key in reversed(draw(st.lists(st.sampled_from(["a", "b", "A", "", "é", None]), max_size=40))):
        value = [value] if key is None else {key: value}
    return value


def json_values() -> SearchStrategy[Any]:
    """Any JSON value: None, bool, int, Number, str, list or dict."""
    empty: SearchStrategy[Any] = st.builds(dict) | st.builds(list)
    trees = st.recursive(
        scalars() | empty,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys(), inner, max_size=5),
        max_leaves=6,
    )
    return trees | _nested(trees)


def objects() -> SearchStrategy[dict[str, Any]]:
    return st.dictionaries(keys(), json_values(), max_size=5)


_CALLS = ("track", "identify", "page", "screen", "group", "alias")
_FIELDS: dict[str, SearchStrategy[Any]] = {
    "messageId": st.uuids(version=4).map(str) | scalars() | json_values(),
    "receivedAt": date_times() | scalars(),
    "timestamp": date_times() | scalars(),
    "userId": texts() | scalars(),
    "anonymousId": texts(),
    "properties": objects() | json_values(),
    "traits": objects() | json_values(),
    "context": objects() | json_values(),
    "integrations": objects() | st.just({}),
    "_metadata": objects() | st.just({}),
}


@st.composite
def events(draw: DrawFn) -> dict[str, Any]:
    """A valid event of any of the six calls, with hostile contents."""
    call = draw(st.sampled_from(_CALLS))
    needed: list[tuple[str, Any]] = [("type", call)]
    if call == "track":
        needed.append(("event", draw(st.sampled_from(["Order Completed", "购买", "\x00"]) | texts().filter(bool))))
    fields = draw(st.fixed_dictionaries({}, optional=_FIELDS))
    more = draw(objects())
    members = needed + [pair for pair in (fields | more).items() if pair[0] not in ("type", "event")]
    return dict(draw(st.permutations(members)))


# Reading


class Constant(str):
    """NaN, Infinity or -Infinity: not JSON, so its name is all that can be kept of it."""

    __slots__ = ()


_reader = json.JSONDecoder(object_pairs_hook=Pairs, parse_float=Number, parse_int=Number, parse_constant=Constant)


def read_exactly(text: str) -> Any:
    """A JSON value with every member of every object and every digit of every number: Pairs, list, Number, str …"""
    return _reader.decode(text.strip())  # white space around a value says nothing, JSON's own or not


Path = tuple[str, ...]
Leaf = tuple[Path, Any]
EMPTY = ("object",)


def leaves(value: Any, path: Path = (), *, deepest: int | None = None) -> Iterator[Leaf]:
    """What a value holds besides nulls, in document order: where, and what in canonical form.

    An array is one leaf, and so is an empty object, or one as far down as `deepest`.
    """
    if isinstance(value, dict):
        value = Pairs(value.items())
    if isinstance(value, Pairs) and value and len(path) != deepest:
        for key, item in value:
            yield from leaves(item, (*path, key), deepest=deepest)
    elif value is not None:
        yield path, canonical(value)


def canonical(value: Any) -> Any:
    """A form in which equal values are equal: numbers by value, all else exactly."""
    if isinstance(value, bool) or value is None:
        return ("constant", value)
    if isinstance(value, int):
        value = Number(str(value))
    if isinstance(value, Number):
        return ("number", *_by_value(value.digits))
    if isinstance(value, str):
        return ("text", str(value))
    if isinstance(value, dict):
        value = Pairs(value.items())
    if isinstance(value, Pairs):
        return ("object", *((key, canonical(item)) for key, item in value))
    assert type(value) is list, value
    return ("array", *map(canonical, value))


def _by_value(digits: str) -> tuple[str, str, int]:
    """Sign, significant digits and exponent; neither Decimal nor int can hold every number that JSON can."""
    mantissa, _, exponent = digits.lower().partition("e")
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    significant = (whole + fraction).lstrip("0")
    if not significant:
        return "", "0", 0
    kept = significant.rstrip("0")
    scale = int(exponent or 0) - len(fraction) + len(significant) - len(kept)
    return "-" if digits.startswith("-") else "", kept, scale


def path_of(pointer: str) -> Path:
    """The keys that a JSON pointer names (RFC 6901)."""
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])
