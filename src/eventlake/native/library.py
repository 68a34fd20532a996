"""The compiled library, and the memory that it works on: structures of C whose pointers are to arrays of ours.

It is built with the package (`build.py`), for each system that is named there. On any other there is none, and
every line is read by the exact reader.
"""

import ctypes
import functools
import platform
import secrets
import sys
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from eventlake.errors import InternalError
from eventlake.native.build import library_path, source_digest

Array = npt.NDArray[Any]

PADDING = 16  # bytes that must follow a text
UNUSABLE, USED, UNUSED = range(3)  # what becomes of the values of a column

_Pointer = ctypes.c_void_p
_Int, _Long, _Seed = ctypes.c_int32, ctypes.c_int64, ctypes.c_uint64


def _fields(pointers: str, *others: tuple[str, Any]) -> list[tuple[str, Any]]:
    return [*((name, _Pointer) for name in pointers.split()), *others]


def _ints(names: str) -> list[tuple[str, Any]]:
    return [(name, _Int) for name in names.split()]


class _Memory(ctypes.Structure):
    """A structure whose arrays are held as long as it is."""

    arrays: dict[str, Array]

    @classmethod
    def of(cls, arrays: Mapping[str, Array], **others: int) -> Self:
        memory = cls(**others)
        memory.arrays = {}
        memory.hold(arrays)
        return memory

    def hold(self, arrays: Mapping[str, Array]) -> None:
        for name, array in arrays.items():
            self.arrays[name] = array
            setattr(self, name, array.ctypes.data)


class Places(_Memory):
    _fields_ = _fields(
        "parent key_start key_length may_be_empty met slots keys",
        *_ints("count capacity slots_mask keys_used keys_capacity heads skip_empty"),
        ("line", _Long),
        ("seed", _Seed),
    )
    count: int
    heads: int

    @classmethod
    def with_room(cls, places: int, bytes_of_keys: int, *, skip_empty: bool = False) -> Self:
        arrays: dict[str, Array] = {
            **{name: np.zeros(places, np.int32) for name in ("parent", "key_start", "key_length")},
            "may_be_empty": np.full(places, skip_empty, np.uint8),
            "met": np.zeros(places, np.int64),
            "slots": np.zeros(slots_for(places), np.int32),
            "keys": np.empty(bytes_of_keys, np.uint8),
        }
        mask = len(arrays["slots"]) - 1
        return cls.of(
            arrays,
            count=1,
            capacity=places,
            slots_mask=mask,
            keys_capacity=bytes_of_keys,
            skip_empty=skip_empty,
            seed=secrets.randbits(64),
        )

    def key(self, place: int) -> tuple[int, str]:
        """The place of the object that a key is in, and the key."""
        start, length = (int(self.arrays[name][place]) for name in ("key_start", "key_length"))
        return int(self.arrays["parent"][place]), self.arrays["keys"][start : start + length].tobytes().decode()


class Values(_Memory):
    _fields_ = _fields("place start length kind", ("count", _Long), ("capacity", _Long))
    count: int
    capacity: int

    @classmethod
    def with_room(cls, values: int) -> Self:
        made = cls.of({})
        made.make_room(values)
        return made

    def make_room(self, values: int) -> None:
        """Hold so many from now on; what is held stays."""
        for name in ("place", "start", "length", "kind"):
            array = np.empty(values, np.uint8 if name == "kind" else np.int32)
            if self.count:
                array[: self.count] = self.arrays[name][: self.count]
            self.hold({name: array})
        self.capacity = values


class Lines(_Memory):
    _fields_ = _fields("text start end first_value heads whole", ("count", _Long))
    count: int

    @classmethod
    def of_text(cls, content: bytes, starts: Array, ends: Array, heads: int) -> Self:
        arrays: dict[str, Array] = {
            "text": np.frombuffer(content, np.uint8),
            "start": np.ascontiguousarray(starts, np.int64),
            "end": np.ascontiguousarray(ends, np.int64),
            "first_value": np.zeros(len(starts) + 1, np.int64),
            "heads": np.empty((len(starts), heads), np.int32),
            "whole": np.empty(len(starts), np.uint8),
        }
        return cls.of(arrays, count=len(starts))


class Names(_Memory):
    _fields_ = _fields(
        "start length texts slots", *_ints("count capacity slots_mask texts_used texts_capacity"), ("seed", _Seed)
    )
    count: int

    @classmethod
    def with_room(cls, names: int, bytes_of_names: int) -> Self:
        arrays: dict[str, Array] = {
            "start": np.empty(names, np.int32),
            "length": np.empty(names, np.int32),
            "texts": np.empty(bytes_of_names, np.uint8),
            "slots": np.full(slots_for(names), -1, np.int32),
        }
        mask = len(arrays["slots"]) - 1
        return cls.of(arrays, capacity=names, slots_mask=mask, texts_capacity=bytes_of_names, seed=secrets.randbits(64))

    def text(self, name: int) -> bytes:
        start, length = int(self.arrays["start"][name]), int(self.arrays["length"][name])
        return self.arrays["texts"][start : start + length].tobytes()


class Columns(_Memory):
    _fields_ = _fields("route place kind use values bytes slots", *_ints("count capacity slots_mask"), ("seed", _Seed))
    count: int

    @classmethod
    def with_room(cls, columns: int) -> Self:
        arrays: dict[str, Array] = {
            "route": np.empty(columns, np.int32),
            "place": np.empty(columns, np.int32),
            "kind": np.empty(columns, np.uint8),
            "use": np.full(columns, USED, np.uint8),
            "values": np.zeros(columns, np.int64),
            "bytes": np.zeros(columns, np.int64),
            "slots": np.full(slots_for(columns), -1, np.int32),
        }
        return cls.of(arrays, capacity=columns, slots_mask=len(arrays["slots"]) - 1, seed=secrets.randbits(64))


class Filled(_Memory):
    _fields_ = _fields("offsets_at data_at validity_at rows_at next used out")


def slots_for(entries: int) -> int:
    """How many slots a hash table for so many entries has: a power of two, at most half of them filled."""
    return 1 << (2 * entries - 1).bit_length()


def address(array: Array) -> ctypes.c_void_p:
    return _Pointer(array.__array_interface__["data"][0])  # array.ctypes.data takes three times as long


# What each function gives, and what it takes, as lines.h has it.
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "source": (ctypes.c_uint64,),
    "place_of_key": (_Int, _Pointer, _Int, ctypes.c_char_p, _Int),
    "scan": (_Long, _Pointer, _Pointer, _Pointer, _Long),
    "name_lines": (None, _Pointer, _Pointer, _Pointer, _Int, _Pointer),
    "receive": (None, _Pointer, _Pointer, _Int, _Pointer, _Pointer),
    "find_columns": (None, _Pointer, _Pointer, _Pointer, *[_Pointer] * 4),
    "fill": (None, _Pointer, _Pointer, _Pointer, *[_Pointer] * 3),
    "finish": (None, _Pointer, _Long, _Pointer, _Pointer),
    "instants": (None, _Pointer, _Pointer, _Long, _Pointer, _Pointer),
    "decimals": (None, _Pointer, _Pointer, _Long, _Pointer, _Pointer),
}


@functools.cache
def library() -> ctypes.CDLL | None:
    """The library for this system; None if there is none."""
    path = library_path(platform.system(), platform.machine())
    if not path.exists() or sys.byteorder != "little":
        return None
    found = ctypes.CDLL(str(path))
    for function, (result, *arguments) in _FUNCTIONS.items():
        getattr(found, function).restype, getattr(found, function).argtypes = result, arguments
    if found.source() != source_digest():
        raise InternalError(
            f"{path} was built from another source than is beside it",
            fix="build it anew: `make setup` in a checkout, else install eventlake again",
        )
    return found
