"""The log: what the disk confirmed is in it, what it refused is not, and it is handed on when it should be."""

import errno
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eventlake.collector import log
from eventlake.collector.log import Log, Record
from eventlake.lake import ids

WIDE = 1 << 20


def record(name: str, *, event: bytes = b'{"a": "b  c"}') -> Record:
    return Record("src1", 1_794_800_000_123_456, log.message_hash("src1", name), event)


def new_log(folder: Path, **settings: Any) -> Log:
    return Log(folder, "w0", **{"max_bytes": WIDE, "max_seconds": time.monotonic() + 3600, **settings})


def failing(then: Callable[..., None] | None = None) -> Callable[..., None]:
    """A call to the system that ends in an error of the disk."""

    def fail(*args: int) -> None:
        if then:
            then(*args)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    return fail


def sealed_records(folder: Path) -> list[list[Record]]:
    return [log.read(path).records for path in log.sealed(folder)]


# Records


def test_an_event_comes_back_byte_for_byte(tmp_path: Path) -> None:
    records = [record("a"), record("b", event=b"  two spaces before and after  ")]
    new_log(tmp_path).append(one.line() for one in records)
    [path] = log.waiting(tmp_path)
    assert log.read(path) == (records, 0)


def test_all_bytes_that_are_no_records_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "w0-1.log"
    good, flipped = record("good").line(), record("flipped").line().replace(b"src1", b"src2")
    path.write_bytes(b"no record\n" + good + flipped + good + b"half of o")
    assert log.read(path) == ([record("good")] * 2, len(b"no record\n") + len(flipped))


def test_copies_are_those_of_one_source_and_are_known_to_other_versions() -> None:
    assert log.message_hash("src1", "m") == ids.content_hash(b"src1 m")


# What the disk refuses


@pytest.mark.parametrize("also", ["nothing", "ftruncate", "close"])
def test_what_the_disk_refuses_is_taken_back_and_what_it_has_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, also: str
) -> None:
    made = new_log(tmp_path)
    for name in ("first", "second and longer"):
        made.append([record(name).line()])
    kept = [record("first"), record("second and longer")]
    refused = record("refused")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", failing())
        if also != "nothing":
            patch.setattr(os, also, failing(os.close if also == "close" else None))
        with pytest.raises(OSError, match="Input/output error"):
            made.append([refused.line()])
    made.append([record("next").line()])
    made.hand_on(all_of_it=True)
    ended = [*kept, refused] if also == "ftruncate" else kept
    assert sealed_records(tmp_path) == [ended, [record("next")]]


def test_a_log_whose_name_the_disk_does_not_keep_is_given_up_and_handed_on_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = new_log(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing())
        with pytest.raises(OSError, match="Input/output error"):
            made.append([record("refused").line()])
    made.hand_on()
    made.append([record("a").line()])
    assert sealed_records(tmp_path) == [[]]
    [_, being_written] = log.waiting(tmp_path)
    assert log.read(being_written).records == [record("a")]


def test_a_disk_is_probed_by_writing_and_nothing_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = new_log(tmp_path)
    made.probe()
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(os, "fsync", failing())
    with pytest.raises(OSError, match="Input/output error"):
        made.probe()
    assert log.waiting(tmp_path) == []


# Handed on


def test_a_log_is_written_on_until_it_is_full(tmp_path: Path) -> None:
    line = record("a").line()
    made = new_log(tmp_path, max_bytes=2 * len(line))
    made.hand_on()
    for expected in ([], [[record("a")] * 2]):
        made.append([line])
        made.hand_on()
        assert sealed_records(tmp_path) == expected
    assert len(log.waiting(tmp_path)) == 1


def test_a_log_that_is_old_is_handed_on(tmp_path: Path) -> None:
    made = new_log(tmp_path, max_seconds=0)
    made.append([record("a").line()])
    made.hand_on()
    assert sealed_records(tmp_path) == [[record("a")]]


def test_a_log_is_handed_on_once_for_each_request_and_not_for_one_that_came_before_it(tmp_path: Path) -> None:
    request = tmp_path / "roll-now"
    folder = tmp_path / "logs"
    folder.mkdir()
    for moment in (1, 2, 3):  # nobody asked before the first
        made = new_log(folder, request=request)
        made.append([record("a").line()])
        made.hand_on()
        assert len(log.left_open(folder)) == 1
        request.touch()
        os.utime(request, ns=(moment, moment))
        made.hand_on()
        assert log.left_open(folder) == []
        made.append([record("b").line()])
        made.hand_on()
        assert len(log.left_open(folder)) == 1
        made.hand_on(all_of_it=True)


# Names


def test_a_log_is_its_owners_and_keeps_its_name_and_moment_when_it_is_sealed(tmp_path: Path) -> None:
    before = time.time_ns() // 1000
    new_log(tmp_path).append([record("a").line()])
    [path] = log.left_open(tmp_path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert re.fullmatch(r"w0-\d+\.log", path.name)
    assert before <= log.opened_at(path) <= time.time_ns() // 1000
    log.seal(path)
    [sealed] = log.sealed(tmp_path)
    assert log.name_of(sealed) == log.name_of(path) == path.stem
    assert log.opened_at(sealed) == log.opened_at(path)


@pytest.mark.parametrize(
    ("name", "moment"),
    [
        ("w0-1794800000123456789.log", 1_794_800_000_123_456),
        ("w0-1794800000123456789@1794800000999999999.sealed", 1_794_800_000_123_456),
        ("of-another-7000.log", 7),
        ("w0-²5.log", 0),
        ("w0-x.log", 0),
    ],
)
def test_the_name_of_a_log_tells_when_it_was_begun(name: str, moment: int) -> None:
    assert log.opened_at(Path(name)) == moment


def test_logs_are_told_from_other_files_and_sealed_ones_come_in_their_order(tmp_path: Path) -> None:
    order = [f"w{9 - at}-{at}@{moment}.sealed" for at, moment in enumerate([9, 10, 11, 100, 101, 1000, 2000, 10_000])]
    opened = ["w0-1.log", "w1-1.log"]
    for name in [*sorted(order), *opened, "w0-3.damaged", "w0.probe"]:
        (tmp_path / name).touch()
    assert [path.name for path in log.sealed(tmp_path)] == order
    assert [path.name for path in log.waiting(tmp_path)] == sorted([*order, *opened])
    assert sorted(path.name for path in log.left_open(tmp_path)) == opened
