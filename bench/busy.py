"""A workspace that is served: its collector, beside a console that people look at and a replay that does not end."""

from __future__ import annotations

import secrets
import socket
import subprocess
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import httpx2

from bench.contestants import EVENTLAKE
from eventlake.control.people import Scope
from eventlake.demo.events import Recipe, write_archive
from eventlake.errors import EventLakeError
from eventlake.library import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGES_PER_SECOND = 10
_HISTORY = "history"
_PAGES = (
    *("/", "/sources", f"/sources/{_HISTORY}", "/connections", f"/connections/{_HISTORY}/default", "/runs"),
    *("/health", f"/health?source={_HISTORY}", "/tables", "/quality", "/alerts"),
)
_FILES = 32
_PATIENCE = 300  # seconds


class Served:
    """A workspace with a source that is replayed, and one to which the load is sent."""

    def __init__(self, folder: Path, *, events: int, workers: int) -> None:
        self.place = Workspace.create(folder)
        _, self.key = self.place.connections.add_source("load")
        self.place.connections.change("load", {"schedule": "manual"})
        self._source_id = self.place.connections.add_source(_HISTORY)[0].source.id
        self.place.connections.change(_HISTORY, {"schedule": "manual"})
        files = write_archive(Recipe(events), folder / "sent", files=_FILES)
        eventlake = [str(EVENTLAKE), "-C", str(folder)]
        for words in (["import", _HISTORY, *map(str, files)], ["sync", _HISTORY]):
            subprocess.run([*eventlake, *words], check=True, capture_output=True)
        self.port, self._console = _free_port(), _free_port()
        words = ["--port", str(self._console), "--collector-port", str(self.port), "--workers", str(workers)]
        self.process = subprocess.Popen(
            [*eventlake, "serve", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._client = httpx2.Client(base_url=f"http://127.0.0.1:{self._console}", timeout=60)
        deadline = time.monotonic() + _PATIENCE
        while len(self.place.presence.parts()) < 3:  # collector, scheduler and console
            if time.monotonic() > deadline:
                self.process.terminate()
                raise SystemExit("eventlake serve did not start")
            time.sleep(0.2)
        link = f"/welcome/{self.place.people.invite(Scope.ADMIN)}"
        joined = self._client.post(link, data={"name": "bench", "password": secrets.token_urlsafe(16)})
        assert joined.is_redirect

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()
        self._client.close()
        self.place.close()

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Meanwhile people look at the console, and a replay is going on."""
        ended = threading.Event()
        threads = [threading.Thread(target=work, args=(ended,)) for work in (self._replay, self._look)]
        for thread in threads:
            thread.start()
        try:
            self._wait_for_tasks()
            yield
        finally:
            ended.set()
            for thread in threads:
                thread.join()

    def _wait_for_tasks(self) -> None:
        """Until Spark works on the replay."""
        deadline = time.monotonic() + _PATIENCE
        while not any(run.step == "stage" and run.done for run in self.place.runs.lines(9, status="running")):
            if time.monotonic() > deadline:
                raise SystemExit("no replay has begun")
            time.sleep(0.1)

    def _replay(self, ended: threading.Event) -> None:
        """One after the other; the last is stopped, and nothing is done till it is over."""
        orders = self.place.orders
        while not ended.is_set():
            order = orders.place("default", self._source_id, "replay", {"from": None, "to": None}, "bench")
            while orders.get(order.id).status in ("waiting", "running"):
                if ended.wait(0.2):
                    with suppress(EventLakeError):  # it has just ended
                        orders.ask_to_stop(order.id)
                    time.sleep(0.2)

    def _look(self, ended: threading.Event) -> None:
        number, begun = 0, time.monotonic()
        while not ended.wait(max(0.0, begun + number / PAGES_PER_SECOND - time.monotonic())):
            with suppress(httpx2.TimeoutException):
                self._client.get(_PAGES[number % len(_PAGES)])
            number += 1


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
