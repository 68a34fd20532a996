"""Job 1: parse every line once, flatten it, write it as columns to a staged file.

One task takes some raw files and writes one staged file. Its result tells the driver where each piece lies and what
was seen, and holds no data. Buffers are small: memory does not depend on the size of the input.
"""

import functools
import uuid
from typing import Any

import numpy as np
import pyarrow as pa
from isal.isal_zlib import crc32

from eventlake.archive import layout as archive
from eventlake.archive.reader import Lines, UnreadableFileError, opened, read_lines
from eventlake.events.envelope import reject_reason
from eventlake.lake import ids
from eventlake.lake.dialects import Route
from eventlake.lake.layout import HOUR, STAGE
from eventlake.lake.quarantine import Quarantined, QuarantineFile
from eventlake.lake.staging import IdSegment, StagedFile
from eventlake.reading import exact_json
from eventlake.reading.flatten import TableColumns
from eventlake.reading.line_reader import LineReader, Readers, ReadingSizes
from eventlake.reading.route_buffer import RouteBuffer, Taken
from eventlake.schema.evolve import join
from eventlake.tasks.gate import DroppedError, Gate, RefusedError
from eventlake.tasks.memory import without_gc
from eventlake.tasks.message_id import message_id_of_line
from eventlake.tasks.staged import HOURS_COUNTED, FileCount, RawFile, StageContext, StagedTable, StageResult


@without_gc
def stage(context: StageContext, files: list[RawFile]) -> StageResult:
    """Stage some raw files. May be run again, or twice at once: every attempt writes files of its own."""
    attempt = uuid.uuid4().hex
    folder = f"{STAGE}/{context.run_id}"
    quarantine = QuarantineFile(context.storage, f"{folder}/quarantine-{attempt}.parquet", context.sizes.quarantine)
    with StagedFile(context.storage, f"{folder}/staged-{attempt}") as staged:
        task = _Task(context, staged, quarantine)
        for file in files:
            task.take(file)
        task.finish()
    quarantine.close(without={count.file.path for count in task.counts.values() if count.error})
    return StageResult(
        files=list(task.counts.values()),
        tables=task.tables,
        id_segments=task.id_segments,
        quarantine=quarantine.path if quarantine.rows else None,
        refused_tables=task.gate.refused,
        misread_by=task.reader.misread_by,
    )


@functools.lru_cache(maxsize=2)  # a replay and a sync beside it
def _readers_for(run_id: str, sizes: ReadingSizes) -> Readers:  # noqa: ARG001 # another run may have other keys
    """The readers of all tasks that a worker does for a run, so that keys are learned once."""
    return Readers(sizes)


class _NotAnEventError(Exception):
    """Why a line of JSON goes to the quarantine."""


class _Task:
    def __init__(self, context: StageContext, staged: StagedFile, quarantine: QuarantineFile) -> None:
        self.counts: dict[int, FileCount] = {}
        self.tables: dict[str, StagedTable] = {}
        self.id_segments: list[IdSegment] = []
        self.gate = Gate(context)
        self.reader = LineReader(_readers_for(context.run_id, context.sizes.reading), context.sizes.reading)
        self._context = context
        self._sizes = context.sizes
        self._staged = staged
        self._quarantine = quarantine
        self._lines: list[bytes] = []
        self._origins: list[tuple[int, ids.Array]] = []  # file, and numbers of lines
        self._bytes = 0
        self._messages = 0  # staged
        self._buffers: dict[Route, RouteBuffer] = {}
        self._by_name: dict[tuple[str, str], RouteBuffer] = {}  # by call and event name, as sent
        self._bytes_in_buffers = 0
        self._ids: list[ids.Ids] = []
        self._ids_pending = 0

    def take(self, file: RawFile) -> None:
        count = self.counts[file.number] = FileCount(file)
        try:
            with opened(self._context.archive, file.path) as raw:
                for block in read_lines(raw, self._sizes.read):
                    if isinstance(block, Lines):
                        self._add(count, block)
                    else:
                        count.lines += 1
                        line = Quarantined(file.path, block.number, "line_too_long", None, block.size, block.sample)
                        self._reject(count, line)
                count.digest = raw.digest()
        except UnreadableFileError as error:
            count.error = str(error)

    def _add(self, count: FileCount, block: Lines) -> None:
        self._lines += block.lines
        self._origins.append((count.file.number, block.numbers))
        self._bytes += sum(map(len, block.lines)) + self._sizes.bytes_per_line * len(block.lines)
        if self._bytes >= self._sizes.bytes_at_once:
            self._take_pending()

    def _take_pending(self) -> None:
        """Take the lines read so far: all at once where nothing is special about them, one by one the others."""
        lines, self._lines = self._lines, []
        origins, self._origins = self._origins, []
        self._bytes = 0
        file_of = np.repeat([file for file, _ in origins], [len(numbers) for _, numbers in origins])
        number_of = np.concatenate([numbers for _, numbers in origins])
        is_left = np.ones(len(lines), bool)
        for places, read in self.reader.at_once(lines, self._buffer_named):
            is_left[places[read.taken]] = False
            for buffer, taken in read.rows([lines[place] for place in places], file_of[places], self._day_of_file):
                self._stage(buffer, taken)
        for number, taken_at_once in zip(*np.unique(file_of[~is_left], return_counts=True), strict=True):
            self.counts[int(number)].lines += int(taken_at_once)
        for place in np.flatnonzero(is_left).tolist():
            self._take_line(self.counts[int(file_of[place])], int(number_of[place]), lines[place])

    def _take_line(self, count: FileCount, number: int, line: bytes) -> None:
        """Take a line as it comes, whatever it holds."""
        count.lines += 1
        path = count.file.path
        try:
            event, set_aside = exact_json.parse(line)
            buffer = self._buffer_for(event)
        except exact_json.NotJsonError as error:
            self._reject(count, Quarantined(path, number, error.reason, str(error), len(line), line))
            return
        except DroppedError:
            count.blocked += 1
            return
        except RefusedError as error:
            self.gate.count(error)
            self._reject(count, Quarantined(path, number, "table_limit", None, len(line), line))
            return
        except _NotAnEventError as error:
            self._reject(count, Quarantined(path, number, str(error), None, len(line), line))
            return
        self.reader.learn(line, event)
        message_id = event.get("messageId")
        if type(message_id) is not str or not message_id:
            message_id = message_id_of_line(event, set_aside, file=path, line=number, content=line)
        message_hash = ids.message_hash(message_id)
        buffer.add(event, set_aside, message_hash=message_hash, digest=crc32(line), file=count.file.number)
        self._bytes_in_buffers += len(line)
        if len(buffer) >= self._sizes.rows_per_chunk:
            self._flush(buffer)
        if self._bytes_in_buffers > self._sizes.bytes_in_buffers:
            self._flush_all()

    def _buffer_named(self, call: str, name: str) -> RouteBuffer | None:
        """The buffer of events with this name; None if there is none, for whatever reason."""
        try:
            return self._buffer_for({"type": call, "event": name})
        except (_NotAnEventError, DroppedError, RefusedError):
            return None

    def _buffer_for(self, event: Any) -> RouteBuffer:
        """The buffer of an event's route."""
        try:
            return self._by_name[event["type"], event["event"] if event["type"] == "track" else ""]
        except (KeyError, TypeError):  # new here, or not an event
            pass
        reason = reject_reason(event)
        if reason:
            raise _NotAnEventError(reason)
        call = event["type"]
        name = event["event"] if call == "track" else ""
        route = self.gate.opened(self._context.dialect.route(call, name))
        buffer = self._buffers.get(route)
        if buffer is None:  # one that is empty is there as well, though it looks false
            buffer = self._buffers[route] = RouteBuffer(route, [self._columns_of(key) for key in route])
        if len(self._by_name) < self._sizes.names_remembered:
            self._by_name[call, name] = buffer
        return buffer

    def _columns_of(self, table_key: str) -> TableColumns:
        self.tables.setdefault(table_key, StagedTable())
        known = self._context.known_columns.get(table_key, ())
        return TableColumns(known=known, column_limit=self._context.column_limit)

    def _reject(self, count: FileCount, line: Quarantined) -> None:
        count.quarantined += 1
        self._quarantine.add(line)

    def _flush_all(self) -> None:
        for buffer in self._buffers.values():
            self._flush(buffer)
        self._bytes_in_buffers = 0

    def _flush(self, buffer: RouteBuffer) -> None:
        if len(buffer):
            self._stage(buffer, buffer.take(self._day_of_file))

    def _stage(self, buffer: RouteBuffer, taken: Taken) -> None:
        messages, tables = taken
        wanted = self._in_scope(buffer.route, messages["received"])
        if wanted is not None:
            for number, skipped in zip(*np.unique(messages["file"][~wanted], return_counts=True), strict=True):
                self.counts[int(number)].lines -= int(skipped)
            messages = messages.take(wanted)
            tables = [table._replace(rows=table.rows.filter(pa.array(wanted))) for table in tables]
        if not len(messages):
            return
        first, self._messages = self._messages, self._messages + len(messages)
        messages.arrays["number"] = np.arange(first, self._messages)
        for key, rows, evidence in tables:
            table = self.tables[key]
            table.evidence = join([table.evidence, evidence])
            table.segments.append(self._staged.append(rows, first))
            table.rows += len(messages)
            if key not in self._context.known_columns and len(table.hours) < HOURS_COUNTED:
                table.hours.update(np.unique(messages["received"] // HOUR).tolist())
        self._count(messages)
        self._ids.append(messages)
        self._ids_pending += len(messages)
        if self._ids_pending >= self._sizes.ids_per_segment:
            self._flush_ids()

    def _day_of_file(self, number: int) -> int:
        return archive.day_micros(self.counts[number].file.path)

    def _in_scope(self, route: Route, received: Any) -> Any | None:
        """Which messages a replay wants; None for all."""
        scope = self._context.scope
        if scope is None:
            return None
        if scope.table_keys is not None and scope.table_keys.isdisjoint(route):
            return np.zeros(len(received), bool)
        return (received >= scope.start) & (received < scope.stop)

    def _count(self, messages: ids.Ids) -> None:
        for number in np.unique(messages["file"]):
            of_file = messages.take(messages["file"] == number)
            count = self.counts[int(number)]
            first, last = int(of_file["received"].min()), int(of_file["received"].max())
            count.staged += len(of_file)
            count.first_received = first if count.first_received is None else min(first, count.first_received)
            count.last_received = last if count.last_received is None else max(last, count.last_received)

    def _flush_ids(self) -> None:
        if self._ids_pending:
            self.id_segments.append(self._staged.append_ids(ids.joined(self._ids).ordered()))
            self._ids, self._ids_pending = [], 0

    def finish(self) -> None:
        if self._lines:
            self._take_pending()
        self._flush_all()
        self._flush_ids()
        self.tables = {name: table for name, table in self.tables.items() if table.rows}
