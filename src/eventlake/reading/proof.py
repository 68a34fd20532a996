"""What was found of each line, and whether that is all of it; see `columns`."""

from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlake.lake.ids import Array
from eventlake.reading.exact_json import MAX_NESTING, encode
from eventlake.reading.flatten import CONTAINERS
from eventlake.reading.prepared import EMPTY, NULL
from eventlake.schema.kinds import Kind

Path = tuple[str, ...]

MAX_DEPTH = 12  # of objects that are looked into
VALUE = "JSON"  # DuckDB's name for a type that takes any

_LONGEST_WHOLE = 18  # digits that surely fit 64 bits
_LONGEST_FRACTION = 16  # with its sign and point: a double has 15 digits, exactly
_FRACTION = r"^-?[0-9]+\.[0-9]+$"
# In an array: a fraction as an element, which may have been sent with an exponent, an exponent, which may have been
# sent in another way, digits that may be rounded, and what DuckDB takes for a number though it is no JSON.
_ODD_IN_ARRAY = r"[\[,]-?[0-9]+\.|[0-9]e[-+0-9]|[0-9.]{16}|[\[,:]-?(?i:nan|inf)"

_decode = msgspec.json.Decoder(str).decode

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
    leaves: list[Leaf]  # of all lines, whole or not
    surplus: Array  # of which lines more was found than was sent: if of any, the measure is no proof


class Proof:
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
            filled[self._of(rows)] = True
            if key == EMPTY:
                self.length[rows] += 1  # with the 1 below: two braces
                if len(path) != 1 or path[0] not in CONTAINERS:
                    self.fail(rows)
                continue
            self.length[self._of(rows)] += len(encode(key)) + 2  # a colon and a comma
            if below == VALUE:
                texts = values.drop_null() if values.null_count else values
                self._leaf((*path, key), rows, texts)
            else:
                has_members = self.object((*path, key), below, values)
                self.fail(rows[~has_members[rows]])
        self.length[filled] += 1  # two braces, and one comma less than members
        return filled

    def _of(self, rows: Array) -> Any:
        """How to index the lines with these rows; all are told by a slice, which takes a sixth of the time."""
        return slice(None) if len(rows) == len(self.length) else rows

    def _leaf(self, path: Path, rows: Array, texts: pa.Array) -> None:
        starts, ends, data = _parts(texts)
        lengths = ends - starts
        self.length[self._of(rows)] += lengths
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
        null = _true(pc.equal(texts, NULL))
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
