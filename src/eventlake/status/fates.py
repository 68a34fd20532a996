"""What became of the lines of a raw file that a run read, as far as it is known for certain.

The books of a file say how many of its lines went which way. Which lines these were is known of those in quarantine, of
those that a plan or a transformation blocked, and, by the run's index of message ids, of duplicates. Whoever was
suppressed then is found by the list of now, which is believed if it explains the books. Where anything is left open,
nothing more is said of a line than that the run read it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eventlake.control.ledger import LoadedFile
from eventlake.events import instants
from eventlake.lake import ids
from eventlake.reports.words import count
from eventlake.workspace import Lake

_MOST_INDEXED = 500_000  # messages of a run: of more, the index is not opened for this
_WAYS = ("suppressed", "blocked", "duplicates", "quarantined")


class Line(NamedTuple):
    number: int
    text: bytes


class Fate(NamedTuple):
    """What became of an event in a lake; `read` is said where the run is known and no more."""

    outcome: str  # waiting, loaded, duplicate, suppressed, blocked, quarantined, read
    detail: str = ""
    run_id: str = ""


WAITING = Fate("waiting")


def fates(lake: Lake, file: LoadedFile, lines: Sequence[Line]) -> dict[int, Fate]:
    """What the run that read a raw file made of some of its lines, by their numbers."""
    quarantined = _noted(lake, _quarantine_files(lake, file), file) if file.quarantined else {}
    blocked = _noted(lake, _violation_files(lake, file), file) if file.blocked else {}
    known = {number: Fate("quarantined", reason, file.run_id) for number, reason in quarantined.items()}
    known |= {number: Fate("blocked", reason, file.run_id) for number, reason in blocked.items()}
    left = {line.number: _parsed(line.text) for line in lines if line.number not in known}
    hidden = _suppressed(lake, file, left, is_whole=len(lines) == file.lines)
    if hidden is None or len(quarantined) < file.quarantined or len(blocked) < file.blocked:
        return known | dict.fromkeys(left.keys(), _read(file))
    known |= dict.fromkeys(hidden, Fate("suppressed", "", file.run_id))
    copies = _copies(lake, file, {number: event for number, event in left.items() if number not in hidden})
    return known | {number: Fate(outcome, "", file.run_id) if outcome else _read(file) for number, outcome in copies}


def _read(file: LoadedFile) -> Fate:
    """Nobody knows which of its lines went another way."""
    ways = [f"{getattr(file, way):,} {way}" for way in _WAYS if getattr(file, way)]
    return Fate(
        "read", f"of its file's {count(file.lines, 'line')}, {file.loaded:,} loaded, {', '.join(ways)}", file.run_id
    )


def _quarantine_files(lake: Lake, file: LoadedFile) -> list[str]:
    return lake.ledger.newest_quarantine_files(100, source_id=file.source_id, run_ids=[file.run_id])


def _violation_files(lake: Lake, file: LoadedFile) -> list[str]:
    return [path for path, run_id in lake.ledger.violation_files(file.source_id).items() if run_id == file.run_id]


def _noted(lake: Lake, paths: Iterable[str], file: LoadedFile) -> dict[int, str]:
    """The lines of a raw file that were kept out, with the reason, as some files tell."""
    found: dict[int, str] = {}
    for path in paths:
        with suppress(FileNotFoundError), lake.storage.open_input(path) as source:
            opened = pq.ParquetFile(source)
            columns = [name for name in ("raw_file", "line", "reason", "action") if name in opened.schema_arrow.names]
            rows = opened.read(columns)
            rows = rows.filter(pc.field("raw_file") == file.path)
            if "action" in columns:
                rows = rows.filter(pc.field("action") == "blocked")
            found |= dict(zip(rows["line"].to_pylist(), rows["reason"].to_pylist(), strict=True))
    return found


def _suppressed(
    lake: Lake, file: LoadedFile, events: Mapping[int, dict[str, Any]], *, is_whole: bool
) -> set[int] | None:
    """Which of some lines are of somebody who was suppressed; None if that cannot be told."""
    if not file.suppressed:
        return set()
    if not is_whole:
        return None
    listed = lake.workspace.suppressions.of_source(file.source_id)
    found = {number for number, event in events.items() if listed.hides(event)}
    return found if len(found) == file.suppressed else None


def _copies(lake: Lake, file: LoadedFile, events: Mapping[int, dict[str, Any]]) -> Iterable[tuple[int, str]]:
    """Whether each of some lines was loaded or is a duplicate; empty where that cannot be told.

    The index that a run leaves has each message that it loaded, with the time at which the chosen copy was received.
    """
    if not file.duplicates:
        return [(number, "loaded") for number in events]
    indexed = [one for one in lake.ledger.index_files(file.source_id) if one.run_id == file.run_id]
    messages = {number: (str(event.get("messageId") or ""), _received(event)) for number, event in events.items()}
    times_seen = Counter(messages.values())
    if not indexed or sum(one.messages for one in indexed) > _MOST_INDEXED:
        return [(number, "") for number in events]
    chosen = _chosen(lake, [one.path for one in indexed], {message_id for message_id, _ in messages.values()})
    told = []
    for number, message in messages.items():
        message_id, received = message
        is_open = not message_id or times_seen[message] > 1  # two that cannot be told apart: one of them was loaded
        told.append((number, "" if is_open else "loaded" if chosen.get(message_id) == received else "duplicate"))
    return told


def _chosen(lake: Lake, paths: Iterable[str], message_ids: Iterable[str]) -> dict[str, int]:
    """When the copy of each message was received that a run loaded, of those that it loaded."""
    names = {ids.message_hash(one): one for one in message_ids}
    wanted = ids.Ids(ids.from_digests(list(names))).ordered()
    found: dict[str, int] = {}
    for path in paths:
        with suppress(FileNotFoundError), ids.opened(lake.storage, path) as opened:
            at = opened.positions(ids.ALL, wanted)
            received = opened.read(ids.ALL, ["received"])["received"]
        for which in (at >= 0).nonzero()[0]:
            digest = int(wanted["high"][which]).to_bytes(8, "big") + int(wanted["low"][which]).to_bytes(8, "big")
            found[names[digest]] = int(received[at[which]])
    return found


def _received(event: dict[str, Any]) -> int:
    instant = instants.parse(str(event.get("receivedAt", "")))
    return instant.micros if instant else 0


def _parsed(line: bytes) -> dict[str, Any]:
    with suppress(msgspec.MsgspecError, RecursionError):
        found = msgspec.json.decode(line)
        if isinstance(found, dict):
            return found
    return {}
