"""Many requests, one wait for the disk: each is answered when its records are there, or told that they are not."""

import asyncio
import errno
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from eventlake.collector import log
from eventlake.collector.group_commit import MAX_WAITING, GroupCommit, NotStoredError
from eventlake.collector.log import Log, Record


class Disk:
    """What the system does when it is asked to keep a log: it may be slow, and may refuse."""

    def __init__(self) -> None:
        self.syncs = 0
        self.refuses = False
        self.goes_on = threading.Event()
        self.goes_on.set()

    def sync(self, file: int) -> None:
        self.syncs += 1
        assert self.goes_on.wait(30)
        if self.refuses:
            raise OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    made = Disk()
    monkeypatch.setattr(os, "fdatasync", made.sync)
    yield made
    made.goes_on.set()


def record(name: str) -> Record:
    return Record("src1", 5, log.message_hash("src1", name), b"{}")


def lines(*names: str) -> list[bytes]:
    return [record(name).line() for name in names]


def new_log(folder: Path, *, max_seconds: float = 3600, request: Path | None = None) -> Log:
    return Log(folder, "w0", max_bytes=1 << 30, max_seconds=max_seconds, request=request)


def stored(folder: Path) -> list[list[Record]]:
    """The records of each log that was handed on."""
    return [log.read(path).records for path in log.sealed(folder)]


def run(to: Log, requests: Callable[[GroupCommit], Awaitable[None]]) -> None:
    """Let requests come to a process that is started for them and stopped afterwards."""

    async def all_of_it() -> None:
        commit = GroupCommit(to)
        commit.start()
        try:
            async with asyncio.timeout(30):
                await requests(commit)
        finally:
            await commit.stop()

    asyncio.run(all_of_it())


async def until(is_so: Callable[[], object]) -> None:
    while not is_so():
        await asyncio.sleep(0.005)


async def begun(commit: GroupCommit, sent: list[bytes]) -> asyncio.Task[None]:
    """A request that waits for the disk."""
    task = asyncio.create_task(commit.append(sent))
    await asyncio.sleep(0)
    return task


def test_requests_that_come_while_the_disk_is_busy_share_the_next_wait(tmp_path: Path, disk: Disk) -> None:
    names = [f"{number}" for number in range(20)]

    async def requests(commit: GroupCommit) -> None:
        assert not commit.is_failing
        disk.goes_on.clear()
        first = await begun(commit, lines("first"))
        await until(lambda: disk.syncs)
        others = [await begun(commit, lines(name)) for name in names]
        assert not any(request.done() for request in (first, *others))
        disk.goes_on.set()
        await asyncio.gather(first, *others)
        assert disk.syncs == 2

    run(new_log(tmp_path), requests)
    assert stored(tmp_path) == [[record(name) for name in ("first", *names)]]


def test_what_the_disk_refuses_is_told_to_all_and_the_next_is_taken(tmp_path: Path, disk: Disk) -> None:
    async def requests(commit: GroupCommit) -> None:
        disk.refuses = True
        refused = [await begun(commit, lines(name)) for name in "ab"]
        for request in refused:
            with pytest.raises(NotStoredError):
                await request
        assert commit.is_failing
        disk.refuses = False
        await commit.append(lines("c"))
        assert not commit.is_failing

    run(new_log(tmp_path), requests)
    assert stored(tmp_path) == [[], [record("c")]]


def test_an_error_of_any_kind_ends_no_more_than_what_met_it(tmp_path: Path) -> None:
    async def requests(commit: GroupCommit) -> None:
        with pytest.raises(NotStoredError):
            await commit.append(["no bytes"])  # type: ignore[list-item]
        await commit.append(lines("a"))

    run(new_log(tmp_path), requests)
    assert stored(tmp_path) == [[record("a")]]


def test_a_disk_that_refused_something_is_probed_after_a_second_if_nothing_comes(tmp_path: Path, disk: Disk) -> None:
    async def requests(commit: GroupCommit) -> None:
        disk.refuses = True
        with pytest.raises(NotStoredError):
            await commit.append(lines("a"))
        failed = time.monotonic()
        await until(lambda: log.sealed(tmp_path))
        assert commit.is_failing  # handing on a log says nothing of writing one
        await until(lambda: not commit.is_failing)
        assert 0.9 < time.monotonic() - failed < 10

    run(new_log(tmp_path), requests)


@pytest.mark.usefixtures("disk")
def test_more_than_the_disk_can_follow_is_refused_and_what_waits_is_stored(tmp_path: Path) -> None:
    large = [bytes(MAX_WAITING - 2), b"\n"]

    async def requests(commit: GroupCommit) -> None:
        for _ in range(2):
            at_once = [commit.append(sent) for sent in (large, [b"\n"], [b"\n"])]
            first, second, refused = await asyncio.gather(*at_once, return_exceptions=True)
            assert (first, second) == (None, None)
            assert isinstance(refused, NotStoredError)

    run(new_log(tmp_path), requests)
    [path] = log.sealed(tmp_path)
    assert path.stat().st_size == 2 * MAX_WAITING


def test_a_client_that_is_gone_costs_the_others_nothing(tmp_path: Path, disk: Disk) -> None:
    async def requests(commit: GroupCommit) -> None:
        disk.goes_on.clear()
        gone, other = [await begun(commit, lines(name)) for name in "ab"]
        await until(lambda: disk.syncs)
        gone.cancel()
        await asyncio.wait([gone])
        disk.goes_on.set()
        await other
        await commit.append(lines("c"))

    run(new_log(tmp_path), requests)
    assert stored(tmp_path) == [[record(name) for name in "abc"]]


def test_nothing_is_taken_before_the_start_or_after_the_stop_which_stores_what_waits(tmp_path: Path) -> None:
    async def requests() -> None:
        commit = GroupCommit(new_log(tmp_path))
        with pytest.raises(NotStoredError):
            await commit.append(lines("too early"))
        commit.start()
        waiting = await begun(commit, lines("a"))
        await commit.stop()
        await waiting
        with pytest.raises(NotStoredError):
            await commit.append(lines("too late"))

    started, threads = time.monotonic(), threading.active_count()
    asyncio.run(asyncio.wait_for(requests(), 20))
    assert time.monotonic() - started < 10
    assert stored(tmp_path) == [[record("a")]]
    assert threading.active_count() == threads


def test_a_stop_waits_for_what_is_being_written(tmp_path: Path, disk: Disk) -> None:
    async def requests() -> None:
        commit = GroupCommit(new_log(tmp_path))
        commit.start()
        disk.goes_on.clear()
        waiting = await begun(commit, lines("a"))
        await until(lambda: disk.syncs)
        stopping = asyncio.create_task(commit.stop())
        await asyncio.sleep(0)
        disk.goes_on.set()
        await stopping
        await waiting

    asyncio.run(asyncio.wait_for(requests(), 20))
    assert stored(tmp_path) == [[record("a")]]


def test_a_log_is_handed_on_when_it_is_asked_for_though_nothing_comes(tmp_path: Path) -> None:
    folder, request = tmp_path / "logs", tmp_path / "roll-now"
    folder.mkdir()

    async def requests(commit: GroupCommit) -> None:
        await commit.append(lines("a"))
        await asyncio.sleep(0.3)
        assert stored(folder) == []
        request.touch()
        await until(lambda: stored(folder))

    run(new_log(folder, request=request), requests)
    assert stored(folder) == [[record("a")]]
