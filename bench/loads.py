"""The contestants of `bench.lossless`: how each loads the corpus, and what is conceded when it stops."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bench.contestants import environment, eventlake_workspace
from bench.corpus import MARK, MESSAGE_ID, Corpus

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_SECONDS = 1800  # after which a load counts as stopped


@dataclass(frozen=True)
class Concession:
    """What is granted when the log of a load shows the symptom: a switch of its loader, or lines left out."""

    symptom: str  # a regular expression; what it matches is told as the reason
    words: str
    switch: str | None = None
    leaves_out: Callable[[str], bool] | None = None


@dataclass
class Load:
    """How a load went; `output` is where its Parquet files are, None if it never came to its end."""

    outcome: str
    output: Path | None
    notes: list[str] = field(default_factory=list)
    left_out: set[str] = field(default_factory=set)  # message ids of events, marks of other lines


@dataclass(frozen=True)
class Contestant:
    commands: Callable[[Path, Path, list[str]], list[list[str]]]  # from raw files, to a folder, with switches
    concessions: tuple[Concession, ...] = ()


def loaded(contestant: Contestant, corpus: Corpus, folder: Path) -> Load:
    """Load the corpus, with as few concessions as it takes."""
    folder.mkdir()
    granted: list[Concession] = []
    notes: list[str] = []
    while True:
        attempt = folder / str(len(granted))
        source, left_out = _tamed(corpus, granted, attempt)
        log = _attempt(contestant, source, attempt, granted)
        if log is None:
            how = f"stops; completed with {len(granted)} concessions" if granted else "completed"
            return Load(how, attempt / "out", notes, left_out)
        concession = next((c for c in contestant.concessions if c not in granted and re.search(c.symptom, log)), None)
        if concession is None:
            return Load(f"stopped: {_last_line(log)}", None, notes)
        found = re.search(concession.symptom, log)
        notes.append(f"stops at “{found[0] if found else ''}”; conceded: {concession.words}")
        granted.append(concession)


def _attempt(contestant: Contestant, source: Path, folder: Path, granted: list[Concession]) -> str | None:
    """Run the commands; what they said if one failed."""
    switches = [concession.switch for concession in granted if concession.switch]
    for command in contestant.commands(source, folder / "out", switches):
        try:
            done = subprocess.run(command, env=environment(), capture_output=True, timeout=_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return f"it was not done after {_SECONDS} s"
        if done.returncode:
            return (done.stdout + done.stderr).decode(errors="replace")
    return None


def _last_line(log: str) -> str:
    return ([line.strip() for line in log.splitlines() if line.strip()] or ["no reason given"])[-1][:200]


def _tamed(corpus: Corpus, granted: list[Concession], folder: Path) -> tuple[Path, set[str]]:
    """The corpus without the lines that are left out, and which these are."""
    rules = [concession.leaves_out for concession in granted if concession.leaves_out]
    if not rules:
        return corpus.folder, set()
    target = folder / "tamed"
    target.mkdir(parents=True)
    left_out: set[str] = set()
    for file in sorted(corpus.folder.iterdir()):
        kept = []
        for line in file.read_bytes().decode().split("\n"):  # splitlines would also split at other characters
            if any(rule(line.removeprefix("\ufeff")) for rule in rules):
                left_out.update(MARK.findall(line) or MESSAGE_ID.findall(line))
            else:
                kept.append(line)
        (target / file.name).write_bytes("\n".join(kept).encode())
    return target, left_out


# Which lines may be left out


def _is_no_event(line: str) -> bool:
    return MARK.search(line) is not None


def _has_repeated_key(line: str) -> bool:
    repeated: list[bool] = []

    def look(pairs: list[tuple[str, Any]]) -> None:
        repeated.append(len({key for key, _ in pairs}) < len(pairs))

    _read(line, object_pairs_hook=look)
    return any(repeated)


def _has_big_integer(line: str) -> bool:
    numbers: list[int] = []
    _read(line, parse_int=lambda digits: numbers.append(int(digits)))
    return any(not -(2**63) <= number < 2**63 for number in numbers)


def _read(line: str, **hooks: Callable[[Any], None]) -> None:
    """Show the parts of an event to the hooks; other lines cannot always be read."""
    if line and not _is_no_event(line):
        json.loads(line, **hooks)  # type: ignore[arg-type]


# The contestants


def _eventlake(source: Path, folder: Path, _switches: list[str]) -> list[list[str]]:
    return eventlake_workspace(folder, source)


def _loader(name: str) -> Callable[[Path, Path, list[str]], list[list[str]]]:
    def commands(source: Path, folder: Path, switches: list[str]) -> list[list[str]]:
        conceded = [f"--concede={switch}" for switch in switches]
        return [[sys.executable, "-m", "bench.loaders", name, str(source), str(folder), *conceded]]

    return commands


_SHORT_NAMES = Concession(
    r"File name too long|Mkdirs failed to create", "names of tables are cut to 200 characters", switch="short_names"
)

LOADS = {
    "eventlake": Contestant(_eventlake),
    "naive_spark": Contestant(
        _loader("naive_spark"),
        (
            Concession(r"COLUMN_ALREADY_EXISTS", "spark.sql.caseSensitive=true", switch="case_sensitive"),
            Concession(
                r"COLUMN_ALREADY_EXISTS",
                "events with a key twice in one object are left out",
                leaves_out=_has_repeated_key,
            ),
            _SHORT_NAMES,
        ),
    ),
    "duckdb_copy": Contestant(
        _loader("duckdb_copy"),
        (
            Concession(r"Malformed JSON", "ignore_errors=true", switch="ignore_errors"),
            Concession(
                r'Referenced column "type" not found', "lines that are no events are left out", leaves_out=_is_no_event
            ),
            _SHORT_NAMES,
        ),
    ),
    "dlt": Contestant(
        _loader("dlt_parquet"),
        (
            Concession(
                r"(?<=caused an exception: ).*?(?=:)",
                "lines that its JSON reader refuses are skipped",
                switch="skip_unreadable",
            ),
            _SHORT_NAMES,
            Concession(
                r"Python int too large to convert to C long",
                "events with a whole number beyond 64 bits are left out",
                leaves_out=_has_big_integer,
            ),
        ),
    ),
}
