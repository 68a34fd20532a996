"""A lake on a disk: what is written is whole, is there after a power cut, and leaves nothing beside it."""

import errno
import os
import pickle
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eventlake.errors import EventLakeError
from eventlake.storage.local import LocalStorage, sync_folder


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(str(tmp_path))


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


class Recorder:
    """What the operating system is asked for, in order: with the file's name, and what the folder showed by then."""

    def __init__(self, patch: pytest.MonkeyPatch, folder: Path) -> None:
        self.calls: list[tuple[str, str]] = []
        self.seen: list[list[str]] = []
        self._folder = folder
        for name in ("fsync", "link", "replace", "rename", "sync"):
            patch.setattr(os, name, self._recorded(name, getattr(os, name)))

    def _recorded(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def recorded(*args: Any, **kwargs: Any) -> Any:
            self.calls.append((name, self._name_of(args)))
            self.seen.append([found for found in names(self._folder) if not Path(found).name.startswith(".")])
            return call(*args, **kwargs)

        return recorded

    def _name_of(self, args: tuple[Any, ...]) -> str:
        if not args:
            return ""
        path = Path(f"/proc/self/fd/{args[0]}").readlink() if isinstance(args[0], int) else Path(args[-1])
        if path.is_dir():
            return f"folder {path.name}"
        return "aside" if path.name.startswith(".") else path.name


@pytest.fixture
def recorder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    with monkeypatch.context() as patch:
        yield Recorder(patch, tmp_path)


# Written aside, then shown


def test_a_file_is_on_disk_before_it_is_shown_and_its_name_is_after(storage: LocalStorage, recorder: Recorder) -> None:
    storage.write("a/one", b"1")
    assert recorder.calls == [("fsync", "aside"), ("replace", "one"), ("fsync", "folder a")]
    assert recorder.seen == [[], [], ["a/one"]]


def test_a_file_that_is_created_is_on_disk_before_it_is_shown(storage: LocalStorage, recorder: Recorder) -> None:
    assert storage.create("a/one", b"1") is True
    assert recorder.calls == [("fsync", "aside"), ("link", "one"), ("fsync", "folder a")]
    assert recorder.seen == [[], [], ["a/one"]]


def test_what_is_settled_is_on_disk(storage: LocalStorage, recorder: Recorder) -> None:
    storage.settle()
    assert recorder.calls == [("sync", "")]


def test_a_folder_is_synced_by_itself_and_let_go_of(tmp_path: Path, recorder: Recorder) -> None:
    before = sorted(Path("/proc/self/fd").iterdir())
    sync_folder(tmp_path)
    assert recorder.calls == [("fsync", f"folder {tmp_path.name}")]
    assert sorted(Path("/proc/self/fd").iterdir()) == before


def test_readers_see_the_old_content_or_the_new_and_never_half(
    storage: LocalStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage.write("one", b"old")

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, full)
            with pytest.raises(EventLakeError, match=r"write .*/one"):
                storage.write("one", b"new")
        assert storage.read("one") == b"old"
        assert names(tmp_path) == ["one"], "nothing is left beside it"


@pytest.mark.parametrize("way", ["write", "create"])
def test_a_written_file_leaves_nothing_beside_it(storage: LocalStorage, tmp_path: Path, way: str) -> None:
    getattr(storage, way)("a/b/one", b"1")
    getattr(storage, way)("a/b/one", b"1")
    assert names(tmp_path) == ["a/b/one"]
    assert storage.read("a/b/one") == b"1"


def test_an_interrupted_writer_leaves_a_name_that_no_listing_of_raw_files_takes(
    storage: LocalStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed process cannot clean up: what it leaves is hidden."""
    shown: list[str] = []

    def look(source: Any, *_: Any) -> None:
        shown.append(Path(source).name)
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(os, "link", look)
    for _ in range(2):
        with pytest.raises(EventLakeError):
            storage.create("one", b"1")
    assert all(name.startswith(".one.") for name in shown)
    assert len(set(shown)) == 2, "two writers do not meet"


# One of many


def test_a_file_that_is_there_is_not_replaced(storage: LocalStorage) -> None:
    assert storage.create("one", b"1") is True
    assert storage.create("one", b"2") is False
    assert storage.create("one", b"1") is True
    assert storage.read("one") == b"1"


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOTSUP, errno.ENOSYS])
def test_without_links_a_file_is_created_all_the_same(
    storage: LocalStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def no_links(*_: object) -> None:
        raise OSError(code, "no links here")

    monkeypatch.setattr(os, "link", no_links)
    synced: list[bool] = []
    sync = os.fsync

    def recorded(handle: int) -> None:
        synced.append(stat.S_ISDIR(os.fstat(handle).st_mode))
        sync(handle)

    monkeypatch.setattr(os, "fsync", recorded)
    assert storage.create("a/one", b"1") is True
    assert synced == [False, True]
    assert storage.create("a/one", b"2") is False
    assert storage.create("a/one", b"1") is True
    assert storage.read("a/one") == b"1"
    assert names(tmp_path) == ["a/one"]


def test_a_link_that_fails_for_another_reason_is_told(storage: LocalStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "link", full)
    with pytest.raises(EventLakeError, match=r"create .*/one"):
        storage.create("one", b"1")
    assert storage.stat("one") is None


# Moving


def test_a_move_makes_the_folders_it_needs_and_may_be_repeated(storage: LocalStorage) -> None:
    storage.write("from", b"1")
    for _ in range(2):
        storage.move("from", "a/b/to")
        assert storage.read("a/b/to") == b"1"
        assert storage.stat("from") is None


def test_a_move_of_nothing_to_nowhere_is_an_error(storage: LocalStorage) -> None:
    storage.write("a/other", b"")
    with pytest.raises(FileNotFoundError):
        storage.move("from", "a/to")


# Looking


def test_files_are_listed_in_order_with_size_and_a_mark_of_their_content(storage: LocalStorage, tmp_path: Path) -> None:
    for path in ("x/b", "x/a/2", "x/a/1", "x/a-b", "y"):
        storage.write(path, path.encode())
    found = list(storage.files("x"))
    assert [(file.path, file.size) for file in found] == [("x/a-b", 5), ("x/a/1", 5), ("x/a/2", 5), ("x/b", 3)]
    for file in found:
        assert storage.stat(file.path) == file
        assert file.etag == str((tmp_path / file.path).stat().st_mtime_ns)
    assert list(storage.files("z")) == []


def test_only_folders_are_folders_and_only_files_are_files(storage: LocalStorage) -> None:
    storage.write("x/file", b"")
    storage.write("x/b/deep/file", b"")
    storage.write("x/a/file", b"")
    assert storage.folders("x") == ["a", "b"]
    assert storage.folders("z") == []
    assert storage.stat("x/a") is None
    assert storage.stat("x/z") is None


def test_the_root_is_the_same_folder_wherever_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lake").mkdir()
    monkeypatch.chdir(tmp_path)
    storage = LocalStorage("lake", timeout=7)
    monkeypatch.chdir("/")
    storage.write("one", b"1")
    assert names(tmp_path) == ["lake/one"]
    assert storage.root == str(tmp_path.resolve() / "lake")
    assert storage.timeout == 7


def test_a_storage_in_another_process_gives_up_as_soon_as_here(tmp_path: Path) -> None:
    there = pickle.loads(pickle.dumps(LocalStorage(str(tmp_path), timeout=7)))
    assert (type(there), there.root, there.timeout) == (LocalStorage, str(tmp_path.resolve()), 7)


def test_files_are_written_side_by_side_and_an_empty_one_can_be_read(storage: LocalStorage) -> None:
    for path, content in (("a/b/1", b"1"), ("a/b/2", b""), ("a/b/1", b"3")):
        with storage.open_output(path) as sink:
            sink.write(content)
        with storage.open_input(path) as source:
            assert (source.size(), source.read()) == (len(content), content)
    assert [file.path for file in storage.files("a")] == ["a/b/1", "a/b/2"]


# Deleting


def test_what_is_not_there_may_be_deleted_and_a_file_is_no_folder(storage: LocalStorage) -> None:
    storage.delete("nothing")
    storage.delete_folder("nothing")
    storage.write("a/one", b"")
    storage.delete_folder("a/one")
    assert storage.stat("a/one")
    storage.delete_folder("a")
    assert storage.folders("") == []
