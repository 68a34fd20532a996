"""Demo events: a seeded stream of what three apps of one company send, as a raw archive holds it.

Everything that repeats (people, devices, pages, products) is encoded once, ahead of time; an event only adds
what is its own. So one core makes events faster than a sync can load them.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count, islice
from typing import TYPE_CHECKING

import msgspec
from isal import isal_zlib

from eventlake.demo.dice import Dice
from eventlake.demo.faults import broken_line, with_conflict
from eventlake.demo.maker import EventMaker, iso
from eventlake.demo.traffic import arrivals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_RESEND_MS = (1_000, 600_000)
_BATCH = 1_000  # lines compressed and reported at a time
_GZIP = 31  # zlib's code for a gzip header around the largest window; it holds no time, so bytes repeat


@dataclass(frozen=True)
class Recipe:
    """What a demo archive holds; the same recipe gives the same bytes, in any process.

    Copies and broken lines come on top of `events`, as many as their share of it says; asking for them leaves
    the events as they are without.
    """

    events: int
    seed: int = 1
    until: datetime = datetime(2026, 11, 1, tzinfo=UTC)
    hours: int = 24  # before `until`, in which all lines are received
    track_types: int = 40  # names of track events; all of them appear when there are enough events
    duplicate_share: float = 0.0  # copies with the same messageId, sent again 1 to 600 seconds later
    conflict_share: float = 0.0  # events with a value that does not fit its column
    broken_share: float = 0.0  # lines that are no events
    project_id: str = "demo"

    def __post_init__(self) -> None:
        if self.until.utcoffset() != timedelta(0):
            raise ValueError(f"until must be an aware time in UTC, got {self.until}")
        if self.events < 0 or self.hours < 1 or self.track_types < 1:
            raise ValueError("events must be 0 or more, hours and track_types 1 or more")
        for share in (self.duplicate_share, self.conflict_share, self.broken_share):
            if not 0 <= share <= 1:
                raise ValueError(f"a share must be between 0 and 1, got {share}")


def lines(recipe: Recipe) -> Iterator[bytes]:
    """Yield the lines of the archive in order of receivedAt, each without its newline."""
    end_ms = int(recipe.until.timestamp() * 1000)
    times = arrivals(
        Dice(f"{recipe.seed}/traffic"),
        events=recipe.events,
        start_ms=end_ms - recipe.hours * 3_600_000,
        end_ms=end_ms,
    )
    # What goes wrong has dice of its own, so that it does not change which events happen.
    dice = Dice(f"{recipe.seed}/faults")
    encode = msgspec.json.Encoder().encode
    maker = EventMaker(
        Dice(f"{recipe.seed}/events"),
        events=recipe.events,
        track_types=recipe.track_types,
        project_id=recipe.project_id,
    )
    copies: list[tuple[int, int, bytes]] = []  # a heap, by when the copy is received; the number breaks ties
    numbers = count()
    for received_ms in times:
        while copies and copies[0][0] <= received_ms:
            yield heapq.heappop(copies)[2]
        event, sent_ms = maker.make_event(received_ms)
        if dice.chance(recipe.conflict_share):
            event = with_conflict(event, dice)
        yield encode(event)
        if dice.chance(recipe.duplicate_share):
            shortest, longest = _RESEND_MS
            later_ms = dice.between(shortest, min(longest, end_ms - 1 - received_ms))
            resent = {"sentAt": iso(sent_ms + later_ms), "receivedAt": iso(received_ms + later_ms)}
            heapq.heappush(copies, (received_ms + later_ms, next(numbers), encode(event | resent)))
        if dice.chance(recipe.broken_share):
            yield broken_line(event | {"messageId": dice.uuid()}, dice)
    while copies:
        yield heapq.heappop(copies)[2]


def write_archive(
    recipe: Recipe, folder: Path, *, files: int, progress: Callable[[int], None] | None = None
) -> list[Path]:
    """Write the lines as gzip NDJSON and return the files, in order of receivedAt.

    The files hold about equal numbers of consecutive lines; where there are fewer lines than `files`, fewer
    are made. `progress` is told the number of lines just written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    expected = recipe.events * (1 + recipe.duplicate_share + recipe.broken_share)
    per_file = max(1, -int(-expected // files))
    stream = lines(recipe)
    paths: list[Path] = []
    for number in range(1, files + 1):
        # The last file takes what is left: how many copies there are is known only at the end.
        share = stream if number == files else islice(stream, per_file)
        batch = list(islice(share, _BATCH))
        if not batch:
            break
        path = folder / f"{number:0{len(str(files))}d}.gz"
        gzip = isal_zlib.compressobj(level=2, wbits=_GZIP)
        with path.open("wb") as file:
            while batch:
                file.write(gzip.compress(b"\n".join(batch) + b"\n"))
                if progress:
                    progress(len(batch))
                batch = list(islice(share, _BATCH))
            file.write(gzip.flush())
        paths.append(path)
    return paths
