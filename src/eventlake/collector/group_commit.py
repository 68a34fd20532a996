"""Many requests, one wait for the disk: while it is busy with some records, the next ones gather."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from eventlake.collector.log import Log

_LOOK_EVERY = 0.25  # seconds, for whether the log is old or asked for
_PROBE_AFTER = 1.0  # seconds, for whether a disk that refused something takes anything again
MAX_WAITING = 64 << 20  # bytes; more than that means that the disk cannot follow


class NotStoredError(Exception):
    """The disk refused the records, or does not follow: clients must come again later."""


class GroupCommit:
    """Appends to a log for all requests of a process."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._failed_at: float | None = None  # when the disk refused something, if it took nothing since
        self._lines: list[bytes] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._bytes = 0
        self._more = asyncio.Event()
        self._disk = ThreadPoolExecutor(1)
        self._task: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()

    @property
    def is_failing(self) -> bool:
        return self._failed_at is not None

    def start(self) -> None:
        self._task = asyncio.create_task(self._commit_until_stopped())

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

    async def _commit_until_stopped(self) -> None:
        while not self._stopping.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._more.wait(), timeout=_LOOK_EVERY)
            self._more.clear()
            if self._lines:
                await self._commit()
            elif self._failed_at is not None and time.monotonic() - self._failed_at >= _PROBE_AFTER:
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
            self._failed_at = time.monotonic()
            return error
        if clears:
            self._failed_at = None
        return None

    async def stop(self) -> None:
        """Commit what waits and hand the log on."""
        self._stopping.set()
        self._more.set()
        if self._task:
            await self._task  # to cancel it would leave those waiting whose records are being written
        if self._lines:
            await self._commit()
        await self._tried(lambda: self._log.hand_on(all_of_it=True))
        self._disk.shutdown()
