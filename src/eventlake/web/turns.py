"""Turns: what takes much memory (a query may take two gigabytes) is done for two people at a time, whoever they are."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from eventlake.web.access import TooManyError

_AT_ONCE = 2
_WAITING = 8  # each holds a thread, of which a console has forty
_PATIENCE = 5.0  # seconds

_turns = threading.BoundedSemaphore(_AT_ONCE)
_seats = threading.BoundedSemaphore(_AT_ONCE + _WAITING)


@contextmanager
def turn() -> Iterator[None]:
    """Have one of the turns, or wait a little for it. Raises TooManyError if there is none."""
    if not _seats.acquire(blocking=False):
        raise _none_free()
    try:
        if not _turns.acquire(timeout=_PATIENCE):
            raise _none_free()
        try:
            yield
        finally:
            _turns.release()
    finally:
        _seats.release()


def _none_free() -> TooManyError:
    return TooManyError(
        round(_PATIENCE),
        f"{_AT_ONCE} queries are being answered now, and no more at once",
        fix="ask again in some seconds; nothing is wrong with what you asked",
    )
