"""The last events of a source as they came, and what became of each.

Nothing is kept for this: events are in the collector's logs, then in the raw archive, and what was refused is among the
rejects. Logs and rejects are seen where the collector runs, the archive everywhere.
"""

import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from eventlake.archive import layout
from eventlake.archive.reader import Lines, UnreadableFileError, opened, read_lines
from eventlake.archive.whole import WholeArchive
from eventlake.collector import log, rejects
from eventlake.collector.options import Spool
from eventlake.control.connections import Connection
from eventlake.control.ledger import LoadedFile
from eventlake.control.sources import Source
from eventlake.errors import EventLakeError
from eventlake.events import instants
from eventlake.events.envelope import CALLS
from eventlake.status.fates import WAITING, Fate, Line, fates
from eventlake.storage.base import StoredFile
from eventlake.workspace import Lake, Workspace

MOST = 50
_LOG_BYTES = 256 << 10  # of the end of each log
_LARGEST = 16 << 20  # an archive file that is worth opening for this
_MOST_UNPACKED = 64 << 20
_LONGEST = 1 << 20  # line that is shown
_REMEMBERED = 60  # files
_FILES = 3
_LISTED_FOR = 5.0  # seconds


class InLake(NamedTuple):
    """What became of an event in one lake."""

    lake: str
    connection: str
    table: str  # that its row is in, or will be; empty where rules of its source decide
    fate: Fate


class SeenEvent(NamedTuple):
    received: int  # microseconds since 1970
    outcome: str  # refused, accepted, archived; or what it is in all its lakes
    detail: str
    kind: str  # of call
    name: str  # of the event, or of the page
    message_id: str
    text: str  # as it was stored; of one that was refused, its beginning
    lakes: tuple[InLake, ...] = ()


class LastEvents:
    """Remembers what it read of archive files, for those who look again in a moment."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._spool = Spool(workspace.folder)
        self._files: dict[str, tuple[float, list[StoredFile]]] = {}
        self._lines: dict[str, list[Line]] = {}
        self._fates: dict[tuple[str, LoadedFile], dict[int, Fate]] = {}
        self._lock = threading.Lock()
        self._reading = threading.Lock()  # one file at a time: it may unpack to much

    def of(self, source: Source, connections: list[Connection]) -> list[SeenEvent]:
        """Newest first."""
        archived = self._archived(source, connections)
        there = {one.message_id for one in archived}
        accepted = [one for one in self._accepted(source, connections) if one.message_id not in there]
        seen = [*self._refused(source), *accepted, *archived]
        # Copies of a message are shown beside it, unless nothing tells them apart.
        unique = {(one.message_id or str(number), one.received, one.outcome): one for number, one in enumerate(seen)}
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
        tables = self._tables(source, connections)
        return [tables.seen(record.event, record.received, "accepted", told) for record in newest]

    def _archived(self, source: Source, connections: list[Connection]) -> list[SeenEvent]:
        with suppress(EventLakeError, OSError):
            paths = [file.path for file in self._newest_files(source.id)]
            tables = self._tables(source, connections)
            lakes = {
                one.lake: self._workspace.lake(one.lake) for one in connections if one.lake in self._workspace.lakes
            }
            loaded = {name: lake.ledger.loaded_files(source.id, paths) for name, lake in lakes.items()}
            found = []
            for path in paths:
                lines = self._read(path)
                by_lake = {name: self._fates_of(lakes[name], loaded[name].get(path), lines) for name in lakes}
                for line in lines:
                    became = {name: some.get(line.number, WAITING) for name, some in by_lake.items()}
                    found.append(tables.seen(line.text, None, *_summed_up(became), became))
            return found
        return []

    def _fates_of(self, lake: Lake, file: LoadedFile | None, lines: list[Line]) -> dict[int, Fate]:
        """What became of lines in a lake: nothing, while their file is not loaded."""
        if file is None:
            return {}
        with self._lock:
            known = self._fates.get((lake.name, file))
        if known is None:
            known = fates(lake, file, lines)
            with self._lock:
                self._fates[lake.name, file] = known
                for old in list(self._fates)[:-_REMEMBERED]:
                    del self._fates[old]
        return known

    def _tables(self, source: Source, connections: list[Connection]) -> "_Tables":
        return _Tables(connections, may_be_renamed=bool(self._workspace.plans.transformations.of_source(source.id)))

    def _newest_files(self, source_id: str) -> list[StoredFile]:
        with self._lock:
            listed_at, files = self._files.get(source_id, (float("-inf"), []))
        if time.monotonic() - listed_at < _LISTED_FOR:
            return files
        archive, today = self._workspace.archive, layout.path(source_id, self._workspace.clock.now(), "").rstrip("/")
        days = [today]
        if not any(True for _ in archive.files(today)):
            names = sorted(filter(str.isdigit, archive.folders(layout.folder(source_id))), key=int)
            days = [f"{layout.folder(source_id)}/{name}" for name in names[-1:]]
        there = [file for day in days for file in archive.files(day) if file.size <= _LARGEST]
        files = sorted(there, key=lambda file: _moment_of(file.path))[-_FILES:]
        with self._lock:
            self._files[source_id] = (time.monotonic(), files)
        return files

    def _read(self, path: str) -> list[Line]:
        with self._lock:
            known = self._lines.get(path)
        if known is None:
            with self._reading:
                known = _last_lines(self._workspace, path)
            with self._lock:
                self._lines[path] = known
                for old in list(self._lines)[:-_REMEMBERED]:
                    del self._lines[old]
        return known


def _last_lines(workspace: Workspace, path: str) -> list[Line]:
    """The last lines of a raw file, as far as it is unpacked: a small one may hold very much."""
    found: deque[Line] = deque(maxlen=MOST)
    unpacked = 0
    with suppress(UnreadableFileError), opened(WholeArchive(workspace.archive), path) as stream:
        for part in read_lines(stream):
            if isinstance(part, Lines):
                short = (part.ends - part.starts <= _LONGEST).nonzero()[0][-MOST:]
                bounds = zip(part.numbers[short].tolist(), part.starts[short], part.ends[short], strict=True)
                found.extend(Line(number, part.text[start:end]) for number, start, end in bounds)
                unpacked += len(part.text)
            if unpacked > _MOST_UNPACKED:
                break
    return list(found)


class _Tables(NamedTuple):
    """Where rows of a source's events are, in each of its lakes."""

    connections: list[Connection]
    may_be_renamed: bool  # a transformation may send them to another table

    def seen(
        self, line: bytes, received: int | None, outcome: str, detail: str, became: Mapping[str, Fate] | None = None
    ) -> SeenEvent:
        event = _parsed(line)
        kind, name, message_id = _names(event)
        moment = received if received is not None else _micros(str(event.get("receivedAt", "")))
        fate_in = became or {}
        lakes = tuple(
            InLake(one.lake, one.full_name, self._table(one, kind, event), fate_in.get(one.lake, WAITING))
            for one in self.connections
        )
        return SeenEvent(moment, outcome, detail, kind, name, message_id, line.decode("utf-8", "replace"), lakes)

    def _table(self, connection: Connection, kind: str, event: dict[str, Any]) -> str:
        if kind not in CALLS or self.may_be_renamed:
            return ""
        dialect, name = connection.dialect, event.get("event")
        is_named = kind == "track" and isinstance(name, str)
        keys = [dialect.event_table(str(name))] if is_named else dialect.tables_of_call(kind)
        return f"{dialect.database}.{dialect.table_name(next(iter(keys)))}" if keys else ""


def _summed_up(became: Mapping[str, Fate]) -> tuple[str, str]:
    """What became of an event in a word, and more about it."""
    waiting = [name for name, fate in became.items() if fate is WAITING]
    if waiting or not became:
        return "archived", f"waits for the next sync into {', '.join(waiting)}" if waiting else "in no lake"
    outcomes = {fate.outcome for fate in became.values()}
    if len(outcomes) > 1:
        return "read", ", ".join(f"{fate.outcome} in {name}" for name, fate in became.items())
    return outcomes.pop(), next((fate.detail for fate in became.values()), "")


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
