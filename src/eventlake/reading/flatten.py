"""From nested events to columns.

A `Flattener` holds the events of one table as plain lists, one per place in the event where a value was found.
It learns the places as it goes, so an event like the ones before costs one dictionary look-up and one append
per value. Everything unusual leaves that path at once (`_unusual`) and ends in a column or in the rescued
values of the row, never nowhere.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from eventlake.reading.exact_json import encode, json_text
from eventlake.schema import claims
from eventlake.schema.cast import NO_ROOM, NO_ROOM_NOW
from eventlake.schema.claims import Claim, Claims, ColumnRules, Path
from eventlake.schema.reading import SEGMENT, Reading
from eventlake.schema.rescue import Rescued, pointer

MAX_SPELLINGS = 8  # of one column; a sender that makes up keys must not fill the memory

# An empty one of these says nothing: most SDKs send `integrations: {}` with every event.
CONTAINERS = frozenset({"context", "properties", "traits", "integrations", "_metadata"})


class Column(NamedTuple):
    """The values found at one place of the events, one per row; None where there was none."""

    names: tuple[str, ...]
    pointer: str
    values: list[Any]


class Chunk(NamedTuple):
    """Some events of one table, as columns."""

    rows: int
    columns: list[Column]
    rescued: dict[int, list[Rescued]]


class _Object:
    """What is known about the objects at one place of the events."""

    __slots__ = ("leaves", "nowhere", "objects", "objects_nowhere", "path", "shared")

    def __init__(self, path: Path) -> None:
        self.path = path
        self.nowhere: set[str] = set()  # keys whose values have no column in this table
        self.objects_nowhere: set[str] = set()  # keys of objects of which nothing has one
        self.leaves: dict[str, list[Any]] = {}  # key → values, where no other place has the same column
        self.shared: dict[str, list[Any]] = {}  # key → values, where other places have the same column
        self.objects: dict[str, _Object] = {}


class _Leaf(NamedTuple):
    """Where in the events there are values that have a column."""

    owner: _Object
    key: str
    claims: Claims
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
        self,
        rules: ColumnRules = claims.SEGMENT,
        *,
        known: Iterable[str] = (),
        texts: Iterable[str] = (),
        column_limit: int = 2000,
        new_columns: NewColumns | None = None,
    ) -> None:
        self.rules = rules
        self.known = frozenset(known)
        self._texts = frozenset(texts)  # columns that take an object as JSON text
        self._of_all = new_columns or NewColumns(column_limit)
        self.places: dict[Claim, list[_Leaf]] = {}
        self.objects = 0
        self._limit = max(column_limit, len(self.known))
        self._new: set[str] = set()
        self._claims: dict[Path, tuple[str, ...] | None] = {}  # place → the columns that it has to itself
        self._claimed: set[Claim] = set()  # that some place has to itself

    @property
    def max_objects(self) -> int:
        return self._limit * 4

    def claimed(self, path: Path) -> tuple[str, ...] | None:
        """The columns that are for values from this place only, whatever else comes; None if they cannot be had.

        The first place that asks for a column gets it. The answer is the same ever after.
        """
        if path not in self._claims:
            wanted = self.rules.claims(path)
            if (
                any(self.takes_objects(path[:end]) for end in range(1, len(path)))
                or isinstance(wanted, str)
                or not self._claimed.isdisjoint(wanted)
                or self.no_room(wanted)
            ):
                self._claims[path] = None
            else:
                self._claims[path] = tuple(claim.column for claim in wanted)
                self._claimed.update(wanted)
                self.add(wanted)
        return self._claims[path]

    def takes_objects(self, path: Path) -> bool:
        """Whether an object at a place is text in the column that the table has for values there."""
        if not self._texts:
            return False
        wanted = self.rules.claims(path)
        return not isinstance(wanted, str) and any(claim.column in self._texts for claim in wanted)

    def no_room(self, wanted: Claims) -> str | None:
        """Why there is no room for some columns."""
        # Those of fixed types always have room: without its id a row would be nobody's.
        new = {claim.column for claim in wanted} - self.known - self._new - self.rules.fixed.keys()
        if not new:
            return None
        if len(self.known) + len(self._new) + len(new) > self._limit:
            return NO_ROOM
        return NO_ROOM_NOW if self._of_all.left < len(new) else None

    def add(self, wanted: Claims) -> None:
        for claim in wanted:
            if claim.column not in self.known and claim.column not in self._new:
                self._new.add(claim.column)
                self._of_all.left -= 1


class Flattener:
    """Collects events of one table; `take` gives what was collected and starts anew."""

    def __init__(self, columns: TableColumns, reading: Reading = SEGMENT) -> None:
        self.rows = 0
        self.padding = (
            0  # cells that stand for nothing: a key that is new in a late event has one for each event before
        )
        self._table = columns
        self._reading = reading
        self._root = _Object(())
        self._places: list[_Leaf] = []
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
                columns.append(Column(tuple(claim.column for claim in place.claims), place.pointer, values))
                place.lists[place.key] = []  # not cleared: to touch every value once more takes time
        chunk = Chunk(self.rows, columns, self._rescued)
        self.rows, self.padding, self._rescued = 0, 0, {}
        return chunk

    def _walk(self, place: _Object, members: dict[str, Any], row: int) -> None:
        leaves = place.leaves
        for key, value in sorted(members.items(), reverse=True) if self._reading.last_key_wins else members.items():
            if value is None or (self._reading.leaves_out_empty and _says_nothing(value)):
                continue
            kind = type(value)
            if kind is dict:
                child = place.objects.get(key)
                if child is not None and value:
                    self._walk(child, value, row)
                elif key not in place.objects_nowhere:
                    self._unusual_object(place, key, value, row)
                continue
            if kind is list:
                value = encode(value)  # noqa: PLW2901 - this loop runs for every value of every event
            values = leaves.get(key)
            if values is None:
                if key in place.nowhere:
                    continue
                values = self._unusual(place, key, value, row)
                if values is None:
                    continue
            missing = row - len(values)
            if missing:
                values.extend([None] * missing)
                self.padding += missing
            values.append(value)

    def _unusual(self, place: _Object, key: str, value: Any, row: int) -> list[Any] | None:
        """The list for a value whose key is new or shares its column; None if it is not in this table, or rescued."""
        path = (*place.path, key)
        wanted = self._table.rules.claims(path)
        if wanted == claims.NOWHERE:
            self._note_nowhere(place.nowhere, key)
            return None
        values = place.shared.get(key)
        reason = wanted if isinstance(wanted, str) else self._no_column(wanted, row, is_new=values is None)
        if isinstance(wanted, str) or reason:
            self.rescue(row, Rescued(pointer(path), _text(value), str(reason)))
            return None
        return self._learn(_Leaf(place, key, wanted, pointer(path))) if values is None else values

    def _note_nowhere(self, keys: set[str], key: str) -> None:
        if len(keys) < self._table.max_objects:  # who makes up keys must not fill the memory
            keys.add(key)

    def _no_column(self, wanted: Claims, row: int, *, is_new: bool) -> str | None:
        """Why a value cannot have its columns."""
        no_room = self._table.no_room(wanted) if is_new else None
        if no_room:
            return no_room
        for claim in wanted:
            spellings = self._table.places.get(claim, [])
            if _filled(spellings, row):
                return f"another key has the column {claim.column} in this event"
            if is_new and len(spellings) >= MAX_SPELLINGS:
                return f"more than {MAX_SPELLINGS} spellings of the column {claim.column}"
        return None

    def _learn(self, place: _Leaf) -> list[Any]:
        others = {other.pointer: other for claim in place.claims for other in self._table.places.get(claim, [])}
        for other in others.values():
            if other.key in other.owner.leaves:
                other.owner.shared[other.key] = other.owner.leaves.pop(other.key)
        self._table.add(place.claims)
        values: list[Any] = []
        (place.owner.shared if others else place.owner.leaves)[place.key] = values
        for claim in place.claims:
            self._table.places.setdefault(claim, []).append(place)
        self._places.append(place)
        return values

    def _unusual_object(self, place: _Object, key: str, value: dict[str, Any], row: int) -> None:
        path = (*place.path, key)
        if not value:
            if not self._reading.leaves_out_empty and (place.path or key not in CONTAINERS):
                self.rescue(row, Rescued(pointer(path), "{}", "an empty object has no column"))
        elif not place.path and self._table.rules.claims((key, "")) == claims.NOWHERE:
            self._note_nowhere(place.objects_nowhere, key)  # nothing of it has a column in this table
        elif len(path) >= self._reading.max_depth or self._table.takes_objects(path):
            self._walk(place, {key: encode(value)}, row)
        elif self._table.objects >= self._table.max_objects:
            self.rescue(row, Rescued(pointer(path), json_text(value), "too many different objects in this table"))
        else:
            self._table.objects += 1
            child = place.objects[key] = _Object(path)
            self._walk(child, value, row)


def _says_nothing(value: Any) -> bool:
    """Whether a value is empty: a text, an array, or arrays of one element around either."""
    while isinstance(value, list):
        if len(value) != 1:
            return not value
        value = value[0]
    return isinstance(value, str) and not value


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else json_text(value)


def _filled(places: list[_Leaf], row: int) -> bool:
    return any(len(place.values) > row for place in places)
