"""The time, for all parts of a workspace."""

import time


class Clock:
    """The time; tests bring their own."""

    def now_ns(self) -> int:
        return time.time_ns()

    def now(self) -> int:
        """Microseconds since 1970."""
        return self.now_ns() // 1000
