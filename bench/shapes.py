"""Events whose tables have little in common: other keys, other kinds, other sizes for every seed.

The demo's events are of one company, and their tables share many properties. A reader can be tuned to that. Here each
track event has properties of its own, drawn from the seed of the shape; some names mean different kinds in different
tables; some properties come only half of the time.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count, islice
from typing import TYPE_CHECKING, Any

import msgspec
from isal import isal_zlib

from eventlake.demo.maker import iso

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_WORDS = """
account amount basket button campaign cart category channel city code color country coupon currency customer
delivery device discount duration email end engine error experiment feature filter first form group height id
image index item key kind language last level limit list locale market method mode model name number offer
option order origin page panel payment period phone plan platform position price product promo query rank rate
reason referrer region result role route score screen search section seller session shop size sort source
stage start state status step store street style tab table tag target tax team term theme time title token
total type unit update user value variant vendor version video view visit volume wallet week weight width
window zone
""".split()  # noqa: SIM905 - nobody reads a list of so many texts
_CONFLICTING = 12  # names that are of other kinds in other tables
OF_ENVELOPE = 17  # columns that tables have besides their properties
_BATCH = 1_000
_GZIP = 31


def _text(dice: random.Random) -> str:
    return f"{dice.choice(_WORDS)} {dice.choice(_WORDS)} {dice.getrandbits(24):x}"


def _member(dice: random.Random) -> dict[str, Any]:
    return {"id": dice.getrandbits(30), "label": dice.choice(_WORDS), "ratio": dice.randrange(10_000) / 100}


_KINDS: tuple[Callable[[random.Random], Any], ...] = (
    _text,
    _text,
    lambda dice: dice.choice(_WORDS),
    lambda dice: dice.getrandbits(20),
    lambda dice: dice.getrandbits(20),
    lambda dice: dice.randrange(1_000_000) / 100,
    lambda dice: dice.random() < 0.5,
    lambda dice: iso(1_790_000_000_000 + dice.getrandbits(32)),
    lambda dice: [dice.choice(_WORDS) for _ in range(dice.randrange(1, 4))],
    _member,
)


@dataclass(frozen=True)
class Shapes:
    """What an archive of such events holds; the same gives the same bytes."""

    events: int
    shape: int = 1  # the seed of tables and keys
    seed: int = 1  # of the events themselves
    until: datetime = datetime(2026, 11, 1, tzinfo=UTC)
    hours: int = 24
    track_types: int = 40
    fewest_keys: int = 3
    most_keys: int = 20
    places: range | None = None  # of properties over all tables: how many there may be; None is any number
    filled: int = 0  # keys of an event, if it is not all of its table's
    duplicate_share: float = 0.0

    @property
    def lines(self) -> float:
        return self.events * (1 + self.duplicate_share)


def various(events: int, shape: int, *, hours: int) -> Shapes:
    """40 tables that share few keys, with 500 to 1,000 places for properties over all of them."""
    return Shapes(events, shape, hours=hours, places=range(500, 1001), duplicate_share=0.01)


def wide(events: int, shape: int, *, hours: int) -> Shapes:
    """One table of track calls, with 1,500 columns of which an event fills 30 with properties."""
    properties = 1500 - OF_ENVELOPE
    return Shapes(
        *(events, shape),
        hours=hours,
        track_types=1,
        fewest_keys=properties,
        most_keys=properties,
        places=range(properties, properties + 1),
        filled=30,
    )


class Table:
    """One track event: its name and its properties, each with a kind, and whether it is optional."""

    def __init__(self, shapes: Shapes, seed: str, shared: list[str]) -> None:
        dice = random.Random(seed)
        words = [dice.choice(_WORDS).title() for _ in range(dice.randrange(1, 4))]
        self.event = f"{' '.join(words)} {seed.rpartition('/')[2]}"
        wanted = dice.randrange(shapes.fewest_keys, shapes.most_keys + 1)
        keys = {f"{dice.choice(_WORDS)}_{dice.choice(_WORDS)}{dice.randrange(30)}": None for _ in range(wanted)}
        keys |= dict.fromkeys(dice.sample(shared, min(2, len(shared))))
        self.members = [(key, dice.choice(_KINDS), dice.random() < 0.3) for key in keys]

    @property
    def places(self) -> int:
        return sum(len(_member(random.Random(0))) if kind is _member else 1 for _, kind, _ in self.members)

    def cut(self, places: int) -> None:
        """Leave out keys from the end until there are no more places than this."""
        while self.places > places:
            self.members.pop()

    def properties(self, dice: random.Random, filled: int) -> dict[str, Any]:
        members = dice.sample(self.members, filled) if filled else self.members
        return {key: make(dice) for key, make, optional in members if not optional or dice.random() < 0.5}


def tables_of(shapes: Shapes) -> list[Table]:
    """The tables of a shape: the first draw that has as many places as there may be."""
    draws = (_drawn(shapes, f"{shapes.shape}/{draw}") for draw in count())
    return next(
        tables for tables in draws if shapes.places is None or sum(table.places for table in tables) in shapes.places
    )


def _drawn(shapes: Shapes, seed: str) -> list[Table]:
    names = random.Random(f"{seed}/shared")
    shared = [f"{names.choice(_WORDS)}_{number}" for number in range(_CONFLICTING)]
    tables = [Table(shapes, f"{seed}/{number}", shared) for number in range(shapes.track_types)]
    if shapes.places and len(tables) == 1:
        tables[0].cut(shapes.places[-1])
    return tables


def lines(shapes: Shapes) -> Iterator[bytes]:
    """The lines, in order of receivedAt."""
    dice = random.Random(f"{shapes.shape}/{shapes.seed}/events")
    tables = tables_of(shapes)
    weights = [1 / (1 + number) ** 0.5 for number in range(len(tables))]
    chosen = dice.choices(tables, weights, k=shapes.events)
    end_ms = int(shapes.until.timestamp() * 1000)
    start_ms = end_ms - shapes.hours * 3_600_000
    encode = msgspec.json.Encoder().encode
    last: bytes | None = None
    for number, table in enumerate(chosen):
        received_ms = start_ms + number * shapes.hours * 3_600_000 // shapes.events
        event = _event(dice, table, received_ms, shapes.filled)
        last = encode(event)
        yield last
        if dice.random() < shapes.duplicate_share:
            yield last


def _event(dice: random.Random, table: Table, received_ms: int, filled: int) -> dict[str, Any]:
    person = dice.getrandbits(18)
    event: dict[str, Any] = {
        "anonymousId": f"{person:08x}-0000-4000-8000-{dice.getrandbits(48):012x}",
        "channel": "client",
        "context": {
            "ip": f"10.{person % 256}.{dice.randrange(256)}.{dice.randrange(256)}",
            "library": {"name": "analytics.js", "version": "next-1.81.0"},
            "locale": "en-GB",
            "page": {"path": f"/{dice.choice(_WORDS)}", "url": f"https://shop.example/{dice.choice(_WORDS)}"},
            "userAgent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/130.0 Safari/537.36",
        },
        "integrations": {},
        "messageId": f"ajs-next-{received_ms}-{dice.getrandbits(64):016x}",
        "originalTimestamp": iso(received_ms - 900),
        "receivedAt": iso(received_ms),
        "sentAt": iso(received_ms - 100),
        "timestamp": iso(received_ms - 800),
    }
    if dice.random() < 0.5:
        event["userId"] = f"u{person}"
    if dice.random() < 0.2:
        return {**event, "type": "page", "name": dice.choice(_WORDS), "properties": {"title": _text(dice)}}
    return {**event, "event": table.event, "properties": table.properties(dice, filled), "type": "track"}


def write_shapes(
    shapes: Shapes, folder: Path, *, files: int, progress: Callable[[int], None] | None = None
) -> list[Path]:
    """Write the lines as gzip NDJSON, in about equal parts."""
    folder.mkdir(parents=True, exist_ok=True)
    stream, paths = lines(shapes), []
    for number in range(1, files + 1):
        share = stream if number == files else islice(stream, max(1, int(shapes.lines / files)))
        path = folder / f"{number:04d}.gz"
        gzip = isal_zlib.compressobj(level=2, wbits=_GZIP)
        with path.open("wb") as file:
            while batch := list(islice(share, _BATCH)):
                file.write(gzip.compress(b"\n".join(batch) + b"\n"))
                if progress:
                    progress(len(batch))
            file.write(gzip.flush())
        paths.append(path)
    return paths
