"""Lines made ready for a reader that drops nulls and takes anything for an object; see `columns` for what and why."""

from collections.abc import Sequence
from itertools import pairwise

import msgspec
import numpy as np
import pyarrow as pa

from eventlake.lake.ids import Array

NULL = "-0.0"  # as which a null comes back
EMPTY = "{}"  # the key that an empty object is given

_MEMBER = b'"{}":0'
_NULL = np.frombuffer(b"null", np.uint32)[0]
_IN_ITS_PLACE = np.frombuffer(b"-0E0", np.uint8)
_WINDOW = 24  # bytes after a colon that are looked at for a number; longer ones are not read here


def _table(members: bytes) -> Array:
    found = np.zeros(256, bool)
    found[np.frombuffer(members, np.uint8)] = True
    return found


_SPACE = _table(b" \t\r\n")
_BEFORE_COLONS = _SPACE | _table(b'"')  # of members; others are in texts
_DIGITS = _table(b"-0123456789")
_IN_NUMBERS = _table(b"-0123456789.")


class PreparedLines:
    """Lines as one array, nulls and empty objects replaced."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        if b'": ' in lines[0] or lines[0].endswith(b"\r"):  # some write spaces, or lines as Windows does
            lines = [_without_spaces(line) for line in lines]
        content = _together(lines)
        if not _all_utf8(content):
            lines = [line if _is_utf8(line) else b"" for line in lines]
            content = _together(lines)
        self.length = np.fromiter(map(len, lines), np.int64, len(lines))
        self._ends = np.cumsum(self.length + 1)
        data = np.frombuffer(content, np.uint8)
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


def _together(lines: Sequence[bytes]) -> bytearray:
    return bytearray(b"\n").join([*lines, bytes(_WINDOW)])


def _all_utf8(content: bytearray) -> bool:
    """Whether many megabytes are UTF-8, without a copy of them as text."""
    buffers = [None, pa.py_buffer(np.array([0, len(content)], np.int32)), pa.py_buffer(content)]
    try:
        pa.Array.from_buffers(pa.binary(), 1, buffers).cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


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
