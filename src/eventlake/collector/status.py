"""How the collector is, as `/health` and `/metrics` tell it: of all its processes, by any of them."""

from collections.abc import Mapping

from eventlake.clock import Clock
from eventlake.collector import condition, metrics
from eventlake.collector.backlog import Backlog
from eventlake.collector.counters import Counters
from eventlake.collector.options import Spool


class Status:
    def __init__(self, spool: Spool, counters: Counters, clock: Clock) -> None:
        self._spool = spool
        self._counters = counters
        self._clock = clock
        self._backlog = Backlog(spool.logs)

    def problems(self) -> list[str]:
        """What somebody should look at, although events are taken."""
        return condition.problems(self._spool)

    def metrics(self, slugs: Mapping[str, str]) -> str:
        """All metrics, for Prometheus. Reads what was added to the logs since the last time. Raises OSError."""
        return metrics.exposition(
            self._counters.sums(),
            self._backlog.look(),
            condition.damaged_files(self._spool),
            is_archiving=condition.load(self._spool).archive_problem is None,
            now=self._clock.now(),
            slugs=slugs,
        )
