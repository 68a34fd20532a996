"""Lines read at once, as columns, without a Python object for each value.

The work is done in C (`native/lines.h`), step by step over all lines of a text. In between, Python decides what there
are few of: where events go, and what columns are called. Whatever is unusual about a line leaves it to the exact
reader; both give the same rows.
"""

from collections.abc import Callable, Iterator, Mapping
from ctypes import CDLL, byref
from dataclasses import dataclass
from functools import reduce
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
import numpy as np

from eventlake.lake.ids import Array
from eventlake.lake.staging import Field, Packed, aligned, laid_out
from eventlake.native.library import PADDING, UNUSABLE, UNUSED, Columns, Filled, Names, Places
from eventlake.reading.flatten import CONTAINERS
from eventlake.reading.route_buffer import RouteBuffer
from eventlake.reading.scan import KIND, TEXT, Found, Scan, Text
from eventlake.schema.rescue import pointer

_HEADS = ("type", "event", "messageId", "receivedAt", "userId")  # C knows them by their places
_MESSAGE_ID, _RECEIVED_AT, _USER_ID = 2, 3, 4

_NOWHERE = -2  # instead of a route: the line is left out

_decode_text = msgspec.json.Decoder(str).decode


@dataclass(frozen=True)
class ScanSizes:
    """How much is remembered while lines are read: anybody with a write key can make up keys and events."""

    places: int = 20_000
    bytes_of_keys: int = 1 << 20
    names: int = 100_000
    bytes_of_names: int = 8 << 20
    columns: int = 400_000
    values_per_line: int = 64  # for which there is room to begin with


class Asked(NamedTuple):
    """What lines are read for."""

    buffer_for: Callable[[str, str, bool], RouteBuffer | None]
    """Where events of a type and a name go, if anywhere; with a user id or without one."""

    is_wanted: Callable[[RouteBuffer, Array], Array | None]
    """Which events, by when they were received; None for all."""

    received: Callable[[Any], int | None]
    """When an event was received, by what it says; None if that is no time."""

    is_special: Callable[[tuple[str, ...]], bool] = lambda _: False
    """Whether values at a place decide where an event goes."""

    leaves_out_empty: bool = False  # texts, arrays and objects that are empty say nothing

    watched: Mapping[tuple[str, ...], Array] = MappingProxyType({})
    """Places whose values decide whether an event gets in, and the sorted sums of values for which that is likely."""

    looking: Callable[[str, str], Callable[[bytes], bool] | None] = lambda *_: None
    """For events of a kind and name, what tells whether a line of them can be taken as it is; None if all can."""


class Piece(NamedTuple):
    """Lines that are on one route."""

    buffer: RouteBuffer
    lines: Array
    received: Array
    message_ids: list[bytes]
    packed: Packed


class LeftOutError(Exception):
    """Whoever is asked where events go may raise this: nowhere, and nothing of them need be read."""


class LeftOut(NamedTuple):
    """Lines of which nothing need be read, and when they were received."""

    lines: Array
    received: Array


class Scanned(NamedTuple):
    """What became of lines that were read; those that were neither taken nor skipped are for the exact reader."""

    is_taken: Array
    is_skipped: Array  # not wanted
    left_out: LeftOut
    pieces: Iterator[Piece]  # with all that were taken


class Scanner:
    """Reads lines for one task. It remembers the keys, names and columns that it met."""

    def __init__(self, library: CDLL, asked: Asked, sizes: ScanSizes) -> None:
        self._library = library
        self._asked = asked
        self._sizes = sizes
        self._places = Places.with_room(sizes.places, sizes.bytes_of_keys, skip_empty=asked.leaves_out_empty)
        self._paths: list[tuple[str, ...]] = [()]  # by place
        self._names = Names.with_room(sizes.names, sizes.bytes_of_names)
        self._routes_of_names: list[tuple[int, int]] = []  # without a user id, and with one
        self._looks: list[Callable[[bytes], bool] | None] = []  # by name
        self._routes: dict[tuple[str, ...], int] = {}
        self._buffers: list[RouteBuffer] = []  # by route
        self._columns = Columns.with_room(sizes.columns)
        self._pointers: list[str] = []  # by column
        self._claims: list[list[tuple[str, str]]] = []  # by column: its tables, and its names there
        for key in _HEADS:
            self._place_of(key)
        for key in CONTAINERS:
            self._places.arrays["may_be_empty"][self._place_of(key)] = True
        self._places.heads = len(_HEADS)
        self._watched = [(reduce(self._place_in, path, 0), sums) for path, sums in asked.watched.items()]

    def _place_of(self, key: str) -> int:
        return self._place_in(0, key)

    def _place_in(self, parent: int, key: str) -> int:
        content = key.encode()
        place: int = self._library.place_of_key(byref(self._places), parent, content + bytes(PADDING), len(content))
        return place

    def read(self, text: Text, day_of_line: Callable[[int], int]) -> Scanned:
        """Read lines; `day_of_line` tells when those were received that do not tell it themselves."""
        scan = Scan(self._library, self._places, text, self._sizes.values_per_line)
        name_of = self._names_of(scan)
        route_of = self._routes_of(scan, name_of)
        for place, sums in self._watched:
            route_of[scan.suspects(place, sums)] = -1
        micros, is_told = scan.received()
        nowhere = np.flatnonzero((route_of == _NOWHERE) & is_told)
        left_out = LeftOut(nowhere, micros[nowhere])
        received = self._received(scan, route_of, micros, is_told, day_of_line)
        is_skipped = self._skip(route_of, received)
        self._look(text, name_of, route_of)
        found = scan.find_columns(self._columns, route_of, len(self._buffers))
        while not self._are_usable():
            found = scan.find_columns(self._columns, route_of, len(self._buffers))
        return Scanned(route_of >= 0, is_skipped, left_out, self._pieces(scan, route_of, received, found))

    def _names_of(self, scan: Scan) -> Array:
        """The kind and name of each line's event, by number."""
        name_of = scan.names(self._names)
        for name in range(len(self._routes_of_names), self._names.count):
            call, event, *_ = (_decode_text(b'"' + part + b'"') for part in self._names.text(name).split(b"\n"))
            self._routes_of_names.append((self._route_of(call, event, False), self._route_of(call, event, True)))
            self._looks.append(self._asked.looking(call, event))
        return name_of

    def _look(self, text: Text, name_of: Array, route_of: Array) -> None:
        """Take the routes of lines that cannot be taken as they are."""
        for name, is_clean in enumerate(self._looks):
            if is_clean is not None:
                lines = np.flatnonzero((name_of == name) & (route_of >= 0))
                found = np.fromiter((is_clean(text.line(line)) for line in lines.tolist()), bool, len(lines))
                route_of[lines[~found]] = -1

    def _routes_of(self, scan: Scan, name_of: Array) -> Array:
        """The route of each line; -1 for none."""
        routes = np.array([*self._routes_of_names, (-1, -1)], np.int32)[name_of]
        route_of = routes[:, 0].copy()
        if (unlike := np.flatnonzero(routes[:, 0] != routes[:, 1])).size:
            has_user, is_plain = scan.has_word(_USER_ID, unlike)
            route_of[unlike] = np.where(is_plain, np.where(has_user, routes[unlike, 1], routes[unlike, 0]), -1)
        return route_of

    def _route_of(self, call: str, event: str, has_user: bool) -> int:
        try:
            buffer = self._asked.buffer_for(call, event, has_user)
        except LeftOutError:
            return _NOWHERE
        if buffer is None:
            return -1
        route = self._routes.setdefault(buffer.route, len(self._buffers))
        if route == len(self._buffers):
            self._buffers.append(buffer)
        return route

    def _received(
        self, scan: Scan, route_of: Array, micros: Array, is_told: Array, day_of_line: Callable[[int], int]
    ) -> Array:
        """When the lines that have a route were received, in microseconds since 1970."""
        untold = np.flatnonzero((route_of >= 0) & ~is_told)
        for line, sent in zip(untold.tolist(), scan.texts(_RECEIVED_AT, untold), strict=True):
            told = self._asked.received(_unescaped(*sent).decode()) if sent else None
            micros[line] = day_of_line(line) if told is None else told
        return micros

    def _skip(self, route_of: Array, received: Array) -> Array:
        """Take the routes of lines that are not wanted; which they are."""
        is_skipped = np.zeros(len(route_of), bool)
        for route, buffer in enumerate(self._buffers):
            lines = np.flatnonzero(route_of == route)
            wanted = self._asked.is_wanted(buffer, received[lines])
            if wanted is not None:
                is_skipped[lines[~wanted]] = True
        route_of[is_skipped] = -1
        return is_skipped

    def _are_usable(self) -> bool:
        """Find what columns that are new are called; whether all of them have their columns to themselves."""
        are_usable = True
        for column in range(len(self._claims), self._columns.count):
            path = self._path_of(int(self._columns.arrays["place"][column]))
            buffer = self._buffers[self._columns.arrays["route"][column]]
            is_for_others = self._asked.is_special(path) or self._is_odd_time(column)
            claimed = None if is_for_others else buffer.claimed(path)
            self._pointers.append(pointer(path))
            self._claims.append(claimed or [])
            if not claimed:
                self._columns.arrays["use"][column] = UNUSABLE if claimed is None else UNUSED
                are_usable = False
        return are_usable

    def _is_odd_time(self, column: int) -> bool:
        """Whether values are at the place that tells when a line was received, and are no texts."""
        place, kind = (int(self._columns.arrays[name][column]) for name in ("place", "kind"))
        return place == _RECEIVED_AT + 1 and kind & KIND != TEXT

    def _path_of(self, place: int) -> tuple[str, ...]:
        for new in range(len(self._paths), place + 1):
            parent, key = self._places.key(new)
            self._paths.append((*self._paths[parent], key))
        return self._paths[place]

    def _pieces(self, scan: Scan, route_of: Array, received: Array, found: Found) -> Iterator[Piece]:
        counts = {name: array[: self._columns.count] for name, array in self._columns.arrays.items()}
        used = np.flatnonzero(counts["values"])
        used = used[np.argsort(counts["route"][used], kind="stable")]
        route = counts["route"][used]
        fields, out = self._filled(scan, used, route, route_of, found)
        order = np.argsort(route_of, kind="stable")[np.count_nonzero(route_of < 0) :]
        first_field = np.searchsorted(route, np.arange(len(self._buffers) + 1)).tolist()
        first_line = np.cumsum([0, *found.rows]).tolist()
        start = 0
        for number in np.flatnonzero(found.rows).tolist():
            lines = order[first_line[number] : first_line[number + 1]]
            which = slice(first_field[number], first_field[number + 1])
            columns, of_route = used[which].tolist(), fields[which]
            end = int(of_route[-1, -1])
            body = out[start:end]
            body[: 8 * len(lines)].view(np.int64)[:] = received[lines]
            of_route[:, 2:] -= np.where(of_route[:, 2:] >= 0, start, 0)
            pointers = [self._pointers[column] for column in columns]
            packed = Packed(len(lines), pointers, of_route, self._tables(columns), body)
            yield Piece(self._buffers[number], lines, received[lines], _message_ids(scan, lines), packed)
            start = end

    def _filled(self, scan: Scan, used: Array, route: Array, route_of: Array, found: Found) -> tuple[Array, Array]:
        """The fields of all pieces, and their bytes, one after the other."""
        rows = found.rows[route].astype(np.int64)
        is_first = np.diff(route, prepend=-1) != 0
        before = np.cumsum(np.where(is_first, aligned(8 * rows), 0))  # when the lines of a route were received
        kinds, values, texts = (self._columns.arrays[name][used] for name in ("kind", "values", "bytes"))
        fields = laid_out(kinds, values, texts, rows, before)

        def of_all(values: Array, others: int, kind: type) -> Array:
            array: Array = np.full(self._columns.count, others, kind)
            array[used] = values
            return array

        places = {name: fields[:, Field._fields.index(name)] for name in Field._fields}
        out = np.zeros(int(fields[-1, -1]) if len(used) else 0, np.uint8)
        memory = Filled.of(
            {
                **{name: of_all(places[name], -1, np.int64) for name in Field._fields if name.endswith("_at")},
                "next": np.zeros(self._columns.count, np.int32),
                "used": np.zeros(self._columns.count, np.int32),
                "out": out,
            }
        )
        entries = of_all(np.where(places["rows_at"] >= 0, places["values"], rows), 0, np.int32)
        scan.fill(memory, of_all(places["kind"], 0, np.uint8), entries, route_of, found)
        return fields, out

    def _tables(self, columns: list[int]) -> dict[str, list[tuple[str, int]]]:
        """For each table, what its columns are called and which of these they are."""
        tables: dict[str, list[tuple[str, int]]] = {}
        for number, column in enumerate(columns):
            for table_key, name in self._claims[column]:
                tables.setdefault(table_key, []).append((name, number))
        return tables


def _message_ids(scan: Scan, lines: Array) -> list[bytes]:
    return [_unescaped(*sent) for sent in scan.texts(_MESSAGE_ID, lines) if sent]


def _unescaped(text: bytes, has_escapes: bool) -> bytes:
    return _decode_text(b'"' + text + b'"').encode() if has_escapes else text
