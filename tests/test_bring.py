"""What the collector holds and the archive does not have yet: counted, told, and brought when a sync wants it."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors import PROGRAM, Collector
from eventlake.collector import log
from eventlake.collector.backlog import Backlog, Held
from eventlake.collector.bring import Waiting, bring
from eventlake.collector.counters import Counters
from eventlake.collector.log import Log, Record
from eventlake.collector.options import Spool
from eventlake.workspace import Workspace

NEVER = ("--workers", "2", "--roll-seconds", "3600")


def record(source: str, at: int) -> Record:
    return Record(source, at, log.message_hash(source, str(at)), b'{"a": "b c d"}')


# Counted


@given(st.lists(st.tuples(st.sampled_from(["src1", "src2", "s" * 100]), st.booleans(), st.booleans()), max_size=20))
def test_the_backlog_is_what_is_in_the_logs(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, bool, bool]]
) -> None:
    folder = tmp_path_factory.mktemp("logs")
    made = [Log(folder, f"w{number}", max_bytes=1 << 20, max_seconds=60) for number in range(2)]
    expected: dict[str, Held] = {}
    looking = Backlog(folder)
    for at, (source, is_second, looks) in enumerate(steps, 1_790_000_000_000_000):
        made[is_second].append([record(source, at).line()])
        before = expected.get(source, Held(0, at))
        expected[source] = Held(before.events + 1, before.oldest)
        if looks:
            assert looking.look() == expected
        if at % 5 == 0:
            made[0].hand_on(all_of_it=True)
    assert looking.look() == Backlog(folder).look() == expected
    for path in log.waiting(folder):
        path.unlink()
    assert looking.look() == {}


def test_half_a_record_is_counted_when_it_is_whole_and_one_that_was_taken_back_is_not(tmp_path: Path) -> None:
    path = tmp_path / "w0-1.log"
    first, second = record("src1", 5).line(), record("src1", 7).line()
    looking = Backlog(tmp_path)
    path.write_bytes(first + second[:-3])
    assert looking.look() == {"src1": Held(1, 5)}
    path.write_bytes(first + second)
    assert looking.look() == {"src1": Held(2, 5)}
    path.write_bytes(second)
    assert looking.look() == {"src1": Held(1, 7)}
    path.write_bytes(second + b"no record\n" + b"a b c d\n")
    assert looking.look() == {"src1": Held(1, 7)}


def metric(collector: Collector, name: str) -> dict[str, float]:
    """The samples of a metric: source → value."""
    text = collector.get("/metrics").body.decode()
    assert f"# TYPE eventlake_collector_{name} " in text
    found = re.findall(rf'^eventlake_collector_{name}{{source="(.*)"}} (\S+)$', text, re.MULTILINE)
    return {source: float(value) for source, value in found}


def post(collector: Collector, *message_ids: str, key: str | None = None) -> None:
    batch = [{"type": "track", "userId": "u", "event": "x", "messageId": one} for one in message_ids]
    assert collector.post("/v1/batch", {"batch": batch}, key=key).status == 200


def message_ids(collector: Collector) -> list[str]:
    return sorted(sent["messageId"] for sent in collector.archived())


@pytest.fixture
def two_sources(tmp_path: Path) -> Iterator[tuple[Collector, str]]:
    collector = Collector(tmp_path, *NEVER)
    other = Workspace.open(tmp_path).connections.add_source("app", source_id="src2")[1]
    with collector:
        yield collector, other


def test_metrics_tell_of_each_source_what_is_not_archived_and_for_how_long(two_sources: tuple[Collector, str]) -> None:
    collector, other = two_sources
    started = time.monotonic()
    post(collector, "a")
    post(collector, "b", "c", "b")
    assert metric(collector, "backlog_events") == {"web": 4, "app": 0}
    time.sleep(1.1)
    post(collector, "a", key=other)
    assert metric(collector, "backlog_events") == {"web": 4, "app": 1}
    ages = metric(collector, "backlog_age_seconds")
    assert 0 <= ages["app"] < ages["web"] - 1 < time.monotonic() - started
    assert metric(collector, "events_archived_total") == {"web": 0, "app": 0}
    assert bring(Workspace.open(collector.folder)) == Waiting({}, 3600.0)
    assert metric(collector, "backlog_events") == {"web": 0, "app": 0}
    assert metric(collector, "backlog_age_seconds") == {"web": 0, "app": 0}
    assert metric(collector, "events_archived_total") == {"web": 3, "app": 1}
    assert metric(collector, "events_copies_total") == {"web": 1, "app": 0}
    assert metric(collector, "events_stored_total") == {"web": 4, "app": 1}


def test_counts_last_over_restarts_and_sum_up_over_processes(tmp_path: Path) -> None:
    for _ in range(2):
        for process in ("w0", "w1"):
            counters = Counters(tmp_path, process)
            for number, source in enumerate(["src1", "src2", None, "s" * 100], 1):
                counters.add("events_stored", number, source)
                counters.add("requests_refused", source=source)
    sums = Counters(tmp_path, "w2").sums()
    assert {source: counts["events_stored"] for source, counts in sums.items()} == {
        "src1": 4,
        "src2": 8,
        "": 12,
        "s" * 100: 16,
    }
    assert {counts["requests_refused"] for counts in sums.values()} == {4}
    (tmp_path / "w1.count").write_bytes(b"of another version")
    assert Counters(tmp_path, "w1").sums()["src1"]["events_stored"] == 2


# Brought


def eventlake(folder: Path, *command: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    told = subprocess.run([str(PROGRAM), "-C", str(folder), *command], capture_output=True, text=True, check=False)
    assert told.returncode == code, told.stderr
    return told


def test_a_collector_that_runs_hands_on_what_it_holds_as_often_as_it_is_asked(tmp_path: Path) -> None:
    with Collector(tmp_path, *NEVER) as collector:
        place = Workspace.open(tmp_path)
        assert bring(place) == Waiting({})  # nothing there: nobody is asked
        assert not Spool(tmp_path).request.exists()
        for number in range(3):
            for part in "ab":  # perhaps by both workers
                post(collector, f"{part}{number}")
            assert bring(place) == Waiting({}, 3600.0)
            assert message_ids(collector) == sorted(f"{part}{n}" for part in "ab" for n in range(number + 1))


def test_what_a_killed_collector_left_is_rolled_by_the_sync_itself(tmp_path: Path) -> None:
    with Collector(tmp_path, *NEVER) as collector:
        post(collector, "a", "b")
        collector.kill()
        assert bring(Workspace.open(tmp_path)) == Waiting({})
        assert message_ids(collector) == ["a", "b"]
        collector.start()
        post(collector, "b", "c")
        collector.stop()
        assert message_ids(collector) == ["a", "b", "c"]


def test_what_does_not_come_in_time_is_told(tmp_path: Path) -> None:
    with Collector(tmp_path, *NEVER) as collector:
        post(collector, "a", "b")
        os.kill(collector.process.pid, signal.SIGSTOP)  # it rolls nothing
        try:
            waiting = bring(Workspace.open(tmp_path), patience=0.5)
            said = eventlake(tmp_path, "sync", "--json").stderr
        finally:
            os.kill(collector.process.pid, signal.SIGCONT)
        assert waiting.held["src1"].events == 2
        assert waiting.notice("src2") is None
        expected = "web: the collector holds 2 events that are not in the archive yet; they reach it within 3600 s"
        assert expected in " ".join(said.split())


AWAY = 's3 = { endpoint = "http://127.0.0.1:9", path_style = true }\nlake = { root = "s3://bucket/x" }\n'


def test_an_archive_that_is_away_is_told_by_all(tmp_path: Path) -> None:
    with Collector(tmp_path, *NEVER, settings=AWAY) as collector:
        post(collector, "a")
        place = Workspace.open(tmp_path)
        told = bring(place).notice("src1")
        assert told
        assert told.startswith("the collector holds 1 event that is not in the archive yet: ")
        health = collector.get("/health")
        assert (health.status, health.json["status"]) == (200, "degraded")
        assert health.json["problems"][0].startswith("cannot write to the archive: ")
        text = collector.get("/metrics").body.decode()
        assert "eventlake_collector_archive_failing 1\n" in text
        assert "eventlake_collector_archive_errors_total 1\n" in text
        collector.kill()
        said = " ".join(eventlake(tmp_path, "sync", code=1).stderr.split())
        assert "web: the collector holds 1 event that is not in the archive yet" in said


def test_a_sync_loads_what_was_acknowledged_the_moment_before(tmp_path: Path) -> None:
    with Collector(tmp_path, *NEVER) as collector:
        post(collector, "a", "b")
        assert "2 lines read = 2 rows loaded" in eventlake(tmp_path, "sync").stdout
