"""How a collector runs, and where it keeps what is not in the archive yet."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    host: str = "127.0.0.1"
    port: int = 8020
    workers: int = 1
    strict: bool = False
    requests_per_second: float = 0  # of one source; 0 for no limit
    roll_seconds: float = 60
    roll_bytes: int = 64 << 20
    behind_proxy: bool = False  # then a client's address is what X-Forwarded-For says


class Spool:
    """The collector's folder in a workspace."""

    def __init__(self, workspace: Path) -> None:
        self.folder = workspace / "collector"
        self.logs = self.folder / "logs"
        self.recent = self.folder / "recent"
        self.rejects = self.folder / "rejects"
        self.counters = self.folder / "counters"

    def make(self) -> None:
        for folder in (self.logs, self.recent, self.rejects, self.counters):
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o700)  # events are in them
