"""People who must not be in the lake: what is collected, loaded, replayed and told of them."""

import json
import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from collectors import PROGRAM, Collector
from conftest import ON_POSTGRES, InProcess, Lake, SetClock, track
from consoles import Program
from crash_job import killed_at
from eventlake.archive.reader import ReadSizes
from eventlake.audit.repair import repair
from eventlake.audit.restore import restore
from eventlake.audit.verify import verify
from eventlake.collector.options import Spool
from eventlake.collector.suppressing import Suppressing
from eventlake.control.regulations import Regulations, RegulationType, SubjectType
from eventlake.control.suppressions import keys_of
from eventlake.errors import InvalidSettingsError
from eventlake.events.suppression import ANONYMOUS_ID, USER_ID, Subjects, Suppressed, check_of, subject_hash, text_at
from eventlake.library import Workspace as LibraryWorkspace
from eventlake.sync import jobs
from eventlake.sync.work import Sizes
from eventlake.tasks.staged import StageSizes
from eventlake.workspace import Workspace
from test_crash import filled, seen_by_queries, state


def subjects(*names: str) -> Subjects:
    return Subjects.of((subject_hash(name), check_of(name.encode())) for name in names)


# The rule


@given(st.sets(st.text(min_size=1, max_size=5), max_size=40), st.text(min_size=1, max_size=5))
def test_a_list_has_those_who_are_on_it_and_nobody_else(names: set[str], other: str) -> None:
    found = Subjects.of((subject_hash(name), check_of(name.encode("utf-8", "surrogatepass"))) for name in names)
    assert all(found.has(name) for name in names)
    assert found.has(other) == (other in names)


@pytest.mark.parametrize(
    ("event", "is_hidden"),
    [
        ({"userId": "bob"}, True),
        ({"userId": "Bob"}, False),
        ({"userId": "bob "}, False),
        ({"userId": 7}, True),
        ({"userId": True}, False),
        ({"userId": None, "anonymousId": "bob"}, False),
        ({"anonymousId": "anon"}, True),
        ({"traits": {"email": "b@example.com"}}, True),
        ({"traits": {"email": ["b@example.com"]}}, False),
        ({"traits": "b@example.com"}, False),
        ({"properties": {"email": "b@example.com"}}, False),
        ({}, False),
        (["bob"], False),
        ("bob", False),
    ],
)
def test_an_event_is_of_whom_its_paths_name(event: Any, is_hidden: bool) -> None:
    hidden = Suppressed(
        {USER_ID: subjects("bob", "7"), ANONYMOUS_ID: subjects("anon"), ("traits", "email"): subjects("b@example.com")}
    )
    assert hidden.hides(event) == is_hidden
    assert Suppressed.unpacked(hidden.packed()).hides(event) == is_hidden


@pytest.mark.parametrize("path", ["", ".", "a.", ".a", "a..b", "a.b\\", ".".join("a" * 21)])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(InvalidSettingsError, match="is not a path"):
        keys_of(path)


def test_keys_may_have_dots() -> None:
    assert keys_of(r"traits.e\.mail.x") == ("traits", "e.mail", "x")
    assert text_at({"traits": {"e.mail": {"x": "v"}}}, keys_of(r"traits.e\.mail.x")) == "v"


# The list


def test_a_list_grows_shrinks_and_tells_its_version(lake: Lake) -> None:
    found = lake.workspace.suppressions
    assert (found.version(), found.count()) == (0, 0)
    assert found.add(["a", "b", "a"], by="me") == 2
    assert found.add(["b", "c"]) == 1
    version = found.version()
    assert found.add(["b"]) == 0
    assert found.version() == version
    assert {one.subject for one in found.latest()} == {"a", "b", "c"}
    assert [one.subject for one in found.latest(1, skip=2)] in (["a"], ["b"])
    assert found.remove(["a", "nobody"]) == 1
    assert found.remove(["nobody"]) == 0
    assert found.count() == 2
    assert found.version() > version
    with pytest.raises(InvalidSettingsError, match="empty"):
        found.add(["x", ""])
    assert found.count() == 2


def test_a_source_has_those_of_all_sources_and_its_own(lake: Lake) -> None:
    found = lake.workspace.suppressions
    found.add(["everywhere"])
    found.add(["here"], source_id="src1")
    found.add(["mail"], "traits.email", "src1")
    hidden = found.of_source("src1")
    assert [hidden.hides({"userId": name}) for name in ("everywhere", "here", "mail")] == [True, True, False]
    assert hidden.hides({"traits": {"email": "mail"}})
    assert [found.of_source("other").hides({"userId": name}) for name in ("everywhere", "here")] == [True, False]
    found.remove(["everywhere"], source_id="src1")  # what is true of all is not undone for one
    assert found.of_source("src1").hides({"userId": "everywhere"})


def test_a_path_is_one_however_it_is_written(lake: Lake) -> None:
    found = lake.workspace.suppressions
    found.add(["a@b.c"], "traits.email")
    found.add(["d@e.f"], r"traits.\email")
    hidden = found.of_source("src1")
    assert [hidden.hides({"traits": {"email": mail}}) for mail in ("a@b.c", "d@e.f")] == [True, True]
    assert found.sources_of("a@b.c", r"tr\aits.email") == [""]
    assert found.remove(["a@b.c"], r"traits.e\mail") == 1


# Syncs

QUARANTINE = "__segment_datalake.quarantine"


def event(message_id: str, user: Any, hour: int = 10, name: str = "A", **more: Any) -> dict[str, Any]:
    return track(name, message_id, userId=user, receivedAt=f"2026-11-15T{hour:02}:00:00Z", **more)


@pytest.fixture(params=[True, False], ids=["at once", "one by one"])
def hidden_lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    sizes = Sizes(stage=StageSizes(at_once=request.param))
    return Lake(tmp_path / "workspace", InProcess(), sizes=sizes, clock=SetClock())


def agrees(lake: Lake) -> bool:
    return verify(lake.workspace, lake.connection, InProcess()) == []


def messages(lake: Lake, table: str = "track_a") -> list[str]:
    return [row["message_id"] for row in lake.rows(table)] if table in lake.tables() else []


def test_events_of_suppressed_people_are_counted_and_not_loaded(hidden_lake: Lake) -> None:
    lake = hidden_lake
    lake.workspace.suppressions.add(["bob", "ünü", "7", "8.50"])
    lake.workspace.suppressions.add(["b@example.com"], "traits.email")
    lines: list[Any] = [
        event("m1", "ann"),
        event("m2", "bob"),
        event("m3", "ünü"),
        json.dumps(event("m4", "ünü")).encode(),  # with escapes
        event("m5", 7),
        event("m6", 70),
        event("m7", "ann", traits={"email": "b@example.com"}),
        event("m8", "ann", traits={"email": "c@example.com"}),
        json.dumps(event("m9", 8.5)).replace("8.5", "8.50").encode(),
        event("m1", "bob"),
        {"userId": "bob"},  # no event: it must not be in quarantine either
        {"userId": "ann"},
        b"no json, of bob",
    ]
    report = lake.sync_of(*lines)
    books = report[0]["books"]
    assert messages(lake) == ["m1", "m6", "m8"]
    assert (books["lines"], books["loaded"], books["suppressed"], books["quarantined"]) == (13, 3, 8, 2)
    assert agrees(lake)
    (quarantined,) = lake.query(f"select count(*) as n from {QUARANTINE} where decode(content) like '%bob%'")
    assert quarantined["n"] == 0
    kept = {row["reason"]: (row["content"], row["size"]) for row in lake.query(f"select * from {QUARANTINE}")}
    assert kept.pop("not_json") == (b"", 15), "what is no JSON tells nobody whose it is"
    assert [json.loads(content) for content, _ in kept.values()] == [{"userId": "ann"}]


def test_unreadable_lines_are_kept_where_nobody_is_suppressed(lake: Lake) -> None:
    lake.workspace.suppressions.add(["bob"], source_id="another")
    lake.sync_of(b"no json")
    assert [row["content"] for row in lake.query(f"select * from {QUARANTINE}")] == [b"no json"]
    lake.workspace.suppressions.add(["bob"])
    lake.sync_of(b'["bob"]')
    assert {row["content"] for row in lake.query(f"select * from {QUARANTINE}")} == {b"", b"no json"}


def test_who_is_named_by_a_key_that_came_twice_is_known(hidden_lake: Lake) -> None:
    lake = hidden_lake
    lake.workspace.suppressions.add(["bob"])
    lake.workspace.suppressions.add(["b@example.com"], "traits.email")
    twice = json.dumps(event("m1", "ann")).replace('"userId": "ann"', '"userId": "ann", "userId": "bob"')
    within = json.dumps(event("m2", "ann", traits={})).replace("{}", '{}, "traits": {"email": "b@example.com"}')
    other = json.dumps(event("m3", "ann")).replace('"userId": "ann"', '"userId": "ann", "userId": "eve"')
    number = json.dumps(event("m4", "ann")).replace('"userId": "ann"', f'"userId": "ann", "userId": {"7" * 5000}')
    inner = json.dumps(event("m5", "ann", properties={})).replace(
        '"properties": {}', '"traits": 1, "traits": {"email": "b@example.com", "email": "c@example.com"}'
    )
    assert inner.count("email") == 2
    report = lake.sync_of(*(line.encode() for line in (twice, within, other, number, inner)))
    assert report[0]["books"]["suppressed"] == 3
    assert messages(lake) == ["m3", "m4"]


def test_no_id_is_left_in_the_lake(hidden_lake: Lake) -> None:
    lake = hidden_lake
    lake.workspace.suppressions.add(["bob-the-builder"])
    lake.sync_of(event("m1", "ann"), event("m2", "bob-the-builder"))
    storage = lake.place.storage
    paths = [file.path for file in storage.files("") if not file.path.startswith("segment-logs/")]
    assert len([path for path in paths if "policies" in path]) == 1
    assert not any(b"bob-the-builder" in storage.read(path) for path in paths)


def test_only_one_list_is_kept_and_it_is_the_newest(lake: Lake) -> None:
    lake.workspace.suppressions.add(["bob"])
    lake.sync_of(event("m1", "ann"))
    for number in range(10):  # so that a version has more digits than the one before
        lake.workspace.suppressions.add([f"x{number}"])
    lake.sync_of(event("m2", "x9"), event("m3", "ann"))
    assert [file.path.rpartition("/")[2] for file in lake.place.storage.files("segment-data/policies")] == [
        f"suppressed-{lake.workspace.suppressions.version()}"
    ]
    assert messages(lake) == ["m1", "m3"]


# Replays


REPLAYS: dict[str, Callable[[Lake], Any]] = {
    "replay": lambda lake: lake.run(jobs.replay(lake.connection, None, None)),
    "rebuild": lambda lake: lake.run(
        jobs.rebuild(lake.workspace.connections.preview("web", {"date_partition": "day"}))
    ),
}


@pytest.mark.parametrize("way", REPLAYS)
def test_a_replay_takes_out_who_was_suppressed_since_and_brings_them_back(hidden_lake: Lake, way: str) -> None:
    lake = hidden_lake
    lake.sync_of(event("m1", "ann"), event("m2", "bob"), event("m3", "bob", 11), event("m4", "bob", name="B"))
    lake.sync_of(event("m5", "ann", 12), event("m6", "bob", 12), event("m7", "ann", 13))
    lake.workspace.suppressions.add(["bob"])
    head, *tables = REPLAYS[way](lake)
    assert messages(lake) == ["m1", "m5", "m7"]
    assert messages(lake, "track_b") == []
    assert head["removed"] == 4
    assert {table["table_name"]: table["removed"] for table in tables if "removed" in table} == {
        "track_a": 3,
        "track_b": 1,
    }
    assert head["books"]["suppressed"] == 4
    assert "4 rows taken out of their tables: policies keep them out now, or give them other tables" in head["notices"]
    assert agrees(lake)
    assert REPLAYS[way](lake)[0].get("removed") is None
    assert lake.sync()[0]["books"]["lines"] == 0

    lake.workspace.suppressions.remove(["bob"])
    assert REPLAYS[way](lake)[0]["row_count"] == 4 or way == "rebuild"
    assert messages(lake) == ["m1", "m2", "m3", "m5", "m6", "m7"]
    assert messages(lake, "track_b") == ["m4"]
    assert agrees(lake)


def test_a_replay_of_a_period_or_a_table_leaves_the_rest_alone(lake: Lake) -> None:
    lake.sync_of(event("m1", "bob"), event("m2", "bob", 11), event("m3", "bob", 11, "B"), event("m4", "ann", 11))
    lake.workspace.suppressions.add(["bob"])
    eleven = 1794740400_000_000
    report = lake.run(jobs.replay(lake.connection, eleven, eleven + 1, frozenset({"track_a"})))
    assert report[0]["removed"] == 1
    assert (messages(lake), messages(lake, "track_b")) == (["m1", "m4"], ["m3"])
    assert agrees(lake)


def test_copies_of_who_was_taken_out_stay_out_and_come_back_once(lake: Lake) -> None:
    lake.sync_of(event("m1", "bob"), event("m1", "bob"))
    lake.workspace.suppressions.add(["bob"])
    lake.run(jobs.replay(lake.connection, None, None))
    assert lake.sync_of(event("m1", "bob"))[0]["books"]["suppressed"] == 1
    lake.workspace.suppressions.remove(["bob"])
    lake.run(jobs.replay(lake.connection, None, None))
    assert messages(lake) == ["m1"]
    assert lake.sync_of(event("m1", "bob"))[0]["books"]["duplicates"] == 1


def test_rows_of_others_with_the_same_message_id_stay(lake: Lake) -> None:
    lake.sync_of(event("m1", "ann"), event("m1", "bob", 11))
    lake.workspace.suppressions.add(["bob"])
    assert lake.run(jobs.replay(lake.connection, None, None))[0].get("removed") is None
    assert [row["user_id"] for row in lake.rows("track_a")] == ["ann"]


def test_who_is_in_no_raw_file_any_more_stays_in_the_lake(lake: Lake) -> None:
    """A replay reads the archive. What only the lake has is carried over: nothing tells whose it is but its row."""
    raw = lake.put(event("m1", "bob"))
    lake.sync()
    raw.unlink()
    lake.workspace.suppressions.add(["bob"])
    lake.run(jobs.replay(lake.connection, None, None))
    assert messages(lake) == ["m1"]


TINY = StageSizes(read=ReadSizes(block=4096), bytes_at_once=4096)  # so that lines are read before a file breaks off


@pytest.mark.parametrize("sizes", [StageSizes(), TINY], ids=["large", "tiny"])
def test_a_raw_file_that_broke_takes_nobody_out(lake: Lake, sizes: StageSizes) -> None:
    lake.sizes = Sizes(stage=replace(sizes, at_once=lake.sizes.stage.at_once))
    raw = lake.put(*(event(f"m{number}", "bob") for number in range(2000)))
    lake.sync()
    whole = raw.read_bytes()
    raw.write_bytes(whole[:-20])
    lake.workspace.suppressions.add(["bob"])
    report = lake.run(jobs.replay(lake.connection, None, None))
    assert report[0].get("removed") is None
    assert len(messages(lake)) == 2000


def test_in_the_other_dialect_all_rows_of_a_message_go(tmp_path: Path) -> None:
    lake = Lake(tmp_path, InProcess(), clock=SetClock(), settings='[lake]\nroot = "lake"\ndialect = "rudderstack"\n')
    lake.sync_of(event("m1", "ann"), event("m2", "bob"))
    lake.workspace.suppressions.add(["bob"])
    head = lake.run(jobs.replay(lake.connection, None, None))[0]
    assert head["removed"] == 2
    assert [row["id"] for table in ("tracks", "a") for row in lake.rows(table)] == ["m1", "m1"]
    assert agrees(lake)
    lake.workspace.suppressions.add(["ann"])
    lake.run(jobs.replay(lake.connection, None, None, frozenset({"a"})))  # not all of its rows: it stays
    assert [row["id"] for table in ("tracks", "a") for row in lake.rows(table)] == ["m1", "m1"]


def test_an_index_that_was_lost_meanwhile_is_made_anew_without_them(lake: Lake) -> None:
    lake.sync_of(event("m1", "ann"), event("m2", "bob"))
    lake.sync_of(event("m3", "ann"), event("m4", "bob"))
    first = lake.place.ledger.index_files("src1")[0]
    lake.place.storage.delete(first.path)
    lake.workspace.suppressions.add(["bob"])
    lake.run(jobs.replay(lake.connection, None, None))
    assert messages(lake) == ["m1", "m3"]
    assert agrees(lake)
    assert lake.sync_of(event("m1", "ann"))[0]["books"]["duplicates"] == 1


def test_repairs_do_not_bring_them_back(lake: Lake) -> None:
    lake.sync_of(event("m1", "ann"), event("m2", "bob"))
    lake.workspace.suppressions.add(["bob"])
    lake.run(jobs.replay(lake.connection, None, None))
    (file,) = lake.place.ledger.data_files("src1")
    lake.place.storage.delete(file.path)
    repair(lake.workspace, lake.connection, verify(lake.workspace, lake.connection, InProcess()), InProcess())
    assert messages(lake) == ["m1"]
    assert agrees(lake)


# The collector


def suppressed_by(collector: Collector) -> int:
    found = re.search(r'events_suppressed_total{source="web"} (\d+)', collector.get("/metrics").body.decode())
    return int(found[1]) if found else 0


def test_the_collector_keeps_nothing_of_who_is_suppressed_while_it_runs(tmp_path: Path) -> None:
    with Collector(tmp_path) as collector:
        place = Workspace.open(tmp_path)

        def send(number: int, **of: Any) -> None:
            sent = {"type": "track", "event": "A", "messageId": f"m{number}", "userId": "bob-x", **of}
            assert collector.post("/v1/batch", {"batch": [sent]}).json == {"success": True}

        send(0)
        place.suppressions.add(["bob-x"])
        place.suppressions.add(["b@example.com"], "context.traits.email", "src1")
        number, deadline = 1, time.monotonic() + 20  # it takes two seconds at most where nothing else runs
        while suppressed_by(collector) < 1:
            assert time.monotonic() < deadline
            send(number)
            number += 1
            time.sleep(0.05)
        before = suppressed_by(collector)
        send(1001)
        send(1002, userId="ann", context={"traits": {"email": "b@example.com"}})
        send(1003, userId="ann", event=None)  # no event, of somebody else
        send(1004, event=None)  # no event, of him
        collector.post(
            "/v1/batch",
            {
                "context": {"traits": {"email": "b@example.com"}},  # which is true of all events of the batch
                "batch": [{"type": "track", "event": "A", "messageId": "m1005", "userId": "ann"}],
            },
        )
        twice = b'{"batch":[{"type":"track","event":"A","messageId":"m1007","userId":"ann","userId":"bob-x"}]}'
        assert collector.post("/v1/batch", twice).json == {"success": True}
        send(1006, userId="ann")
        assert suppressed_by(collector) == before + 5
        place.sources.enable("web", False)
        wait = time.monotonic() + 20
        while not any(b"source_disabled" in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()):
            assert time.monotonic() < wait
            send(2000)
            collector.post("/v1/batch", twice.replace(b"m1007", b"m2001"))
            time.sleep(0.1)
        rejects = b"".join(file.read_bytes() for file in Spool(tmp_path).rejects.rglob("*") if file.is_file())
        place.sources.enable("web", True)
        place.suppressions.remove(["bob-x"])
        while not any(b"m3000" in line for line in collector.lines()):
            assert time.monotonic() < wait + 20
            send(3000)
            time.sleep(0.1)
        collector.stop()
    archived = {sent["messageId"] for sent in collector.archived()}
    assert {"m0", "m1006", "m3000"} <= archived
    assert archived.isdisjoint({"m1001", "m1002", "m1003", "m1004", "m1005", "m1007", "m2000", "m2001"})
    assert b"m1003" in rejects
    assert b"source_disabled" in rejects
    assert b"bob-x" not in rejects


def test_who_is_added_is_known_at_once_and_who_is_removed_too(lake: Lake) -> None:
    listed = lake.workspace.suppressions
    listed.add(["a"])
    following = Suppressing(listed)

    def hidden() -> str:
        return "".join(name for name in "abcd" if following.hides("src1")({"userId": name}))

    assert hidden() == "a"
    listed.add(["b"], source_id="src1")
    listed.add(["c"], source_id="other")
    assert hidden() == "a"
    following.look()
    assert hidden() == "ab"
    listed.remove(["a"])
    listed.add(["d"])  # so that as many are on the list as before
    following.look()
    assert hidden() == "bd"
    following.look()
    assert hidden() == "bd"


def test_who_is_written_down_with_an_earlier_time_is_noticed(lake: Lake, clock: SetClock) -> None:
    """A list that is imported takes long: others may be added, and be known, before it is there."""
    listed = lake.workspace.suppressions
    clock.forward(hours=1)
    listed.add(["later"])
    following = Suppressing(listed)
    clock.forward(hours=-2)
    listed.add(["earlier"])
    following.look()
    assert following.hides("src1")({"userId": "earlier"})


def rows_read(place: Workspace, done: Callable[[], None]) -> int:
    """How many rows the queries of something have."""
    asked: list[tuple[str, Any]] = []

    def note(_: Any, __: Any, statement: str, parameters: Any, *___: Any) -> None:
        asked.append((statement, parameters))

    sa.event.listen(place.engine, "before_cursor_execute", note)
    done()
    sa.event.remove(place.engine, "before_cursor_execute", note)
    with place.engine.connect() as connection:
        counts = [
            connection.exec_driver_sql(f"select count(*) from ({statement}) as asked", parameters).scalar_one()
            for statement, parameters in asked
        ]
    assert counts
    return sum(counts)


def test_after_a_list_was_imported_who_is_added_is_known_as_fast_as_before(lake: Lake) -> None:
    listed = lake.workspace.suppressions
    listed.add(["first"])
    following = Suppressing(listed)
    assert listed.add(f"u{number}" for number in range(200_000)) == 200_000
    following.look()
    listed.add(["later"])
    assert rows_read(lake.workspace, following.look) < 10
    assert rows_read(lake.workspace, following.look) < 10
    hides = following.hides("src1")
    assert [hides({"userId": name}) for name in ("first", "u0", "u199999", "later", "u200000")] == [
        *([True] * 4),
        False,
    ]


def test_a_list_that_comes_slowly_holds_nobody_up(lake: Lake) -> None:
    listed, seen = lake.workspace.suppressions, []

    def slowly() -> Iterator[str]:
        for number in range(120_000):
            if number % 20_000 == 0:
                seen.append(listed.add([f"by another {number}"]))  # which waits for whoever writes
            yield f"u{number % 110_000}"

    assert listed.add(slowly()) == 110_000
    assert seen == [1] * 6
    assert listed.count() == 110_006
    assert listed.of_source("src1").hides({"userId": "u109999"})


def test_others_write_while_a_long_list_is_written(lake: Lake) -> None:
    listed, at = lake.workspace.suppressions, []
    writing = threading.Thread(target=lambda: at.append(listed.add(f"u{number}" for number in range(150_000))))
    other = Workspace.open(lake.workspace.folder)
    writing.start()
    versions = {listed.version()}
    while len(versions) < 4:
        versions.add(listed.version())
        assert writing.is_alive()
    other.sources.enable("web", False)
    assert writing.is_alive(), "it had to wait until all was written"
    writing.join()
    assert at == [150_000]


def test_nobody_is_added_by_a_long_list_that_is_wrong_at_its_end(lake: Lake) -> None:
    listed = lake.workspace.suppressions
    with pytest.raises(InvalidSettingsError, match="empty"):
        listed.add([*(f"u{number}" for number in range(150_000)), ""])
    assert (listed.count(), listed.version()) == (0, 0)


def test_a_database_that_is_away_lets_nobody_in_who_was_kept_out(lake: Lake) -> None:
    lake.workspace.suppressions.add(["a"])
    following = Suppressing(lake.workspace.suppressions)
    with lake.workspace.engine.begin() as connection:
        connection.execute(sa.text("drop table policy_versions"))
    with pytest.raises(sa.exc.DBAPIError):
        following.look()
    assert following.hides("src1")({"userId": "a"})
    with pytest.raises(sa.exc.DBAPIError):
        Suppressing(lake.workspace.suppressions)


# The command line


def run_cli(folder: Path, *words: str) -> str:
    done = subprocess.run([PROGRAM, "-C", folder, "suppress", *words], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_the_list_on_the_command_line(tmp_path: Path) -> None:
    Workspace.create(tmp_path).connections.add_source("web", source_id="src1")
    assert "2 subjects added; 2 on the list" in run_cli(tmp_path, "add", "u1", "u2")
    names = tmp_path / "list.txt"
    names.write_text("\ufeffu2\n\n  u3  \nu3\n")
    assert "1 subject added; 3 on the list" in run_cli(tmp_path, "import", str(names))
    assert "1 subject added" in run_cli(tmp_path, "add", "--path", "traits.email", "--source", "web", "a@b.c")
    told = json.loads(run_cli(tmp_path, "list", "--json"))
    assert {(one["subject"], one["path"], one["source"]) for one in told} == {
        ("u1", "userId", None),
        ("u2", "userId", None),
        ("u3", "userId", None),
        ("a@b.c", "traits.email", "web"),
    }
    assert "a@b.c" in run_cli(tmp_path, "list")
    assert "1 subject removed; 3 on the list" in run_cli(tmp_path, "remove", "u1", "u9")
    names.write_bytes(b"u5\n\xff\n")
    assert "not text in UTF-8: nobody was added" in run_cli(tmp_path, "import", str(names))
    names.write_bytes(b"u5\n" + b"x" * 5000)
    assert "line 2 is no id: nobody was added" in run_cli(tmp_path, "import", str(names))
    assert "is not a path" in run_cli(tmp_path, "add", "--path", "a..b", "x")
    assert "there is no source" in run_cli(tmp_path, "add", "--source", "nope", "x")
    assert len(json.loads(run_cli(tmp_path, "list", "--json"))) == 3


@pytest.mark.long
@pytest.mark.timeout(900)
def test_two_million_lines_are_imported_in_little_memory(tmp_path: Path) -> None:
    place = Workspace.create(tmp_path)
    names = tmp_path / "list.txt"
    with names.open("w") as lines:
        lines.writelines(f"{'' if number % 5 else 'u'}{number % 1_500_000}\n\n" for number in range(2_000_000))
    process = subprocess.Popen([PROGRAM, "-C", tmp_path, "suppress", "import", names])
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    assert place.suppressions.count() == 1_500_000
    assert used.ru_maxrss < 700_000, "kilobytes, of which the program itself takes some 200,000"
    assert used.ru_utime + used.ru_stime < 240, "seconds"
    before = time.process_time()
    following = Suppressing(place.suppressions)
    assert time.process_time() - before < 20, "seconds"
    assert following.hides("src1")({"userId": "1499999"})


# The HTTP API


def test_regulations_as_segment_has_them(tmp_path: Path) -> None:
    place = LibraryWorkspace.open(Workspace.create(tmp_path).folder)
    place.connections.add_source("web", source_id="src1")
    client = Program(place).client

    def ask(kind: str, *ids: str, at: str = "", of: str = "USER_ID") -> Any:
        body = {"regulationType": kind, "subjectType": of, "subjectIds": list(ids)}
        answer = client.post(f"/regulations{at}", json=body)
        return answer.json()["overallStatus"] if answer.status_code == 201 else answer.status_code

    assert ask("SUPPRESS_ONLY", "u1", "u2") == "FINISHED"
    assert ask("SUPPRESS_ONLY", "a1", of="ANONYMOUS_ID", at="/sources/web") == "FINISHED"
    assert ask("SUPPRESS_WITH_DELETE", "u3") == "PARTIAL_SUCCESS"
    assert ask("DELETE_ONLY", "u4") == "NOT_SUPPORTED"
    assert ask("SUPPRESS_ONLY", "o1", of="OBJECT_ID") == "INVALID"
    assert ask("UNSUPPRESS", "u2") == "FINISHED"
    assert ask("SUPPRESS_ONLY", *(f"x{number}" for number in range(5000))) == "FINISHED"
    assert ask("SUPPRESS_ONLY", *(f"y{number}" for number in range(5001))) == 422
    assert ask("SUPPRESS_ONLY") == 422
    assert ask("FORGET", "u5") == 422
    assert ask("SUPPRESS_ONLY", "u5", at="/sources/nope") == 404
    hidden = place.suppressions.of_source("src1")
    named = {name: hidden.hides({"userId": name}) for name in ("u1", "u2", "u3", "u4", "o1", "x4999", "y0")}
    assert named == {"u1": True, "u2": False, "u3": True, "u4": False, "o1": False, "x4999": True, "y0": False}
    assert hidden.hides({"anonymousId": "a1"})
    assert not place.suppressions.of_source("other").hides({"anonymousId": "a1"})

    newest, *_ = client.get("/regulations").json()
    one = client.get(f"/regulations/{newest['id']}").json()
    assert one == newest
    assert (one["subjects"], one["overallStatus"]) == (5000, "FINISHED")
    assert client.get("/regulations/nope").status_code == 404
    listed = client.get("/suppressions?limit=1000&offset=5000").json()
    assert {(found["id"], found["path"], found["source"]) for found in listed} == {
        ("u1", "userId", None),
        ("u3", "userId", None),
        ("a1", "anonymousId", "web"),
    }
    told = json.dumps([entry._asdict() for entry in place.audit_log.latest()])
    assert "suppress_only" in told
    assert "u1" not in re.findall(r"\w+", told)


def test_a_regulation_that_cannot_be_noted_suppresses_nobody(lake: Lake) -> None:
    with lake.workspace.engine.begin() as connection:
        connection.execute(sa.text("drop table regulations"))
    regulations = Regulations(lake.workspace.engine, lake.workspace.clock.now)
    with pytest.raises(sa.exc.DBAPIError):
        regulations.ask(RegulationType.SUPPRESS_ONLY, SubjectType.USER_ID, ["bob"], "", "me")
    assert (lake.workspace.suppressions.count(), lake.workspace.suppressions.version()) == (0, 0)


@pytest.mark.skipif(ON_POSTGRES, reason="it removes the file with the database")
def test_nobody_comes_back_because_a_database_was_lost(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "workspace", InProcess(), clock=SetClock())
    lake.workspace.suppressions.add(["bob"])
    lake.workspace.suppressions.add(["x.y"], r"traits.e\.mail", "src1")
    lake.sync_of(event("m1", "ann"), event("m2", "bob"))
    lake.workspace.engine.dispose()
    (lake.workspace.folder / "eventlake.db").unlink()
    place = Workspace.open(lake.workspace.folder, SetClock("2026-11-16T00:00:00Z"))
    restore(place, "default")
    hidden = place.suppressions.of_source("src1")
    assert hidden.hides({"userId": "bob"})
    assert hidden.hides({"traits": {"e.mail": "x.y"}})
    assert {one.subject for one in place.suppressions.latest()} == {None}
    assert place.suppressions.remove(["bob"], source_id="src1") == 1


@pytest.mark.skipif(ON_POSTGRES, reason="it removes the file with the database")
def test_after_a_restore_the_list_of_now_is_gone_by_and_none_of_before(tmp_path: Path) -> None:
    """The lake has lists of a database that was lost, which had changed as often as that of now, or more often."""
    lake = Lake(tmp_path / "workspace", InProcess(), clock=SetClock())
    for number in range(4):
        lake.workspace.suppressions.add([f"old{number}"])
    lake.sync_of(event("m1", "ann"))

    def lost(day: str) -> None:
        lake.workspace.engine.dispose()
        (lake.workspace.folder / "eventlake.db").unlink()
        lake.workspace = Workspace.open(lake.workspace.folder, SetClock(f"{day}T00:00:00Z"))
        restore(lake.workspace, "default")

    lost("2026-11-16")
    for number in range(6):
        lake.workspace.suppressions.add([f"bob{number}"])
        report = lake.sync_of(event(f"b{number}", f"bob{number}"), event(f"o{number}", "old3"))
        assert report[0]["books"]["suppressed"] == 2
    lost("2026-11-17")
    assert lake.sync_of(event("m2", "bob5"), event("m3", "old0"))[0]["books"]["suppressed"] == 2
    assert messages(lake) == ["m1"]


# Crashes


def people(folder: Path) -> Lake:
    lake = filled(folder)
    lake.sync()
    lake.workspace.suppressions.add(["m1", "m2"], "messageId")
    return lake


@pytest.mark.timeout(900)
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.long, id="all"), pytest.param(6, id="every sixth")])
def test_killed_while_it_takes_people_out_a_replay_is_done_or_was_not_begun(tmp_path: Path, step: int) -> None:
    lake = people(tmp_path / "undisturbed")
    before = seen_by_queries(lake)
    changes = killed_at(lake.workspace.folder, "replay", -1).changes
    expected, after = state(lake), seen_by_queries(lake)
    assert (before, after) == (["m0", "m1", "m2"], ["m0"])
    for point in range(0, changes, step):
        lake, when = people(tmp_path / str(point)), f"killed before change {point} of {changes}"
        killed_at(lake.workspace.folder, "replay", point)
        assert seen_by_queries(lake) in (before, after), when
        lake.sync()
        assert agrees(lake), when
        lake.run(jobs.replay(lake.connection, None, None))
        assert state(lake) == expected, when
        assert agrees(lake), when
        assert not lake.staged(), when
