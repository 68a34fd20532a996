"""Files and folders that only the user who runs eventlake may read: they hold events, keys or what tells of them."""

from pathlib import Path


def make_folder(folder: Path) -> None:
    """Make a folder for its owner only. One that is there stays as it is: who gave others rights meant it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def make_file(path: Path) -> None:
    """Make an empty file for its owner only, with its folder; one that is there stays as it is."""
    make_folder(path.parent)
    if not path.exists():
        path.touch(mode=0o600)
