"""The six calls, as both SDKs for Python take them."""

from datetime import UTC, datetime
from typing import Any


def send(client: Any) -> None:
    client.identify("u1", {"email": "a@b.c", "age": 3}, timestamp=datetime(2026, 11, 1, 12, 30, tzinfo=UTC))
    client.track("u1", "Checkout Completed", {"Total Price": 12.5, "items": [{"sku": "a"}], "nested": {"a": {"b": 1}}})
    client.page("u1", "Docs", "Home", {"url": "http://x"})
    client.screen("u1", "Main", "Start", {"build": 7})
    client.group("u1", "g1", {"plan": "team"})
    client.alias("u0", "u1")
