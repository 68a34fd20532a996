"""A replay of much is carried out in parts, each a run of its own, and can go on where it was interrupted."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from conftest import InProcess, Lake, SetClock, track
from eventlake.audit.verify import verify
from eventlake.control.ledger import LoadedFile
from eventlake.errors import BusyError, EventLakeError, NotFoundError, TransientError
from eventlake.events.instants import FIRST, LAST
from eventlake.lake.layout import DAY
from eventlake.sync import jobs, requests
from eventlake.sync.carry_out import carry_out, parts_of
from eventlake.sync.work import Sizes
from eventlake.tasks.scope import Scope

SMALL = Sizes(bytes_per_part=1, bytes_per_part_and_core=0)  # a day is a part
DAYS = [f"2026-11-1{number}" for number in range(1, 5)]


def raw_file(first: int | None, size: int) -> LoadedFile:
    return LoadedFile("src1", f"{first}.gz", size, "", "1", 1, 1, 0, 0, 0, 0, "", "", first, first)


@given(
    st.lists(st.tuples(st.integers(-3, 12), st.integers(0, 5)), max_size=12),
    st.integers(0, 8),
    st.integers(1, 9),
    st.integers(0, 12),
)
@example([(0, 5), (1, 5)], 0, 2, 5)
def test_parts_are_whole_days_that_follow_each_other_and_none_is_larger_than_asked_unless_it_is_one_day(
    files: list[tuple[int, int]], start: int, days: int, most: int
) -> None:
    scope = Scope(start * DAY, (start + days) * DAY, frozenset({"a"}))
    parts = parts_of(scope, [raw_file(day * DAY + 5, size) for day, size in files], most)
    assert (parts[0].start, parts[-1].stop) == (scope.start, scope.stop)
    assert all(one.stop == other.start for one, other in itertools.pairwise(parts))
    assert all(part.start < part.stop and part.table_keys == scope.table_keys for part in parts)
    assert all(part.start % DAY == 0 for part in parts)
    sizes = [
        {day: sum(size for at, size in files if at == day) for day, _ in files if part.start <= day * DAY < part.stop}
        for part in parts
    ]
    assert all(sum(of_days.values()) <= most or len([s for s in of_days.values() if s]) == 1 for of_days in sizes)
    for one, other in itertools.pairwise(sizes):
        assert sum(one.values()) + min(other.items())[1] > most, "the next day would have fitted"


def test_everything_is_cut_at_days_with_files_only() -> None:
    whole = Scope(FIRST, LAST + 1)
    files = [raw_file(day * DAY + 7, 10) for day in (100, 200, 300)]
    cut = [(part.start, part.stop) for part in parts_of(whole, [*files, raw_file(None, 99)], 15)]
    assert cut == [(FIRST, 200 * DAY), (200 * DAY, 300 * DAY), (300 * DAY, LAST + 1)]
    assert parts_of(whole, files, 30) == [whole]
    assert parts_of(whole, [], 30) == [whole]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake with events of four days, in two files each day."""
    lake = Lake(tmp_path / "workspace", InProcess(), clock=SetClock())
    for number, day in enumerate(DAYS):
        for part in "ab":
            event = track("A", f"m{number}{part}", receivedAt=f"{day}T10:00:00Z", properties={"n": number})
            lake.put(event, day=day)
    lake.sync()
    return lake


def carried_out(lake: Lake, job: jobs.Job, runner: Any = None, sizes: Sizes = SMALL) -> list[dict[str, Any]]:
    return [lines[0] for lines in carry_out(lake.workspace, job, runner or InProcess(), sizes=sizes)]


def period(report: dict[str, Any]) -> tuple[str | None, str | None]:
    return report.get("replay_from"), report.get("replay_to")


def test_each_part_is_a_run_with_its_own_period_and_report(lake: Lake) -> None:
    before = lake.rows("track_a")
    reports = carried_out(lake, jobs.replay(lake.connection, None, None))
    assert [report["rewritten"] for report in reports] == [2] * 4
    midnights = [f"{day} 00:00:00.000000000" for day in DAYS[1:]]
    assert list(map(period, reports)) == [
        (None, midnights[0]),
        (midnights[0], midnights[1]),
        (midnights[1], midnights[2]),
        (midnights[2], None),
    ]
    assert len({report["run_id"] for report in reports}) == 4
    assert lake.rows("track_a") == before
    assert verify(lake.workspace, lake.connection, lake.runner) == []
    assert lake.place.replays.pending("src1") is None


def test_a_replay_of_little_and_everything_that_must_be_done_at_once_is_one_run(lake: Lake) -> None:
    (whole,) = carried_out(lake, jobs.replay(lake.connection, None, None), sizes=Sizes())
    assert period(whole) == (None, None)
    assert whole["rewritten"] == 8
    assert len(carried_out(lake, jobs.rebuild(lake.connection))) == 1
    assert len(carried_out(lake, jobs.sync(lake.connection))) == 1


class Failing(InProcess):
    """A runner that fails in its n-th stage."""

    def __init__(self, last: int) -> None:
        self._left = last

    def run(self, function: Any, *args: Any, **kwargs: Any) -> list[Any]:
        self._left -= function.__name__ == "stage"
        if self._left < 0:
            raise TransientError("no power", fix="wait")
        return super().run(function, *args, **kwargs)


def test_what_is_left_of_a_replay_that_was_interrupted_is_done_later(lake: Lake) -> None:
    job = jobs.replay(lake.connection, None, None, frozenset({"track_a"}))
    with pytest.raises(EventLakeError, match="no power"):
        carried_out(lake, job, Failing(2))
    pending = lake.place.replays.pending("src1")
    assert pending
    assert (pending.parts, pending.done, pending.table_keys) == (4, 2, ["track_a"])
    told = requests.unfinished_replay(lake.place, lake.connection)
    assert told == "a replay was interrupted after 2 of 4 parts; `eventlake replay web --resume` continues it"
    rest = carried_out(lake, requests.rest_of_replay(lake.place, lake.connection))
    assert [report["rewritten"] for report in rest] == [2, 2]
    assert period(rest[0])[0] == f"{DAYS[2]} 00:00:00.000000000"
    assert lake.place.replays.pending("src1") is None
    assert requests.unfinished_replay(lake.place, lake.connection) is None
    assert verify(lake.workspace, lake.connection, lake.runner) == []
    with pytest.raises(NotFoundError, match="no replay of web was interrupted"):
        requests.rest_of_replay(lake.place, lake.connection)


def test_a_replay_that_failed_at_once_is_begun_again_as_it_was_asked_for(lake: Lake) -> None:
    day = 1_794_355_200_000_000  # 2026-11-11
    job = jobs.replay(lake.connection, day + 5, day + DAY)
    with pytest.raises(EventLakeError):
        carried_out(lake, job, Failing(0), sizes=Sizes())
    assert requests.rest_of_replay(lake.place, lake.connection) == job
    carried_out(lake, jobs.replay(lake.connection, None, None), sizes=Sizes())
    assert lake.place.replays.pending("src1") is None, "another one has taken its place"


def test_a_replay_that_is_refused_leaves_the_one_that_goes_on_as_it_is(lake: Lake) -> None:
    runs = carry_out(lake.workspace, jobs.replay(lake.connection, None, None), InProcess(), sizes=SMALL)
    next(runs)
    next(runs)
    pending = lake.place.replays.pending("src1")
    assert pending
    assert pending.done == 1
    assert requests.unfinished_replay(lake.place, lake.connection) is None, "it is going on"
    for job in (jobs.replay(lake.connection, None, 5), requests.rest_of_replay(lake.place, lake.connection)):
        with pytest.raises(BusyError):
            carried_out(lake, job)
    assert lake.place.replays.pending("src1") == pending
    assert len(list(runs)) == 2
    assert lake.place.replays.pending("src1") is None


def test_with_other_partitions_nothing_is_left_to_go_on_with(lake: Lake) -> None:
    with pytest.raises(EventLakeError):
        carried_out(lake, jobs.replay(lake.connection, None, None), Failing(1))
    lake.run(jobs.rebuild(lake.workspace.connections.preview("web", {"date_partition": "day"})))
    assert lake.place.replays.pending("src1") is None


def test_progress_tells_the_part(lake: Lake) -> None:
    steps: list[str] = []
    for _ in carry_out(
        lake.workspace,
        jobs.replay(lake.connection, None, None),
        InProcess(),
        lambda step, *_: steps.append(step),
        SMALL,
    ):
        pass
    assert steps[0] == "part 1 of 4: stage"
    assert steps[-1] == "part 4 of 4: publish"


def test_sources_that_are_forgotten_have_no_replay_left(lake: Lake) -> None:
    with pytest.raises(EventLakeError):
        carried_out(lake, jobs.replay(lake.connection, None, None), Failing(1))
    lake.place.ledger.forget("src1")
    assert lake.place.replays.pending("src1") is None
