"""Sends all six calls with Segment's SDK for Python: segment_python.py HOST KEY plain|gzip."""

import sys

import six_calls
from segment.analytics import Client


def main() -> None:
    host, key, encoding = sys.argv[1:]
    errors: list[object] = []
    client = Client(key, host=host, gzip=encoding == "gzip", on_error=lambda error, _: errors.append(error))
    six_calls.send(client)
    client.flush()
    client.join()
    sys.exit(f"{errors}" if errors else 0)


if __name__ == "__main__":
    main()
