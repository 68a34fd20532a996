"""How often the way to a Connect server is tried."""

from typing import Any

from pyspark.sql.connect.client.retries import DefaultPolicy, RetryPolicyState


class _State(RetryPolicyState):
    """Gives up without a warning on the screen: whoever called tells it as an error."""

    def can_retry(self, exception: BaseException) -> bool:
        most = self.policy.max_retries
        return (most is None or self._attempt < most) and super().can_retry(exception)


class _Policy(DefaultPolicy):
    def to_state(self) -> _State:
        return _State(self)


def policy(attempts: int) -> Any:
    """Spark's own tries for more than ten minutes, in which nobody is told anything."""
    return _Policy(max_retries=attempts)
