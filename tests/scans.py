"""Calling the library that is written in C as the reader does."""

import ctypes
from ctypes import byref

import numpy as np

from eventlake.lake.staging import KINDS as KINDS  # noqa: PLC0414 - tests take it from here
from eventlake.native.library import PADDING, Places, library
from eventlake.reading.scan import Text


def native() -> ctypes.CDLL:
    found = library()
    assert found, "this system has no library"
    return found


def place(memory: Places, key: str) -> int:
    content = key.encode()
    number: int = native().place_of_key(byref(memory), 0, content + bytes(PADDING), len(content))
    return number


def text_of(lines: list[bytes]) -> Text:
    content = b"".join(line + b"\n" for line in lines) + bytes(PADDING)
    lengths = np.array([len(line) for line in lines], np.int64)
    ends = np.cumsum(lengths + 1) - 1
    return Text(content, ends - lengths, ends)
