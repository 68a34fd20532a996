"""From nested events to columns.

A `Flattener` holds the events of one table as plain lists, one per place in the event where a value was found.
It learns the places as it goes, so an event like the ones before costs one dictionary look-up and one append
per value. Everything unusual leaves that path at once (`_unusual`) and ends in a column or in the rescued
values of the row, never nowhere.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from eventlake.reading.exact_json import encode, json_text
from eventlake.schema import names
from eventlake.schema.cast import NO_ROOM, NO_ROOM_NOW
from eventlake.schema.rescue import Rescued, pointer
from eventlake.schema.types import ENVELOPE_TYPES

MAX_DEPTH = 32  # an object below this depth is kept as JSON text
MAX_SPELLINGS = 8  # of one column; a sender that makes up keys must not fill the memory

# An empty one of these says nothing: most SDKs send `integrations: {}` with every event.
CONTAINERS = frozenset({"context", "properties", "traits", "integrations", "_metadata"})


class Column(NamedTuple):
    """The values found at one place of the events, one per row; None where there was none."""

    name: str
    pointer: str
    values: list[Any]


class Chunk(NamedTuple):
    """Some events of one table, as columns."""

    rows: int
    columns: list[Column]
    rescued: dict[int, list[Rescued]]


class _Object:
    """What is known about the objects at one place of the events."""

    __slots__ = ("leaves", "objects", "path", "shared")

    def __init__(self, path: tuple[str, ...]) -> None:
        self.path = path
        self.leaves: dict[str, list[Any]] = {}  # key → values, where no other place has the same column
        self.shared: dict[str, list[Any]] = {}  # key → values, where other places have the same column
        self.objects: dict[str, _Object] = {}


class _Place(NamedTuple):
    """A place of the events whose values have a column."""

    owner: _Object
    key: str
    column: str
    pointer: str

    @property
    def lists(self) -> dict[str, list[Any]]:
        return self.owner.leaves if self.key in self.owner.leaves else self.owner.shared

    @property
    def values(self) -> list[Any]:
        return self.lists[self.key]


class NewColumns:
    """How many more columns may be new, over all tables of a task: whoever makes up keys must not fill its memory."""

    def __init__(self, left: int) -> None:
        self.left = left


class TableColumns:
    """Which columns a table has, and at which places of its events their values are found."""

    def __init__(
        self, *, known: Iterable[str] = (), column_limit: int = 2000, new_columns: NewColumns | None = None
    ) -> None:
        self.known = frozenset(known)
        self._of_all = new_columns or NewColumns(column_limit)
        self.places: dict[str, list[_Place]] = {}
        self.objects = 0
        self._limit = max(column_limit, len(self.known))
        self._new: set[str] = set()
        self._claims: dict[str, str | None] = {}  # place → the column that it has to itself
        self._claimed: set[str] = set()  # columns that some place has to itself

    @property
    def max_objects(self) -> int:
        return self._limit * 4

    def claimed(self, path: tuple[str, ...]) -> str | None:
        """The column that is for values from this place only, whatever else comes; None if there is none.

        The first place that asks for a column gets it. The answer is the same ever after.
        """
        place = pointer(path)
        if place not in self._claims:
            name = names.column_name(*path)
            is_free = name not in self._claimed and self.refused(name, place) is None
            self._claims[place] = name if is_free else None
            if is_free:
                self._claimed.add(name)
                self.add(name)
        return self._claims[place]

    def refused(self, name: str, place: str) -> str | None:
        """Why a column cannot be had for this place."""
        if names.OWNED_COLUMNS.get(name, place) != place:
            return f"the column {name} is for {names.OWNED_COLUMNS[name]}"
        if name in names.PARTITION_KEYS:
            return f"{name} is the name of a partition"
        if name in self.known or name in self._new or name in ENVELOPE_TYPES:  # without its id a row would be nobody's
            return None
        if len(self.known) + len(self._new) >= self._limit:
            return NO_ROOM
        return NO_ROOM_NOW if self._of_all.left <= 0 else None

    def add(self, name: str) -> None:
        if name not in self.known and name not in self._new:
            self._new.add(name)
            self._of_all.left -= 1


class Flattener:
    """Collects events of one table; `take` gives what was collected and starts anew."""

    def __init__(self, columns: TableColumns) -> None:
        self.rows = 0
        self.padding = (
            0  # cells that stand for nothing: a key that is new in a late event has one for each event before
        )
        self._table = columns
        self._root = _Object(())
        self._places: list[_Place] = []
        self._rescued: dict[int, list[Rescued]] = {}

    def add(self, event: dict[str, Any], set_aside: list[Rescued]) -> None:
        """Take one event as the next row; `set_aside` is what its parser could not place."""
        if set_aside:
            self._rescued.setdefault(self.rows, []).extend(set_aside)
        self._walk(self._root, event, self.rows)
        self.rows += 1

    def rescue(self, row: int, entry: Rescued) -> None:
        self._rescued.setdefault(row, []).append(entry)

    def take(self) -> Chunk:
        columns = []
        for place in self._places:
            values = place.values
            if values:
                values.extend([None] * (self.rows - len(values)))
                columns.append(Column(place.column, place.pointer, values))
                place.lists[place.key] = []  # not cleared: to touch every value once more takes time
        chunk = Chunk(self.rows, columns, self._rescued)
        self.rows, self.padding, self._rescued = 0, 0, {}
        return chunk

    def _walk(self, place: _Object, members: dict[str, Any], row: int) -> None:
        leaves = place.leaves
        for key, value in members.items():
            if value is None:
                continue
            kind = type(value)
            if kind is dict:
                child = place.objects.get(key)
                if child is not None and value:
                    self._walk(child, value, row)
                else:
                    self._unusual_object(place, key, value, row)
                continue
            if kind is list:
                value = encode(value)  # noqa: PLW2901 - this loop runs for every value of every event
            values = leaves.get(key)
            if values is None:
                values = self._unusual(place, key, value, row)
                if values is None:
                    continue
            missing = row - len(values)
            if missing:
                values.extend([None] * missing)
                self.padding += missing
            values.append(value)

    def _unusual(self, place: _Object, key: str, value: Any, row: int) -> list[Any] | None:
        """The list for a value whose key is new or shares its column; None when the value was rescued."""
        path = (*place.path, key)
        name = names.column_name(*path)
        spellings = self._table.places.get(name, [])
        values = place.shared.get(key)
        if values is None:
            reason = self._no_column(name, pointer(path), spellings, row)
            if reason:
                self.rescue(row, Rescued(pointer(path), _text(value), reason))
                return None
            return self._learn(_Place(place, key, name, pointer(path)))
        if _filled(spellings, row):
            self.rescue(
                row,
                Rescued(pointer(path), _text(value), f"another key has the column {name} in this event"),
            )
            return None
        return values

    def _no_column(self, name: str, place: str, spellings: list[_Place], row: int) -> str | None:
        reason = self._table.refused(name, place)
        if reason:
            return reason
        if _filled(spellings, row):
            return f"another key has the column {name} in this event"
        if len(spellings) >= MAX_SPELLINGS:
            return f"more than {MAX_SPELLINGS} spellings of the column {name}"
        return None

    def _learn(self, place: _Place) -> list[Any]:
        spellings = self._table.places.setdefault(place.column, [])
        if not spellings:
            lists = place.owner.leaves
            self._table.add(place.column)
        else:
            for other in spellings:
                if other.key in other.owner.leaves:
                    other.owner.shared[other.key] = other.owner.leaves.pop(other.key)
            lists = place.owner.shared
        values = lists[place.key] = []
        spellings.append(place)
        self._places.append(place)
        return values

    def _unusual_object(self, place: _Object, key: str, value: dict[str, Any], row: int) -> None:
        path = (*place.path, key)
        if not value:
            if place.path or key not in CONTAINERS:
                self.rescue(row, Rescued(pointer(path), "{}", "an empty object has no column"))
        elif len(path) >= MAX_DEPTH:
            self._walk(place, {key: encode(value)}, row)
        elif self._table.objects >= self._table.max_objects:
            self.rescue(row, Rescued(pointer(path), json_text(value), "too many different objects in this table"))
        else:
            self._table.objects += 1
            child = place.objects[key] = _Object(path)
            self._walk(child, value, row)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else json_text(value)


def _filled(places: list[_Place], row: int) -> bool:
    return any(len(place.values) > row for place in places)
