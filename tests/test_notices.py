"""Notices of a report: each is told when there is reason to, in words that lead on, and not otherwise."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import InProcess, Lake
from eventlake.control.connections import Connection
from eventlake.control.ledger import IndexFile
from eventlake.lake.parquet import DataFile
from eventlake.sync import jobs
from eventlake.sync.books import Accounts, Books
from eventlake.sync.dedupe import Kept
from eventlake.sync.discover import Found
from eventlake.sync.index import Reindexed
from eventlake.sync.jobs import Job
from eventlake.sync.notices import notices_of
from eventlake.sync.outcome import Outcome
from eventlake.sync.plan import TablePlan
from eventlake.sync.stage import Staged
from eventlake.tasks.id_files import NewIds
from eventlake.tasks.publish import Published
from eventlake.tasks.staged import FileCount, RawFile

FILE = RawFile(0, "raw/0.gz", 1, "e")
WRITTEN = [DataFile("page", ("2026-11-15", "10"), "data/0", "stage/0", 1, 1, "d", 5, 6)]
LOST = IndexFile("index/a", "1", 4, "f", 3)


@pytest.fixture
def connection(tmp_path: Path) -> Connection:
    return Lake(tmp_path / "workspace", InProcess()).connection


def told(job: Job, tables: int = 1, **changes: Any) -> list[str]:
    """The notices of a run on which nothing is odd but what is given."""
    outcome = Outcome(
        found=Found([FILE], [], gone=changes.pop("gone", 0)),
        staged=changes.pop("staged", Staged()),
        kept=changes.pop("kept", Kept()),
        plans=changes.pop("plans", []),
        published=changes.pop("published", []),
        accounts=Accounts({FILE: Books(**changes.pop("books", {}))}, {}, {}),
        replaced=[],
    )
    if changes.pop("no_files", False):
        outcome = outcome._replace(found=replace(outcome.found, files=[]))
    assert not changes
    return notices_of(job, outcome, tables)


def unread(files: int) -> Staged:
    return Staged(files=[FileCount(RawFile(n, f"{n}.gz", 1, "e"), error="broken") for n in range(files)])


def rescued(values: int) -> list[Published]:
    return [Published("page", [], rescued=Counter(a=values - 1, b=1))]


def refusing(*columns: str) -> list[TablePlan]:
    return [TablePlan("page", False, (), (), columns)]


def again(messages: int, *replaced: IndexFile) -> Kept:
    return Kept(reindexed=Reindexed((NewIds("stage/0", messages, 0),), replaced))


def no_room(**tables: int) -> Staged:
    return Staged(refused_tables=Counter(tables))


CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nothing odd": ({}, []),
    "no data": ({"no_files": True}, ["No data found"]),
    "only rows of the lake": ({"no_files": True, "kept": Kept(carried_routes={("page",): 1})}, []),
    "an unread file": ({"staged": unread(1)}, ["1 raw file could not be read; the next sync tries again"]),
    "unread files": ({"staged": unread(2)}, ["2 raw files could not be read; the next sync tries again"]),
    "a line that is no event": (
        {"books": {"quarantined": 1}},
        ["1 line is not an event; see __segment_datalake.quarantine"],
    ),
    "lines that are no events": (
        {"books": {"quarantined": 5}, "staged": no_room(track_a=2, track_b=1)},
        [
            "2 lines are not events; see __segment_datalake.quarantine",
            "2 new tables refused (new_tables_per_run): track_a, track_b; "
            "`eventlake allow web --refused` loads 3 lines from quarantine",
        ],
    ),
    "a rescued value": ({"published": rescued(1)}, ["1 value did not fit its column; see _rescued_data"]),
    "rescued values": ({"published": rescued(3)}, ["3 values did not fit their columns; see _rescued_data"]),
    "a dropped table": (
        {"staged": Staged(blocked_by=Counter({"dropped table": 1, "not selected": 5}))},
        ["1 line of dropped tables left out; see `eventlake drop --list`"],
    ),
    "no room at all": (
        {"books": {"quarantined": 1}, "staged": no_room(track_a=1), "tables": 5},
        [
            "1 new table refused (table_limit): track_a; `eventlake allow web --refused` loads 1 line from quarantine",
            "the source has 5 of at most 5 tables (table_limit)",
        ],
    ),
    "five refused tables": (
        {"staged": no_room(b=1, a=1, c=9, e=2, d=2)},
        [
            "5 new tables refused (new_tables_per_run): c, d, e, a, b; "
            "`eventlake allow web --refused` loads 15 lines from quarantine"
        ],
    ),
    "more of them": (
        {"staged": no_room(b=1, a=1, c=9, e=2, d=2, f=1)},
        [
            "6 new tables refused (new_tables_per_run): c, d, e, a, b, …; "
            "`eventlake allow web --refused` loads 16 lines from quarantine"
        ],
    ),
    "a refused column": (
        {"plans": refusing("a")},
        ["1 new column was refused (column_limit); what it would hold is in _rescued_data"],
    ),
    "refused columns": (
        {"plans": refusing("a", "b")},
        ["2 new columns were refused (column_limit); what they would hold is in _rescued_data"],
    ),
    "a lost file of the index": (
        {"kept": again(1, LOST)},
        ["a part of the index was lost or damaged, and made anew from the data files: 1 message"],
    ),
    "a lost index and no data": (
        {"no_files": True, "kept": again(4, LOST, LOST)},
        ["a part of the index was lost or damaged, and made anew from the data files: 4 messages"],
    ),
    "a raw file that is gone": (
        {"gone": 1, "kept": Kept(carried_routes={("page",): 1})},
        ["1 raw file is gone from the archive; 1 row carried over from the lake"],
    ),
    "raw files that are gone": (
        {"gone": 2, "kept": Kept(carried_routes={("page",): 3, ("group",): 2})},
        ["2 raw files are gone from the archive; 5 rows carried over from the lake"],
    ),
    "nodes that no library was built for": (
        {"staged": Staged(one_by_one={"Plan9 mips", "AIX ppc64"})},
        [
            "there is no fast reader for AIX ppc64 and Plan9 mips, so lines were read one by one, "
            "which takes ten times as long"
        ],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_people_would_not_expect_is_told(connection: Connection, case: str) -> None:
    changes, expected = CASES[case]
    settings = connection.settings.model_copy(update={"table_limit": 5})
    assert told(jobs.sync(connection._replace(settings=settings)), **changes) == expected


@pytest.mark.parametrize(("tables", "is_told"), [(8, False), (9, True), (10, True)])
def test_a_source_tells_when_nine_tenths_of_its_tables_are_there(
    connection: Connection, tables: int, is_told: bool
) -> None:
    job = jobs.sync(connection._replace(settings=connection.settings.model_copy(update={"table_limit": 10})))
    assert told(job, tables) == ([f"the source has {tables} of at most 10 tables (table_limit)"] if is_told else [])


def test_a_replay_tells_of_refused_tables_that_it_was_asked_for(connection: Connection) -> None:
    for wanted, names in ((None, "track_a, track_b"), (frozenset({"track_b"}), "track_b")):
        job = jobs.replay(connection, None, None, wanted)
        (notice,) = told(job, staged=no_room(track_a=1, track_b=1))
        assert f"refused (new_tables_per_run): {names};" in notice


def test_a_rebuild_makes_the_whole_index_anew_and_tells_of_none_that_was_lost(connection: Connection) -> None:
    assert told(jobs.rebuild(connection), kept=again(4, LOST)) == []


def text(columns: int) -> list[TablePlan]:
    reasons = {f"c{n}": f"text because of {n}" for n in range(columns)}
    return [
        TablePlan("page", True, (), (), (), {"whole": "integer, as declared", **reasons}),
        TablePlan("track_copy", True, (), (), (), {"a": "text because of 1"}),
        TablePlan("track_none", True, (), (), (), {"a": "text because of 1"}),
    ]


@pytest.mark.parametrize(("columns", "more"), [(0, None), (10, None), (11, "1 more column"), (13, "3 more columns")])
def test_columns_that_became_text_are_named_the_rest_is_counted(
    connection: Connection, columns: int, more: str | None
) -> None:
    prefixed = connection._replace(settings=connection.settings.model_copy(update={"table_prefix": "x"}))
    published = [Published("page", WRITTEN), Published("track_copy", [])]
    notices = told(jobs.sync(prefixed), plans=text(columns), published=published)
    assert notices[:10] == [f"x_page.c{n} is text because of {n}" for n in range(min(columns, 10))]
    rest = f"{more} became text because of a few values; see `eventlake describe`"
    assert notices[10:] == ([rest] if more else [])
