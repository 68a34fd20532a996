"""Where a lake keeps what its runs went by: for each source, hashes of those who must not be in it, and its rules."""

from eventlake.lake.layout import Folders

RULES = "rules.json"  # the plan, how it is enforced, and transformations


def folder_of(folders: Folders, source_id: str) -> str:
    return f"{folders.books}/policies/source={source_id}"


def number_of(path: str) -> int:
    """The version of the list that a file has; -1 for what is no such file."""
    name = path.rpartition("/")[2]
    number = name.removeprefix("suppressed-")
    return int(number) if name.startswith("suppressed-") and number.isascii() and number.isdigit() else -1
