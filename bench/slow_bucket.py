"""A bucket behind a network: an S3 server on this machine, and a proxy that lets every request wait."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bench.measure import beside
from servers import AwsUser, free_ports, s3_server, wait_for  # of the tests

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MILLISECONDS = 5.0
_USER = AwsUser("bench", "not-a-secret")


@contextmanager
def slow_bucket(folder: Path) -> Iterator[str]:
    """The endpoint of a server that makes buckets when they are first written to; its CPU time is not counted."""
    folder.mkdir()
    os.environ.update(AWS_ACCESS_KEY_ID=_USER.key, AWS_SECRET_ACCESS_KEY=_USER.secret, AWS_DEFAULT_REGION="us-east-1")
    with ExitStack() as running:
        behind = urlsplit(running.enter_context(s3_server(folder, _USER)).endpoint).port
        (port,) = free_ports(1)
        words = [sys.executable, "-m", "bench.slow_proxy", str(port), str(behind), str(MILLISECONDS)]
        proxy = running.enter_context(subprocess.Popen(words))
        running.callback(proxy.kill)
        wait_for("proxy", folder, [proxy], lambda: _answers(port))
        with beside():
            yield f"http://127.0.0.1:{port}"


def _answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
