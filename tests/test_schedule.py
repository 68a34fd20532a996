"""What is due is begun: every slot once, by however many schedulers, whatever is killed."""

import json
import os
import random
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from conftest import InProcess, SetClock, new_database, track
from eventlake.control.connections import Connection
from eventlake.control.due import due_since, next_begin, pause
from eventlake.control.leases import Lane
from eventlake.control.run_lines import RunLine
from eventlake.errors import NotDueError, TransientError
from eventlake.library import Report, Workspace
from eventlake.schedule.scheduler import Scheduler
from eventlake.timetable import DAY, MINUTE, Timetable
from eventlake.workspace import CONFIG
from runner_without_spark import Slow

HOUR = 60 * MINUTE
NOON = 1_794_916_800_000_000  # 2026-11-17 12:00 UTC


def sync(started: int, status: str = "finished", *, code: str | None = None, seconds: int = 30) -> RunLine:
    ended = None if status == "running" else started + seconds * 1_000_000
    return RunLine("1", "default", "src", "sync", status, "publish", started, ended, error_code=code)


# When a sync is due


def test_the_first_sync_is_due_when_there_is_something_to_load() -> None:
    assert due_since(Timetable(), NOON, None, has_data=lambda: False) is None
    assert due_since(Timetable(), NOON, None, has_data=lambda: True) == 0


def test_a_slot_is_due_until_a_sync_was_begun_in_it() -> None:
    before, after = sync(NOON - 1), sync(NOON)
    assert due_since(Timetable(), NOON - 1, sync(NOON - 2 * HOUR)) is None
    assert due_since(Timetable(), NOON, before) == NOON
    assert due_since(Timetable(), NOON + HOUR, before) == NOON  # late is better than never
    assert due_since(Timetable(), NOON + HOUR, after) is None


def test_slots_that_were_missed_are_made_up_for_once() -> None:
    last = sync(NOON - 3 * DAY)
    assert due_since(Timetable(), NOON + MINUTE, last) == NOON - 3 * DAY + 2 * HOUR  # since the first of them
    assert due_since(Timetable(), NOON + 2 * MINUTE, sync(NOON + MINUTE)) is None


def test_nothing_begins_in_the_exclusion_window_and_what_was_due_in_it_does_afterwards() -> None:
    table = Timetable(exclude_window="11:30-13:30")
    last = sync(NOON - 2 * HOUR)
    assert due_since(table, NOON, last) is None
    assert due_since(table, NOON + 90 * MINUTE - 1, last) is None
    assert due_since(table, NOON + 90 * MINUTE, last) == NOON
    assert next_begin(table, NOON, last) == NOON + 90 * MINUTE


def test_a_sync_that_failed_is_tried_again_after_pauses_that_grow() -> None:
    failed = sync(NOON, "failed", code="service_unavailable")
    ended = NOON + 30_000_000
    for failures, minutes in ((1, 1), (2, 2), (3, 4), (6, 30)):
        again = ended + minutes * MINUTE
        assert due_since(Timetable(), again - 1, failed, failures=failures) is None
        assert due_since(Timetable(), again, failed, failures=failures) == NOON + 1
        assert next_begin(Timetable(), NOON + MINUTE // 2, failed, failures=failures) == again


@pytest.mark.parametrize("code", ["invalid_settings.date_partition", "insufficient_permissions.upload_object"])
def test_what_waits_for_somebody_is_tried_again_at_the_next_slot_only(code: str) -> None:
    failed = sync(NOON, "failed", code=code)
    assert due_since(Timetable(), NOON + 2 * HOUR - 1, failed, failures=1) is None
    assert due_since(Timetable(), NOON + 2 * HOUR, failed, failures=1) == NOON + 2 * HOUR
    assert next_begin(Timetable(), NOON + MINUTE, failed, failures=1) == NOON + 2 * HOUR


def test_what_somebody_stopped_is_not_begun_again_by_itself() -> None:
    assert due_since(Timetable(), NOON + HOUR, sync(NOON, "failed", code="cancelled"), failures=1) is None


def test_a_sync_whose_process_died_is_begun_again_at_once() -> None:
    running = sync(NOON, "running")
    assert due_since(Timetable(), NOON + MINUTE, running, is_going_on=True) is None
    assert due_since(Timetable(), NOON + MINUTE, running, is_going_on=False) == NOON + 1


def test_manual_connections_are_never_due() -> None:
    assert due_since(Timetable("manual"), NOON, None) is None
    assert due_since(Timetable("manual"), NOON, sync(NOON - DAY, "failed", code="busy"), failures=1) is None
    assert next_begin(Timetable("manual"), NOON, None) is None


@given(st.integers(1, 200))
def test_pauses_grow_and_stay_bounded(failures: int) -> None:
    assert MINUTE <= pause(failures) <= pause(failures + 1) <= 30 * MINUTE


# Schedulers, on a workspace with a clock that is set


class Place(Workspace):
    """A workspace whose syncs may be killed: from some moment on, nothing of one reaches the database any more."""

    _thread = threading.local()
    chance = 0.0  # of being killed, at each look into the database

    def watch_for_kills(self, dice: random.Random) -> None:
        self.killed: set[str] = set()  # the runs that had begun and had not ended

        def look(_connection: Any, _cursor: Any, statement: str, _given: Any, context: Any, _many: bool) -> None:
            sync = self._thread
            if getattr(sync, "is_on", False):
                sync.is_dead = sync.is_dead or dice.random() < self.chance
                if sync.is_dead:
                    raise TransientError("killed", fix="")
                if statement.startswith("INSERT INTO runs "):
                    sync.run_id = context.compiled_parameters[0]["run_id"]

        sa.event.listen(self.engine, "before_cursor_execute", look)

    def sync_due(self, connection: Connection, due_since: int, **options: Any) -> list[Report]:
        sync = self._thread
        sync.is_on, sync.is_dead, sync.run_id = True, False, None
        try:
            return super().sync_due(connection, due_since, **options)
        finally:
            sync.is_on = False
            if sync.is_dead and sync.run_id and self.runs.line(sync.run_id).status == "running":
                self.killed.add(sync.run_id)


def slot_of(connection: Connection, run: RunLine) -> tuple[str, int]:
    slot = connection.settings.timetable.latest(run.started_at)
    assert slot is not None
    return connection.name, slot


def place_at(folder: Path, clock: SetClock, sources: int, schedules: list[dict[str, str]]) -> Place:
    folder.mkdir()
    (folder / CONFIG).write_text(f'workspace_id = "test"\ndatabase = "{new_database()}"\n')
    place = Place.open(folder, clock)
    place._given = InProcess()
    for number in range(sources):
        place.connections.add_source(f"app{number}")
        place.connections.change(f"app{number}", schedules[number % len(schedules)])
        # Every connection has been synced before, so the timetable counts from here.
        run_id = place.lake().runs.start(place.sources.get(f"app{number}").id, "sync", clock.now_ns())
        place.lake().runs.finished(run_id, [], clock.now())
    return place


def settle(scheduler: Scheduler) -> None:
    while scheduler._going:
        time.sleep(0.001)


def expected_slots(place: Place, start: int, stop: int) -> Counter[tuple[str, int]]:
    slots: Counter[tuple[str, int]] = Counter()
    for connection in place.connections.all():
        table, now = connection.settings.timetable, start
        while (slot := table.following(now)) is not None and slot <= stop:
            slots[connection.name, slot] += 1
            now = slot
    return slots


def simulate(folder: Path, *, sources: int, days: int, schedules: list[dict[str, str]], seed: int) -> None:
    """Two schedulers look at the same time; now and then a sync of theirs is killed."""
    clock = SetClock("2026-10-23T23:59:00Z")  # clocks are changed in the night to the 25th
    place = place_at(folder, clock, sources, schedules)
    start = clock.now()
    place.watch_for_kills(random.Random(seed))
    schedulers = [Scheduler(place, parallel=4) for _ in range(2)]
    while clock.now() < start + days * DAY:
        clock.forward(hours=5 / 60)
        place.chance = 0.005
        while look_together(schedulers):
            pass
    place.chance = 0
    clock.forward(hours=0.1)  # what was killed last is made up for
    while look_together(schedulers):
        pass
    for scheduler in schedulers:
        scheduler.close()
    connections = {(one.source.id, one.lake): one for one in place.connections.all()}
    ran = [run for run in place.runs.lines(None) if run.started_at > start]
    slots = {run.run_id: slot_of(connections[run.source_id, run.lake], run) for run in ran}
    again = Counter(slots[run_id] for run_id in place.killed)
    assert again
    expected = expected_slots(place, start, clock.now())
    assert Counter(slots.values()) == expected + again  # every slot once, and again only what was killed
    assert not [run for run in ran if run.status == "running"]
    told = f"{sources} connections, {days} days: {expected.total():,} slots, each once"
    sys.stdout.write(f"{told}; {again.total():,} of {len(ran):,} runs were killed, and done again\n")


def look_together(schedulers: list[Scheduler]) -> bool:
    """Let both see what is due before either has done it; whether anything was."""
    for scheduler in schedulers:
        scheduler.tick()
    was_due = any(scheduler._going for scheduler in schedulers)
    for scheduler in schedulers:
        settle(scheduler)
    return was_due


SCHEDULES = [
    {},
    {"schedule": "every 6h", "start_at": "01:30"},
    {"schedule": "at 02:30 14:00", "time_zone": "Europe/Berlin"},
    {"schedule": "cron 15 */4 * * *", "time_zone": "America/New_York"},
]


def test_three_days_of_schedules_with_two_schedulers(tmp_path: Path) -> None:
    simulate(tmp_path / "place", sources=8, days=3, schedules=SCHEDULES, seed=random.randrange(10**9))


@pytest.mark.long
@pytest.mark.timeout(5400)
def test_a_week_of_schedules_over_many_connections(tmp_path: Path) -> None:
    connections = int(os.environ.get("EVENTLAKE_CONNECTIONS", "50"))  # 500 in `make torture`
    simulate(tmp_path / "place", sources=connections, days=7, schedules=SCHEDULES, seed=random.randrange(10**9))


# Schedulers, on real syncs


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / CONFIG).write_text(f'workspace_id = "test"\ndatabase = "{new_database()}"\n')
    found = Workspace.open(tmp_path / "place", SetClock())
    found.connections.add_source("web", source_id="src1")
    found._given = InProcess()
    return found


def put(place: Workspace, name: str, count: int = 3) -> None:
    lines = "\n".join(json.dumps(track("Signed Up", f"{name}-{number}")) for number in range(count))
    place.archive.write(f"segment-logs/src1/1794873600000/{name}.json", lines.encode())


def rows(place: Workspace) -> int:
    return int(place.query("select count(*) as n from web.track_signed_up").to_pylist()[0]["n"])


def look(scheduler: Scheduler) -> None:
    scheduler.tick()
    settle(scheduler)


def test_events_are_loaded_when_the_first_come_and_then_at_the_slots(place: Workspace) -> None:
    clock = place.clock
    assert isinstance(clock, SetClock)
    said: list[str] = []
    scheduler = Scheduler(place, tell=said.append)
    look(scheduler)
    assert place.runs.latest(9) == []  # nothing came yet
    put(place, "a")
    clock.forward(hours=0.01)
    look(scheduler)
    assert rows(place) == 3
    put(place, "b")
    clock.forward(hours=1.5)
    look(scheduler)
    assert rows(place) == 3  # 12:00 was taken by the first
    clock.forward(hours=0.5)
    look(scheduler)
    assert rows(place) == 6
    assert said == ["web: sync finished, 3 rows loaded"] * 2
    scheduler.close()


def test_a_disabled_connection_waits_and_catches_up(place: Workspace) -> None:
    scheduler = Scheduler(place)
    put(place, "a")
    place.connections.enable("web", False)
    look(scheduler)
    assert place.runs.latest(9) == []
    place.connections.enable("web", True)
    look(scheduler)
    assert rows(place) == 3
    scheduler.close()


def test_a_sync_that_two_find_due_is_done_by_one(place: Workspace) -> None:
    put(place, "a")
    web = place.connections.get("web")
    assert [report.rows for report in place.sync_due(web, 0)] == [3]
    with pytest.raises(NotDueError, match="was begun since this was due"):
        place.sync_due(web, 0)
    place.clock.forward(hours=2)  # type: ignore[attr-defined]
    slot = place.clock.now()
    place.sync_due(web, slot)
    with pytest.raises(NotDueError):
        place.sync_due(web, slot)
    assert len(place.runs.lines(9)) == 2


class Lasting(InProcess):
    """Whose tasks take some minutes of a clock that is set."""

    def __init__(self, clock: SetClock, minutes: float) -> None:
        self._clock, self._minutes = clock, minutes

    def run(self, *given: Any, **more: Any) -> list[Any]:
        self._clock.forward(hours=self._minutes / 60)
        return super().run(*given, **more)


def test_each_connection_has_its_turn_even_if_there_is_time_for_none_of_them_all(place: Workspace) -> None:
    clock = place.clock
    assert isinstance(clock, SetClock)
    place._given = Lasting(clock, 2)  # for each of three steps
    for number, name in ((2, "app"), (3, "shop")):
        place.connections.add_source(name, source_id=f"src{number}")
    for name in ("web", "app", "shop"):
        place.connections.change(name, {"schedule": "every 5m"})
    scheduler = Scheduler(place, parallel=1)
    for look_number in range(12):
        for number in (1, 2, 3):
            event = json.dumps(track("Signed Up", f"{look_number}"))
            place.archive.write(f"segment-logs/src{number}/1794873600000/{look_number}.json", event.encode())
        look(scheduler)
    scheduler.close()
    assert Counter(run.source_id for run in place.runs.lines(99)) == {"src1": 4, "src2": 4, "src3": 4}


def slow(place: Workspace) -> Slow:
    runner = Slow()
    place._given = runner
    return runner


def test_a_slow_connection_does_not_hold_up_the_others(place: Workspace) -> None:
    place.connections.add_source("app", source_id="src2")
    put(place, "a")
    runner = slow(place)
    scheduler = Scheduler(place, parallel=2)
    scheduler.tick()
    assert runner.begun.wait(30)
    place._given = InProcess()
    place.archive.write("segment-logs/src2/1794873600000/a.json", json.dumps(track("Signed Up", "x")).encode())
    place.clock.forward(hours=0.01)  # type: ignore[attr-defined]
    scheduler.tick()
    deadline = time.monotonic() + 30
    while not place.runs.lines(9, "src2", status="finished"):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    runner.go_on.set()
    settle(scheduler)
    assert rows(place) == 3
    scheduler.close()


def test_a_run_tells_how_far_it_is_and_can_be_stopped_by_anybody(place: Workspace) -> None:
    put(place, "a")
    runner = slow(place)
    scheduler = Scheduler(place)
    scheduler.tick()
    assert runner.begun.wait(30)
    (run,) = place.runs.lines(9)
    assert (run.status, run.step) == ("running", "stage")
    assert [step for step, _ in run.steps or []] == ["discover", "stage"]
    assert place.runs.ask_to_stop(run.run_id)
    settle(scheduler)
    (run,) = place.runs.lines(9)
    assert (run.status, run.error_code) == ("failed", "cancelled")
    assert not place.runs.ask_to_stop(run.run_id)  # it has ended
    place._given = InProcess()
    place.clock.forward(hours=1)  # type: ignore[attr-defined]
    look(scheduler)
    assert len(place.runs.lines(9)) == 1  # whoever stopped it does not want it again now
    place.clock.forward(hours=1.1)  # type: ignore[attr-defined]
    look(scheduler)
    assert rows(place) == 3
    scheduler.close()


def test_a_scheduler_that_is_told_to_stop_gives_up_what_takes_too_long(place: Workspace) -> None:
    put(place, "a")
    runner = slow(place)
    said: list[str] = []
    scheduler = Scheduler(place, tell=said.append)
    stop = threading.Event()
    thread = threading.Thread(target=scheduler.run, args=(stop,), kwargs={"grace": 0.2})
    thread.start()
    assert runner.begun.wait(30)
    assert [part.kind for part in place.presence.parts()] == ["scheduler"]
    stop.set()
    thread.join(30)
    assert not thread.is_alive()
    assert said[0] == "waiting for 1 to end: web"
    assert place.runs.lines(9)[0].error_code == "given_up"
    assert place.presence.parts() == []
    place._given = InProcess()
    place.clock.forward(hours=0.01)  # type: ignore[attr-defined]
    again = Scheduler(place)
    look(again)  # long before the next slot
    assert rows(place) == 3
    again.close()


def test_an_order_that_is_given_up_is_carried_out_by_the_next_scheduler(place: Workspace) -> None:
    put(place, "a")
    place.connections.change("web", {"schedule": "manual"})
    order = place.orders.place("default", "src1", "sync", {}, "ann")
    runner = slow(place)
    scheduler = Scheduler(place)
    scheduler.tick()
    assert runner.begun.wait(30)
    scheduler.close(grace=0)
    assert place.orders.get(order.id).status == "waiting"
    place._given = InProcess()
    again = Scheduler(place)
    look(again)
    assert place.orders.get(order.id).status == "done"
    again.close()


def test_while_a_connection_is_held_its_collector_is_left_in_peace(place: Workspace) -> None:
    put(place, "a")
    scheduler = Scheduler(place)
    with place.lake().leases.held("src1", Lane.SYNC):
        for _ in range(5):
            look(scheduler)
            place.clock.forward(hours=0.01)  # type: ignore[attr-defined]
        assert not (place.folder / "collector" / "roll-now").exists()
        assert place.runs.lines(9) == []
    look(scheduler)
    assert rows(place) == 3
    scheduler.close()


def test_what_goes_wrong_with_one_connection_or_one_look_does_not_end_the_others(place: Workspace) -> None:
    place.connections.add_source("app", source_id="src2")
    put(place, "a")
    (place.folder / "lake" / "segment-logs" / "src2").write_text("a file where a folder should be")
    said: list[str] = []
    scheduler = Scheduler(place, tell=said.append)
    stop = threading.Event()
    thread = threading.Thread(target=scheduler.run, args=(stop,))
    thread.start()
    deadline = time.monotonic() + 60
    while not place.runs.lines(9, "src1", status="finished"):
        assert time.monotonic() < deadline, said
        assert thread.is_alive()
        time.sleep(0.05)
    stop.set()
    thread.join(60)
    assert rows(place) == 3


# Orders


class Broken(InProcess):
    def run(self, *_: Any, **__: Any) -> list[Any]:
        raise TransientError("the cluster is away", fix="wait")


def test_what_was_ordered_is_carried_out_in_turn(place: Workspace) -> None:
    place.connections.change("web", {"schedule": "manual"})
    put(place, "a")
    scheduler = Scheduler(place)
    first = place.orders.place("default", "src1", "sync", {}, "ann")
    assert place.orders.place("default", "src1", "sync", {}, "ben").id == first.id  # it is asked for already
    look(scheduler)
    done = place.orders.get(first.id)
    assert (done.status, done.asked_by, done.problem) == ("done", "ann", None)
    assert done.run_id == place.runs.latest(1)[0].run_id
    assert rows(place) == 3
    order = place.orders.place("default", "src1", "replay", {"from": None, "to": None}, "ann")
    look(scheduler)
    assert place.orders.get(order.id).status == "done"
    assert place.runs.latest(1)[0].kind == "replay"
    retype = {"table": "web.track_signed_up", "column": "event", "type": "bigint"}
    order = place.orders.place("default", "src1", "retype", retype, "ann")
    look(scheduler)
    assert place.orders.get(order.id).status == "done"
    wrong = place.orders.place("default", "src1", "retype", retype | {"column": "nothing"}, "ann")
    look(scheduler)
    failed = place.orders.get(wrong.id)
    assert failed.status == "failed"
    assert "has no column 'nothing'" in (failed.problem or "")
    assert failed.run_id is None  # no run was begun for it
    put(place, "b")
    place._given = Broken()
    broken = place.orders.place("default", "src1", "sync", {}, "ann")
    look(scheduler)
    (run,) = place.runs.lines(1, status="failed")
    assert place.orders.get(broken.id).run_id == run.run_id
    scheduler.close()


def test_an_order_is_taken_by_one_scheduler_and_again_if_that_dies(place: Workspace) -> None:
    order = place.orders.place("default", "src1", "sync", {}, "ann")
    assert place.orders.take(order, "one")
    assert not place.orders.take(order, "two")
    assert place.orders.to_do() == []
    place.orders._update(order.id, "one", alive_at=place.clock.now() - DAY)  # not heard of for a day
    (left,) = place.orders.to_do()
    assert place.orders.take(left, "two")
    place.orders.ended(order.id, "one")  # it lives after all, but the order is not its own any more
    place.orders.give_back(order.id, "one")
    assert place.orders.get(order.id).status == "running"
    assert place.orders.still_alive([order.id], "two") == set()
    place.orders.ask_to_stop(order.id)
    assert place.orders.still_alive([order.id], "one") == set()
    assert place.orders.still_alive([order.id], "two") == {order.id}


@pytest.mark.parametrize("how", ["it had to wait", "its scheduler died"])
def test_an_order_that_nobody_wants_any_more_ends(place: Workspace, how: str) -> None:
    order = place.orders.place("default", "src1", "replay", {}, "ann")
    assert place.orders.take(order, "one")
    place.orders.ask_to_stop(order.id)
    if how == "it had to wait":
        place.orders.give_back(order.id, "one")
    else:
        place.orders._update(order.id, "one", alive_at=place.clock.now() - DAY)
    assert place.orders.to_do() == []
    assert place.orders.get(order.id).status == "cancelled"


def test_an_order_that_was_taken_back_in_time_is_not_carried_out(place: Workspace) -> None:
    order = place.orders.place("default", "src1", "sync", {}, "ann")
    assert place.orders.ask_to_stop(order.id).stop_asked
    assert not place.orders.take(order, "one")
    assert place.orders.get(order.id).status == "cancelled"


def test_an_order_waits_while_another_run_holds_the_connection(place: Workspace) -> None:
    put(place, "a")
    order = place.orders.place("default", "src1", "sync", {}, "ann")
    scheduler = Scheduler(place)
    with place.lake().leases.held("src1", Lane.SYNC):
        look(scheduler)
        assert place.orders.get(order.id).status == "waiting"
    place.clock.forward(hours=0.01)  # type: ignore[attr-defined]
    look(scheduler)
    assert place.orders.get(order.id).status == "done"
    scheduler.close()


def test_a_process_that_is_gone_is_no_part_any_more(place: Workspace) -> None:
    place.presence.here("console")
    place.presence.here("console")
    (part,) = place.presence.parts()
    assert (part.kind, part.pid) == ("console", os.getpid())
    place.presence.gone("console")
    assert place.presence.parts() == []
