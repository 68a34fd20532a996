"""A lake in an object store, which knows neither folders nor renaming.

An object appears whole when its upload ends, so a file is moved by copying it on the server and deleting the old name:
after a crash between the two, moving it again does the rest. Requests are made by obstore, which repeats failed ones.
"""

import functools
import io
import itertools
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from eventlake.errors import EventLakeError, SetupError
from eventlake.storage.base import Part, Storage, StoredFile, answered, transferred
from eventlake.storage.object_files import READ_AT_ONCE, Ahead, Ranges, Upload

if TYPE_CHECKING:
    import pyarrow as pa
    from obstore.store import ObjectStore

R = TypeVar("R")

_LISTED_AT_ONCE = 1000
_DELETED_AT_ONCE = 1000
_CODE = re.compile(r"(?:<Code>|\(code: )(\w+)")  # of a request, or of one object among many
_MESSAGE = re.compile(r"<Message>\s*([^<\n]+)")
_NOT_THERE = ("", "404", "NoSuchKey", "BlobNotFound")


class ObjectStorage(Storage):
    at_once = 16
    extra: str  # of ours, that brings what is needed
    _credentials: Any = None  # by which requests are made; `refusal` tells why there are none any more

    def __init__(self, root: str, options: Any, *, timeout: float) -> None:
        super().__init__(root.rstrip("/"), timeout=timeout)
        self.options = options  # how to reach the server, and as whom

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(type(self), timeout=self.timeout), (self.root, self.options)

    @abstractmethod
    def _connected(self) -> "ObjectStore":
        """The store; its paths begin below the root of this storage."""

    @abstractmethod
    def _explained(self, error: Exception, request: str, what: str, signed_in: Any) -> Exception | None:
        """What the answer to a request means, which was made by these credentials; None if it is not the server's."""

    @functools.cached_property
    def _store(self) -> "ObjectStore":
        try:
            import obstore  # noqa: F401, PLC0415 - only lakes in object stores need it
        except ImportError as error:
            problem = "what reads and writes object stores is not installed"
            raise SetupError(problem, fix=f"pip install 'eventlake[{self.extra}]'") from error
        return self._connected()

    def _store_for(self, request: str) -> "ObjectStore":
        """The store for a request; some want more of one that writes."""
        del request
        return self._store

    # Every request passes here: `request` is one of list, stat, read, write, create, copy and delete.

    @answered
    def _ask(self, request: str, path: str, ask: Callable[["ObjectStore"], R]) -> R:
        return self._answer(request, path, ask)

    @transferred
    def _transfer(self, request: str, path: str, ask: Callable[["ObjectStore"], R]) -> R:
        """The same for what may take as long as a file is large."""
        return self._answer(request, path, ask)

    def _answer(self, request: str, path: str, ask: Callable[["ObjectStore"], R]) -> R:
        what = f"{request} {self.full(path)}"
        signed_in = None
        try:
            store = self._store_for(request)
            signed_in = (
                self._credentials
            )  # of several requests that fail together, the first gives the next ones others
            return ask(store)
        except EventLakeError:
            raise
        except FileNotFoundError as error:
            if code_of(error) in _NOT_THERE:
                raise FileNotFoundError(what) from error
            raise self._explained(error, request, what, signed_in) or error from error
        except Exception as error:
            if (problem := self._explained(error, request, what, signed_in)) is None:
                raise
            raise problem from error

    def described(self, method: Callable[..., Any], args: tuple[Any, ...]) -> str:
        del method
        return f"{args[0]} {self.full(args[1])}"

    def files(self, folder: str) -> Iterator[StoredFile]:
        first = self._ask("list", folder, lambda store: _page(store, folder))
        if len(first) < _LISTED_AT_ONCE:
            yield from _without_folders(first)
            return
        # A page comes after the other, so folders are listed beside each other.
        with ThreadPoolExecutor(self.at_once) as pool:
            parts: list[str | StoredFile] = [folder]
            while 0 < sum(isinstance(part, str) for part in parts) < self.at_once:
                parts = list(itertools.chain.from_iterable(pool.map(self._members, parts)))
            yield from _without_folders(itertools.chain.from_iterable(pool.map(self._all_below, parts)))

    def _all_below(self, part: str | StoredFile) -> list[StoredFile]:
        if isinstance(part, StoredFile):
            return [part]
        return self._transfer("list", part, lambda store: _all_pages(store, part))

    def _members(self, part: str | StoredFile) -> list[str | StoredFile]:
        """The files of a folder, and the folders in it, in order."""
        if isinstance(part, StoredFile):
            return [part]
        folders, files = self._transfer("list", part, lambda store: _members(store, part))
        return sorted([*folders, *files], key=lambda member: f"{member}/" if isinstance(member, str) else member.path)

    def folders(self, folder: str) -> list[str]:
        folders, _ = self._transfer("list", folder, lambda store: _members(store, folder))
        return sorted(path.rpartition("/")[2] for path in folders)

    def stat(self, path: str) -> StoredFile | None:
        try:
            return self._head(path)
        except FileNotFoundError:
            return None

    def _head(self, path: str) -> StoredFile:
        return self._ask("stat", path, lambda store: _stored(_obstore().head(store, path)))

    def open_input(self, path: str) -> "pa.NativeFile":
        return _arrow().PythonFile(Ranges(self, self._head(path)), mode="r")

    def open_stream(self, path: str) -> Any:
        return io.BufferedReader(Ahead(self, self._head(path)), READ_AT_ONCE)

    def read_range(self, path: str, etag: str, start: int, stop: int) -> bytes:
        """Some bytes of a file that has not changed since it had this etag."""
        asked: Any = {"range": (start, stop), "if_match": etag}
        return self._ask("read", path, lambda store: bytes(_obstore().get(store, path, options=asked).bytes()))

    def read_parts(self, parts: Sequence[Part]) -> "list[pa.Buffer]":
        of_files: dict[str, list[int]] = {}
        for number, part in enumerate(parts):
            of_files.setdefault(part.path, []).append(number)
        found: list[Any] = [None] * len(parts)
        of_each = self.beside(lambda numbers: self._parts([parts[number] for number in numbers]), of_files.values())
        for numbers, contents in zip(of_files.values(), of_each, strict=True):
            for number, content in zip(numbers, contents, strict=True):
                found[number] = _arrow().py_buffer(content)
        return found

    def _parts(self, parts: Sequence[Part]) -> list[Any]:
        """Parts of one file; those that lie close to each other are fetched together."""
        path, starts, sizes = parts[0].path, [part.start for part in parts], [part.size for part in parts]
        return self._transfer(
            "read", path, lambda store: list(_obstore().get_ranges(store, path, starts=starts, lengths=sizes))
        )

    def open_output(self, path: str) -> "pa.NativeFile":
        return _arrow().PythonFile(Upload(self, path), mode="w")

    def upload(self, path: str, content: Any) -> None:
        """Write a file of any size from a file object, or from its blocks."""
        self._transfer("write", path, lambda store: _obstore().put(store, path, content))

    def put(self, path: str, content: Any) -> None:
        self._transfer("write", path, lambda store: _obstore().put(store, path, memoryview(content).cast("B")))

    def read(self, path: str, limit: int = -1) -> bytes:
        def content(store: "ObjectStore") -> bytes:
            read = bytearray()
            for block in _obstore().get(store, path).stream():
                read += block
                if 0 <= limit <= len(read):  # what is left of it is not fetched
                    return bytes(read[:limit])
            return bytes(read)

        return self._ask("read", path, content)

    def write(self, path: str, content: bytes) -> None:
        self._ask("write", path, lambda store: _obstore().put(store, path, content))

    def create(self, path: str, content: bytes) -> bool:
        is_new = self._ask("create", path, lambda store: _created(store, path, content))
        # It may be there by this call: an answer that is lost makes the library ask once more.
        return is_new or self.read(path) == content

    def move(self, source: str, target: str) -> None:
        self.move_all([(source, target)])

    def move_all(self, moves: Iterable[tuple[str, str]]) -> None:
        wanted = list(moves)
        for _ in self.beside(lambda move: self._copy(*move), wanted):
            pass
        self._delete([source for source, _ in wanted])

    def _copy(self, source: str, target: str) -> None:
        try:
            self._transfer("copy", source, lambda store: _obstore().copy(store, source, target))
        except FileNotFoundError:
            self._head(target)  # it was moved before, or it is lost

    def settle(self) -> None:
        """What an object store has taken is safe."""

    def delete(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self._ask("delete", path, lambda store: _obstore().delete(store, path))

    def delete_folder(self, folder: str) -> None:
        self._delete([file.path for file in self.files(folder)])

    def _delete(self, paths: Sequence[str]) -> None:
        for start in range(0, len(paths), _DELETED_AT_ONCE):
            some = paths[start : start + _DELETED_AT_ONCE]
            try:
                self._ask("delete", some[0], functools.partial(_deleted, some))
            except FileNotFoundError:  # for which some stores leave the rest as it is
                for _ in self.beside(self.delete, some):
                    pass


def code_of(error: Exception) -> str:
    """The code of an answer that refuses; empty if it tells none."""
    found = _CODE.search(str(error))
    return found[1] if found else ""


def message_of(error: Exception) -> str:
    """What an error of obstore says, for people: the server's own words, if it has any."""
    whole = str(error).partition("\n\nDebug source")[0].strip()
    message = _MESSAGE.search(whole)
    return f"{code_of(error)}: {message[1].strip()}" if message else whole


def _arrow() -> Any:
    import pyarrow  # noqa: PLC0415 - as obstore: commands that only ask the database shall answer at once

    return pyarrow


def _obstore() -> Any:
    import obstore  # noqa: PLC0415

    return obstore


def _stored(meta: Any) -> StoredFile:
    return StoredFile(meta["path"], meta["size"], str(meta["e_tag"]).strip('"'))


def _page(store: "ObjectStore", folder: str) -> list[StoredFile]:
    return [_stored(meta) for meta in next(iter(_obstore().list(store, folder, chunk_size=_LISTED_AT_ONCE)), [])]


def _all_pages(store: "ObjectStore", folder: str) -> list[StoredFile]:
    return [_stored(meta) for page in _obstore().list(store, folder, chunk_size=_LISTED_AT_ONCE) for meta in page]


def _members(store: "ObjectStore", folder: str) -> tuple[list[str], list[StoredFile]]:
    found = _obstore().list_with_delimiter(store, folder)
    return list(found["common_prefixes"]), [_stored(meta) for meta in found["objects"]]


def _created(store: "ObjectStore", path: str, content: bytes) -> bool:
    """Whether there was no such file."""
    from obstore.exceptions import AlreadyExistsError  # noqa: PLC0415

    try:
        _obstore().put(store, path, content, mode="create", use_multipart=False)
    except AlreadyExistsError:
        return False
    return True


def _deleted(paths: Sequence[str], store: "ObjectStore") -> None:
    _obstore().delete(store, paths)


def _without_folders(files: Iterable[StoredFile]) -> Iterator[StoredFile]:
    """The files among these, which are in order: some tools make empty objects to stand for folders."""
    held: StoredFile | None = None
    for file in files:
        if held and not file.path.startswith(f"{held.path}/"):
            yield held
        held = None if file.size else file
        if file.size:
            yield file
    if held:
        yield held
