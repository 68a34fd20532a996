"""Sends all six calls with Segment's SDK for Python: segment_python.py HOST KEY plain|gzip."""

import sys
from datetime import UTC, datetime

from segment.analytics import Client


def main() -> None:
    host, key, encoding = sys.argv[1:]
    errors: list[object] = []
    client = Client(key, host=host, gzip=encoding == "gzip", on_error=lambda error, _: errors.append(error))
    when = datetime(2026, 11, 1, 12, 30, tzinfo=UTC)
    client.identify("u1", {"email": "a@b.c", "age": 3}, timestamp=when)
    client.track("u1", "Checkout Completed", {"Total Price": 12.5, "items": [{"sku": "a"}], "nested": {"a": {"b": 1}}})
    client.page("u1", "Docs", "Home", {"url": "http://x"})
    client.screen("u1", "Main", "Start", {"build": 7})
    client.group("u1", "g1", {"plan": "team"})
    client.alias("u0", "u1")
    client.flush()
    client.join()
    sys.exit(f"{errors}" if errors else 0)


if __name__ == "__main__":
    main()
