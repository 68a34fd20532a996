"""Lines as columns, without a Python object for each value.

DuckDB's JSON reader fills the columns it is told of, and drops without a word what it is not told of, what comes twice,
and nulls; it also writes some numbers differently. So every line is checked, all lines at once: what was found of it,
written again, must be as long as the line. A line that is not whole by that measure is left to the exact reader, and
`learn` takes its keys for the next lines.

The measure is proof because nothing that is found can be longer than what was sent:

- Texts come back with fewer escapes or the same. Numbers come back shorter or the same, but for those with an exponent
  (`1e5` → `100000.0`): a line with one is not whole. Nor is one with a number of so many digits that a double
  rounds it.
- A null must be found as well, or the length of its key were missing. So `:null` becomes `:-0E0`, a number as long,
  which comes back as `-0.0`. As many must come back as there were nulls, so that no text was changed; a line that has
  minus zero by itself is not whole.
- An object of which nothing is found may be no object at all, so a line with one is not whole. To find the empty ones,
  `:{}` becomes `:{"{}":0}`. (In a text, this ends the text before a brace, which is no JSON.)

All of this is how DuckDB reads and prints today; `canary` looks whether it still does.
"""

import functools
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from eventlake.reading.exact_json import encode
from eventlake.reading.prepared import EMPTY, PreparedLines
from eventlake.reading.proof import MAX_DEPTH, VALUE, Leaf, Proof, Read


@dataclass(frozen=True)
class ColumnSizes:
    """How lines are read as columns."""

    lines_at_once: int = 16_384  # more take more memory
    places: int = 1000  # that are learned: a sender that makes up keys must not fill the memory
    longest_key: int = 200  # characters


DEFAULT_SIZES = ColumnSizes()


class _Known:
    """What is known of one place of the lines."""

    __slots__ = ("members", "objects", "values")

    def __init__(self) -> None:
        self.members: dict[str, _Known] = {}
        self.objects = 0  # met here
        self.values = 0  # of other kinds

    @property
    def is_object(self) -> bool:
        return self.objects > self.values  # so that one odd line does not decide


class ColumnReader:
    """Reads lines whose keys it has learned."""

    def __init__(self, sizes: ColumnSizes = DEFAULT_SIZES, connection: duckdb.DuckDBPyConnection | None = None) -> None:
        self._sizes = sizes
        self._connection = connection or _connection()
        self._start_anew()

    def _start_anew(self) -> None:
        self._top = _Known()
        self._places = 0
        self._structure: dict[str, Any] | None = None

    @property
    def has_learned(self) -> bool:
        return bool(self._top.members)

    def learn(self, event: Any) -> None:
        """Take note of where an event has values."""
        if type(event) is dict:
            self._learn(self._top, event, MAX_DEPTH)

    def _learn(self, known: _Known, members: dict[str, Any], depth: int) -> None:
        for key, value in members.items() or [(EMPTY, 0)]:
            below = known.members.get(key)
            if below is None:
                if not self._has_room(known, key, depth):
                    continue
                below = known.members[key] = _Known()
                self._places += 1
                self._structure = None
            was_object = below.is_object
            if type(value) is dict:
                below.objects += 1
                self._learn(below, value, depth - 1)
            elif value is not None:
                below.values += 1
            if below.is_object != was_object:
                self._structure = None

    def _has_room(self, known: _Known, key: str, depth: int) -> bool:
        # DuckDB does not tell apart names that differ by case only, and knows no empty ones.
        is_name = bool(key) and key.isprintable() and len(key) <= self._sizes.longest_key
        is_another = key.lower() not in {other.lower() for other in known.members}
        return is_name and is_another and depth > 0 and self._places < self._sizes.places

    def read(self, lines: Sequence[bytes]) -> Read:
        """Read one line or more, of which none has a line break in it."""
        at_once = self._sizes.lines_at_once
        return _joined([self._read(lines[start : start + at_once]) for start in range(0, len(lines), at_once)])

    def _read(self, lines: Sequence[bytes]) -> Read:
        prepared = PreparedLines(lines)
        structure = self._structure = self._structure or _structure(self._top)
        found = self._found(prepared.texts, structure)
        if found is None:
            return Read(np.zeros(len(lines), bool), [], np.zeros(len(lines), bool))
        proof = Proof(len(lines))
        proof.fail(~proof.object((), structure, found))
        proper = ~(proof.failed | prepared.odd)
        whole = proper & (proof.length == prepared.length) & (proof.nulls == prepared.nulls)
        return Read(whole, proof.leaves, proper & (proof.length > prepared.length))

    def _found(self, lines: pa.Array, structure: dict[str, Any]) -> pa.StructArray | None:
        """The known places of lines, each as JSON text."""
        if not structure:
            return None
        quoted = encode(structure).decode().replace("'", "''")
        connection = self._connection
        connection.register("lines", pa.table({"line": lines}))
        try:
            # Most often all lines are JSON; to make sure that one stops nobody takes a third longer.
            for line in ("line", "TRY_CAST(line AS JSON)"):
                with suppress(duckdb.Error, UnicodeError):  # it may cut its message within a character
                    query = f"SELECT json_transform({line}, '{quoted}') AS event FROM lines"  # noqa: S608
                    return connection.sql(query).to_arrow_table().column("event").combine_chunks()
        finally:
            connection.unregister("lines")
        self._start_anew()  # there are keys that DuckDB refuses
        return None


@functools.cache
def _connection() -> duckdb.DuckDBPyConnection:
    # One thread: a task has one core.
    return duckdb.connect(config={"threads": 1, "enable_external_access": False, "autoload_known_extensions": False})


def _structure(known: _Known) -> dict[str, Any]:
    """What DuckDB shall look for. There is no object without members for it."""
    below = {key: _structure(member) if member.is_object else VALUE for key, member in known.members.items()}
    return {key: members for key, members in below.items() if members}


def _joined(parts: list[Read]) -> Read:
    """What was read of lines that follow each other."""
    starts = np.cumsum([0, *(len(part.whole) for part in parts)])
    leaves: dict[Any, list[Leaf]] = {}  # by place and kind
    for start, part in zip(starts, parts, strict=False):
        for leaf in part.leaves:
            leaves.setdefault((leaf.path, leaf.kind), []).append(leaf._replace(rows=leaf.rows + start))
    return Read(
        np.concatenate([part.whole for part in parts]),
        [
            Leaf(path, kind, np.concatenate([leaf.rows for leaf in same]), pa.concat_arrays([x.values for x in same]))
            for (path, kind), same in leaves.items()
        ],
        np.concatenate([part.surplus for part in parts]),
    )
