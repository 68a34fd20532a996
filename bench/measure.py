"""What a command and everything it starts cost: wall time, CPU time and memory of the whole process tree.

CPU seconds are the larger of two lower bounds:

* `os.wait4` of the command itself and of every orphan it left. The rusage holds the process and all its
  descendants that were waited for, down to those too short-lived for any sampling. A process whose parent
  ended first (Spark's JVM after the driver, Python workers after their daemon) would be waited for by init
  and be lost; on Linux this process therefore makes itself the heir of orphans (`PR_SET_CHILD_SUBREAPER`).
* the last `psutil` sample of each process ever seen in the tree, ten times a second. It counts where orphans
  cannot be inherited (macOS), or where someone discards the rusage of its children by ignoring SIGCHLD.

Wall time ends when the command does; the CPU time of what it leaves behind is waited for and counted.
Memory is the largest sum of resident sizes over the tree in one sample; shared pages count in each process. The
memory of workers is the largest resident size of one of Spark's Python workers.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_SAMPLE_SECONDS = 0.1
_ORPHANS_END_WITHIN_SECONDS = 30.0
_CLOCKS_DIFFER = 1.05
_PR_SET_CHILD_SUBREAPER = 36
_WORKER = "pyspark.daemon"  # the module that a Python worker of Spark runs, and the process that forks them


@dataclass(frozen=True)
class Cost:
    wall_seconds: float
    cpu_seconds: float
    peak_bytes: int
    worker_peak_bytes: int  # 0 where there are no workers


_beside: set[int] = set()  # processes that are no part of what is measured


@contextlib.contextmanager
def beside() -> Iterator[None]:
    """Leave out the processes that run now, servers mostly, of what is measured."""
    mine = {process.pid for process in psutil.Process().children(recursive=True)} - _beside
    _beside.update(mine)
    try:
        yield
    finally:
        _beside.difference_update(mine)


class ImpossibleCostError(Exception):
    """What the system told cannot be; the command is to be measured again."""


class CommandFailed(Exception):  # noqa: N818 - it is an outcome, told with the end of the command's log
    pass


def measured(command: Sequence[str | Path], *, environment: Mapping[str, str], log: Path) -> Cost:
    """Run the command to its end, its output going to `log`, and tell what it cost."""
    _inherit_orphans()
    _orphans_cpu_seconds()  # what preparations left behind is no part of the command, nor may it run beside it
    with log.open("wb") as output:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
    sampler = _Sampler()
    sampler.start()
    _, status, usage = os.wait4(process.pid, 0)
    wall_seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)  # it was waited for behind the back of subprocess
    waited_for_seconds = usage.ru_utime + usage.ru_stime + _orphans_cpu_seconds()
    sampler.stop()
    if process.returncode != 0:
        end = "\n".join(log.read_text(errors="replace").splitlines()[-30:])
        raise CommandFailed(f"exit code {process.returncode} of {' '.join(map(str, command))}\n{end}")
    cost = Cost(
        wall_seconds, max(waited_for_seconds, sampler.cpu_seconds), sampler.peak_bytes, sampler.worker_peak_bytes
    )
    refuse_impossible(cost, time.perf_counter() - started, os.cpu_count() or 1)
    return cost


def refuse_impossible(cost: Cost, seconds: float, cores: int) -> None:
    """A virtual machine that stands still for a while may book that time as some process's."""
    if cost.cpu_seconds > cores * seconds * _CLOCKS_DIFFER + 1:
        raise ImpossibleCostError(
            f"{cost.cpu_seconds:.1f} CPU seconds were told of a command that ran for {seconds:.1f} seconds "
            f"on {cores} cores"
        )


def _inherit_orphans() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _orphans_cpu_seconds() -> float:
    """Wait for the processes that the command left behind; end those that do not end by themselves."""
    deadline = time.monotonic() + _ORPHANS_END_WITHIN_SECONDS
    seconds = 0.0
    with contextlib.suppress(ChildProcessError):  # raised when nobody is left
        while True:
            pid, _, usage = os.wait4(-1, os.WNOHANG)
            if pid:
                seconds += usage.ru_utime + usage.ru_stime
            elif all(orphan.pid in _beside for orphan in psutil.Process().children()):
                break
            elif time.monotonic() > deadline:
                for orphan in psutil.Process().children():
                    if orphan.pid not in _beside:
                        orphan.kill()
            else:
                time.sleep(_SAMPLE_SECONDS / 10)
    return seconds


class _Sampler(threading.Thread):
    """Looks at the tree until it is stopped, and remembers the CPU seconds of each process it ever saw."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak_bytes = 0
        self.worker_peak_bytes = 0
        self._cpu_seconds: dict[psutil.Process, float] = {}
        self._workers: set[psutil.Process] = set()
        self._stopped = threading.Event()

    @property
    def cpu_seconds(self) -> float:
        return sum(self._cpu_seconds.values())

    def run(self) -> None:
        while not self._stopped.wait(_SAMPLE_SECONDS):
            self._sample()

    def stop(self) -> None:
        self._stopped.set()
        self.join()

    def _sample(self) -> None:
        # Everything below this process: the command, its descendants, and the orphans that were inherited.
        for process in psutil.Process().children(recursive=True):
            if process not in self._cpu_seconds and process.pid not in _beside:
                self._meet(process)
        resident = 0
        for process in self._cpu_seconds:
            with contextlib.suppress(psutil.Error), process.oneshot():
                times = process.cpu_times()
                self._cpu_seconds[process] = times.user + times.system
                size = process.memory_info().rss
                resident += size
                if process in self._workers:
                    self.worker_peak_bytes = max(self.worker_peak_bytes, size)
        self.peak_bytes = max(self.peak_bytes, resident)

    def _meet(self, process: psutil.Process) -> None:
        self._cpu_seconds[process] = 0.0
        with contextlib.suppress(psutil.Error):
            if _WORKER in process.cmdline():
                self._workers.add(process)
