"""Where the tasks of a run are carried out, and who is told how far they are."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")
Context = TypeVar("Context")

Progress = Callable[[str, int, int], None]
"""Called with the step, the number of its tasks that are done, and how many there are."""


def no_progress(step: str, done: int, tasks: int) -> None:
    """Nobody watches."""


class Runner(Protocol):
    """Where tasks are carried out."""

    @property
    def parallelism(self) -> int: ...

    @property
    def where(self) -> Mapping[str, str]:
        """What reports tell of where it runs; there may be more as soon as it runs."""

    def run(
        self,
        function: Callable[[Context, Task], Result],
        context: Context,
        tasks: Sequence[Task],
        progress: Callable[[int], None] | None = None,
    ) -> list[Result]:
        """Call the function for every task, anywhere, perhaps more than once; results in the order of the tasks."""
