"""Which tables a stage task may fill, and how what it leaves out is counted."""

from pathlib import Path

import pytest

from eventlake.archive.whole import WholeArchive
from eventlake.lake.segment import SegmentDialect
from eventlake.storage.local import LocalStorage
from eventlake.tasks.gate import NAMES_COUNTED, DroppedError, Gate, RefusedError
from eventlake.tasks.staged import StageContext


@pytest.fixture
def context(tmp_path: Path) -> StageContext:
    return StageContext(
        folder="segment-stage/1",
        storage=LocalStorage(str(tmp_path)),
        archive=WholeArchive(LocalStorage(str(tmp_path))),
        dialect=SegmentDialect("src1", "web"),
        known_columns={"page": frozenset(), "track_dropped": frozenset()},
        column_limit=100,
        table_limit=2,
        preferred_tables=frozenset({"track_again"}),
        dropped_tables=frozenset({"track_dropped"}),
    )


def admits(gate: Gate, name: str) -> bool:
    try:
        return gate.opened((name,)) == (name,)
    except (DroppedError, RefusedError):
        return False


def with_only(context: StageContext, *tables: str) -> StageContext:
    return StageContext(**{**context.__dict__, "only_tables": frozenset(tables)})


def test_new_tables_are_admitted_while_there_is_room_and_names_that_come_again_also_after(
    context: StageContext,
) -> None:
    gate = Gate(context)
    asked = ["page", "track_dropped", "track_1", "track_2", "track_3", "page", "track_again", "track_dropped"]
    assert [admits(gate, name) for name in asked] == [True, False, True, True, False, True, True, False]


def test_once_it_is_decided_which_tables_may_be_no_others_are_admitted(context: StageContext) -> None:
    gate = Gate(with_only(context, "track_1", "track_2", "track_3", "track_dropped"))
    asked = ["track_1", "track_2", "track_3", "track_4", "track_again", "track_dropped", "page"]
    assert [admits(gate, name) for name in asked] == [True, True, True, False, False, False, True]


def test_lines_of_refused_tables_are_counted_by_name(context: StageContext) -> None:
    gate = Gate(context)
    for name in ("track_1", "track_1", "track_2"):
        gate.count(RefusedError(name))
    assert gate.refused == {"track_1": 2, "track_2": 1}


def test_only_so_many_names_are_counted_each_with_all_its_lines(context: StageContext) -> None:
    gate = Gate(context)
    for name in range(NAMES_COUNTED + 5):
        gate.count(RefusedError(f"track_{name}"))
    gate.count(RefusedError("track_0"))
    assert len(gate.refused) == NAMES_COUNTED
    assert gate.refused["track_0"] == 2
    assert f"track_{NAMES_COUNTED}" not in gate.refused


def test_a_message_goes_to_the_tables_that_were_not_dropped_and_to_none_if_there_is_no_room_in_one(
    context: StageContext,
) -> None:
    gate = Gate(with_only(context, "track_1"))
    assert gate.opened(("page", "track_1")) == ("page", "track_1")
    assert gate.opened(("page", "track_dropped")) == ("page",)
    with pytest.raises(DroppedError):
        gate.opened(("track_dropped",))
    with pytest.raises(RefusedError) as refused:
        gate.opened(("page", "track_2", "track_dropped"))
    assert refused.value.table_key == "track_2"
