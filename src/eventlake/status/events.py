"""The last events of a source as they came, and what became of each.

Nothing is kept for this: events are in the collector's logs, then in the raw archive, and what was refused is among the
rejects. Logs and rejects are seen where the collector runs, the archive everywhere.
"""

import threading
import time
import zlib
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from eventlake.archive import layout
from eventlake.collector import log, rejects
from eventlake.collector.options import Spool
from eventlake.control.connections import Connection
from eventlake.control.sources import Source
from eventlake.errors import EventLakeError
from eventlake.events import instants
from eventlake.events.envelope import CALLS
from eventlake.storage.base import StoredFile
from eventlake.workspace import Workspace

MOST = 50
_LOG_BYTES = 256 << 10  # of the end of each log
_LARGEST = 16 << 20  # an archive file that is worth opening for this
_MOST_UNPACKED = 64 << 20
_FILES = 3
_LISTED_FOR = 5.0  # seconds


class SeenEvent(NamedTuple):
    received: int  # microseconds since 1970
    outcome: str  # refused, accepted, archived, loaded
    detail: str
    kind: str  # of call
    name: str  # of the event, or of the page
    message_id: str
    text: str  # as it was stored; of one that was refused, its beginning
    table: str = ""
    run_id: str = ""


class LastEvents:
    """Remembers what it read of archive files, for those who look again in a moment."""

    def __init__(self, place: Workspace) -> None:
        self._place = place
        self._spool = Spool(place.folder)
        self._files: dict[str, tuple[float, list[StoredFile]]] = {}
        self._lines: dict[str, list[bytes]] = {}
        self._lock = threading.Lock()

    def of(self, source: Source, connections: list[Connection]) -> list[SeenEvent]:
        """Newest first."""
        seen = [*self._refused(source), *self._accepted(source, connections), *self._archived(source, connections)]
        unique = {(one.message_id or str(number), one.outcome == "refused"): one for number, one in enumerate(seen)}
        return sorted(unique.values(), key=lambda one: -one.received)[:MOST]

    def _refused(self, source: Source) -> list[SeenEvent]:
        with suppress(OSError):
            return [
                SeenEvent(
                    *(_micros(one.time), "refused", f"{one.message} ({one.code})"),
                    *_names(_parsed(one.sample.encode())),
                    one.sample,
                )
                for one in rejects.latest(self._spool.rejects)
                if one.source == source.id
            ][-MOST:]
        return []

    def _accepted(self, source: Source, connections: list[Connection]) -> list[SeenEvent]:
        found = []
        for path in log.waiting(self._spool.logs):
            with suppress(OSError):
                found += [
                    record
                    for line in rejects.end_of(path, _LOG_BYTES).split(b"\n")
                    if (record := log.record_of(line)) is not None and record.source_id == source.id
                ]
        newest = sorted(found, key=lambda record: record.received)[-MOST:]
        told = "on disk; in the raw archive within a minute"
        return [_event(record.event, record.received, "accepted", told, connections) for record in newest]

    def _archived(self, source: Source, connections: list[Connection]) -> list[SeenEvent]:
        with suppress(EventLakeError, OSError):
            files = self._newest_files(source.id)
            paths = [file.path for file in files]
            loaded = [(one, self._place.lake(one.lake).ledger.loaded_by(source.id, paths)) for one in connections]
            found = []
            for path in paths:
                by = {one.name: runs[path] for one, runs in loaded if path in runs}
                missing = [one.name for one, runs in loaded if path not in runs]
                outcome = "loaded" if by and not missing else "archived"
                told = f"waits for the next sync of {', '.join(missing)}" if missing else f"read by {', '.join(by)}"
                run_id = next(iter(by.values()), "")
                found += [
                    _event(line, None, outcome, told, connections)._replace(run_id=run_id) for line in self._read(path)
                ]
            return found
        return []

    def _newest_files(self, source_id: str) -> list[StoredFile]:
        with self._lock:
            listed_at, files = self._files.get(source_id, (float("-inf"), []))
        if time.monotonic() - listed_at < _LISTED_FOR:
            return files
        archive, today = self._place.archive, layout.path(source_id, self._place.clock.now(), "").rstrip("/")
        days = [today]
        if not any(True for _ in archive.files(today)):
            names = sorted(filter(str.isdigit, archive.folders(layout.folder(source_id))), key=int)
            days = [f"{layout.folder(source_id)}/{name}" for name in names[-1:]]
        there = [file for day in days for file in archive.files(day) if file.size <= _LARGEST]
        files = sorted(there, key=lambda file: _moment_of(file.path))[-_FILES:]
        with self._lock:
            self._files[source_id] = (time.monotonic(), files)
        return files

    def _read(self, path: str) -> list[bytes]:
        with self._lock:
            known = self._lines.get(path)
        if known is None:
            known = _last_lines(self._place.archive.read(path))
            with self._lock:
                self._lines[path] = known
                for old in list(self._lines)[: -20 * _FILES]:
                    del self._lines[old]
        return known


def _last_lines(content: bytes) -> list[bytes]:
    """The last lines of a raw file, as far as it is unpacked: a small one may hold very much."""
    if content[:2] == b"\x1f\x8b":
        try:
            content = zlib.decompressobj(31).decompress(content, _MOST_UNPACKED)
        except zlib.error:
            return []
    end = content[-_LOG_BYTES * 4 :]
    return [line for line in end.splitlines()[-MOST:] if line.strip()]


def _event(line: bytes, received: int | None, outcome: str, detail: str, connections: list[Connection]) -> SeenEvent:
    event = _parsed(line)
    kind, name, message_id = _names(event)
    moment = received if received is not None else _micros(str(event.get("receivedAt", "")))
    text = line.decode("utf-8", "replace")
    return SeenEvent(moment, outcome, detail, kind, name, message_id, text, _table(kind, event, connections))


def _table(kind: str, event: dict[str, Any], connections: list[Connection]) -> str:
    """Where its row is, or will be, in the first lake of its source."""
    if not connections or kind not in CALLS:
        return ""
    dialect = connections[0].dialect
    name = event.get("event")
    keys = [dialect.event_table(name)] if kind == "track" and isinstance(name, str) else dialect.tables_of_call(kind)
    return f"{dialect.database}.{dialect.table_name(next(iter(keys)))}" if keys else ""


def _names(event: dict[str, Any]) -> tuple[str, str, str]:
    return tuple(str(event.get(key) or "") for key in ("type", "event", "messageId"))  # type: ignore[return-value]


def _parsed(line: bytes) -> dict[str, Any]:
    """Good enough to show names; the text is shown as it is."""
    with suppress(msgspec.MsgspecError, RecursionError):
        found = msgspec.json.decode(line)
        if isinstance(found, dict):
            return found if found.get("event") or not found.get("name") else {**found, "event": found["name"]}
    return {}


def _micros(text: str) -> int:
    instant = instants.parse(text)
    return instant.micros if instant else 0


def _moment_of(path: str) -> tuple[int, str]:
    """When a file of the collector was begun, as its name tells; others come before them."""
    parts = path.rpartition("/")[2].split("-")
    return (int(parts[1]), path) if len(parts) > 2 and parts[1].isdigit() else (0, path)
