"""Tables that attackers cannot exhaust: what is refused, dropped, kept out and let in again."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import IN_BUCKETS, ON_POSTGRES, InProcess, Lake, SetClock, track
from eventlake.audit.verify import verify
from eventlake.control.admission import REMEMBERED, RefusedTable, remembered
from eventlake.control.database import leases
from eventlake.errors import InvalidSettingsError
from eventlake.query import query
from eventlake.runners.spark import SparkRunner
from eventlake.storage.local import LocalStorage
from eventlake.sync import jobs
from eventlake.sync.run import run
from eventlake.sync.stage import Room, Staged, StagedTable, tables_within
from eventlake.tasks.staged import HOURS_COUNTED
from eventlake.workspace import Workspace
from test_laws import all_rows, balanced, new_lake


@pytest.fixture
def quick(tmp_path: Path, clock: SetClock) -> Lake:
    """A lake that needs no Spark."""
    return Lake(tmp_path / "workspace", InProcess(), clock=clock)


def limit(lake: Lake, **settings: int) -> None:
    lake.workspace.connections.change("web", {name: str(value) for name, value in settings.items()})


def clean(lake: Lake) -> bool:
    return verify(lake.workspace, lake.connection, lake.runner) == []


def refused(lake: Lake) -> dict[str, RefusedTable]:
    return {table.table_key: table for table in lake.place.admission.refused(lake.source.id)}


def dropped(lake: Lake) -> list[str]:
    return [table.table_key for table in lake.place.admission.dropped(lake.source.id)]


def drop(lake: Lake, table: str) -> list[dict[str, Any]]:
    return lake.run(jobs.drop(lake.connection, table))


def allow(lake: Lake, *tables: str, were_loaded: bool = False) -> list[dict[str, Any]]:
    return lake.run(jobs.allow(lake.connection, frozenset(tables), were_loaded=were_loaded))


def ids(lake: Lake, table: str) -> list[str]:
    return [row["message_id"] for row in lake.rows(table)]


# Room for new tables


def test_the_first_sync_of_a_source_brings_all_its_tables(quick: Lake) -> None:
    limit(quick, new_tables_per_run=2)
    quick.sync_of(*(track(f"E{n}", f"m{n}") for n in range(5)))
    assert len(quick.tables()) == 5


def test_a_later_sync_adds_no_more_tables_than_allowed_and_says_so(quick: Lake) -> None:
    quick.sync_of(track("Old", "m0"))
    limit(quick, new_tables_per_run=2)
    report = quick.sync_of(
        track("Old", "m1"), *(track(f"Junk {n}", f"j{n}") for n in range(7)), track("Real", "r1"), track("Real", "r2")
    )
    assert quick.tables() == ["track_junk_0", "track_old", "track_real"]
    assert balanced(report)
    assert report[0]["books"]["quarantined"] == 6
    (notice,) = report[0]["notices"]
    assert notice == (
        "6 new tables refused (new_tables_per_run): track_junk_1, track_junk_2, track_junk_3, track_junk_4, "
        "track_junk_5, …; `eventlake allow web --refused` loads 6 lines from quarantine"
    )
    assert {name: (t.lines, t.runs) for name, t in refused(quick).items()} == {
        f"track_junk_{n}": (1, 1) for n in range(1, 7)
    }
    assert clean(quick)


def test_a_name_that_comes_again_goes_before_names_that_are_new(quick: Lake) -> None:
    quick.sync_of(track("Old", "m0"))
    limit(quick, new_tables_per_run=1)
    quick.sync_of(track("Junk", "j1"), track("Junk", "j2"), track("Real", "r1"))
    assert quick.tables() == ["track_junk", "track_old"]
    quick.sync_of(*(track("Another", f"a{n}") for n in range(9)), track("Real", "r2"))
    assert quick.tables() == ["track_junk", "track_old", "track_real"]
    quick.sync_of(track("Another", "a10"))
    assert refused(quick)["track_another"].lines == 9
    assert (refused(quick)["track_real"].lines, refused(quick)["track_real"].runs) == (1, 1)  # r1 is still out


def test_a_name_that_comes_again_is_found_behind_any_number_of_new_ones(quick: Lake) -> None:
    limit(quick, table_limit=2)
    quick.sync_of(track("Old", "m0"), track("Old 2", "m1"))
    quick.sync_of(track("Real", "r1"))
    limit(quick, table_limit=3)
    junk = [track(f"Junk {n}", f"j{n}", messageId=f"j{n}") for n in range(1100)]  # more than a task looks at
    quick.sync_of(*junk, track("Real", "r2"))
    assert ids(quick, "track_real") == ["r2"]


def table(rows: int, hours: int) -> StagedTable:
    return StagedTable(rows=rows, hours=set(range(hours)))


def test_of_new_tables_those_seen_over_hours_come_first_then_those_with_most_rows() -> None:
    tables = {
        "burst": table(10**6, 1),
        "steady": table(50, HOURS_COUNTED),
        "hourly": table(70, HOURS_COUNTED - 1),
        "longer": table(60, 900),  # as good as a day
        "again": table(1, 1),
        "small": table(2, 1),
        "known": table(1, 1),
    }
    order = ["again", "longer", "steady", "hourly", "burst", "small"]
    for room in range(7):
        found = tables_within(Room(room, room), ["known"], Staged(tables=tables), {"again", "other"})
        assert found == (None if room == 6 else {"known", *order[:room]})
        found = tables_within(Room(6, room), ["known"], Staged(tables=tables), {"again", "other"})
        young = [name for name in order if name not in ("longer", "steady")]
        assert found == (None if room >= 4 else {"known", "longer", "steady", *young[:room]})


def test_an_archive_of_days_brings_its_tables_also_where_there_are_some(quick: Lake) -> None:
    quick.sync_of(track("Old", "m0"))
    limit(quick, new_tables_per_run=1)
    hours = [f"2026-11-{day}T{hour:02d}:00:00Z" for day in (13, 14) for hour in range(12)]
    archive = [track(f"E{n}", f"{n}-{hour}", receivedAt=hour) for n in range(3) for hour in hours]
    quick.sync_of(*archive, *(track("E3", f"3-{hour}", receivedAt=hour) for hour in hours[1:]), track("E4", "4"))
    assert quick.tables() == ["track_e0", "track_e1", "track_e2", "track_e3", "track_old"]


@pytest.mark.parametrize("events", [2, 1500])  # read one by one, and as columns
def test_hours_are_counted_of_new_tables(quick: Lake, events: int) -> None:
    quick.sync_of(track("Old", "m0"))
    limit(quick, new_tables_per_run=1)
    burst = [track("Burst", f"b{n}") for n in range(events)]
    hours = [track("Steady", f"s{hour}", receivedAt=f"2026-11-15T0{hour}:00:00Z") for hour in range(2)]
    quick.sync_of(*burst, *hours)
    assert quick.tables() == ["track_old", "track_steady"]


REFUSED = st.lists(
    st.builds(RefusedTable, st.sampled_from("abcdef"), st.integers(1, 9), st.integers(1, 9), st.just(5)),
    unique_by=lambda table: table.table_key,
)


@given(REFUSED, st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 5)), st.sets(st.sampled_from("abc")))
def test_what_was_refused_is_remembered_with_all_its_lines(
    before: list[RefusedTable], lines: dict[str, int], allowed: set[str]
) -> None:
    after = remembered(before, lines, 7, allowed=allowed)
    expected = Counter({t.table_key: t.lines for t in before if t.table_key not in allowed})
    assert {t.table_key: t.lines for t in after} == expected + Counter(lines)
    assert all(t.at == (7 if t.table_key in lines else 5) for t in after)
    assert after == sorted(after, key=lambda t: (-t.runs, -t.lines, t.table_key))


def test_made_up_names_do_not_push_out_a_name_that_comes_again() -> None:
    before = [RefusedTable("track_real", 1, 1, 1)]
    junk = {f"track_junk_{n}": 1000 for n in range(REMEMBERED + 10)}
    after = remembered(before, {**junk, "track_real": 1}, 2)
    assert len(after) == REMEMBERED
    assert after[0] == RefusedTable("track_real", 2, 2, 2)


def test_a_source_that_is_almost_full_says_so_before_it_is(quick: Lake) -> None:
    limit(quick, table_limit=10)
    assert "notices" not in quick.sync_of(*(track(f"E{n}", f"m{n}") for n in range(8)))[0]
    report = quick.sync_of(track("E8", "m8"))
    assert report[0]["notices"] == ["the source has 9 of at most 10 tables (table_limit)"]


# Letting in what was refused


def test_refused_events_are_let_in_by_one_command_each_of_them_once(quick: Lake) -> None:
    quick.sync_of(track("Old", "m0"), b"not an event")
    limit(quick, new_tables_per_run=1)
    quick.put(*(track("Junk", f"j{n}") for n in range(4)), track("Real", "r1"), track("Old", "m1"))
    quick.put(track("Real", "r2"), track("Real", "r1"))  # nothing of this file was loaded
    quick.sync()
    quick.sync_of(track("Real", "r3"))  # has its turn now
    assert ids(quick, "track_real") == ["r3"]
    report = allow(quick, *refused(quick))
    assert balanced(report)
    assert (report[0]["books"]["loaded"], report[0]["kind"]) == (2, "replay")
    assert ids(quick, "track_real") == ["r1", "r2", "r3"]
    assert ids(quick, "track_old") == ["m0", "m1"]
    assert refused(quick) == {}
    assert clean(quick)
    again = allow(quick, "track_real")
    assert again[0]["books"]["loaded"] == 0
    assert len(quick.query("select * from __segment_datalake.quarantine where reason = 'table_limit'")) == 3


def test_only_files_of_which_lines_were_left_out_are_read_again(quick: Lake) -> None:
    quick.sync_of(track("Old", "m0"))
    limit(quick, table_limit=1)
    quick.sync_of(track("Real", "r1"))
    quick.sync_of(track("Old", "m1"))
    limit(quick, table_limit=2)
    assert allow(quick, "track_real")[0]["files_read"] == 1
    assert ids(quick, "track_real") == ["r1"]


def test_as_many_tables_are_let_in_as_are_asked_for(quick: Lake) -> None:
    quick.sync_of(track("Old", "m0"))
    limit(quick, new_tables_per_run=1)
    quick.sync_of(*(track(f"E{n}", f"m{n}") for n in range(1, 5)))
    allow(quick, *refused(quick))
    assert len(quick.tables()) == 5


def test_where_there_is_still_no_room_nothing_changes(quick: Lake) -> None:
    limit(quick, table_limit=1)
    quick.sync_of(track("Old", "m0"), track("Old", "m1"), track("Real", "r1"))
    report = allow(quick, "track_real")
    assert "1 new table refused (table_limit): track_real;" in " ".join(report[0]["notices"])
    assert refused(quick)["track_real"].lines == 1
    limit(quick, table_limit=2)
    allow(quick, "track_real")
    assert ids(quick, "track_real") == ["r1"]
    assert clean(quick)


def test_a_replay_counts_nothing_as_refused_again(quick: Lake) -> None:
    limit(quick, table_limit=1)
    quick.sync_of(track("Old", "m0"), track("Old", "m1"), track("Real", "r1"))
    before = refused(quick)
    quick.run(jobs.replay(quick.connection, None, None))
    assert refused(quick) == before


# Dropping


def test_a_dropped_table_leaves_the_lake_and_its_events_stay_out(quick: Lake) -> None:
    raw = quick.put(track("Junk", "j1"), track("Real", "r1"), track("Junk", "j2"))
    quick.sync()
    content = raw.read_bytes()
    report = drop(quick, "track_junk")
    assert (report[0]["kind"], report[0]["dropped_rows"], report[1]["table_name"]) == ("drop", 2, "track_junk")
    assert quick.tables() == ["track_real"]
    assert all("track_junk" not in file for file in quick.data_files())
    assert raw.read_bytes() == content
    assert dropped(quick) == ["track_junk"]
    assert clean(quick)

    later = quick.sync_of(track("Junk", "j3"), track("Real", "r2"))
    assert balanced(later)
    assert (later[0]["books"]["blocked"], later[0]["books"]["loaded"]) == (1, 1)
    assert later[0]["notices"] == ["1 line of dropped tables left out; see `eventlake drop --list`"]
    for job in (jobs.replay(quick.connection, None, None), jobs.rebuild(quick.connection)):
        report = quick.run(job)
        assert balanced(report)
        assert report[0]["books"]["blocked"] == 3
        assert quick.tables() == ["track_real"]
        assert ids(quick, "track_real") == ["r1", "r2"]
        assert clean(quick)


@pytest.mark.parametrize("events", [3, 1500])  # read one by one, and as columns
def test_lines_of_dropped_tables_are_blocked_by_file(quick: Lake, events: int) -> None:
    quick.sync_of(track("Junk", "j"))
    drop(quick, "track_junk")
    raw = quick.put(*(track("Junk" if n % 3 else "Real", f"m{n}") for n in range(events)))
    report = quick.sync()
    assert balanced(report)
    assert report[0]["books"]["blocked"] == events - events // 3
    (loaded,) = (f for path, f in quick.place.ledger.raw_files("src1").items() if path.endswith(raw.name))
    assert (loaded.lines, loaded.loaded, loaded.blocked) == (events, events // 3, events - events // 3)
    assert clean(quick)


def test_a_dropped_table_comes_back_whole_when_it_is_allowed(quick: Lake, clock: SetClock) -> None:
    quick.sync_of(track("Junk", "j1"), track("Real", "r1"), track("Junk", "j1", properties={"copy": 1}))
    before = quick.rows("track_junk")
    drop(quick, "track_junk")
    clock.forward(hours=24 * 30)
    quick.sync_of(track("Junk", "j2"))
    report = allow(quick, "track_junk", were_loaded=True)
    assert balanced(report)
    assert report[0]["books"]["loaded"] == 2
    assert ids(quick, "track_junk") == ["j1", "j2"]
    assert quick.rows("track_junk")[0] == before[0]
    assert dropped(quick) == []
    assert clean(quick)
    quick.sync_of(track("Junk", "j3"), track("Junk", "j1"))
    assert ids(quick, "track_junk") == ["j1", "j2", "j3"]
    assert clean(quick)


def test_copies_are_still_found_as_long_as_before_after_a_drop(quick: Lake, clock: SetClock) -> None:
    limit(quick, lookback_days=1)
    quick.sync_of(track("Junk", "j1"), track("Real", "r1"))
    for day in range(3):  # by then the first sync is out of sight
        clock.forward(hours=24)
        quick.sync_of(track("Real", f"d{day}"))
    drop(quick, "track_junk")
    report = quick.sync_of(track("Real", "r1", n=1), track("Real", "d2", n=1))
    assert (report[0]["books"]["loaded"], report[0]["books"]["duplicates"]) == (1, 1)


def test_a_drop_makes_room_for_another_table(quick: Lake) -> None:
    limit(quick, table_limit=2)
    quick.sync_of(track("Junk", "j1"), track("Junk", "j2"), track("Old", "m1"), track("Old", "m2"), track("Real", "r1"))
    drop(quick, "track_junk")
    allow(quick, "track_real")
    assert quick.tables() == ["track_old", "track_real"]
    assert clean(quick)


def test_a_rule_is_not_lost_when_tables_get_new_names(quick: Lake) -> None:
    quick.sync_of(track("Junk", "j1"), track("Real", "r1"))
    drop(quick, "track_junk")
    rebuild = jobs.rebuild(quick.workspace.connections.preview("web", {"table_naming": "plain"}))
    with pytest.raises(InvalidSettingsError, match="1 dropped tables out"):
        quick.run(rebuild)
    assert quick.tables() == ["track_real"]
    quick.run(jobs.rebuild(quick.workspace.connections.preview("web", {"table_prefix": "shop"})))
    assert quick.tables() == ["shop_track_real"]
    allow(quick, "track_junk", were_loaded=True)
    quick.run(jobs.rebuild(quick.workspace.connections.preview("web", {"table_naming": "plain"})))
    assert quick.tables() == ["shop_junk", "shop_real"]


def test_after_writing_all_anew_only_what_is_still_refused_is_remembered(quick: Lake) -> None:
    limit(quick, table_limit=1)
    quick.sync_of(track("Old", "m0"), track("Old", "m1"), track("Real", "r1"), track("Real", "r2"), track("New", "n1"))
    quick.run(jobs.rebuild(quick.workspace.connections.preview("web", {"table_limit": "2"})))
    assert quick.tables() == ["track_old", "track_real"]
    assert {name: t.lines for name, t in refused(quick).items()} == {"track_new": 1}
    assert clean(quick)


def test_a_rule_of_one_source_is_not_one_of_another(quick: Lake) -> None:
    quick.workspace.connections.add_source("ios", source_id="src2")
    quick.sync_of(track("Junk", "j1"))
    drop(quick, "track_junk")
    quick.place.storage.write("segment-logs/src2/1794700800000/1.gz", json.dumps(track("Junk", "j1")).encode())
    quick.run(jobs.sync(quick.workspace.connections.get("ios")))
    assert quick.place.admission.dropped("src2") == []
    assert [t.database for t in quick.place.catalog.tables()] == ["ios"]
    quick.run(jobs.drop(quick.workspace.connections.get("ios"), "track_junk"))
    allow(quick, "track_junk", were_loaded=True)
    assert len(quick.place.admission.dropped("src2")) == 1


@settings(max_examples=10)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("sync"), st.lists(st.sampled_from(["A", "B", "C", "D"]), min_size=1, max_size=4)),
            st.tuples(st.just("drop"), st.sampled_from(["track_a", "track_b"])),
            st.tuples(st.just("allow"), st.sampled_from(["track_a", "track_b", "track_c", "track_d"])),
        ),
        min_size=2,
        max_size=6,
    )
)
def test_whatever_is_dropped_refused_and_let_in_all_of_it_can_be_had_in_the_end(steps: list[tuple[str, Any]]) -> None:
    with new_lake() as lake:
        limit(lake, table_limit=2)
        sent: dict[str, str] = {}
        for step, what in steps:
            if step == "sync":
                events = [(name, f"m{len(sent) + n}") for n, name in enumerate(what)]
                sent |= {message: f"track_{name.lower()}" for name, message in events}
                assert balanced(lake.sync_of(*(track(name, message) for name, message in events)))
            elif step == "drop" and what in lake.tables():
                drop(lake, what)
            elif step == "allow":
                assert balanced(allow(lake, what, were_loaded=what in dropped(lake)))
            assert clean(lake)
            assert not set(dropped(lake)) & set(lake.tables())
        limit(lake, table_limit=10)
        allow(lake, "track_a", "track_b", "track_c", "track_d", were_loaded=True)
        assert {message: row["table"] for message, row in all_rows(lake).items()} == sent
        assert sum(len(lake.rows(name)) for name in lake.tables()) == len(sent)
        assert clean(lake)
        assert (refused(lake), dropped(lake)) == ({}, [])


# Crashes


class DeadError(BaseException):
    """The process has ended: nothing more is changed."""


class Mortal(LocalStorage):
    """Storage of a process that ends before its n-th change."""

    change: Callable[[], None]

    def write(self, path: str, content: bytes) -> None:
        type(self).change()
        super().write(path, content)

    def create(self, path: str, content: bytes) -> bool:
        type(self).change()
        return super().create(path, content)

    def move(self, source: str, target: str) -> None:
        type(self).change()
        super().move(source, target)

    def delete(self, path: str) -> None:
        type(self).change()
        super().delete(path)

    def delete_folder(self, folder: str) -> None:
        type(self).change()
        super().delete_folder(folder)

    def open_output(self, path: str) -> Any:
        type(self).change()
        return super().open_output(path)

    def put(self, path: str, content: Any) -> None:
        type(self).change()
        super().put(path, content)


def opened(folder: Path, changes: int | None = None) -> Workspace:
    """A workspace, in a process that ends after so many changes of lake and database."""
    place = Workspace.open(folder)
    left = iter(range(10**9 if changes is None else changes))

    def change(*_: Any) -> None:
        if next(left, None) is None:
            raise DeadError

    kind = type("MortalOne", (Mortal,), {"change": staticmethod(change)})
    place.lake().__dict__["storage"] = kind(place.lake().storage.root)
    sa.event.listen(place.engine, "commit", change)
    return place


@pytest.mark.skipif(IN_BUCKETS or ON_POSTGRES, reason="copies the folder with lake and database")
def test_a_drop_that_dies_at_any_point_is_finished_or_undone_by_the_next_run(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "workspace", InProcess())
    lake.sync_of(track("Junk", "j1"), track("Real", "r1"))
    lake.sync_of(track("Real", "r2"))
    lake.put(track("Real", "r3"), track("Junk", "j2"))
    lake.workspace.engine.dispose()
    ends = []
    for changes in range(100):
        folder = tmp_path / str(changes)
        shutil.copytree(tmp_path / "workspace", folder)
        place = opened(folder, changes)
        try:
            run(place, jobs.drop(place.connections.get("web"), "track_junk"), InProcess())
            break
        except DeadError:
            place.engine.dispose()
        place = opened(folder)
        with place.engine.begin() as transaction:
            transaction.execute(leases.delete())  # as if the process that held the source were gone
        connection = place.connections.get("web")
        run(place, jobs.sync(connection), InProcess())
        gone = [table.table_key for table in place.lake().admission.dropped(connection.source.id)]
        ends.append(gone)
        kept = {table.name for table in place.lake().catalog.tables()}
        assert kept == ({"track_real"} if gone else {"track_junk", "track_real"}), changes
        rows = query(place.lake(), "select message_id from web.track_real order by 1").to_pylist()
        assert [row["message_id"] for row in rows] == ["r1", "r2", "r3"], changes
        assert list(place.lake().storage.folders("segment-stage")) == [], changes
        assert verify(place, connection, InProcess()) == [], changes
    assert len(ends) > 10
    assert ends == sorted(ends)  # undone up to the manifest, finished after it
    assert ends[-1:] == [["track_junk"]]
    assert [] in ends


# With Spark


def test_a_spark_drops_and_lets_in_as_well(tmp_path: Path, spark: SparkRunner, clock: SetClock) -> None:
    lake = Lake(tmp_path / "workspace", spark, clock=clock)
    limit(lake, table_limit=2)
    lake.put(*(track("Real", f"r{n}", properties={"total": n}) for n in range(2000)))
    lake.put(*(track("Junk", f"j{n}") for n in range(1500)), track("New", "n1"))
    report = lake.sync()
    assert balanced(report)
    assert report[0]["books"]["quarantined"] == 1
    drop(lake, "track_junk")
    report = allow(lake, "track_new")
    assert report[0]["books"]["blocked"] == 1500
    assert lake.tables() == ["track_new", "track_real"]
    assert clean(lake)
    limit(lake, table_limit=3)
    run(lake.workspace, jobs.allow(lake.connection, frozenset({"track_junk"}), were_loaded=True), lake.runner)
    assert len(lake.rows("track_junk")) == 1500
    assert clean(lake)
