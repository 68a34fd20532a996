"""Reads hostile lines with memory that ends where it is said to end: guarded.py LIBRARY SEED ROUNDS.

Every array lies right before a page that may not be touched. Whatever reads or writes beyond its end is killed by the
system, and so is, with a library that was built to check itself, whatever C does not define.
"""

import ctypes
import mmap
import random
import sys
from ctypes import byref
from typing import Any

import numpy as np

from eventlake.demo import events as demo
from eventlake.demo.events import Recipe
from eventlake.lake.staging import Field, laid_out
from eventlake.native.library import PADDING, Array, Columns, Filled, Lines, Names, Places, Values, address

_NO_ACCESS = 0
_kept: list[Any] = []


def guarded(array: Array) -> Array:
    """A copy that ends at the end of what may be touched."""
    size = array.nbytes + -array.nbytes % mmap.PAGESIZE + mmap.PAGESIZE
    memory = mmap.mmap(-1, size)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    guard = ctypes.c_void_p(start + size - mmap.PAGESIZE)
    assert ctypes.CDLL(None).mprotect(guard, ctypes.c_size_t(mmap.PAGESIZE), _NO_ACCESS) == 0
    _kept.append(memory)
    whole = np.frombuffer(memory, np.uint8)
    content = whole[size - mmap.PAGESIZE - array.nbytes : size - mmap.PAGESIZE]
    content[:] = np.frombuffer(array.tobytes(), np.uint8)
    return content.view(array.dtype).reshape(array.shape)


def guard(memory: Any) -> Any:
    memory.hold({name: guarded(array) for name, array in memory.arrays.items()})
    return memory


def read(native: ctypes.CDLL, lines: list[bytes], dice: random.Random) -> int:
    """Read lines in all steps, with little room for everything; how many values were written."""
    skip_empty = dice.random() < 0.5
    places = guard(Places.with_room(dice.randrange(7, 400), dice.randrange(60, 4000), skip_empty=skip_empty))
    for key in (*KEYS, b"context"):
        content = guarded(np.frombuffer(key + bytes(8), np.uint8))
        native.place_of_key(byref(places), 0, address(content), len(key))
    places.heads = len(KEYS)
    places.arrays["may_be_empty"][places.heads + 1] = True
    text = guarded(np.frombuffer(b"".join(line + b"\n" for line in lines) + bytes(PADDING), np.uint8))
    lengths = np.array([len(line) for line in lines])
    ends = np.cumsum(lengths + 1) - 1
    of_text = Lines.of_text(text.tobytes(), ends - lengths, ends, places.heads)
    of_text.hold({name: guarded(array) for name, array in of_text.arrays.items() if name != "text"} | {"text": text})
    values = guard(Values.with_room(dice.randrange(1, 3000)))
    done = native.scan(byref(places), byref(values), byref(of_text), 0)
    of_text.count = done
    names = guard(Names.with_room(dice.randrange(1, 9), dice.randrange(5, 200)))
    name_of = guarded(np.empty(done, np.int32))
    native.name_lines(byref(names), byref(values), byref(of_text), places.heads, address(name_of))
    micros, is_told = guarded(np.zeros(done, np.int64)), guarded(np.zeros(done, np.uint8))
    native.receive(byref(values), byref(of_text), places.heads, address(micros), address(is_told))
    columns = guard(Columns.with_room(dice.randrange(1, 900)))
    columns.arrays["use"][:] = [dice.choice((1, 2)) if dice.random() < 0.999 else 0 for _ in columns.arrays["use"]]
    rows = guarded(np.zeros(names.count, np.int32))
    found = (name_of, guarded(np.empty(values.count, np.int32)), guarded(np.empty(done, np.int32)))
    native.find_columns(byref(columns), byref(values), byref(of_text), *map(address, found), address(rows))
    return _fill(native, columns, values, of_text, rows, found)


def _fill(native: ctypes.CDLL, columns: Any, values: Any, lines: Any, rows: Array, found: tuple[Array, ...]) -> int:
    counts = {name: array[: columns.count] for name, array in columns.arrays.items()}
    used = np.flatnonzero(counts["values"])
    if not len(used):
        return 0
    entries = rows[counts["route"][used]].astype(np.int64)
    fields = laid_out(counts["kind"][used], counts["values"][used], counts["bytes"][used], entries, 0)
    parts = {name: np.full(columns.count, -1, np.int64) for name in Field._fields}
    for place, part in enumerate(parts.values()):
        part[used] = fields[:, place]
    memory = {name: guarded(part) for name, part in parts.items() if name.endswith("_at")}
    for name in ("next", "used"):
        memory[name] = guarded(np.zeros(columns.count, np.int32))
    memory["out"] = guarded(np.zeros(int(fields[-1, -1]), np.uint8))
    filled = Filled.of(memory)
    native.fill(byref(filled), byref(values), byref(lines), *map(address, found))
    of_all = np.zeros(columns.count, np.int32)
    of_all[used] = np.where(fields[:, Field._fields.index("rows_at")] >= 0, counts["values"][used], entries)
    native.finish(byref(filled), columns.count, address(guarded(counts["kind"])), address(guarded(of_all)))
    return int(counts["values"].sum())


def texts(native: ctypes.CDLL, lines: list[bytes]) -> None:
    """Read pieces of lines as date-times and numbers."""
    for function, width in (("instants", 8), ("decimals", 16)):
        data = guarded(np.frombuffer(b"".join(lines), np.uint8))
        offsets = guarded(np.cumsum([0, *map(len, lines)]).astype(np.int32))
        values, found = guarded(np.zeros(len(lines) * width, np.uint8)), guarded(np.zeros(len(lines), np.uint8))
        getattr(native, function)(address(offsets), address(data), len(lines), address(values), address(found))


KEYS = (b"type", b"event", b"messageId", b"receivedAt", b"userId")  # that the library knows by their places
BYTES = b'{}[]":,\\0-1.eE+\x00\x1f\xff\xc3\xa9\xed\xf0 tfnu\n'
DATES = [b"2026-11-15T10:20:30.123456Z", b"2024-02-29T23:59:59+05:30", b"9999-12-31T23:59:59-23:59", b"-12345.678901"]


def changed(line: bytes, dice: random.Random) -> bytes:
    copy = bytearray(line)
    for _ in range(dice.choice([0, 0, 1, 3])):
        where = dice.randrange(len(copy) + 1)
        copy[where : where + dice.randrange(4)] = bytes(dice.choices(BYTES, k=dice.randrange(4)))
    return bytes(copy[: dice.randrange(len(copy) + 1)] if dice.random() < 0.2 else copy).replace(b"\n", b"")


def main(library: str, seed: str, rounds: str) -> None:
    native = ctypes.CDLL(library)
    native.scan.restype = ctypes.c_int64
    dice = random.Random(seed)
    events = list(demo.lines(Recipe(300, conflict_share=0.3)))
    written = 0
    for _ in range(int(rounds)):
        lines = [changed(dice.choice(events), dice) for _ in range(dice.randrange(1, 12))]
        written += read(native, lines, dice)
        texts(native, [changed(dice.choice(DATES), dice) for _ in range(9)])
        _kept.clear()
    print(written)  # noqa: T201 - whoever started this wants to know


if __name__ == "__main__":
    main(*sys.argv[1:])
