"""The order of what the collector asks of the disk: write, sync, answer; archive, ids, and the log goes last.

The calls are recorded in the processes of a collector as users run it. A kill does not show a sync that is missing,
because the system keeps what was written; only a power cut would.
"""

import gzip
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from collectors import Answer, Collector
from eventlake.collector import log
from eventlake.collector.log import Log, Record
from eventlake.collector.recent import RecentIds
from eventlake.collector.roll import roll
from eventlake.storage.local import LocalStorage
from system_calls import Call, journal, recorded_in

DAY = 24 * 3600 * 1_000_000
MAX_BYTES = 50  # two events in an archive file
FAN = 2  # files of recent ids, before they become one


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class Request(threading.Thread):
    """A request that is under way."""

    def __init__(self, collector: Collector, message_id: str) -> None:
        super().__init__()
        self._collector = collector
        self._message_id = message_id
        self.answer: Answer | None = None
        self.start()

    def run(self) -> None:
        event = {"userId": "u", "event": "x", "messageId": self._message_id}
        self.answer = self._collector.post("/v1/track", event)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Collector, Path]]:
    folder = tmp_path_factory.mktemp("recorded")
    calls = folder / "calls"
    environment = recorded_in(calls)
    options = ("--workers", "1", "--roll-seconds", "3600")
    with Collector(folder / "workspace", *options, environment=environment) as collector:
        yield collector, calls


@pytest.mark.parametrize("message_id", ["first of its log", "appended"])
def test_a_request_is_answered_when_the_disk_has_its_events_and_not_before(
    recorded: tuple[Collector, Path], message_id: str
) -> None:
    collector, calls = recorded
    before = len(journal(calls))
    held = calls / "hold-fdatasync"
    held.touch()
    request = Request(collector, message_id)
    try:
        wait_until(lambda: "fdatasync" in names(journal(calls)[before:]) or not request.is_alive())
        [path] = log.waiting(collector.folder / "collector" / "logs")
        assert message_id in path.read_text()  # before the disk is asked to keep it
        request.join(0.5)
        assert request.answer is None
    finally:
        held.unlink()
    request.join()
    assert request.answer
    assert request.answer.status == 200
    of_log = [call.name for call in journal(calls)[before:] if call.path.startswith(str(path.parent))]
    made = ["open", "fsync"] if message_id == "first of its log" else []  # the file, and its name in the folder
    assert of_log == [*made, "write", "fdatasync"]


def names(calls: list[Call]) -> list[str]:
    return [call.name for call in calls]


def test_the_archive_has_a_file_before_its_ids_are_remembered_and_the_log_goes_last(
    recorded: tuple[Collector, Path],
) -> None:
    collector, calls = recorded
    Request(collector, "rolled").join()
    before = len(journal(calls))
    collector.stop()
    spool, lake = collector.folder / "collector", collector.folder / "lake"
    made = [
        (call.name, place)
        for call in journal(calls)[before:]
        for place in [kind_of(Path(call.path), spool, lake)]
        if place and call.name != "mkdir"
    ]
    assert made == [
        ("rename", "sealed log"),
        *[("open", "aside"), ("fsync", "aside"), ("link", "archive file"), ("unlink", "aside")],
        ("fsync", "archive folder"),
        *[("open", "aside"), ("fsync", "aside"), ("replace", "recent ids"), ("unlink", "aside")],
        ("fsync", "recent folder"),
        ("unlink", "sealed log"),
    ]


def kind_of(path: Path, spool: Path, lake: Path) -> str | None:
    if path.name.startswith("."):
        return "aside"
    kinds = {".sealed": "sealed log", ".gz": "archive file", ".ids": "recent ids"}
    if path == spool / "recent":
        return "recent folder"
    return "archive folder" if path.name.isdigit() and lake in path.parents else kinds.get(path.suffix)


# Killed at every change


ROLLS = """
import os, shutil, signal, sys
from pathlib import Path
tests, prepared, target, max_bytes, fan = sys.argv[1:]
sys.path.insert(0, tests)
from eventlake.collector import log
from eventlake.collector.recent import RecentIds
from eventlake.collector.roll import roll
from eventlake.storage.local import LocalStorage
from system_calls import before_each_change

def rolled(folder, last):
    "Whether a roll lives that is killed at its n-th change."
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    made = 0
    def tick(call):
        nonlocal made
        if made == last:
            os.kill(os.getpid(), signal.SIGKILL)
        made += 1
    before_each_change(tick)
    [path] = log.sealed(folder / "logs")
    storage, recent = LocalStorage(str(folder / "lake")), RecentIds(folder / "recent", fan=int(fan))
    roll(path, storage, recent, max_bytes=int(max_bytes))
    os._exit(0)

change, lives = 0, False
while not lives:
    folder = Path(target) / str(change)
    shutil.copytree(prepared, folder)
    lives = rolled(folder, change)
    change += 1
"""


def record(name: str, *, at: int = 0, source: str = "src1") -> Record:
    event = f'{{"messageId":"{name}"}}'.encode()
    return Record(source, at, log.message_hash(source, name), event)


RECORDS = [
    *[record(name, at=2 * DAY) for name in "abcabd"],  # with two copies
    *[record("e", at=2 * DAY - 1), record("f", source="src2", at=2 * DAY), record("known", at=2 * DAY)],
]


def sealed(folder: Path) -> None:
    made = Log(folder, "w0", max_bytes=1 << 20, max_seconds=60)
    made.append([one.line() for one in RECORDS])
    made.hand_on(all_of_it=True)


def completed(folder: Path) -> dict[str, list[bytes]]:
    """The archive, after the roll was begun anew; and nothing but the archive and the ids is left."""
    storage, known = LocalStorage(str(folder / "lake")), RecentIds(folder / "recent", fan=FAN)
    for path in log.sealed(folder / "logs"):
        roll(path, storage, known, max_bytes=MAX_BYTES)
    assert list((folder / "logs").iterdir()) == []
    assert known.new(RECORDS) == []  # all are remembered
    files = sorted((folder / "lake").rglob("*.gz"))
    return {str(file.relative_to(folder)): gzip.decompress(file.read_bytes()).splitlines() for file in files}


def test_a_roll_killed_at_any_change_is_done_again_with_the_same_outcome(tmp_path: Path) -> None:
    prepared, target = tmp_path / "prepared", tmp_path / "killed"
    (prepared / "logs").mkdir(parents=True)
    known = RecentIds(prepared / "recent", fan=FAN)
    known.add("w0-0", [record("old", at=1)])  # to be forgotten
    known.add("w0-1", [record("known", at=DAY + 1)])
    sealed(prepared / "logs")
    whole = tmp_path / "whole"
    shutil.copytree(prepared, whole)
    expected = completed(whole)
    assert sorted(line for lines in expected.values() for line in lines) == [record(name).event for name in "abcdef"]
    tests = str(Path(__file__).parent)
    subprocess.run(
        [sys.executable, "-c", ROLLS, tests, str(prepared), str(target), str(MAX_BYTES), str(FAN)], check=True
    )
    killed = sorted(target.iterdir(), key=lambda folder: int(folder.name))
    assert len(killed) > 40  # changes
    assert [folder.name for folder in killed if completed(folder) != expected] == []
