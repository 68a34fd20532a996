"""Hostile events, the same for everyone and every time: the corpus of `bench.lossless`.

Most events are plain ones of a shop; each oddity of `bench.oddities` hits one or two in a hundred. Some lines are
no events at all, and some events come twice. A collector sets `messageId` and `receivedAt`, so these two are always
well-formed: without them nobody could say which row is which event.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.draft import Draft, quoted
from bench.oddities import ODDITIES, late_kind
from eventlake.demo.dice import Dice
from eventlake.demo.maker import iso

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MARK = re.compile(r"trace-\d{6}")  # in every line that is no event, and nowhere else
MESSAGE_ID = re.compile(r'"messageId":"(m-\d{7})"')  # in every line that is an event
FILES = 8
_ODDITY_SHARE = 0.012  # of the events, for each oddity
_LATE_FROM = 0.95  # of the corpus
_LATE_KIND_SHARE = 0.2  # of the last events
_LONG_ID_SHARE = 0.05  # of ids that 64 bits can hold and a double cannot
_COPY_SHARE = 0.01
_NO_EVENT_SHARE = 0.005
_DAYS_LATER_SHARE = 0.01
_START_MS = 1_794_700_800_000  # 2026-11-15T00:00:00Z
_HOUR_MS = 3_600_000
_HOURS = 4
_CALLS = ("track", "track", "track", "track", "page", "page", "identify", "screen", "group", "alias")
_EVENTS = ("Order Completed", "Product Viewed", "Product Added", "Signed Up", "Application Opened", "Cart Viewed")


@dataclass(frozen=True)
class Corpus:
    """The files, and what is in them."""

    folder: Path
    events: dict[str, str]  # message id → the line that was received first
    copies: list[str]  # message ids of events that come once more, one for each copy
    marks: set[str]  # of the lines that are no events


def write_corpus(folder: Path, *, events: int, seed: int) -> Corpus:
    dice = Dice(f"{seed}/hostile")
    lines: list[str] = []
    first: dict[str, str] = {}
    copies: list[str] = []
    later: list[tuple[int, str]] = []  # before which line a copy comes, and the copy
    marks: set[str] = set()
    for number in range(events):
        draft = _event(dice, number, events)
        line = draft.line()
        first[draft.message_id] = line
        lines.append(line)
        if dice.chance(_COPY_SHARE):
            copies.append(draft.message_id)
            later.append((dice.between(number + 1, events), _copy(dice, draft)))
        if dice.chance(_NO_EVENT_SHARE):
            mark = f"trace-{len(marks):06d}"
            marks.add(mark)
            lines.append(_no_event(dice, draft, mark))
    for position, line in reversed(later):
        lines.insert(position, line)
    _write(folder, lines)
    return Corpus(folder, first, copies, marks)


def _event(dice: Dice, number: int, events: int) -> Draft:
    received_ms = _START_MS + number * _HOURS * _HOUR_MS // events
    if dice.chance(_DAYS_LATER_SHARE):
        received_ms -= dice.between(1, 3) * 24 * _HOUR_MS
    draft = Draft(f"m-{number:07d}", dice.pick(_CALLS), received_ms)
    draft.late = number >= events * _LATE_FROM
    _fill(dice, draft)
    for oddity in ODDITIES:
        if dice.chance(_ODDITY_SHARE):
            oddity(dice, draft)
    if draft.late and dice.chance(_LATE_KIND_SHARE):
        late_kind(dice, draft)
    return draft


def _fill(dice: Dice, draft: Draft) -> None:
    """What a plain event holds; all texts in plain ASCII, all numbers small."""
    put, body = draft.put, draft.body
    if draft.call == "track":
        put("event", quoted(dice.pick(_EVENTS)))
    if draft.call in ("page", "screen"):
        put("name", quoted(f"Page {dice.below(300)}"))
    put("userId", quoted(f"u{dice.number(6)}"))
    put("anonymousId", quoted(f"a-{dice.number(9)}"))
    put("context/ip", quoted(f"10.{dice.below(256)}.{dice.below(256)}.{dice.below(256)}"))
    put("context/locale", quoted(dice.pick(("en-GB", "de-DE", "fr-FR", "nl-NL"))))
    put("context/library/name", quoted("analytics.js"))
    put("context/library/version", quoted(f"5.{dice.below(9)}.{dice.below(30)}"))
    put("context/page/url", quoted(f"https://shop.example/p/{dice.number(7)}?ref={dice.number(4)}"))
    put("context/screen/width", str(dice.between(320, 3000)))
    put(f"{body}/order_id", quoted(f"o-{dice.number(8)}"))
    put(f"{body}/sku", dice.number(18 if dice.chance(_LONG_ID_SHARE) else 8))
    put(f"{body}/price", f"{dice.below(300)}.{dice.between(1, 99):02d}")
    put(f"{body}/quantity", str(dice.between(1, 400)))
    put(f"{body}/rating", f"{dice.below(5)}.{dice.between(1, 9)}")
    put(f"{body}/gift", dice.pick(("true", "false")))
    put(f"{body}/seen_at", quoted(iso(draft.received_ms - dice.below(10**9))))
    put(f"{body}/step", str(dice.between(1, 9000)))
    put(f"{body}/tags", f"[{quoted(f't{dice.number(4)}')},{quoted(f't{dice.number(4)}')}]")
    put(f"{body}/products", f"[{_product(dice)},{_product(dice)}]")
    put("originalTimestamp", quoted(iso(draft.received_ms - dice.below(90_000))))
    put("timestamp", quoted(iso(draft.received_ms - dice.below(60_000))))
    put("sentAt", quoted(iso(draft.received_ms - dice.below(900))))


def _product(dice: Dice) -> str:
    price = f"{dice.below(90)}.{dice.between(1, 99):02d}"
    return f'{{"product_id":{quoted(f"p{dice.number(5)}")},"price":{price},"quantity":{dice.between(1, 50)}}}'


def _copy(dice: Dice, draft: Draft) -> str:
    """The event once more: the same bytes, or sent again and received later."""
    if dice.chance(0.5):
        return draft.line()
    received_ms = draft.received_ms + dice.between(1_000, 600_000)
    return draft.line(received_ms)


def _no_event(dice: Dice, draft: Draft, mark: str) -> str:
    whole = Draft(mark, draft.call, draft.received_ms, draft.members).line()
    breakers: tuple[Callable[[], str], ...] = (
        lambda: whole[: dice.between(len(whole) // 3, len(whole) - 1)],  # broken off, after the mark
        lambda: whole[: dice.between(len(whole) // 3, len(whole) - 1)],
        lambda: whole.replace('"type":', '"kind":', 1),
        lambda: whole.replace(f'"type":"{draft.call}"', '"type":"delete"', 1),
        lambda: f"[{whole}]",
        lambda: quoted(mark),
        lambda: f"upstream timed out, request {mark}",
        lambda: f"{whole} {mark}",
    )
    return dice.pick(breakers)()


def _write(folder: Path, lines: list[str]) -> None:
    folder.mkdir(parents=True)
    size = -(-len(lines) // FILES)
    for number in range(FILES):
        end = "\r\n" if number % 4 == 3 else "\n"
        text = "".join(line + end for line in lines[number * size : (number + 1) * size])
        mark = b"\xef\xbb\xbf" if number % 4 == 2 else b""
        (folder / f"{number}.json").write_bytes(mark + text.encode())
