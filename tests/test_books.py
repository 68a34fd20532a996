"""A run whose books do not balance fails loudly and publishes nothing."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from conftest import InProcess, Lake, track
from eventlake.errors import InternalError
from eventlake.sync.staged import StageResult


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
    result.tables["track_a"].segments.pop()


def lose_a_row(published: Any) -> None:
    published[0].rows -= 1


def forget_a_duplicate(result: Any) -> None:
    result.files[0] = result.files[0]._replace(duplicates=0)


@pytest.mark.parametrize(
    ("step", "change"),
    [("stage", lose_a_line), ("stage", lose_a_segment), ("publish", lose_a_row), ("dedupe", forget_a_duplicate)],
)
def test_nothing_is_published_when_something_is_missing(
    tmp_path: Path, step: str, change: Callable[[Any], None]
) -> None:
    lake = Lake(tmp_path / "workspace", Dishonest(step, change))
    lake.put(track("A", "m1"), track("A", "m1"), track("B", "m2"))
    with pytest.raises(InternalError, match="do not balance"):
        lake.sync()
    assert lake.data_files() == []
    assert lake.tables() == []
    assert lake.workspace.ledger.raw_files("src1") == {}
    failed = lake.workspace.runs.get(None)
    assert failed.outcome == "Failed"
    assert failed.report
    assert failed.report[0]["error_code"] == "internal_error"

    lake.runner = InProcess()
    assert lake.sync()[0]["books"]["loaded"] == 2
