"""The steps that C takes over the lines of a text; see lines.h for what each does."""

from collections.abc import Iterable, Iterator
from ctypes import CDLL, byref
from typing import NamedTuple
from zlib import crc32

import numpy as np

from eventlake.native.library import PADDING, Array, Columns, Filled, Lines, Names, Places, Values, address

KIND, _ESCAPED = 0x0F, 0x10
TEXT, _INTEGER, _JSON = 0, 1, 4
_BEYOND_ASCII = 0x80


class Text(NamedTuple):
    """Lines in one text, each ended by a newline; PADDING bytes follow the last."""

    content: bytes
    starts: Array
    ends: Array

    @classmethod
    def joined(cls, blocks: Iterable[tuple[bytes, Array, Array]]) -> "Text":
        """One text from several, each with the starts and ends of its lines."""
        texts, starts, ends = zip(*blocks, strict=True)
        begins = np.cumsum([0, *map(len, texts)])[:-1]
        return cls(
            b"".join([*texts, bytes(PADDING)]),
            np.concatenate([some + begin for some, begin in zip(starts, begins, strict=True)]),
            np.concatenate([some + begin for some, begin in zip(ends, begins, strict=True)]),
        )

    def line(self, number: int) -> bytes:
        return self.content[self.starts[number] : self.ends[number]]


class Found(NamedTuple):
    """What columns the values of lines are for."""

    column_of: Array  # each value
    row_of: Array  # each line, among those of its route
    rows: Array  # of each route


class Scan:
    """The lines of a text and their values."""

    def __init__(self, library: CDLL, places: Places, text: Text, values_per_line: int) -> None:
        self._library = library
        self._text = text
        self._heads = places.heads
        self.lines = Lines.of_text(text.content, text.starts, text.ends, places.heads)
        self.values = Values.with_room(len(text.starts) * values_per_line)
        done = 0
        while True:
            done = library.scan(byref(places), byref(self.values), byref(self.lines), done)
            if done == len(text.starts):
                break
            self.values.make_room(2 * self.values.capacity + int(text.ends[done] - text.starts[done]))

    def names(self, names: Names) -> Array:
        """The name of each line; -1 for none."""
        name_of = np.empty(len(self._text.starts), np.int32)
        self._library.name_lines(byref(names), byref(self.values), byref(self.lines), self._heads, address(name_of))
        return name_of

    def received(self) -> tuple[Array, Array]:
        """When lines were received, in microseconds since 1970, and which of them tell it in the usual form."""
        micros, is_told = np.zeros(len(self._text.starts), np.int64), np.empty(len(self._text.starts), np.uint8)
        arrays = (address(micros), address(is_told))
        self._library.receive(byref(self.values), byref(self.lines), self._heads, *arrays)
        return micros, is_told.view(bool)

    def texts(self, head: int, lines: Array) -> Iterator[tuple[bytes, bool] | None]:
        """The texts that some lines have at one of the first places, as they are written, and whether with escapes."""
        content = self._text.content
        values = self.lines.arrays["heads"][lines, head]
        of = {name: self.values.arrays[name][values].tolist() for name in ("start", "length", "kind")}
        for value, start, length, kind in zip(values.tolist(), *of.values(), strict=True):
            yield (content[start : start + length], kind & _ESCAPED != 0) if value >= 0 else None

    def has_word(self, head: int, lines: Array) -> tuple[Array, Array]:
        """Which lines have more than blanks at one of the first places, and of which lines that is plain to see."""
        values = self.lines.arrays["heads"][lines, head]
        is_there = values >= 0
        start, length, kind = (self.values.arrays[name][values] for name in ("start", "length", "kind"))
        is_empty = (kind & KIND == TEXT) & (length == 0)
        first = self.lines.arrays["text"][np.where(is_there, start, 0)]
        may_be_blank = (kind & KIND == TEXT) & ((first <= ord(" ")) | (first >= _BEYOND_ASCII))
        is_odd = (kind & _ESCAPED != 0) | (kind & KIND == _JSON) | may_be_blank
        return is_there & ~is_empty, ~is_there | is_empty | ~is_odd

    def suspects(self, place: int, sums: Array) -> Array:
        """The lines whose value at a place may be one of those with these sums: each needs a closer look."""
        values = np.flatnonzero(self.values.arrays["place"][: self.values.count] == place)
        start, length, kind = (self.values.arrays[name][values] for name in ("start", "length", "kind"))
        content = memoryview(self._text.content)
        bounds = zip(start.tolist(), (start + length).tolist(), strict=True)
        found = np.fromiter((crc32(content[one:end]) for one, end in bounds), np.uint32, len(values))
        at = np.minimum(np.searchsorted(sums, found), max(len(sums) - 1, 0))
        is_odd = (kind & _ESCAPED != 0) | ((kind & KIND != TEXT) & (kind & KIND != _INTEGER))
        is_suspect = is_odd | (sums[at] == found if len(sums) else False)
        return np.asarray(np.searchsorted(self.lines.arrays["first_value"], values[is_suspect], side="right") - 1)

    def find_columns(self, columns: Columns, route_of: Array, routes: int) -> Found:
        """The columns of values of lines that have a route. Some lines may lose theirs."""
        found = Found(
            np.empty(self.values.count, np.int32),
            np.empty(len(self._text.starts), np.int32),
            np.zeros(routes, np.int32),
        )
        for counts in (columns.arrays["values"], columns.arrays["bytes"]):
            counts[: columns.count] = 0
        arrays = map(address, (route_of, *found))
        self._library.find_columns(byref(columns), byref(self.values), byref(self.lines), *arrays)
        return found

    def fill(self, filled: Filled, kinds: Array, entries: Array, route_of: Array, found: Found) -> None:
        """Write values to their columns, which have these kinds and so many entries."""
        arrays = map(address, (route_of, found.column_of, found.row_of))
        self._library.fill(byref(filled), byref(self.values), byref(self.lines), *arrays)
        self._library.finish(byref(filled), len(kinds), address(kinds), address(entries))
