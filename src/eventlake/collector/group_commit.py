"""Many requests, one wait for the disk: while it is busy with some records, the next ones gather."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from eventlake.collector.log import Log

MAX_WAITING = 64 << 20  # bytes; more than that means that the disk cannot follow


class NotStoredError(Exception):
    """The disk refused the records, or does not follow: clients must come again later."""


class GroupCommit:
    """Appends to a log for all requests of a process."""

    def __init__(self, log: Log) -> None:
        self.is_failing = False  # the disk refused something and took nothing since
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
        """Return when the lines are on disk. Raises NotStoredError; then they are not."""
        size = sum(map(len, lines))
        if self._task is None or self._task.done() or self._bytes + size > MAX_WAITING:
            raise NotStoredError
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
            elif self.is_failing:
                await self._tried(self._log.probe)
            await self._tried(self._log.hand_on, clears=False)

    async def _commit(self) -> None:
        lines, self._lines = self._lines, []
        waiting, self._waiting = self._waiting, []
        self._bytes = 0
        error = await self._tried(lambda: self._log.append(lines))
        for done in waiting:
            if done.done():  # the client is gone; its events are safe all the same
                continue
            if error:
                done.set_exception(NotStoredError())
            else:
                done.set_result(None)

    async def _tried(self, function: Callable[[], None], *, clears: bool = True) -> Exception | None:
        """Do something on the disk; the error if it failed. Whatever it is, the next attempt may succeed."""
        try:
            await asyncio.get_running_loop().run_in_executor(self._disk, function)
        except Exception as error:  # an error that ends this task would let all requests wait for ever
            self.is_failing = True
            return error
        if clears:
            self.is_failing = False
        return None

    async def stop(self) -> None:
        """Commit what waits and hand the log on."""
        if self._task:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        if self._lines:
            await self._commit()
        await self._tried(lambda: self._log.hand_on(all_of_it=True))
        self._disk.shutdown()
