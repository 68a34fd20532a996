"""Secrets on their way from the form that made them to the page that shows them.

A form is answered by a page to go to, so that loading that one again makes nothing again. A secret must not be part of
its address, and not of a cookie, which browsers keep: it waits here, for the session that made it.
"""

import threading
import time

from fastapi import Request

from eventlake.web.access import Actor

_WAITS = 60.0  # seconds
_MOST = 100


class ShownOnce:
    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str], tuple[float, str]] = {}  # session and place → until when, and what
        self._lock = threading.Lock()

    def keep(self, actor: Actor, where: str, secret: str) -> None:
        now = time.monotonic()
        with self._lock:
            self._waiting = {key: one for key, one in list(self._waiting.items())[1 - _MOST :] if one[0] > now}
            self._waiting[actor.csrf, where] = (now + _WAITS, secret)

    def take(self, actor: Actor, where: str) -> str:
        """What waits to be shown somewhere, once; empty if nothing does."""
        with self._lock:
            until, secret = self._waiting.pop((actor.csrf, where), (0.0, ""))
        return secret if until > time.monotonic() else ""


def shown_once_of(request: Request) -> ShownOnce:
    waiting: ShownOnce = request.app.state.shown_once
    return waiting
