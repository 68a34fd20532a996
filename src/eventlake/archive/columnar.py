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
"""

import functools
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, NamedTuple

import duckdb
import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eventlake.schema.exact_json import MAX_NESTING, encode
from eventlake.schema.flatten import CONTAINERS
from eventlake.schema.kinds import Kind

Array = npt.NDArray[Any]
Path = tuple[str, ...]

# A sender that makes up keys must not fill the memory.
MAX_PLACES = 1000
MAX_DEPTH = 12
MAX_KEY = 200

_AT_ONCE = 16_384  # lines; more take more memory
_LONGEST_WHOLE = 18  # digits that surely fit 64 bits
_LONGEST_FRACTION = 16  # with its sign and point: a double has 15 digits, exactly
_WINDOW = 24  # bytes after a colon that are looked at for a number; longer ones are not read here
_NULL = np.frombuffer(b"null", np.uint32)[0]
_IN_ITS_PLACE = np.frombuffer(b"-0E0", np.uint8)
_COMES_BACK = "-0.0"
_EMPTY = "{}"  # the key that an empty object is given
_MEMBER = b'"{}":0'
_decode = msgspec.json.Decoder(str).decode

_FRACTION = r"^-?[0-9]+\.[0-9]+$"
# In an array: a fraction as an element, which may have been sent with an exponent, and digits that may be rounded.
_ODD_IN_ARRAY = r"[\[,]-?[0-9]+\.|[0-9.]{16}"


def _table(members: bytes) -> Array:
    found = np.zeros(256, bool)
    found[np.frombuffer(members, np.uint8)] = True
    return found


_SPACE = _table(b" \t\r\n")
_BEFORE_COLONS = _SPACE | _table(b'"')  # of members; others are in texts
_DIGITS = _table(b"-0123456789")
_IN_NUMBERS = _table(b"-0123456789.")

# What the first character of a value tells.
_TEXT, _NUMBER, _BOOLEAN, _ARRAY = range(1, 5)
_BY_FIRST = np.zeros(256, np.uint8)
for _what, _firsts in {_TEXT: b'"', _NUMBER: b"-0123456789", _BOOLEAN: b"tf", _ARRAY: b"["}.items():
    _BY_FIRST[np.frombuffer(_firsts, np.uint8)] = _what


class Leaf(NamedTuple):
    """The values of one kind found at one place of the lines, and in which of the lines."""

    path: Path
    kind: Kind
    rows: Array
    values: pa.Array


class Read(NamedTuple):
    """What was read of some lines."""

    whole: Array  # which of the lines: all of each of these is in the leaves, but nulls and empty containers
    leaves: list[Leaf]


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

    def __init__(self) -> None:
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
        for key, value in members.items() or [(_EMPTY, 0)]:
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
        is_name = bool(key) and key.isprintable() and len(key) <= MAX_KEY
        is_another = key.lower() not in {other.lower() for other in known.members}
        return is_name and is_another and depth > 0 and self._places < MAX_PLACES

    def read(self, lines: Sequence[bytes]) -> Read:
        """Read one line or more, of which none has a line break in it."""
        return _joined([self._read(lines[start : start + _AT_ONCE]) for start in range(0, len(lines), _AT_ONCE)])

    def _read(self, lines: Sequence[bytes]) -> Read:
        prepared = _Prepared(lines)
        structure = self._structure = self._structure or _structure(self._top)
        found = self._found(prepared.texts, structure)
        if found is None:
            return Read(np.zeros(len(lines), bool), [])
        account = _Account(len(lines))
        account.fail(~account.object((), structure, found))
        whole = (account.length == prepared.length) & (account.nulls == prepared.nulls)
        whole &= ~(account.failed | prepared.odd)
        return Read(whole, [_only(leaf, whole) for leaf in account.leaves])

    def _found(self, lines: pa.Array, structure: dict[str, Any]) -> pa.StructArray | None:
        """The known places of lines, each as JSON text."""
        if not structure:
            return None
        quoted = encode(structure).decode().replace("'", "''")
        connection = _connection()
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


_VALUE = "JSON"  # DuckDB's name for a type that takes any


def _structure(known: _Known) -> dict[str, Any]:
    """What DuckDB shall look for. There is no object without members for it."""
    below = {key: _structure(member) if member.is_object else _VALUE for key, member in known.members.items()}
    return {key: members for key, members in below.items() if members}


class _Prepared:
    """Lines as one array, nulls and empty objects replaced."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        if b'": ' in lines[0]:  # some write a space after each colon and comma
            lines = [_without_spaces(line) for line in lines]
        self.length = np.fromiter(map(len, lines), np.int64, len(lines))
        content = bytearray(b"\n".join([*_utf8(lines), bytes(_WINDOW)]))
        data = np.frombuffer(content, np.uint8)
        self._ends = np.flatnonzero(data == ord("\n")) + 1
        colons = np.flatnonzero(data == ord(":"))
        colons = colons[_BEFORE_COLONS[data[colons - 1]]]
        after = data[colons + 1]
        self.odd = np.zeros(len(lines), bool)
        self.odd[self._line_of(colons[_SPACE[after]])] = True
        self.odd[self._line_of(_odd_numbers(data, colons[_DIGITS[after]]))] = True
        nulls = colons[after == ord("n")]
        nulls = nulls[data[nulls[:, None] + np.arange(1, 5)].view(np.uint32)[:, 0] == _NULL]
        self.nulls = np.bincount(self._line_of(nulls), minlength=len(lines))
        data[nulls[:, None] + np.arange(1, 5)] = _IN_ITS_PLACE
        empty = colons[after == ord("{")] + 2
        empty = empty[data[empty] == ord("}")]
        self.texts = self._with_members(content, empty)

    def _line_of(self, positions: Array) -> Array:
        return np.searchsorted(self._ends, positions, side="right")

    def _with_members(self, content: bytearray, empty: Array) -> pa.Array:
        """The lines, with a member put into objects that are empty."""
        starts = np.concatenate([[0], self._ends])
        offsets = starts + len(_MEMBER) * np.searchsorted(empty, starts)
        parts = pairwise([0, *empty.tolist(), len(content)])
        filled = _MEMBER.join([content[start:stop] for start, stop in parts])
        buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(filled)]
        return pa.Array.from_buffers(pa.string(), len(self.length), buffers)


def _without_spaces(line: bytes) -> bytes:
    try:
        return msgspec.json.format(line, indent=-1)
    except msgspec.DecodeError:
        return line


def _utf8(lines: Sequence[bytes]) -> Sequence[bytes]:
    """The lines; those that are not UTF-8 are empty."""
    return lines if all(map(bytes.isascii, lines)) else [line if _is_utf8(line) else b"" for line in lines]


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _odd_numbers(data: Array, colons: Array) -> Array:
    """Of colons before digits, those where the number has an exponent, does not end soon, or is minus zero."""
    after = data[colons[:, None] + np.arange(1, _WINDOW)]
    end = _IN_NUMBERS[after].argmin(axis=1)  # 0 if it does not end
    last = after[np.arange(len(colons)), end]
    odd = (end == 0) | (last == ord("e")) | (last == ord("E"))
    for row in np.flatnonzero((after[:, 0] == ord("-")) & (after[:, 1] == ord("0"))):
        odd[row] |= not bytes(after[row, : end[row]]).strip(b"-0.")
    return np.asarray(colons[odd])


class _Account:
    """What was found of each line, and how long that is, written as JSON."""

    def __init__(self, lines: int) -> None:
        self.leaves: list[Leaf] = []
        self.length = np.zeros(lines, np.int64)
        self.nulls = np.zeros(lines, np.int64)
        self.failed = np.zeros(lines, bool)

    def fail(self, lines: Array) -> None:
        self.failed[lines] = True

    def object(self, path: Path, structure: dict[str, Any], found: pa.StructArray) -> Array:
        """Take the members of an object; in which lines it has any."""
        filled = np.zeros(len(self.length), bool)
        for place, (key, below) in enumerate(structure.items()):
            values = found.field(place)
            rows = _present(values)
            if not len(rows):
                continue
            filled[rows] = True
            if key == _EMPTY:
                self.length[rows] += 1  # with the 1 below: two braces
                if len(path) != 1 or path[0] not in CONTAINERS:
                    self.fail(rows)
                continue
            self.length[rows] += len(encode(key)) + 2  # a colon and a comma
            if below == _VALUE:
                texts = values.drop_null() if values.null_count else values
                self._leaf((*path, key), rows, texts)
            else:
                has_members = self.object((*path, key), below, values)
                self.fail(rows[~has_members[rows]])
        self.length[filled] += 1  # two braces, and one comma less than members
        return filled

    def _leaf(self, path: Path, rows: Array, texts: pa.Array) -> None:
        starts, ends, data = _parts(texts)
        lengths = ends - starts
        self.length[rows] += lengths
        what = _BY_FIRST[data[starts]]
        if (what == what[0]).all():
            self._values(int(what[0]), path, rows, texts, lengths)
            return
        for one in np.unique(what):
            which = what == one
            self._values(int(one), path, rows[which], texts.filter(pa.array(which)), lengths[which])

    def _values(self, what: int, path: Path, rows: Array, texts: pa.Array, lengths: Array) -> None:
        if what == _TEXT:
            self._add(path, Kind.TEXT, rows, _unquoted(texts))
        elif what == _NUMBER:
            self._numbers(path, rows, texts, lengths)
        elif what == _BOOLEAN:
            self._add(path, Kind.BOOLEAN, rows, pa.array(lengths == len("true")))
        elif what == _ARRAY:
            self.fail(rows[_odd_arrays(texts, lengths)])
            self._add(path, Kind.JSON, rows, texts)
        else:  # an object where there was none before, or NaN
            self.fail(rows)

    def _numbers(self, path: Path, rows: Array, texts: pa.Array, lengths: Array) -> None:
        if lengths.max() <= _LONGEST_WHOLE:
            try:
                self._add(path, Kind.INTEGER, rows, texts.cast(pa.int64()))
            except pa.ArrowInvalid:
                pass
            else:
                return
        null = _true(pc.equal(texts, _COMES_BACK))
        fraction = _true(pc.match_substring_regex(texts, _FRACTION)) & (lengths <= _LONGEST_FRACTION) & ~null
        whole = _true(pc.utf8_is_digit(pc.utf8_ltrim(texts, "-"))) & (lengths <= _LONGEST_WHOLE)
        self.nulls[rows[null]] += 1
        self.fail(rows[~(null | fraction | whole)])
        self._add(path, Kind.NUMBER, rows[fraction], texts.filter(pa.array(fraction)))
        self._add(path, Kind.INTEGER, rows[whole], texts.filter(pa.array(whole)).cast(pa.int64()))

    def _add(self, path: Path, kind: Kind, rows: Array, values: pa.Array) -> None:
        if len(rows):
            self.leaves.append(Leaf(path, kind, rows, values))


def _present(values: pa.Array) -> Array:
    """The rows that have a value."""
    validity = values.buffers()[0]
    if validity is None or not values.null_count:
        return np.arange(len(values))
    bits = np.unpackbits(np.frombuffer(validity, np.uint8), count=len(values), bitorder="little")
    return np.flatnonzero(bits)


def _parts(texts: pa.Array) -> tuple[Array, Array, Array]:
    """Where each text starts and ends, and the bytes of all."""
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return bounds[:-1], bounds[1:], np.frombuffer(data, np.uint8)


def _unquoted(texts: pa.Array) -> pa.Array:
    """The texts that JSON texts without white space stand for."""
    plain = pc.binary_slice(texts.cast(pa.binary()), 1, -1).view(pa.string())
    if not (_parts(texts)[2] == ord("\\")).any():
        return plain
    escaped = pc.match_substring(texts, "\\")
    values = [_decode(text) for text in texts.filter(escaped).to_pylist()]
    return pc.replace_with_mask(plain, escaped, pa.array(values, pa.string()))


def _odd_arrays(texts: pa.Array, lengths: Array) -> Array:
    """Which arrays must be read exactly: escapes may be written in another way, numbers rounded."""
    odd = _true(pc.or_(pc.match_substring(texts, "\\"), pc.match_substring_regex(texts, _ODD_IN_ARRAY)))
    for row in np.flatnonzero(lengths > MAX_NESTING):
        text = texts[int(row)].as_py()
        odd[row] |= text.count("[") + text.count("{") >= MAX_NESTING - MAX_DEPTH
    return odd


def _true(mask: pa.Array) -> Array:
    return np.asarray(mask.to_numpy(zero_copy_only=False))


def _joined(parts: list[Read]) -> Read:
    """What was read of lines that follow each other."""
    starts = np.cumsum([0, *(len(part.whole) for part in parts)])
    leaves: dict[tuple[Path, Kind], list[Leaf]] = {}
    for start, part in zip(starts, parts, strict=False):
        for leaf in part.leaves:
            leaves.setdefault((leaf.path, leaf.kind), []).append(leaf._replace(rows=leaf.rows + start))
    return Read(
        np.concatenate([part.whole for part in parts]),
        [
            Leaf(*place, np.concatenate([leaf.rows for leaf in same]), pa.concat_arrays([leaf.values for leaf in same]))
            for place, same in leaves.items()
        ],
    )


def _only(leaf: Leaf, lines: Array) -> Leaf:
    which = lines[leaf.rows]
    return leaf if which.all() else leaf._replace(rows=leaf.rows[which], values=leaf.values.filter(pa.array(which)))
