"""Plans and transformations, as a stage task meets them: what they make of events, and what is told of it."""

import gzip
from collections import Counter
from collections.abc import Callable
from typing import Any, BinaryIO, cast

from eventlake.archive.layout import FORWARDED
from eventlake.lake.lines_file import LinesFile
from eventlake.lake.violations import SCHEMA, ViolationRow
from eventlake.policies import trees
from eventlake.policies.forwarding import forwarded
from eventlake.policies.rules import Decision, Rules, RulesDocument
from eventlake.policies.verdict import never
from eventlake.reading import exact_json
from eventlake.schema.rescue import Rescued, keys_of
from eventlake.storage.base import Storage
from eventlake.tasks.staged import FileCount, StageContext

_SAMPLES = 3  # lines that are kept of each thing that is wrong, in each task


class Planned:
    """What a source has in the way of its events."""

    def __init__(self, context: StageContext, attempt: str) -> None:
        self._context = context
        self._attempt = attempt
        document = RulesDocument.unpacked(context.rules) if context.rules else RulesDocument("")
        self._document = document
        self._rules = None if document.is_empty else Rules(document)
        path = f"{context.folder}/violations-{attempt}.parquet"
        self._found: LinesFile[ViolationRow] = LinesFile(context.storage, path, SCHEMA, context.sizes.quarantine)
        self._samples: Counter[tuple[str | None, str, str]] = Counter()
        self._forwarded: dict[str, _Forwarded] = {}

    def looking(self, call: str, event: str) -> Callable[[bytes], bool] | None:
        """A function that tells whether a line of such events is left alone; None if all of them are."""
        return self._rules.looking(call, event) if self._rules else None

    def takes_none(self, call: str, event: str) -> bool:
        """Whether no such event is left alone."""
        return self.looking(call, event) is never

    def decided(self, event: Any, raw_file: str) -> Decision | None:
        """What becomes of an event; None if nobody has anything to say about it."""
        if self._rules is None or isinstance(self._context.dialect.sent(event), str):
            return None  # it is no event
        return self._rules.decided(event, was_blocked=raw_file.rpartition("/")[2].startswith(FORWARDED))

    def let_in(self, decision: Decision, set_aside: list[Rescued]) -> list[Rescued]:
        """What may get in of what was set aside of an event."""
        if not (self._rules and set_aside):
            return set_aside
        hidden = self._rules.hidden(decision)
        places = [(entry, tuple(keys_of(entry.pointer))) for entry in set_aside]
        return [entry for entry, place in places if not any(trees.meet(place, one) for one in hidden)]

    def note(self, decision: Decision, count: FileCount, number: int, line: bytes, message_id: str, at: int) -> None:
        """Tell what was found about an event, and who wants to hear of it."""
        event, blocked, verdict = decision
        count.violated += len(verdict.violations)
        if blocked:
            count.blocks(at)
        count.changed += blocked is None and not (verdict.is_clean and event is verdict.event)
        if self._context.notes_withheld or (verdict.is_clean and not blocked):
            return  # of a replay it was told when it came first
        name = verdict.event.get("event") or verdict.event.get("name")
        name = name if isinstance(name, str) else None
        lost = frozenset(verdict.omitted_on_violation)
        kind = str(verdict.event.get("type"))
        for place, violation in enumerate(verdict.violations):
            action = "blocked" if blocked else "omitted" if violation.field in lost else "allowed"
            is_sample = self._is_sample((name, violation.type, violation.field))
            content = line if is_sample or (blocked and not place) else None
            about = (violation.type, violation.field, violation.description, content)
            self._found.add(ViolationRow(count.file.path, number, message_id, at, kind, name, action, blocked, *about))
        if blocked and not verdict.violations:
            about_nothing = (None, None, None, line)
            self._found.add(
                ViolationRow(count.file.path, number, message_id, at, kind, name, "blocked", blocked, *about_nothing)
            )
        for source_id, told in forwarded(self._document, decision, message_id):
            if source_id not in self._forwarded:
                path = f"{self._context.folder}/forwarded-{self._attempt}-{len(self._forwarded)}.gz"
                self._forwarded[source_id] = _Forwarded(path, self._context.storage.open_output(path))
            self._forwarded[source_id].add(told, count.file.path)

    def _is_sample(self, what: tuple[str | None, str, str]) -> bool:
        """Whether a line shows something that was not seen often yet."""
        if len(self._samples) >= self._context.sizes.things_shown and what not in self._samples:
            return False
        self._samples[what] += 1
        return self._samples[what] <= _SAMPLES

    def close(self, without: set[str]) -> tuple[str | None, dict[str, str]]:
        """Finish the files: that with violations, and those for other sources."""
        self._found.close(without=without)
        files = {}
        for source_id, file in self._forwarded.items():
            if path := file.close(self._context.storage, without):
                files[source_id] = path
        return (self._found.path if self._found.rows else None), files


class _Forwarded:
    """A file with events for another source."""

    def __init__(self, path: str, sink: Any) -> None:
        self._path = path
        self._sink = sink
        self._packed = gzip.GzipFile(fileobj=cast("BinaryIO", sink), mode="wb", mtime=0)
        self._from: list[str] = []  # the raw file of each

    def add(self, event: dict[str, Any], raw_file: str) -> None:
        self._packed.write(exact_json.encode(event) + b"\n")
        self._from.append(raw_file)

    def close(self, storage: Storage, without: set[str]) -> str | None:
        """Where the file is; what came from raw files that broke off is not in it, as they will be read again."""
        self._packed.close()
        self._sink.close()
        if without.isdisjoint(self._from):
            return self._path
        whole = _Forwarded(path := f"{self._path.removesuffix('.gz')}-whole.gz", storage.open_output(path))
        with storage.open_stream(self._path) as packed, gzip.GzipFile(fileobj=packed) as lines:
            for line, raw_file in zip(lines, self._from, strict=True):
                if raw_file not in without:
                    whole._packed.write(line)
                    whole._from.append(raw_file)
        whole.close(storage, set())
        return path if whole._from else None
