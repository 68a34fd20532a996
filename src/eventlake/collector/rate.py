"""How many requests a source may send."""

import math
import time


class RateLimit:
    """A bucket per source that fills again at the rate that is allowed, and holds what may come in one second."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second  # 0 for no limit
        self._buckets: dict[str, tuple[float, float]] = {}  # source → requests left, and when that was so

    def wait(self, source_id: str) -> int:
        """Seconds to wait before a request is allowed; 0 if this one is."""
        if not self._per_second:
            return 0
        now = time.monotonic()
        size = max(1.0, self._per_second)
        left, then = self._buckets.get(source_id, (size, now))
        left = min(size, left + (now - then) * self._per_second)
        allowed = left >= 1
        self._buckets[source_id] = (left - 1 if allowed else left, now)
        return 0 if allowed else math.ceil((1 - left) / self._per_second)
