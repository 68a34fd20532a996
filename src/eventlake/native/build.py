"""Building the part that is written in C, for every system that it is known to run on.

The compiler comes from a wheel (ziglang), so that no machine needs one of its own. It builds for all systems anywhere,
and what it builds is linked to no library: a package that was built here runs on all of them, and on the nodes of a
cluster. `hatch_build.py` calls this before anything is installed, so it imports nothing of ours.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent
TARGETS = {  # by system and machine, as Python calls them
    ("linux", "x86_64"): "x86_64-linux-none",
    ("linux", "aarch64"): "aarch64-linux-none",
    ("darwin", "x86_64"): "x86_64-macos",
    ("darwin", "arm64"): "aarch64-macos",
}
FLAGS = [
    *("-std=c11", "-O2", "-g0", "-fPIC", "-shared", "-fvisibility=hidden", "-ffreestanding", "-nostdlib"),
    *("-Wall", "-Wextra", "-Wconversion", "-Wno-sign-conversion", "-Werror"),
]


def library_path(system: str, machine: str) -> Path:
    """Where the library for a system is."""
    return FOLDER / f"lines-{system.lower()}-{machine.lower()}.so"


def source_digest(folder: Path = FOLDER) -> int:
    """A number that tells one version of the source from another."""
    digest = hashlib.blake2b(digest_size=8)
    for file in sorted([*folder.glob("*.c"), *folder.glob("*.h")]):
        digest.update(f"{file.name}\0".encode() + file.read_bytes())
    return int.from_bytes(digest.digest(), "big")


def build_all() -> list[Path]:
    """Build the libraries for all systems; returns their paths."""
    paths = {target: library_path(*system) for system, target in TARGETS.items()}
    for target, path in paths.items():
        build(target, path)
    return list(paths.values())


def build(target: str, path: Path, *more_flags: str, folder: Path = FOLDER) -> None:
    """Build the library for one target from the source in a folder."""
    flags = [*FLAGS, f"-DSOURCE={source_digest(folder)}u", *more_flags]
    if target.endswith("macos"):
        flags.append("-Wl,-undefined,dynamic_lookup")
    sources = sorted(map(str, folder.glob("*.c")))
    with tempfile.TemporaryDirectory() as cache:
        subprocess.run(  # noqa: S603 - our own words
            [sys.executable, "-m", "ziglang", "cc", "-target", target, *flags, *sources, "-o", str(path)],
            check=True,
            env={**os.environ, "ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache},
        )
