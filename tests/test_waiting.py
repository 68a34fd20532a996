"""What is not in the archive yet, as a sync sees it: rolled here if no collector runs, asked for if one does."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from eventlake.collector import condition, log
from eventlake.collector.backlog import Held
from eventlake.collector.bring import Waiting, bring
from eventlake.collector.condition import Condition
from eventlake.collector.lock import only_one
from eventlake.collector.log import Log, Record
from eventlake.collector.options import Spool
from eventlake.collector.roller import Roller
from eventlake.workspace import Workspace

AT = 1_794_800_000_000_000
TWO = {"src1": Held(2, AT)}


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    Workspace.create(tmp_path)
    Spool(tmp_path).make()
    return Workspace.open(tmp_path)


@pytest.fixture
def spool(place: Workspace) -> Spool:
    return Spool(place.folder)


def new_log(spool: Spool) -> Log:
    return Log(spool.logs, "w0", max_bytes=1 << 20, max_seconds=3600, request=spool.request)


def append(to: Log, *names: str) -> None:
    to.append(
        Record("src1", AT + at, log.message_hash("src1", name), b'{"messageId": "%s"}' % name.encode()).line()
        for at, name in enumerate(names)
    )


def archived(place: Workspace) -> int:
    """How many files are in the archive."""
    return len(list(place.lake().storage.files("segment-logs")))


@contextmanager
def running(place: Workspace, step: Callable[[], object]) -> Iterator[None]:
    """As if a collector ran, which does this step again and again in this process until the block ends."""
    stopped = threading.Event()

    def run() -> None:
        while not stopped.wait(0.005):
            step()

    thread = threading.Thread(target=run)
    with only_one(Spool(place.folder).lock, "it runs", fix="ask it"):
        thread.start()
        try:
            yield
        finally:
            stopped.set()
            thread.join()


# Told


@pytest.mark.parametrize(
    ("waiting", "told"),
    [
        (Waiting({}), None),
        (Waiting({"src2": Held(1, AT)}, problem="no space"), None),
        (Waiting({}, unseen="no right"), "what the collector holds cannot be seen: no right"),
        (
            Waiting(TWO),
            "the collector holds 2 events that are not in the archive yet; no collector is running: "
            "the next sync or the next start of one takes them",
        ),
        (
            Waiting({"src1": Held(1, AT)}, 90.6, "no space"),
            "the collector holds 1 event that is not in the archive yet: no space",
        ),
        (Waiting(TWO, 90.6), "the collector holds 2 events that are not in the archive yet; they reach it within 91 s"),
        (Waiting(TWO, 0.2), "the collector holds 2 events that are not in the archive yet; they reach it within 1 s"),
    ],
)
def test_what_waits_is_told_in_words(waiting: Waiting, told: str | None) -> None:
    assert waiting.notice("src1") == told


def test_that_what_is_held_cannot_be_seen_is_told_and_no_error(place: Workspace, spool: Spool) -> None:
    append(new_log(spool), "a")
    spool.lock.mkdir()
    waiting = bring(place)
    assert waiting.held == {}
    assert "Is a directory" in str(waiting.notice("src1"))


# No collector runs


def test_where_no_collector_ever_ran_nothing_waits_and_nothing_is_made(tmp_path: Path) -> None:
    Workspace.create(tmp_path)
    assert bring(Workspace.open(tmp_path)) == Waiting({})
    assert not Spool(tmp_path).folder.exists()


def test_logs_that_nobody_writes_to_are_rolled_here(place: Workspace, spool: Spool) -> None:
    condition.save(spool, Condition(roll_seconds=7))
    append(new_log(spool), "a", "b")
    append(new_log(spool), "c")
    assert bring(place) == Waiting({})
    assert archived(place) == 2
    assert log.waiting(spool.logs) == []
    assert condition.load(spool) == Condition(roll_seconds=7)  # which the next collector may change


def test_without_patience_nothing_is_rolled_here_and_all_of_it_waits(place: Workspace, spool: Spool) -> None:
    append(new_log(spool), "a", "b")
    assert bring(place, patience=0) == Waiting(TWO)
    assert archived(place) == 0


def test_why_the_archive_does_not_take_it_is_told(place: Workspace, spool: Spool) -> None:
    append(new_log(spool), "a", "b")
    place.lake().storage.write("segment-logs", b"a file where the archive should be")
    waiting = bring(place)
    assert waiting == Waiting(TWO, None, condition.load(spool).archive_problem)
    assert "segment-logs" in str(waiting.notice("src1"))


# A collector runs


def test_a_collector_that_runs_hands_on_what_it_holds_before_patience_ends(place: Workspace, spool: Spool) -> None:
    to = new_log(spool)
    append(to, "a", "b")
    roller = Roller(place, 30.0, tell=lambda _text: None)

    def step() -> None:
        to.hand_on()
        roller.one()

    with running(place, step):
        started = time.monotonic()
        assert bring(place, patience=20) == Waiting({}, 30.0)
        assert time.monotonic() - started < 10
        assert archived(place) == 1
    assert spool.request.stat().st_mode & 0o777 == 0o600


def test_a_collector_that_does_not_answer_is_waited_for_no_longer_than_patience(place: Workspace, spool: Spool) -> None:
    condition.save(spool, Condition(roll_seconds=30))
    append(new_log(spool), "a", "b")
    requests = set()
    with only_one(spool.lock, "it runs", fix="ask it"):
        started = time.monotonic()
        assert bring(place, patience=0.3) == Waiting(TWO, 30.0)
        assert 0.3 <= time.monotonic() - started < 10
        for _ in range(50):
            assert bring(place, patience=0) == Waiting(TWO, 30.0)
            requests.add(spool.request.stat().st_mtime_ns)
    assert len(requests) == 50  # a worker sees each of them, however soon it comes after another
    assert archived(place) == 0


def test_a_collector_that_cannot_write_to_the_archive_is_not_waited_for(place: Workspace, spool: Spool) -> None:
    condition.save(spool, Condition(roll_seconds=30, archive_problem="no space"))
    append(new_log(spool), "a", "b")
    with only_one(spool.lock, "it runs", fix="ask it"):
        started = time.monotonic()
        assert bring(place, patience=60) == Waiting(TWO, 30.0, "no space")
        assert time.monotonic() - started < 30


def test_what_comes_while_a_collector_is_asked_is_not_waited_for(place: Workspace, spool: Spool) -> None:
    append(new_log(spool), "a")
    [asked_for] = log.waiting(spool.logs)
    to_come = new_log(spool)

    def replaced() -> None:
        if spool.request.exists() and asked_for.exists():
            append(to_come, "b")
            asked_for.unlink()

    with running(place, replaced):
        started = time.monotonic()
        waiting = bring(place, patience=20)
        assert time.monotonic() - started < 10
    assert waiting.held == {"src1": Held(1, AT)}
