"""What the lake asks of the place where its files are.

Paths are relative to a root, with `/` between the parts. The contract is small enough for stores without atomic
rename, without folders and without locks:

- `write` and `create` show a file whole or not at all;
- `move` gives a whole file another name. Readers see it under the new name whole or not at all, and for a moment
  perhaps under both; taken again after a crash, it ends the same;
- what is written to an `open_output` may be seen half: nobody is told of that path before it is complete;
- `settle` returns when everything that was written before survives a power cut.

Every call ends: with an answer, with FileNotFoundError, or with an error of ours that says who must act. A call that
gets no answer in time is given up; all of them may be repeated, also while the lost one is still under way.
"""

import contextlib
import functools
import hashlib
import itertools
import os
import queue
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, NoReturn, ParamSpec, TypeVar

from eventlake.errors import TransientError, of_system

if TYPE_CHECKING:
    import pyarrow as pa

TIMEOUT = 300.0  # seconds
MOST_BYTES_UNDER_WAY = 16 << 20  # of files that are being put

Self = TypeVar("Self", bound="Storage")
P = ParamSpec("P")
R = TypeVar("R")
Item = TypeVar("Item")


def new_digest() -> "hashlib.blake2b":
    """The hash by which files are recognised."""
    return hashlib.blake2b(digest_size=16)


class StoredFile(NamedTuple):
    """A file as a listing shows it; `etag` changes when the content does."""

    path: str
    size: int
    etag: str


class Part(NamedTuple):
    """Some bytes of a file."""

    path: str
    start: int
    size: int


class Storage(ABC):
    """The files below one root. It can be pickled: Spark tasks open their own."""

    at_once = 1  # calls that are worth making at the same time

    def __init__(self, root: str, *, timeout: float = TIMEOUT) -> None:
        self.root = root
        self.timeout = timeout

    def full(self, path: str) -> str:
        """The address of a file, for people and for other programs."""
        return f"{self.root}/{path}"

    @abstractmethod
    def files(self, folder: str) -> Iterator[StoredFile]:
        """All files below a folder, in order of their paths; none if there is no such folder."""

    @abstractmethod
    def folders(self, folder: str) -> list[str]:
        """The names of the folders in a folder."""

    @abstractmethod
    def stat(self, path: str) -> StoredFile | None: ...

    @abstractmethod
    def open_input(self, path: str) -> "pa.NativeFile":
        """A file for reading at any position."""

    @abstractmethod
    def open_stream(self, path: str) -> Any:
        """A file for reading from start to end."""

    @abstractmethod
    def open_output(self, path: str) -> "pa.NativeFile":
        """A file to write to; it is there when it is closed, and perhaps half of it before."""

    @abstractmethod
    def put(self, path: str, content: Any) -> None:
        """Write a whole file from a buffer; like `open_output`, for files that nobody is told of before."""

    @contextlib.contextmanager
    def putting(self) -> "Iterator[Callable[[str, Any], None]]":
        """A way to put files, beside each other where that is worth it. All are there at the end of the context."""
        if self.at_once == 1:
            yield self.put
            return
        with ThreadPoolExecutor(self.at_once) as pool:
            puts = _Puts(self, pool)
            yield puts.put
            puts.wait_until(0)

    def beside(self, function: "Callable[[Item], R]", items: "Iterable[Item]") -> "Iterator[R]":
        """What a function gives for each item, in order: some beside each other, where calls take their time."""
        if self.at_once == 1:
            yield from map(function, items)
            return
        left = iter(items)
        with ThreadPoolExecutor(self.at_once) as pool:
            while some := list(itertools.islice(left, self.at_once)):  # what comes of all may be too much to hold
                yield from pool.map(function, some)

    def ahead(self, blocks: "Iterator[Item]") -> "Generator[Item, None, None]":
        """The same blocks, each made while the one before is worked on, where calls take their time."""
        if self.at_once == 1:
            yield from blocks
            return
        with ThreadPoolExecutor(1) as pool:
            coming = pool.submit(next, blocks, None)
            while (block := coming.result()) is not None:
                coming = pool.submit(next, blocks, None)
                yield block

    @abstractmethod
    def read_parts(self, parts: "Sequence[Part]") -> "list[pa.Buffer]":
        """Parts of files, all of them at once."""

    @abstractmethod
    def read(self, path: str, limit: int = -1) -> bytes:
        """The content of a file; with a limit, at most so many bytes of it."""

    def digest(self, path: str) -> str | None:
        """A hash of a file's content; None if there is no such file."""
        try:
            with self.open_stream(path) as file:
                return hashlib.file_digest(file, new_digest).hexdigest()
        except FileNotFoundError:
            return None

    @abstractmethod
    def write(self, path: str, content: bytes) -> None:
        """Write a whole file, which survives a power cut."""

    @abstractmethod
    def create(self, path: str, content: bytes) -> bool:
        """Write a whole file if there is none; whether the file has this content afterwards."""

    @abstractmethod
    def move(self, source: str, target: str) -> None:
        """Give a file its final name. Once it has that name, doing it again has no effect."""

    def move_all(self, moves: Iterable[tuple[str, str]]) -> None:
        for move in moves:
            self.move(*move)

    @abstractmethod
    def settle(self) -> None:
        """Return when everything that was written before survives a power cut."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """Remove a file, if it is there."""

    @abstractmethod
    def delete_folder(self, folder: str) -> None:
        """Remove a folder and all in it, if it is there."""

    def described(self, method: Callable[..., Any], args: tuple[Any, ...]) -> str:
        """A call, for messages."""
        return f"{method.__name__.strip('_')} {self.full(str(args[0]) if args else '')}"

    def attempt(self, method: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        """Carry out one call; everything that is asked of the store passes here."""
        return method(self, *args, **kwargs)


class _Puts:
    """Files that are on their way."""

    def __init__(self, storage: Storage, pool: ThreadPoolExecutor) -> None:
        self._storage = storage
        self._pool = pool
        self._under_way: deque[tuple[int, Future[None]]] = deque()
        self._bytes = 0

    def put(self, path: str, content: Any) -> None:
        size = memoryview(content).nbytes
        self.wait_until(max(0, MOST_BYTES_UNDER_WAY - size))
        self._under_way.append((size, self._pool.submit(self._storage.put, path, content)))
        self._bytes += size

    def wait_until(self, most: int) -> None:
        """Wait until no more bytes than this are under way. Raises what went wrong with any."""
        while self._under_way and self._bytes > most:
            size, done = self._under_way.popleft()
            done.result()
            self._bytes -= size


def answered(method: Callable[Concatenate[Self, P], R]) -> Callable[Concatenate[Self, P], R]:
    """Let a call end in time, and with one of our errors."""

    @functools.wraps(method)
    def call(self: Self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        what = self.described(method, args)
        with _translated(what):
            return _in_time(self.timeout, what, lambda: self.attempt(method, *args, **kwargs))

    return call


def transferred(method: Callable[Concatenate[Self, P], R]) -> Callable[Concatenate[Self, P], R]:
    """The same for a call that may take as long as its file is large, if the library below gives up by itself."""

    @functools.wraps(method)
    def call(self: Self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with _translated(self.described(method, args)):
            return self.attempt(method, *args, **kwargs)

    return call


@contextlib.contextmanager
def _translated(what: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise of_system(error, what) from error


def _in_time(seconds: float, what: str, function: Callable[[], R]) -> R:
    """Call a function in another thread: nothing else can be left when the kernel does not answer."""
    answers: queue.SimpleQueue[Callable[[], R]] = queue.SimpleQueue()

    def carry_out() -> None:
        try:
            result = function()
        except BaseException as error:  # also what only this thread would see
            answers.put(functools.partial(_raise, error))
        else:
            answers.put(lambda: result)

    try:
        worker = _idle.pop()
    except IndexError:
        worker = _Worker()
    worker.jobs.put(carry_out)
    try:
        answer = answers.get(timeout=seconds)
    except queue.Empty:
        raise TransientError(
            f"no answer from the storage to {what} for {seconds:g} seconds",
            fix="check the disk or the network, then run it again",
        ) from None
    return answer()


def _raise(error: BaseException) -> NoReturn:
    raise error


class _Worker(threading.Thread):
    """A thread that carries out one call after the other. One that hangs is left behind."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.start()

    def run(self) -> None:
        while True:
            self.jobs.get()()
            _idle.append(self)


_idle: list[_Worker] = []
os.register_at_fork(after_in_child=_idle.clear)  # threads stay with the parent
