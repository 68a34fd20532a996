"""Job 1: parse every line once, flatten it, write it as columns to a staged file.

One task takes some raw files and writes one staged file. Its result tells the driver where each piece lies and what
was seen, and holds no data. Buffers are small: memory does not depend on the size of the input.
"""

import functools
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from isal.isal_zlib import crc32

from eventlake.archive import canary
from eventlake.archive import layout as archive
from eventlake.archive.columnar import ColumnReader, ColumnSizes
from eventlake.archive.reader import Lines, UnreadableFileError, opened, read_lines
from eventlake.events.envelope import reject_reason
from eventlake.lake import ids
from eventlake.lake.layout import HOUR, STAGE
from eventlake.lake.quarantine import Quarantined, QuarantineFile
from eventlake.lake.staging import IdSegment, StagedFile
from eventlake.schema import exact_json
from eventlake.schema.evolve import join
from eventlake.sync.gate import Gate
from eventlake.sync.message_id import message_id_of_line
from eventlake.sync.staged import HOURS_COUNTED, FileCount, RawFile, StageContext, StagedTable, StageResult
from eventlake.sync.table_buffer import TableBuffer, Taken
from eventlake.sync.whole_lines import WholeLines
from eventlake.sync.worker_memory import without_gc


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
        misread_by=task.misread_by,
    )


@functools.lru_cache(maxsize=1)
def _reader_for(run_id: str, sizes: ColumnSizes) -> ColumnReader:  # noqa: ARG001 # another run may have other keys
    """The reader of all tasks that a worker does for a run, so that keys are learned once."""
    return ColumnReader(sizes)


class _NotAnEventError(Exception):
    """Why a line of JSON goes to the quarantine."""


class _NoTableError(_NotAnEventError):
    """There is no room for the table with this name, or it was dropped."""


class _Task:
    def __init__(self, context: StageContext, staged: StagedFile, quarantine: QuarantineFile) -> None:
        self.counts: dict[int, FileCount] = {}
        self.tables: dict[str, StagedTable] = {}
        self.id_segments: list[IdSegment] = []
        self.gate = Gate(context)
        self.misread_by: str | None = None
        self._context = context
        self._sizes = context.sizes
        self._staged = staged
        self._quarantine = quarantine
        self._reader = _reader_for(context.run_id, context.sizes.columns)
        self._lines: list[bytes] = []
        self._origins: list[tuple[int, ids.Array]] = []  # file, and numbers of lines
        self._bytes = 0
        self._buffers: dict[str, TableBuffer] = {}  # by segment type
        self._by_name: dict[tuple[str, str], TableBuffer] = {}  # by call and event name, as sent
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
        left: Iterable[int] = range(len(lines))
        if len(lines) >= self._sizes.fewest_at_once and self._may_read_columns():
            self._learn_from(lines)
            whole = WholeLines(self._reader.read(lines), self._table_for)
            left = np.flatnonzero(~whole.taken).tolist()
            for number, taken in zip(*np.unique(file_of[whole.taken], return_counts=True), strict=True):
                self.counts[int(number)].lines += int(taken)
            for table, rows in whole.by_table(lines, file_of, self._day_of_file):
                self._stage(table, rows)
        for place in left:
            self._take_line(self.counts[int(file_of[place])], int(number_of[place]), lines[place])

    def _may_read_columns(self) -> bool:
        if not canary.duckdb_is_understood():
            self.misread_by = duckdb.__version__
        return self.misread_by is None

    def _learn_from(self, lines: Sequence[bytes]) -> None:
        if not self._reader.has_learned:
            for line in lines[:: max(1, len(lines) // self._sizes.learn_from)]:
                with suppress(exact_json.NotJsonError):
                    self._reader.learn(exact_json.parse(line).value)

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
        except _NoTableError as error:
            if self.gate.was_dropped(str(error)):
                count.blocked += 1
            else:
                self._reject(count, Quarantined(path, number, "table_limit", None, len(line), line))
            return
        except _NotAnEventError as error:
            self._reject(count, Quarantined(path, number, str(error), None, len(line), line))
            return
        self._reader.learn(event)
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

    def _table_for(self, call: str, name: str) -> TableBuffer | None:
        """The table of events with this name; None if there is none, for whatever reason."""
        try:
            return self._buffer_for({"type": call, "event": name})
        except _NotAnEventError:
            return None

    def _buffer_for(self, event: Any) -> TableBuffer:
        """The buffer of an event's table."""
        try:
            return self._by_name[event["type"], event["event"] if event["type"] == "track" else ""]
        except (KeyError, TypeError):  # new here, or not an event
            pass
        reason = reject_reason(event)
        if reason:
            raise _NotAnEventError(reason)
        call = event["type"]
        name = event["event"] if call == "track" else ""
        segment_type = self._context.rules.segment_type(call, name)
        buffer = self._buffers.get(segment_type)
        if buffer is None:  # one that is empty is there as well, though it looks false
            buffer = self._new_buffer(segment_type)
        if buffer is None:
            raise _NoTableError(segment_type)
        if len(self._by_name) < self._sizes.names_remembered:
            self._by_name[call, name] = buffer
        return buffer

    def _new_buffer(self, segment_type: str) -> TableBuffer | None:
        if not self.gate.admits(segment_type):
            return None
        self.tables[segment_type] = StagedTable()
        columns = self._context.known_columns.get(segment_type, ())
        limit = self._context.column_limit
        buffer = TableBuffer(segment_type, known=columns, column_limit=limit)
        self._buffers[segment_type] = buffer
        return buffer

    def _reject(self, count: FileCount, line: Quarantined) -> None:
        count.quarantined += 1
        self._quarantine.add(line)

    def _flush_all(self) -> None:
        for buffer in self._buffers.values():
            self._flush(buffer)
        self._bytes_in_buffers = 0

    def _flush(self, buffer: TableBuffer) -> None:
        if len(buffer):
            self._stage(buffer, buffer.take(self._day_of_file))

    def _stage(self, buffer: TableBuffer, taken: Taken) -> None:
        rows, messages, evidence = taken
        wanted = self._in_scope(buffer.segment_type, messages["received"])
        if wanted is not None:
            for number, skipped in zip(*np.unique(messages["file"][~wanted], return_counts=True), strict=True):
                self.counts[int(number)].lines -= int(skipped)
            rows, messages = rows.filter(pa.array(wanted)), messages.take(wanted)
        if not rows.num_rows:
            return
        table = self.tables[buffer.segment_type]
        messages.arrays["row"] = np.arange(table.rows, table.rows + rows.num_rows)
        table.evidence = join([table.evidence, evidence])
        table.segments.append(self._staged.append(rows, table.rows))
        table.rows += rows.num_rows
        if buffer.segment_type not in self._context.known_columns and len(table.hours) < HOURS_COUNTED:
            table.hours.update(np.unique(messages["received"] // HOUR).tolist())
        self._count(messages)
        self._ids.append(messages)
        self._ids_pending += len(messages)
        if self._ids_pending >= self._sizes.ids_per_segment:
            self._flush_ids()

    def _day_of_file(self, number: int) -> int:
        return archive.day_micros(self.counts[number].file.path)

    def _in_scope(self, segment_type: str, received: Any) -> Any | None:
        """Which rows a replay wants; None for all."""
        scope = self._context.scope
        if scope is None:
            return None
        if scope.segment_types is not None and segment_type not in scope.segment_types:
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
