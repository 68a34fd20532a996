"""Reading lines: the way into this folder.

    lines ─► in groups (`hint`) ─► read at once as columns (`columns`, proved whole by `proof`) ─► rows (`by_route`)
       └──► what is left: parsed one by one, exactly (`exact_json`) ─► flattened (`flatten`) ─► rows (`route_buffer`)

Both ways give the same rows. What one line at a time teaches of keys, the next lines are read with at once.

Lines are read at once by asking for every key that is known, so lines that have few keys in common are better asked
apart: each frequent event has a reader of its own, which knows its keys only, and the others share some. Which event a
line is of is guessed from its text. A guess that is wrong costs time and nothing else: the line is not whole for the
reader that gets it.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import duckdb
import numpy as np
from isal.isal_zlib import crc32

from eventlake.lake.ids import Array
from eventlake.reading import canary, exact_json
from eventlake.reading.by_route import ByRoute
from eventlake.reading.columns import ColumnReader, ColumnSizes
from eventlake.reading.route_buffer import RouteBuffer

_EVENT, _TYPE = b'"event":"', b'"type":"'

Group = bytes | int
"""What lines seem to be: one event, or one of some that share a reader."""

ALL_OTHERS = -1  # the group of what no other group is large enough for


@dataclass(frozen=True)
class ReadingSizes:
    """How lines are read."""

    columns: ColumnSizes = field(default_factory=ColumnSizes)
    fewest_at_once: int = 1000  # lines; for fewer it is not worth it
    fewest_in_group: int = 500  # lines; fewer are read together with others
    shared_groups: int = 32  # of events that have too few lines each
    learn_from: int = 200  # lines of one event, before any of it is read as columns
    learn_from_shared: int = 1000  # lines of a shared group
    readers: int = 500  # that are kept: anybody with a write key can make up events


class AtOnce(NamedTuple):
    """Some lines that were read at once, by their places among those that were given."""

    places: Array
    read: ByRoute


class Readers:
    """The readers of a worker, with the keys that they have learned: one for each frequent event."""

    def __init__(self, sizes: ReadingSizes) -> None:
        self._sizes = sizes
        self._readers: dict[Group, ColumnReader] = {ALL_OTHERS: ColumnReader(sizes.columns)}

    def of(self, group: Group) -> ColumnReader:
        """The reader of a group; it is made if there is room."""
        if group not in self._readers and len(self._readers) < self._sizes.readers:
            self._readers[group] = ColumnReader(self._sizes.columns)
        return self._readers.get(group) or self._readers[ALL_OTHERS]


class LineReader:
    def __init__(self, readers: Readers, sizes: ReadingSizes) -> None:
        self.misread_by: str | None = None  # the version of DuckDB that reads in another way than relied on
        self._readers = readers
        self._sizes = sizes
        self._group_of: dict[bytes, Group] = {}  # by what lines seem to be, when they were read last

    def at_once(self, lines: Sequence[bytes], buffer_for: Callable[[str, str], RouteBuffer | None]) -> list[AtOnce]:
        """The lines about which nothing is special, group by group; none if they are better read one by one.

        `buffer_for` a call and the name of an event tells where such events go, if anywhere.
        """
        if len(lines) < self._sizes.fewest_at_once or not self._may_read_columns():
            return []
        done = []
        self._group_of, groups = grouped(lines, self._sizes)
        for group, places in groups.items():
            reader, of_group = self._readers.of(group), [lines[place] for place in places]
            self._learn_first(reader, of_group, is_shared=isinstance(group, int))
            done.append(AtOnce(np.array(places), ByRoute(reader.read(of_group), buffer_for)))
        return done

    def _may_read_columns(self) -> bool:
        if not canary.duckdb_is_understood():
            self.misread_by = duckdb.__version__
        return self.misread_by is None

    def _learn_first(self, reader: ColumnReader, lines: Sequence[bytes], *, is_shared: bool) -> None:
        if not reader.has_learned:
            wanted = self._sizes.learn_from_shared if is_shared else self._sizes.learn_from
            for line in lines[:: max(1, len(lines) // wanted)]:
                with suppress(exact_json.NotJsonError):
                    reader.learn(exact_json.parse(line).value)

    def learn(self, line: bytes, event: Any) -> None:
        """Take note of the keys of an event that was read by itself."""
        self._readers.of(self._group_of.get(hint(line), ALL_OTHERS)).learn(event)


def hint(line: bytes) -> bytes:
    """What the text of a line lets guess of its event: its name, or else its call."""
    start = line.find(_EVENT)
    start = start + len(_EVENT) if start >= 0 else line.find(_TYPE) + len(_TYPE)
    return line[start : line.find(b'"', start)]


def grouped(lines: Sequence[bytes], sizes: ReadingSizes) -> tuple[dict[bytes, Group], dict[Group, list[int]]]:
    """The group of lines by what they seem to be, and the places of the lines of each group."""
    by_hint: dict[bytes, list[int]] = {}
    for place, line in enumerate(lines):
        by_hint.setdefault(hint(line), []).append(place)
    group_of: dict[bytes, Group] = {}
    lines_of: Counter[Group] = Counter()
    for name, places in by_hint.items():
        is_large = len(places) >= sizes.fewest_in_group
        group_of[name] = name if is_large else crc32(name) % sizes.shared_groups
        lines_of[group_of[name]] += len(places)
    groups: dict[Group, list[int]] = {}
    for name, places in by_hint.items():
        if lines_of[group_of[name]] < sizes.fewest_in_group:
            group_of[name] = ALL_OTHERS
        groups.setdefault(group_of[name], []).extend(places)
    return group_of, {group: sorted(places) for group, places in groups.items()}
