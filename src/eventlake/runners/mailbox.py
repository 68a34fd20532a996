"""How a run here and a Spark driver on a cluster talk: through files in the lake's staging folder.

The run stays where its database and its locks are; only tasks travel. Nothing must be reachable from outside for it, on
either side, and a file that is written twice is the same file. One folder is one session:

    hello          the driver is up; tells how many tasks it does at once
    request-<n>    the name of a step, what its tasks share, and the tasks
    progress-<n>   how many of them are done
    result-<n>     what they gave, or the error that stopped them
    alive          is written again and again by the run; the driver gives up when it no longer is
    bye            there is nothing more to do

All of it is typed data (`wire`): of a file that somebody else put there, nothing is executed and nothing believed.
"""

from collections.abc import Sequence
from typing import Any

from eventlake.runners import wire
from eventlake.runners.wire import Failure, Greeting, Progress, Request, Steps
from eventlake.storage.base import Storage


class Mailbox:
    """One session; both sides have one."""

    def __init__(self, storage: Storage, folder: str, steps: Steps, raw: Sequence[Storage] = ()) -> None:
        self._storage = storage
        self._storages = (storage, *raw)  # of which requests may speak
        self._steps = steps
        self.folder = folder

    def _path(self, name: str) -> str:
        return f"{self.folder}/{name}"

    def _full(self, name: str) -> str:
        return self._storage.full(self._path(name))

    def _write(self, name: str, content: bytes) -> None:
        self._storage.write(self._path(name), content)

    def _read(self, name: str, limit: int) -> bytes | None:
        """A file of at most so many bytes, whatever its size claims to be; None if it is not there."""
        try:
            content = self._storage.read(self._path(name), limit + 1)
        except FileNotFoundError:
            return None
        if len(content) > limit:
            raise wire.refused(self._full(name), f"it has more than {limit:,} bytes")
        return content

    # The run's side

    def ask(self, number: int, request: Request) -> None:
        self._write(f"request-{number}", wire.encoded_request(request))

    def greeting(self) -> Greeting | None:
        """What the driver said when it came up; None before."""
        content = self._read("hello", wire.SMALL_BYTES)
        return None if content is None else wire.decoded(content, Greeting, self._full("hello"))

    def progress(self, number: int) -> int:
        name = f"progress-{number}"
        content = self._read(name, wire.SMALL_BYTES)
        return 0 if content is None else wire.decoded(content, Progress, self._full(name)).done

    def result(self, number: int, request: Request) -> list[Any] | Failure | None:
        """What came of a request; None if it is not done."""
        name = f"result-{number}"
        content = self._read(name, wire.ANSWER_BYTES + wire.ANSWER_BYTES_PER_TASK * len(request.tasks))
        return None if content is None else wire.decoded_answer(content, request, self._full(name))

    def show_alive(self, count: int) -> None:
        self._write("alive", str(count).encode())

    def say_bye(self) -> None:
        self._write("bye", b"")

    def remove(self) -> None:
        self._storage.delete_folder(self.folder)

    # The driver's side

    def greet(self, greeting: Greeting) -> None:
        self._write("hello", wire.encoded(greeting))

    def request(self, number: int) -> Request | None:
        name = f"request-{number}"
        content = self._read(name, wire.REQUEST_BYTES)
        if content is None:
            return None
        return wire.decoded_request(content, self._steps, self._storages, self._full(name))

    def tell_progress(self, number: int, done: int) -> None:
        self._write(f"progress-{number}", wire.encoded(Progress(done)))

    def answer(self, number: int, answer: list[Any] | Failure) -> None:
        self._write(f"result-{number}", wire.encoded_answer(answer))

    def life_sign(self) -> str | None:
        """Changes while the run is alive."""
        found = self._storage.stat(self._path("alive"))
        return found.etag if found else None

    def is_over(self) -> bool:
        return self._storage.stat(self._path("bye")) is not None
