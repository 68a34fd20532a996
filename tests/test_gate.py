"""Which tables a stage task may fill, and how what it leaves out is counted."""

from pathlib import Path

import pytest

from eventlake.lake.layout import LakeRules
from eventlake.storage.local import LocalStorage
from eventlake.sync.gate import NAMES_COUNTED, Gate
from eventlake.sync.staged import StageContext


@pytest.fixture
def context(tmp_path: Path) -> StageContext:
    return StageContext(
        run_id="1",
        storage=LocalStorage(str(tmp_path)),
        archive=LocalStorage(str(tmp_path)),
        rules=LakeRules("src1", "web"),
        known_columns={"page": (), "track_dropped": ()},
        column_limit=100,
        table_limit=2,
        preferred_tables=frozenset({"track_again"}),
        dropped_tables=frozenset({"track_dropped"}),
    )


def with_only(context: StageContext, *tables: str) -> StageContext:
    return StageContext(**{**context.__dict__, "only_tables": frozenset(tables)})


def test_new_tables_are_admitted_while_there_is_room_and_names_that_come_again_also_after(
    context: StageContext,
) -> None:
    gate = Gate(context)
    asked = ["page", "track_dropped", "track_1", "track_2", "track_3", "page", "track_again", "track_dropped"]
    assert [gate.admits(name) for name in asked] == [True, False, True, True, False, True, True, False]


def test_once_it_is_decided_which_tables_may_be_no_others_are_admitted(context: StageContext) -> None:
    gate = Gate(with_only(context, "track_1", "track_2", "track_3", "track_dropped"))
    asked = ["track_1", "track_2", "track_3", "track_4", "track_again", "track_dropped", "page"]
    assert [gate.admits(name) for name in asked] == [True, True, True, False, False, False, True]


def test_lines_of_refused_tables_are_counted_by_name_and_those_of_dropped_ones_are_not(context: StageContext) -> None:
    gate = Gate(context)
    assert [gate.was_dropped(name) for name in ("track_1", "track_dropped", "track_1", "track_2")] == [
        False,
        True,
        False,
        False,
    ]
    assert gate.refused == {"track_1": 2, "track_2": 1}


def test_only_so_many_names_are_counted_each_with_all_its_lines(context: StageContext) -> None:
    gate = Gate(context)
    for name in range(NAMES_COUNTED + 5):
        gate.was_dropped(f"track_{name}")
    gate.was_dropped("track_0")
    assert len(gate.refused) == NAMES_COUNTED
    assert gate.refused["track_0"] == 2
    assert f"track_{NAMES_COUNTED}" not in gate.refused
