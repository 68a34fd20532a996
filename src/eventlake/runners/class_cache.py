"""A class cache, from which a local Spark starts sooner.

Most of Spark's start is Java reading, checking and linking some ten thousand classes. Java can keep the result in a
file (class data sharing) that later starts map into memory. The cache holds for one Java and one Spark on one
machine; where anything differs, Java starts without it.
"""

import contextlib
import hashlib
import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any

from eventlake.runners.java import java_home

# A local JVM hands out tasks and collects their results. It is not worth compiling much, nor to collect in parallel.
_LIGHT = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
_QUIET = "-Xlog:cds*=off"  # else Java tells of a cache that does not fit, on standard output
_MAKING_TAKES = 300  # seconds, at most


def java_options() -> str:
    """The options for the JVM of a local Spark."""
    cache = find_class_cache()
    return f'{_LIGHT} {_QUIET} -XX:SharedArchiveFile="{cache}"' if cache else _LIGHT


def find_class_cache() -> Path | None:
    """The cache for this Java and this Spark, if it was made and is all there."""
    try:
        # Java dies of a cache that was cut short, so its size is in its name.
        found = (path for path in _folder().glob(f"{_key()}-*.jsa") if path.stem == _stem(path.stat().st_size))
        return next(found, None)
    except (OSError, RuntimeError, PackageNotFoundError):  # no home, or Spark is not installed as a package
        return None


def make_class_cache(log: Path) -> Path | None:
    """Make the cache by starting Spark once, in another process; None if this Java cannot."""
    _folder().mkdir(parents=True, exist_ok=True)
    new = _folder() / f"{_key()}.{os.getpid()}.new"
    try:
        with log.open("ab") as sink:
            subprocess.run(  # noqa: S603 - this very module
                [sys.executable, "-m", __name__, str(new), str(log)],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                timeout=_MAKING_TAKES,
                check=True,
            )
        return new.rename(_folder() / f"{_stem(new.stat().st_size)}.jsa")
    except (subprocess.SubprocessError, FileNotFoundError):
        return None
    finally:
        with contextlib.suppress(FileNotFoundError):
            new.unlink()


def _folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "eventlake"


def _stem(size: int) -> str:
    return f"{_key()}-{size}"


def _key() -> str:
    home = java_home()
    release = home / "release"
    java = f"{home} {release.read_text() if release.exists() else ''}"
    spark = f"{version('pyspark')} {distribution('pyspark').locate_file('pyspark')}"
    digest = hashlib.blake2b(f"{java} {spark}".encode(), digest_size=8).hexdigest()
    return f"spark-{version('pyspark')}-{digest}"


def _start_and_write(cache: str, log: str) -> None:
    from pyspark import SparkContext  # noqa: PLC0415 - half a second that nobody else needs here

    from eventlake.runners.spark import SparkRunner  # noqa: PLC0415 - it needs this module

    options = f'{_LIGHT} {_QUIET} -XX:ArchiveClassesAtExit="{cache}"'
    runner = SparkRunner("local[2]", {"spark.driver.extraJavaOptions": options}, Path(log))
    runner.run(_same, None, [0, 1])
    java: Any = SparkContext._gateway
    runner.close()
    java.shutdown()
    java.proc.stdin.close()
    java.proc.wait()  # it writes the cache when it ends


def _same(_: None, number: int) -> int:
    return number


if __name__ == "__main__":
    _start_and_write(*sys.argv[1:])
