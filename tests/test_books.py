"""A run whose books do not balance fails loudly and publishes nothing."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from conftest import InProcess, Lake, track
from counted import counts, told
from eventlake.errors import InternalError
from eventlake.lake.segments import packed
from eventlake.sync.books import Books, close, total
from eventlake.sync.dedupe import Kept
from eventlake.sync.stage import Staged
from eventlake.tasks.counts import Count
from eventlake.tasks.id_files import NewIds
from eventlake.tasks.publish import Published
from eventlake.tasks.staged import FileCount, RawFile, StageResult
from unpacked_segments import segments_by_table


class Dishonest(InProcess):
    """A runner whose results are changed on the way back, as a bug or a broken machine would."""

    def __init__(self, step: str, change: Callable[[Any], None]) -> None:
        self._step = step
        self._change = change

    def run(
        self,
        function: Callable[[Any, Any], Any],
        context: Any,
        tasks: Sequence[Any],
        progress: Callable[[int], None] | None = None,
    ) -> list[Any]:
        results = super().run(function, context, tasks, progress)
        if function.__name__ == self._step:
            for result in results:
                self._change(result)
        return results


def lose_a_line(result: StageResult) -> None:
    result.files[0].lines += 1


def lose_a_segment(result: StageResult) -> None:
    """One of two that track_a has."""
    tables = segments_by_table(result.tables)
    if "track_b" in tables:
        del tables["track_a"], result.news["track_a"]
        result.tables = packed(tables)


def lose_a_row(published: Any) -> None:
    published[0].rows -= 1


def forget_a_duplicate(result: Any) -> None:
    files = told(result.files)
    result.files = counts({**files, 0: files[0]._replace(duplicates=0)})


def move_a_row_to_another_file(result: Any) -> None:
    """Every file and every table adds up by itself."""
    files = told(result.files)
    result.files = counts({**files, 0: files[0]._replace(loaded=1, duplicates=2)})


def take_one_table_for_another(result: Any) -> None:
    """Files add up, and so do tables and what was written; only together they do not."""
    routes = told(result.routes)
    first, second = routes
    result.routes = counts({**routes, second: routes[second]._replace(checksum=routes[second].checksum + 1)})
    assert first != second


def forget_to_index(result: Any) -> None:
    result.new_ids = None


def index_fewer(result: Any) -> None:
    result.new_ids = result.new_ids._replace(messages=1)


def index_others(result: Any) -> None:
    result.new_ids = result.new_ids._replace(checksum=result.new_ids.checksum + 1)


@pytest.mark.parametrize(
    ("step", "change"),
    [
        ("stage", lose_a_line),
        ("publish", lose_a_row),
        ("dedupe", forget_a_duplicate),
        ("dedupe", move_a_row_to_another_file),
        ("dedupe", take_one_table_for_another),
        ("dedupe", forget_to_index),
        ("dedupe", index_fewer),
        ("dedupe", index_others),
    ],
)
def test_nothing_is_published_when_something_is_missing(
    tmp_path: Path, step: str, change: Callable[[Any], None]
) -> None:
    lake = Lake(tmp_path / "workspace", Dishonest(step, change))
    lake.put(track("A", "m1"), track("A", "m1"), track("B", "m2"))
    refused(lake, loaded=2)


def test_nothing_is_published_when_a_piece_of_a_table_is_missing(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "workspace", Dishonest("stage", lose_a_segment))
    lake.put(track("A", "m1"), track("B", "m2"))
    lake.put(track("A", "m3"))
    refused(lake, loaded=3)


def lose_the_discards(published: list[Published]) -> None:
    for part in published:
        part.discards = []


def lose_one_of_two_discards(published: list[Published]) -> None:
    for part in published:
        part.discards = [file._replace(rows=file.rows - 1) for file in part.discards]


@pytest.mark.parametrize("change", [lose_the_discards, lose_one_of_two_discards])
def test_nothing_is_published_when_a_value_that_was_changed_has_no_row_among_the_discards(
    tmp_path: Path, change: Callable[[Any], None]
) -> None:
    settings = '[lake]\nroot = "lake"\ndialect = "rudderstack"\n'
    lake = Lake(tmp_path / "workspace", InProcess(), settings=settings)
    lake.sync_of(track("A", "m1", properties={"price": 1}))
    lake.put(track("A", "m2", properties={"price": 1.5}), track("A", "m3", properties={"price": 2.5}))
    lake.runner = Dishonest("publish", change)
    with pytest.raises(InternalError, match=r"2 values rescued, but [01] discards written"):
        lake.sync()
    lake.runner = InProcess()
    assert lake.sync()[0]["books"]["loaded"] == 2
    assert len(lake.rows_of_discards()) == 2


def refused(lake: Lake, loaded: int) -> None:
    with pytest.raises(InternalError, match="do not balance"):
        lake.sync()
    assert lake.data_files() == []
    assert lake.tables() == []
    assert lake.place.ledger.raw_files("src1") == {}
    failed = lake.place.runs.get(None)
    assert failed.outcome == "Failed"
    assert failed.report
    assert failed.report[0]["error_code"] == "internal_error"

    lake.runner = InProcess()
    assert lake.sync()[0]["books"]["loaded"] == loaded


# The rules, on small books


def raw(number: int) -> RawFile:
    return RawFile(number, f"{number}.gz", 1, "e")


def staged() -> Staged:
    """Three files that were read, one of them without an event, and one that could not be read to its end."""
    return Staged(
        files=[
            FileCount(raw(0), lines=12, staged=9, quarantined=2, blocked=1),
            FileCount(raw(1), lines=5, staged=5),
            FileCount(raw(2), lines=4, quarantined=1, blocked=3),
            FileCount(raw(3), lines=7, staged=7, error="broken"),
        ]
    )


def kept() -> Kept:
    """Of the duplicates some are rows that are written again; one table is only carried over, one has only copies."""
    return Kept(
        files={0: Count(loaded=6, duplicates=3, checksum=70), 1: Count(loaded=1, duplicates=4, checksum=7)},
        routes={
            ("page",): Count(loaded=5, duplicates=3, rewritten=2, checksum=60),
            ("track_a",): Count(loaded=2, duplicates=3, checksum=17),
            ("track_b",): Count(duplicates=1),
        },
        carried_routes={("page",): 4, ("group",): 8},
        new_ids=[NewIds("ids-0", 3, 37), NewIds("ids-1", 4, 40)],
    )


def published() -> list[Published]:
    return [
        Published("page", [], rows=10),
        Published("track_a", [], rows=2),
        Published("page", [], rows=1),
        Published("group", [], rows=8),
    ]


def problem(of_files: Staged, of_rows: Kept, written: list[Published]) -> str:
    with pytest.raises(InternalError, match=r"^the books of this run do not balance, so nothing was published: ") as it:
        close(of_files, of_rows, written)
    assert it.value.fix == "run it again; if it happens twice, report it with this message"
    return it.value.problem.partition("published: ")[2]


def test_every_line_is_in_the_books_of_its_file_and_those_of_an_unread_file_in_none() -> None:
    accounts = close(staged(), kept(), published())
    assert accounts.files == {
        raw(0): Books(lines=12, loaded=6, duplicates=3, blocked=1, quarantined=2, checksum=70),
        raw(1): Books(lines=5, loaded=1, duplicates=4, checksum=7),
        raw(2): Books(lines=4, blocked=3, quarantined=1),
    }
    assert accounts.written == {"page": 11, "track_a": 2, "group": 8}
    assert accounts.whole == Books(lines=21, loaded=7, duplicates=7, blocked=4, quarantined=3, checksum=77)
    assert accounts.whole.as_report() == {
        "lines": 21,
        "loaded": 7,
        "duplicates": 7,
        "suppressed": 0,
        "blocked": 4,
        "quarantined": 3,
        "checksum": f"{77:032x}",
    }


def test_books_balance_if_and_only_if_each_line_is_counted_once() -> None:
    assert Books(lines=31, loaded=1, duplicates=2, suppressed=4, blocked=8, quarantined=16).balance
    for lines in (30, 32):
        assert not Books(lines=lines, loaded=1, duplicates=2, suppressed=4, blocked=8, quarantined=16).balance
    assert total([Books(1, 2, 3, 4, 5, 6, 7)] * 3) == Books(3, 6, 9, 12, 15, 18, 21)


@pytest.mark.parametrize(
    ("name", "rows", "told"),
    [
        ("page", 1, "table page: 12 rows written, 11 expected"),
        ("track_b", 1, "table track_b: 1 rows written, 0 expected"),
        ("track_new", 3, "table track_new: 3 rows written, 0 expected"),
    ],
)
def test_a_table_with_more_rows_than_expected_is_named(name: str, rows: int, told: str) -> None:
    assert problem(staged(), kept(), [*published(), Published(name, [], rows=rows)]) == told


@pytest.mark.parametrize(("name", "rows"), [("track_a", 2), ("group", 8)], ids=["new rows", "carried over"])
def test_a_table_of_which_nothing_was_written_is_named(name: str, rows: int) -> None:
    written = [part for part in published() if part.table_key != name]
    assert problem(staged(), kept(), written) == f"table {name}: 0 rows written, {rows} expected"


def test_an_index_that_got_too_few_is_told_with_both_numbers() -> None:
    fewer = kept()
    fewer.new_ids.pop()
    assert problem(staged(), fewer, published()) == "7 messages loaded, but the index got 3, or others"


def test_of_many_faults_the_first_five_are_told() -> None:
    faults = problem(staged(), kept(), [*published(), *(Published(f"track_{n}", [], rows=1) for n in range(9))])
    assert faults.split("; ") == [f"table track_{n}: 1 rows written, 0 expected" for n in range(5)]
