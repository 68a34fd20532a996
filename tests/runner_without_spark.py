"""A runner without Spark, for laws that need hundreds of syncs."""

from collections.abc import Callable, Sequence
from typing import Any


class InProcess:
    parallelism = 2

    def run(
        self,
        function: Callable[[Any, Any], Any],
        context: Any,
        tasks: Sequence[Any],
        progress: Callable[[int], None] | None = None,
    ) -> list[Any]:
        return [function(context, task) for task in tasks]
