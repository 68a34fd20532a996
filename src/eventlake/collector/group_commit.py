"""Many requests, one wait for the disk: while it is busy with some records, the next ones gather."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from eventlake.collector.log import Log

MAX_WAITING = 64 << 20  # bytes; more than that means that the disk cannot follow


class OverloadedError(Exception):
    """The disk does not follow: clients must come again later."""


class GroupCommit:
    """Appends to a log for all requests of a process."""

    def __init__(self, log: Log) -> None:
        self.is_failing = False  # the disk refused the last records
        self._log = log
        self._lines: list[bytes] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._bytes = 0
        self._more = asyncio.Event()
        self._disk = ThreadPoolExecutor(1, "log")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._commit_for_ever())

    async def append(self, lines: list[bytes]) -> None:
        """Return when the lines are on disk. Raises OSError and OverloadedError; then they are not."""
        size = sum(map(len, lines))
        if self._bytes + size > MAX_WAITING:
            raise OverloadedError
        done = asyncio.get_running_loop().create_future()
        self._lines += lines
        self._bytes += size
        self._waiting.append(done)
        self._more.set()
        await done

    async def _commit_for_ever(self) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._more.wait(), timeout=1)
            self._more.clear()
            if self._lines:
                await self._commit()
            if self._log.is_old():
                await self._on_disk(self._log.seal)

    async def _commit(self) -> None:
        lines, self._lines = self._lines, []
        waiting, self._waiting = self._waiting, []
        self._bytes = 0
        error: OSError | None = None
        try:
            await self._on_disk(lambda: self._log.append(lines))
        except OSError as failure:
            error = failure
        self.is_failing = error is not None
        for done in waiting:
            if done.cancelled():  # the client is gone; its events are safe all the same
                continue
            if error:
                done.set_exception(error)
            else:
                done.set_result(None)

    async def _on_disk(self, function: Callable[[], None]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._disk, function)

    async def stop(self) -> None:
        """Commit what waits and hand the log on."""
        if self._task:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        if self._lines:
            await self._commit()
        await self._on_disk(self._log.seal)
        self._disk.shutdown()
