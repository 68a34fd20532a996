"""A bucket, or a container of Azure, behind a network: a server here, and a proxy that lets requests wait."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bench.measure import beside
from servers import WELL_KNOWN, AwsUser, AzureServer, azure_server, free_ports, s3_server, wait_for  # of the tests

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
    with s3_server(folder, _USER) as server, _late(folder, server.endpoint) as endpoint, beside():
        yield endpoint


@contextmanager
def slow_account(folder: Path) -> Iterator[str]:
    """The same of a storage account of Azure's emulator."""
    folder.mkdir()
    with azure_server(folder) as server, _late(folder, server.endpoint) as endpoint, beside():
        yield endpoint


def new_container(endpoint: str) -> str:
    """A container there, as the settings file has a lake in it."""
    server, container = AzureServer(endpoint, WELL_KNOWN), f"bench-{secrets.token_hex(8)}"
    server.client.create_container(container)
    way_in = f'[azure]\nendpoint = "{endpoint}"\naccount_key = "{server.key}"\n'
    return f'[lake]\nroot = "{server.root(container)}/lake"\n{way_in}'


@contextmanager
def _late(folder: Path, endpoint: str) -> Iterator[str]:
    """The address of a proxy before a server."""
    behind, (port,) = urlsplit(endpoint), free_ports(1)
    words = [sys.executable, "-m", "bench.slow_proxy", str(port), str(behind.port), str(MILLISECONDS)]
    with subprocess.Popen(words) as proxy, ExitStack() as running:
        running.callback(proxy.kill)
        wait_for("proxy", folder, [proxy], lambda: _answers(port))
        yield f"http://127.0.0.1:{port}{behind.path}"


def _answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
