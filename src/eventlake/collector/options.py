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
    trusted_proxies: int = 0  # through which every request comes; then a client's address is in X-Forwarded-For
    public_url: str = ""  # under which clients reach it; for settings documents


class Spool:
    """The collector's folder in a workspace."""

    def __init__(self, workspace: Path) -> None:
        self.folder = workspace / "collector"
        self.logs = self.folder / "logs"
        self.recent = self.folder / "recent"
        self.rejects = self.folder / "rejects"
        self.counters = self.folder / "counters"
        self.lock = self.folder / "lock"  # held by the one who rolls, and by all who write logs
        self.request = self.folder / "roll-now"  # touched by those who want the logs rolled at once
        self.condition = self.folder / "condition.json"

    def make(self) -> None:
        for folder in (self.folder, self.logs, self.recent, self.rejects, self.counters):
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o700)  # events are in them
