"""Servers that tests need, each started on free ports and stopped with everything it started."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from needs import not_there

SECONDS_TO_COME_UP = 60


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as sockets:
        taken = [sockets.enter_context(socket.socket()) for _ in range(count)]
        for one in taken:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in taken]


@contextlib.contextmanager
def server(
    log: Path, *words: str, environment: Mapping[str, str] | None = None, farewell: float = 15
) -> Iterator[subprocess.Popen[bytes]]:
    """A server whose output goes to a file, in a group of its own, so that all of it can be stopped."""
    with log.open("wb") as file:
        process = subprocess.Popen(
            words,
            env=environment,
            cwd=log.parent,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        for kind in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, kind)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(farewell)


def wait_for(what: str, folder: Path, processes: list[subprocess.Popen[bytes]], is_ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_TO_COME_UP
    while not is_ready():
        if any(process.poll() is not None for process in processes):
            not_there(what, f"a server ended: {logs(folder)}")
        if time.monotonic() > deadline:
            not_there(what, f"not up after {SECONDS_TO_COME_UP} seconds: {logs(folder)}")
        time.sleep(0.1)


def logs(folder: Path) -> str:
    return "\n".join(f"{log.name}: {log.read_text(errors='replace')[-1500:]}" for log in sorted(folder.glob("*.log")))


class AwsUser(NamedTuple):
    key: str
    secret: str


class S3Server(NamedTuple):
    endpoint: str


@contextlib.contextmanager
def s3_server(folder: Path, user: AwsUser) -> Iterator[S3Server]:
    """A real S3 server (SeaweedFS) with one user who may do everything."""
    program = shutil.which("weed", path=Path(sys.executable).parent)
    if not program:
        not_there("S3 server", "weed is not installed")
    master, volume, filer, s3, *grpc = free_ports(8)
    found = S3Server(f"http://127.0.0.1:{s3}")
    admin = {"name": "admin", "credentials": [{"accessKey": user.key, "secretKey": user.secret}]}
    rights = {"identities": [admin | {"actions": ["Admin", "Read", "List", "Tagging", "Write"]}]}
    (folder / "s3.json").write_text(json.dumps(rights))
    options = {
        "dir": folder,
        "ip": "127.0.0.1",
        "ip.bind": "127.0.0.1",
        "master.port": master,
        "master.port.grpc": grpc[0],
        "master.volumeSizeLimitMB": 64,
        "volume.port": volume,
        "volume.port.grpc": grpc[1],
        "volume.max": 2000,  # every bucket takes some
        "filer.port": filer,
        "filer.port.grpc": grpc[2],
        "s3.port": s3,
        "s3.port.grpc": grpc[3],
        "s3.port.iceberg": 0,  # else at a fixed port, like the next: two test runs at once would meet there
        "s3.port.lance": 0,
        "s3.config": folder / "s3.json",
    }
    words = [program, "server", "-filer", "-s3", *(f"-{name}={value}" for name, value in options.items())]
    with server(folder / "weed.log", *words, farewell=0.5) as process:
        wait_for("S3 server", folder, [process], lambda: answers(s3))
        yield found


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
