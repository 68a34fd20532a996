"""The same with RudderStack's SDK for Python."""

import sys

import rudderstack.analytics as client
import six_calls


def main() -> None:
    host, key, encoding = sys.argv[1:]
    errors: list[object] = []
    client.write_key = key
    client.dataPlaneUrl = host
    client.gzip = encoding == "gzip"
    client.on_error = lambda error, _: errors.append(error)
    six_calls.send(client)
    client.shutdown()
    sys.exit(f"{errors}" if errors else 0)


if __name__ == "__main__":
    main()
