from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest

from eventlake.demo.events import Recipe, lines, write_archive

if TYPE_CHECKING:
    from pathlib import Path

PLAIN = Recipe(events=4000)
FAULTY = replace(PLAIN, duplicate_share=0.05, conflict_share=0.1, broken_share=0.05)


def parsed(recipe: Recipe) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines(recipe)]


def test_a_recipe_gives_the_same_bytes_in_any_process() -> None:
    program = (
        "import hashlib; from eventlake.demo.events import Recipe, lines;"
        "recipe = Recipe(500, seed=7, duplicate_share=0.1, conflict_share=0.1, broken_share=0.1);"
        "print(hashlib.sha256(b'\\n'.join(lines(recipe))).hexdigest())"
    )
    digests = {
        subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout for _ in range(2)
    }
    assert len(digests) == 1


def test_another_seed_gives_other_events() -> None:
    ids = [{event["messageId"] for event in parsed(replace(PLAIN, seed=seed, events=200))} for seed in (1, 2)]
    assert not ids[0] & ids[1]


def test_every_line_is_a_whole_stored_event() -> None:
    always = {"messageId", "type", "anonymousId", "userId", "context", "integrations", "_metadata", "channel"}
    always |= {"projectId", "version", "originalTimestamp", "sentAt", "timestamp", "receivedAt"}
    own = {
        "track": {"event", "properties"},
        "page": {"name", "properties"},
        "screen": {"name", "properties"},
        "identify": {"traits"},
        "group": {"groupId", "traits"},
        "alias": {"previousId"},
    }
    events = parsed(PLAIN)
    assert len(events) == PLAIN.events
    for event in events:
        assert (always | own[event["type"]]) <= event.keys() <= always | own[event["type"]] | {"category"}
        assert event["userId"] or event["anonymousId"]
        assert event["version"] == 2


def test_no_two_events_share_an_id_unless_copies_are_asked_for() -> None:
    assert len({event["messageId"] for event in parsed(PLAIN)}) == PLAIN.events


def test_calls_come_in_realistic_shares() -> None:
    calls = Counter(event["type"] for event in parsed(PLAIN))
    shares = {"page": 0.35, "track": 0.45, "identify": 0.09, "screen": 0.08, "group": 0.02, "alias": 0.01}
    assert {call: calls[call] / PLAIN.events for call in shares} == pytest.approx(shares, abs=0.02)


@pytest.mark.parametrize("track_types", [1, 12, 40, 90])
def test_there_are_as_many_track_events_as_asked_for(track_types: int) -> None:
    events = parsed(replace(PLAIN, events=8_000, track_types=track_types))
    assert len({event["event"] for event in events if event["type"] == "track"}) == track_types


def test_lines_are_received_in_order_and_in_the_window() -> None:
    until = datetime(2026, 3, 4, 5, 30, tzinfo=UTC)
    received = [event["receivedAt"] for event in parsed(replace(FAULTY, broken_share=0, until=until, hours=2))]
    assert received == sorted(received)
    assert received[0] >= "2026-03-04T03:30:00.000Z"
    assert received[-1] < "2026-03-04T05:30:00.000Z"


def test_the_evening_is_busier_than_the_night() -> None:
    hours = Counter(event["receivedAt"][11:13] for event in parsed(PLAIN))
    assert hours["19"] > 5 * hours["03"] > 0


def test_timestamp_is_the_time_of_the_call_without_clock_skew() -> None:
    def time(event: dict[str, Any], field: str) -> datetime:
        return datetime.fromisoformat(event[field])

    for event in parsed(replace(FAULTY, broken_share=0)):
        waited = time(event, "sentAt") - time(event, "originalTimestamp")
        assert time(event, "timestamp") == time(event, "receivedAt") - waited


def test_people_return() -> None:
    visits = Counter(event["anonymousId"] for event in parsed(PLAIN))
    assert 50 < len(visits) < PLAIN.events / 10


def test_copies_share_the_message_id_and_come_later() -> None:
    events = parsed(replace(PLAIN, duplicate_share=0.05))
    assert len(events) == pytest.approx(PLAIN.events * 1.05, rel=0.02)
    first: dict[str, dict[str, Any]] = {}
    for event in events:
        original = first.setdefault(event["messageId"], event)
        if original is not event:
            assert original["receivedAt"] < event["receivedAt"]
            assert original | {"sentAt": event["sentAt"], "receivedAt": event["receivedAt"]} == event
    assert len(first) == PLAIN.events


def test_faults_do_not_change_which_events_happen() -> None:
    plain = set(lines(PLAIN))
    faulty = set(lines(replace(FAULTY, conflict_share=0)))
    assert plain <= faulty


def test_conflicts_change_one_value_of_as_many_events_as_asked_for() -> None:
    plain, conflicting = parsed(PLAIN), parsed(replace(PLAIN, conflict_share=0.1))
    changed = [(was, now) for was, now in zip(plain, conflicting, strict=True) if was != now]
    assert len(changed) == pytest.approx(PLAIN.events * 0.1, rel=0.2)
    for was, now in changed:
        assert was["messageId"] == now["messageId"]
        differing = [key for key in was if was[key] != now[key]]
        assert len(differing) == 1
        assert differing[0] in {"context", "properties", "traits"}


def test_broken_lines_are_no_events() -> None:
    plain = set(lines(PLAIN))
    extra = [line for line in lines(replace(PLAIN, broken_share=0.05)) if line not in plain]
    assert len(extra) == pytest.approx(PLAIN.events * 0.05, rel=0.25)
    assert all(b"\n" not in line and not is_event(line) for line in extra)


def is_event(line: bytes) -> bool:
    try:
        event = json.loads(line)
    except ValueError:
        return False
    return isinstance(event, dict) and "type" in event


def test_an_archive_holds_the_lines_in_files_of_equal_length(tmp_path: Path) -> None:
    written: list[int] = []
    files = write_archive(FAULTY, tmp_path / "new", files=10, progress=written.append)
    assert [file.name for file in files[:2]] == ["01.gz", "02.gz"]
    content = [gzip.decompress(file.read_bytes()).splitlines() for file in files]
    assert [line for lines_of_file in content for line in lines_of_file] == list(lines(FAULTY))
    assert len(files) == 10
    assert sum(written) == sum(map(len, content))
    assert max(map(len, content)) < 1.2 * min(map(len, content))


def test_an_archive_of_few_lines_has_no_empty_files(tmp_path: Path) -> None:
    assert len(write_archive(replace(PLAIN, events=3), tmp_path, files=8)) == 3


@pytest.mark.parametrize(
    "wrong",
    [
        {"until": datetime(2026, 1, 1)},  # noqa: DTZ001 - the point of the case
        {"until": datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=1)))},
        {"events": -1},
        {"hours": 0},
        {"track_types": 0},
        {"broken_share": 1.5},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_recipe_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        replace(PLAIN, **wrong)
