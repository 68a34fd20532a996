"""From events whose repeated parts are text (see `event_json`) to columns.

A part of the events, say `context.device`, has few distinct texts. Each is parsed and flattened once, for all tables
(`DistinctTexts`); what a table keeps of a row is a number. The rest of an event goes through the table's `Flattener`.
"""

from collections.abc import Callable, Iterable, Iterator
from operator import call
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from eventlake.schema import exact_json
from eventlake.schema.event_json import AT_TOP, CONTEXT, EventParser, Path
from eventlake.schema.flatten import Chunk, ColumnSharedError, Flattener, TableColumns
from eventlake.schema.kinds import Place, by_kind, joined
from eventlake.schema.rescue import Rescued

_MAX_BYTES = 16 << 20  # of texts that are remembered
_FEW = 4  # rows per text, at least, for a dictionary
_MANY_TEXTS = 8000  # fewer cost little, however seldom each is repeated

# A sender that makes up keys must not fill the memory.
_MAX_PARTS = 200
_MAX_SHAPES = 200
_MAX_SIZE = 1500  # columns of all parts, and objects in them
_MAX_CELLS = 4_000_000  # of one part: texts times columns


class CannotFoldError(Exception):
    """Parts of this event cannot be flattened apart from each other: after `take`, call `take_whole`."""


class FlatRows(NamedTuple):
    """Some events of one table, as arrays that have a value or null for each."""

    rows: int
    columns: list[tuple[Place, pa.Array]]
    rescued: dict[int, list[Rescued]]


class RepeatedParts:
    """The distinct texts of all parts, which the tables of a task share."""

    def __init__(self, parser: EventParser) -> None:
        self.is_text = parser.is_text
        self.at_top = self._at_top()
        self.owners: dict[str, Path] = {}  # column → path of the part that has it; () for the rest of the events
        self.size = 0  # columns of all parts, and objects in them
        self._parser = parser
        self._parts: dict[Path, DistinctTexts] = {}

    def _at_top(self) -> list[tuple[str, Path]]:
        return [(path[0], path) for path in AT_TOP if self.is_text(path)]

    def part(self, path: Path) -> "DistinctTexts":
        if path not in self._parts:
            if len(self._parts) >= _MAX_PARTS:
                raise CannotFoldError
            self._parts[path] = DistinctTexts(path, self)
        return self._parts[path]

    @property
    def need_review(self) -> bool:
        return any(part.is_seldom_repeated for part in self._parts.values())

    def review(self) -> None:
        """Give up parts that do not repeat, and forget the texts if they are many; no table may hold events."""
        different = {path for path, part in self._parts.items() if part.is_seldom_repeated}
        if different:
            self._parser.take_whole(different)
            self.at_top = self._at_top()
        if different or sum(part.size for part in self._parts.values()) > _MAX_BYTES:
            self._parts.clear()
            self.size = 0
            for name in [name for name, path in self.owners.items() if path]:
                del self.owners[name]


class DistinctTexts:
    """The distinct texts of one part of the events, numbered in the order in which they were met."""

    def __init__(self, path: Path, all_parts: RepeatedParts) -> None:
        self.numbers: dict[bytes, int] = {}
        self.rows = 0  # that have one of the texts
        self.size = 0  # of the texts, in bytes
        self._path = path
        self._all_parts = all_parts
        self._before = b"".join(b"{" + exact_json.encode(key) + b":" for key in path)
        self._after = b"}" * len(path)
        self._columns = TableColumns(column_limit=2 * _MAX_SIZE)
        self._flattener = Flattener(self._columns)
        self._values: dict[Place, pa.Array] = {}
        self._rescued: dict[int, list[Rescued]] = {}
        self._in_values = 0

    def number(self, text: bytes) -> int:
        """The number of a text. Raises NotJsonError and CannotFoldError."""
        number = self.numbers.get(text)
        if number is None:
            row, before = self._flattener.rows, self._columns.new + self._columns.objects
            self._flattener.add(*exact_json.parse(self._before + text + self._after))
            names, owners = self._flattener.filled(row), self._all_parts.owners
            is_shared = any(owners.get(name, self._path) != self._path for name in names)
            self._all_parts.size += self._columns.new + self._columns.objects - before
            is_too_much = self._all_parts.size > _MAX_SIZE or self._columns.new * len(self.numbers) > _MAX_CELLS
            if is_shared or is_too_much:
                self._flattener.forget(row)
                raise CannotFoldError
            owners.update(dict.fromkeys(names, self._path))
            number = self.numbers[text] = len(self.numbers)
            self.size += len(text)
        return number

    @property
    def is_seldom_repeated(self) -> bool:
        return len(self.numbers) > max(_MANY_TEXTS, self.rows // 3)

    def flat(self) -> FlatRows:
        """All texts, as rows by their numbers."""
        if self._in_values < len(self.numbers):
            new = self._flattener.take()
            self._values = joined([(self._in_values, self._values), (new.rows, dict(_arrays(new)))])
            self._rescued |= {self._in_values + row: entries for row, entries in new.rescued.items()}
            self._in_values += new.rows
        return FlatRows(self._in_values, list(self._values.items()), self._rescued)


def _arrays(chunk: Chunk) -> Iterator[tuple[Place, pa.Array]]:
    for name, pointer, values in chunk.columns:
        for kind, array in by_kind(values):
            yield Place(name, pointer, kind), array


class FoldingFlattener:
    """Collects the events of one table; `take` gives what was collected and starts anew."""

    def __init__(self, *, known: Iterable[str], column_limit: int, parts: RepeatedParts) -> None:
        self.takes_whole = False
        self._parts = parts
        self._columns = TableColumns(known=known, column_limit=column_limit, owners=parts.owners)
        self._rest = Flattener(self._columns)
        self._shapes: dict[tuple[str | Path, ...], _Shape] = {}  # by keys in `context` and paths of other parts

    def add(self, event: dict[str, Any], set_aside: list[Rescued]) -> None:
        """Take one event as the next row, and the event apart. Raises CannotFoldError; then nothing of it was taken."""
        if self.takes_whole:
            self._rest.add(event, set_aside)
            return
        context = event.get(CONTEXT)
        texts = context if type(context) is dict else {}
        for key, path in self._parts.at_top:
            if key in event:
                texts[path] = event.pop(key)
        shape = self._shapes.get(tuple(texts)) or self._new_shape(tuple(texts))
        if shape.whole:
            event[CONTEXT] = {key: texts.pop(key) for key in shape.whole}
        elif texts is context:
            del event[CONTEXT]
        numbers: list[Any] = list(map(call, shape.numbers, map(bytes, texts.values())))
        if None in numbers:  # a text is new
            numbers = [part.number(bytes(text)) for part, text in zip(shape.parts, texts.values(), strict=True)]
        row = self._rest.rows
        try:
            self._rest.add(event, set_aside)
        except ColumnSharedError as error:
            self._rest.forget(row)
            raise CannotFoldError from error
        if not shape.rows:
            self._shapes[shape.keys] = shape
        shape.rows.append(row)
        shape.texts.extend(numbers)

    def _new_shape(self, keys: tuple[str | Path, ...]) -> "_Shape":
        if len(self._shapes) >= _MAX_SHAPES:
            raise CannotFoldError
        paths = {key: (CONTEXT, key) if isinstance(key, str) else key for key in keys}
        whole = [key for key, path in paths.items() if not self._parts.is_text(path)]
        parts = [self._parts.part(path) for key, path in paths.items() if key not in whole]
        return _Shape(keys, whole, parts, [part.numbers.get for part in parts], [], [])

    def take(self) -> FlatRows:
        rest = self._rest.take()
        columns = list(_arrays(rest))
        for part, numbers in self._texts_of_rows(rest.rows).items():
            part.rows += int(np.count_nonzero(numbers >= 0))
            columns += _unfolded(part.flat(), numbers, rest.rescued)
        self._shapes = {}
        return FlatRows(rest.rows, columns, rest.rescued)

    def _texts_of_rows(self, rows: int) -> dict[DistinctTexts, Any]:
        """For each part the number of each row's text, -1 for none."""
        found: dict[DistinctTexts, Any] = {}
        for shape in self._shapes.values():
            numbers = np.array(shape.texts, np.int32).reshape(len(shape.rows), len(shape.parts))
            for place, part in enumerate(shape.parts):
                if part not in found:
                    found[part] = np.full(rows, -1, np.int32)
                found[part][shape.rows] = numbers[:, place]
        return found

    def take_whole(self) -> None:
        """Take events as `exact_json` gives them from now on."""
        self.takes_whole = True
        self._rest = Flattener(TableColumns(known=self._columns.known, column_limit=self._columns.limit))


class _Shape(NamedTuple):
    """Events that have the same parts in the same order."""

    keys: tuple[str | Path, ...]
    whole: list[str | Path]  # those of what is no text
    parts: list[DistinctTexts]
    numbers: list[Callable[[bytes], int | None]]  # of a known text of each part
    rows: list[int]
    texts: list[int]  # for each row, the number of the text of each part


def _unfolded(texts: FlatRows, numbers: Any, rescued: dict[int, list[Rescued]]) -> Iterator[tuple[Place, pa.Array]]:
    """The columns of a part for rows with these texts; adds to what is rescued in the rows."""
    choice = _Choice(numbers, texts.rows)
    for place, values in texts.columns:
        array = choice.of(values)
        if array.null_count < len(array):
            yield place, array
    if not texts.rescued.keys().isdisjoint(choice.texts.tolist()):
        for row, number in enumerate(numbers.tolist()):
            if number in texts.rescued:
                rescued.setdefault(row, []).extend(texts.rescued[number])


class _Choice:
    """Which texts the rows of a table have, by the number of each row's text, -1 for none."""

    def __init__(self, numbers: Any, texts: int) -> None:
        used = np.zeros(texts + 1, bool)
        used[numbers] = True
        used[-1] = False  # no text
        none = numbers < 0
        self.texts = np.flatnonzero(used)
        self._rows = pa.array(numbers, mask=none)
        self._rows_here = pa.array((np.cumsum(used, dtype=np.int32) - 1)[numbers], mask=none)  # among those texts

    def of(self, values: pa.Array) -> pa.Array:
        """The values of the rows, given those of all texts. Where they repeat, texts stay a dictionary."""
        if not pa.types.is_string(values.type) or len(self.texts) * _FEW > len(self._rows):
            return values.take(self._rows)
        return values.take(pa.array(self.texts)).dictionary_encode().take(self._rows_here)
