"""How tasks use the memory of the worker that carries them out, one after the other."""

import ctypes
import functools
import gc
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import pyarrow as pa

P = ParamSpec("P")
R = TypeVar("R")


def without_gc(function: Callable[P, R]) -> Callable[P, R]:
    """For work that makes millions of short-lived objects and no cycles: the collector would only look in vain."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        was_on = gc.isenabled()
        gc.disable()
        try:
            return function(*args, **kwargs)
        finally:
            if was_on:  # the process lives on, and others make cycles
                gc.enable()

    return call


def give_back() -> None:
    """Return to the system what earlier tasks freed.

    Each allocator keeps it for itself: what another step needs would come on top of it.
    """
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it
    if trim is not None:
        trim(0)
