"""How the collector of a workspace is: what its supervisor writes down, for workers and other programs to tell."""

from contextlib import suppress
from pathlib import Path

import msgspec

from eventlake.collector import recent
from eventlake.collector.options import Spool


class Condition(msgspec.Struct, frozen=True):
    """As the supervisor knows it."""

    roll_seconds: float = 60  # after which a log is handed on
    archive_problem: str | None = None  # why the last attempt to write to the archive failed; None if it did not


def save(spool: Spool, condition: Condition) -> None:
    """Best effort: a disk that is full is told by other means."""
    aside = spool.condition.with_suffix(".new")
    with suppress(OSError):
        aside.write_bytes(msgspec.json.encode(condition))
        aside.replace(spool.condition)


def load(spool: Spool) -> Condition:
    try:
        return msgspec.json.decode(spool.condition.read_bytes(), type=Condition)
    except (OSError, msgspec.MsgspecError):
        return Condition()


def damaged_files(spool: Spool) -> dict[str, list[str]]:
    """What was found damaged and is kept to be looked at: kind → paths in the collector's folder."""
    found = {"recent_ids": spool.recent.glob(f"*{recent.SET_ASIDE}"), "log": spool.logs.glob("*.damaged")}
    return {kind: sorted(_below(spool.folder, path) for path in paths) for kind, paths in found.items()}


def problems(spool: Spool) -> list[str]:
    """What somebody should look at, although events are taken."""
    told = [
        f"{path} was damaged; remove it when you have seen it"
        for paths in damaged_files(spool).values()
        for path in paths
    ]
    problem = load(spool).archive_problem
    return [f"cannot write to the archive: {problem}", *told] if problem else told


def _below(folder: Path, path: Path) -> str:
    return str(path.relative_to(folder))
