"""The script that a cluster starts: looks whether the package is the one that was submitted, then runs its driver.

    spark-submit … entry.py <digest of the package> <the session, see cluster_driver> [<the package>]

Spark has unpacked the package beside it, or else it does so itself.
It is run by the node's own interpreter, before anything of the package is imported, so it knows nothing but Python. The
digest comes with the submission and not from the bucket: whoever could replace the package cannot replace it.
"""

import hashlib
import importlib
import os
import sys
import tarfile
import tempfile
from pathlib import Path

ENVIRONMENT = "environment"  # the folder into which Spark unpacks the package


def tree_digest(folder: Path) -> str:
    """A hash of all files below a folder: names and contents. A link, or anything else that is no file, has no hash."""
    whole = hashlib.sha256()
    for path in sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).as_posix()):
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            raise ValueError(f"{path} is neither a file nor a folder")
        if path.is_file():
            with path.open("rb") as file:
                content = hashlib.file_digest(file, hashlib.sha256).hexdigest()
            whole.update(f"{path.relative_to(folder).as_posix()}\0{content}\n".encode())
    return whole.hexdigest()


def unpacked(package: str) -> Path:
    """A folder of this node with what a package holds."""
    folder = Path(tempfile.mkdtemp(prefix="eventlake-"))
    with tarfile.open(package) as tar:
        tar.extractall(folder, filter="data")
    return folder


def main() -> None:
    _, expected, session, *packages = sys.argv
    folder = unpacked(packages[0]) if packages else Path(ENVIRONMENT).resolve()
    found = tree_digest(folder)
    if found != expected:
        sys.exit(
            f"eventlake: the package is not the one that was submitted: {found} instead of {expected}\n"
            "  Fix: see who may write to where packages are, remove them, then run it again"
        )
    sys.dont_write_bytecode = True  # the package stays what it is
    sys.path.insert(0, os.fspath(folder / "lib"))
    # By name: what this script starts is in layers above the one that keeps it.
    driver = importlib.import_module("eventlake.runners.cluster_driver")
    driver.main(session, importlib.import_module("eventlake.tasks.registry").STEPS, *packages)


if __name__ == "__main__":
    main()
