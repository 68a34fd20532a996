"""A runner without Spark, for laws that need hundreds of syncs."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any


class InProcess:
    parallelism = 2

    @property
    def where(self) -> Mapping[str, str]:
        return {}

    def run(
        self,
        function: Callable[[Any, Any], Any],
        context: Any,
        tasks: Sequence[Any],
        progress: Callable[[int], None] | None = None,
    ) -> list[Any]:
        return [function(context, task) for task in tasks]


class Slow(InProcess):
    """Whose tasks wait until they are let go, and meanwhile tell how far they are, so that they can be stopped."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.done = 0  # tasks, as it tells

    def run(
        self,
        function: Callable[[Any, Any], Any],
        context: Any,
        tasks: Sequence[Any],
        progress: Callable[[int], None] | None = None,
    ) -> list[Any]:
        self.begun.set()
        while not self.go_on.wait(0.02):
            if progress:
                progress(self.done)
        return super().run(function, context, tasks)
