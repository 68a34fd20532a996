"""How many requests somebody may send: a source, or who asks the console."""

import math
import threading
import time

_MANY = 10_000  # buckets, until those that say nothing are dropped


class RateLimit:
    """A bucket for each that fills again at the rate that is allowed, and holds what may come in one second."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second  # 0 for no limit
        self._buckets: dict[str, tuple[float, float]] = {}  # who → requests left, and when that was so
        self._most = _MANY
        self._lock = threading.Lock()

    def wait(self, who: str) -> int:
        """Seconds to wait before a request is allowed; 0 if this one is."""
        if not self._per_second:
            return 0
        now = time.monotonic()
        with self._lock:
            left = self._left(self._buckets.get(who), now)
            allowed = left >= 1
            self._buckets[who] = (left - 1 if allowed else left, now)
            if len(self._buckets) > self._most:
                self._drop_full(now)
        return 0 if allowed else math.ceil((1 - left) / self._per_second)

    def _left(self, bucket: tuple[float, float] | None, now: float) -> float:
        size = max(1.0, self._per_second)
        return min(size, bucket[0] + (now - bucket[1]) * self._per_second) if bucket else size

    def _drop_full(self, now: float) -> None:
        """Forget who did not ask for a while: a bucket that is full is like none."""
        size = max(1.0, self._per_second)
        self._buckets = {who: one for who, one in self._buckets.items() if self._left(one, now) < size}
        self._most = max(_MANY, 2 * len(self._buckets))
