"""Job 1: parse every line once, flatten it, write it as columns to a staged file.

One task takes some raw files and writes one staged file. Its result tells the driver where each piece lies and what
was seen, and holds no data. Buffers are small: memory does not depend on the size of the input.
"""

import platform
import uuid

import numpy as np
from isal.isal_zlib import crc32

from eventlake.archive import layout as archive
from eventlake.archive.reader import Lines, UnreadableFileError, opened, read_lines
from eventlake.lake import ids, segments
from eventlake.lake.ids import Array
from eventlake.lake.layout import HOUR
from eventlake.lake.lines_file import LinesFile
from eventlake.lake.quarantine import SCHEMA as QUARANTINE
from eventlake.lake.quarantine import Quarantined
from eventlake.lake.routes import Route
from eventlake.lake.staging import Packed, StagedFile
from eventlake.native.library import library
from eventlake.reading import exact_json
from eventlake.reading.evidence import evidence_of
from eventlake.reading.route_buffer import RouteBuffer, Taken
from eventlake.reading.scan import Text
from eventlake.reading.scanner import Asked, LeftOutError, Piece, Scanner
from eventlake.schema.evolve import join
from eventlake.schema.reading import MAX_DEPTH
from eventlake.tasks.buffers import Buffers, NotAnEventError
from eventlake.tasks.gate import DroppedError, NotSelectedError, RefusedError
from eventlake.tasks.id_files import IdWriter
from eventlake.tasks.memory import without_gc
from eventlake.tasks.message_id import message_id_of_line
from eventlake.tasks.planned import Planned
from eventlake.tasks.policies import DROPPED, NOT_SELECTED, SUPPRESSED, Policies
from eventlake.tasks.staged import HOURS_COUNTED, FileCount, News, RawFile, StageContext, StageResult
from eventlake.tasks.staged_ids import StagedIds


@without_gc
def stage(context: StageContext, files: list[RawFile]) -> StageResult:
    """Stage some raw files. May be run again, or twice at once: every attempt writes files of its own."""
    attempt = uuid.uuid4().hex
    folder = context.folder
    path = f"{folder}/quarantine-{attempt}.parquet"
    quarantine: LinesFile[Quarantined] = LinesFile(context.storage, path, QUARANTINE, context.sizes.quarantine)
    with StagedFile(context.storage, f"{folder}/staged-{attempt}") as staged:
        task = _Task(context, staged, quarantine, Planned(context, attempt))
        for file in files:
            task.take(file)
        task.finish()
    broken = [count.file for count in task.counts.values() if count.error]
    paths, numbers = {file.path for file in broken}, frozenset(file.number for file in broken)
    quarantine.close(without=paths)
    violations, forwarded = task.planned.close(without=paths)
    withheld = IdWriter(context.storage, folder), numbers
    return StageResult(
        files=list(task.counts.values()),
        staged=staged.path,
        tables=segments.packed(task.segments),
        news=task.news,
        id_segments=task.ids.segments,
        quarantine=quarantine.path if quarantine.rows else None,
        refused_tables=task.buffers.gate.refused,
        blocked_by=task.policies.blocked_by(numbers),
        violations=violations,
        forwarded=forwarded,
        withheld=task.policies.written(*withheld),
        one_by_one=None if task.scanner or task.is_shallow else f"{platform.system()} {platform.machine()}",
    )


_POINTER = 8  # bytes that a cell takes in a list


class _Task:
    def __init__(
        self, context: StageContext, staged: StagedFile, quarantine: LinesFile[Quarantined], planned: Planned
    ) -> None:
        self.counts: dict[int, FileCount] = {}
        self.segments: dict[str, list[segments.Segment]] = {}  # by table
        self.news: dict[str, News] = {}
        self.ids = StagedIds(staged, context.sizes.ids_per_segment)
        self.buffers = Buffers(context)
        self.policies = Policies(context)
        self.planned = planned
        self.is_shallow = context.dialect.reading.max_depth < MAX_DEPTH  # which the fast reader does not know
        self.scanner = self._new_scanner(context)
        self._context = context
        self._sizes = context.sizes
        self._staged = staged
        self._quarantine = quarantine
        self._pending: list[tuple[FileCount, Lines]] = []
        self._bytes = 0  # of pending lines
        self._bytes_in_buffers = 0

    def _new_scanner(self, context: StageContext) -> Scanner | None:
        reading = context.dialect.reading
        found = library() if context.sizes.at_once and not self.is_shallow else None
        dialect = context.dialect
        rules = (dialect.received, dialect.is_special, reading.leaves_out_empty)
        asked = Asked(
            self._buffer_named,
            lambda buffer, received: self._wanted(buffer.route, received),
            *rules,
            self.policies.watched,
            self.planned.looking,
        )
        return Scanner(found, asked, context.sizes.scan) if found else None

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
        self._pending.append((count, block))
        self._bytes += len(block.text) + self._sizes.bytes_per_line * len(block.numbers)
        if self._bytes >= self._sizes.bytes_at_once:
            self._take_pending()

    def _take_pending(self) -> None:
        """Take the lines read so far: all at once where nothing is special about them, one by one the others."""
        pending, self._pending, self._bytes = self._pending, [], 0
        blocks = [block for _, block in pending]
        text = Text.joined((block.text, block.starts, block.ends) for block in blocks)
        file_of = np.repeat([count.file.number for count, _ in pending], [len(block.numbers) for block in blocks])
        number_of = np.concatenate([block.numbers for block in blocks])
        del pending, blocks
        for place in self._left_of(text, file_of).tolist():
            self._take_line(self.counts[int(file_of[place])], int(number_of[place]), text.line(place))

    def _left_of(self, text: Text, file_of: Array) -> Array:
        """Take the lines that can be taken at once; the numbers of those that are left."""
        if self.scanner is None:
            return np.arange(len(file_of))
        is_taken, is_skipped, left_out, pieces = self.scanner.read(
            text, lambda line: self._day_of_file(int(file_of[line]))
        )
        for number, lines in zip(*np.unique(file_of[is_taken], return_counts=True), strict=True):
            self.counts[int(number)].lines += int(lines)
        self.policies.block_all(self.counts, file_of, left_out)
        is_skipped[left_out.lines] = True
        for piece in pieces:
            self._stage(self._taken(piece, text, file_of))
        return np.flatnonzero(~(is_taken | is_skipped))

    def _taken(self, piece: Piece, text: Text, file_of: Array) -> Taken:
        content = memoryview(text.content)
        bounds = zip(text.starts[piece.lines].tolist(), text.ends[piece.lines].tolist(), strict=True)
        digests = np.fromiter((crc32(content[start:end]) for start, end in bounds), "<u4", len(piece.lines))
        hashes = list(map(ids.content_hash, piece.message_ids))
        messages = piece.buffer.messages(hashes, piece.received, digests, file_of[piece.lines].astype("<u4"))
        return Taken(messages, piece.packed)

    def _take_line(self, count: FileCount, number: int, line: bytes) -> None:
        """Take a line as it comes, whatever it holds."""
        count.lines += 1
        path = count.file.path
        buffer, policy, decision = None, None, None
        try:
            event, set_aside = exact_json.parse(line)
            policy = self.policies.against(event, set_aside)
            decision = self.planned.decided(event, path) if policy is None else None
            if decision is not None:
                event, policy = decision.event, decision.blocked
                set_aside = self.planned.let_in(decision, set_aside)
            buffer = self.buffers.of(event) if policy is None else None
            route = self.buffers.route_of(event) if buffer is None else buffer.route
        except exact_json.NotJsonError as error:
            self._reject(count, Quarantined(path, number, error.reason, str(error), len(line), line))
            return
        except NotSelectedError as error:
            route, policy = error.route, NOT_SELECTED
        except (DroppedError, RefusedError, NotAnEventError) as error:
            if policy == SUPPRESSED:  # who must not be in the lake must not be in quarantine either
                count.suppressed += 1
            else:
                self._leave_out(count, number, line, error)
                if decision is not None:
                    sent_as = self._sent_as(exact_json.Parsed(event, set_aside), count, number, line)
                    self.planned.note(decision, count, number, line, *sent_as)
            return
        message_id, received = self._sent_as(exact_json.Parsed(event, set_aside), count, number, line)
        wanted = self._wanted(route, np.array([received]))
        if wanted is not None and not wanted[0]:
            count.lines -= 1
            return
        if decision is not None:
            self.planned.note(decision, count, number, line, message_id, received)
        if policy or buffer is None:
            self.policies.withhold(count, str(policy), message_id, received, route)
            return
        padding = buffer.padding
        buffer.add(
            event,
            set_aside,
            message_hash=ids.message_hash(message_id),
            received=received,
            digest=crc32(line),
            file=count.file.number,
        )
        self._bytes_in_buffers += len(line) + _POINTER * (buffer.padding - padding)
        if len(buffer) >= self._sizes.rows_per_chunk:
            self._flush(buffer)
        if self._bytes_in_buffers > self._sizes.bytes_in_buffers:
            self._flush_all()

    def _sent_as(self, parsed: exact_json.Parsed, count: FileCount, number: int, line: bytes) -> tuple[str, int]:
        """The id of an event, and when it was received."""
        told = self._context.dialect.received(parsed.value.get("receivedAt"))
        received = self._day_of_file(count.file.number) if told is None else told
        return message_id_of_line(*parsed, file=count.file.path, line=number, content=line), received

    def _leave_out(self, count: FileCount, number: int, line: bytes, error: Exception) -> None:
        """Count an event that has no table."""
        if isinstance(error, DroppedError):
            self.policies.block(count, DROPPED)
            return
        if isinstance(error, RefusedError):
            self.buffers.gate.count(error)
        reason = "table_limit" if isinstance(error, RefusedError) else str(error)
        self._reject(count, Quarantined(count.file.path, number, reason, None, len(line), line))

    def _wanted(self, route: Route, received: Array) -> Array | None:
        """Which messages of a route a replay wants; None for all."""
        return self._context.scope.takes(route, received) if self._context.scope else None

    def _buffer_named(self, call: str, name: str, has_user: bool) -> RouteBuffer | None:
        """The buffer of events with this name; None if there is none, for whatever reason."""
        if self.planned.takes_none(call, name):
            return None  # they may get another name, or not get in: they have no table yet
        try:
            return self.buffers.of({"type": call, "event": name, "userId": "somebody" if has_user else None})
        except NotSelectedError as error:
            if self._context.notes_withheld or self.planned.looking(call, name):
                return None  # one by one, so that each is noted
            raise LeftOutError from error
        except (NotAnEventError, DroppedError, RefusedError):
            return None

    def _reject(self, count: FileCount, line: Quarantined) -> None:
        count.quarantined += 1
        self._quarantine.add(self.policies.shown(line))

    def _flush_all(self) -> None:
        for buffer in self.buffers:
            self._flush(buffer)
        self._bytes_in_buffers = 0

    def _flush(self, buffer: RouteBuffer) -> None:
        if len(buffer):
            self._stage(buffer.take())

    def _stage(self, taken: Taken) -> None:
        messages, piece = taken
        segment = self._staged.append(piece, self.ids.number(messages))
        for key in piece.tables:
            self.segments.setdefault(key, []).append(segment)
            self._note_news(key, piece, messages)
        self._count(messages)
        self.ids.add(messages)

    def _note_news(self, key: str, piece: Packed, messages: ids.Ids) -> None:
        known = self._context.known_columns.get(key)
        found = evidence_of(piece, key, known or (), self._context.dialect.tallied)
        if not found and known is not None:
            return
        news = self.news.setdefault(key, News())
        news.evidence = join([news.evidence, found])
        if known is None and len(news.hours) < HOURS_COUNTED:
            news.hours.update(np.unique(messages["received"] // HOUR).tolist())

    def _day_of_file(self, number: int) -> int:
        return archive.day_micros(self.counts[number].file.path)

    def _count(self, messages: ids.Ids) -> None:
        for number in np.unique(messages["file"]):
            of_file = messages.take(messages["file"] == number)
            count = self.counts[int(number)]
            count.staged += len(of_file)
            count.spans(int(of_file["received"].min()), int(of_file["received"].max()))

    def finish(self) -> None:
        if self._pending:
            self._take_pending()
        self._flush_all()
        self.ids.flush()
