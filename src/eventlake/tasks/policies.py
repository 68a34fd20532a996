"""Policies, as a stage task meets them: which events they keep out, and what a replay must take away."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from eventlake.events.suppression import NOBODY, Suppressed
from eventlake.lake import ids
from eventlake.lake.ids import Array
from eventlake.lake.quarantine import Quarantined
from eventlake.lake.routes import Route
from eventlake.policies.rules import REASONS
from eventlake.reading.named import names
from eventlake.reading.scanner import LeftOut
from eventlake.schema.rescue import Rescued
from eventlake.tasks.id_files import IdWriter
from eventlake.tasks.staged import FileCount, StageContext

# Why an event is kept out; all but the first are reasons for which lines are counted as blocked.
SUPPRESSED = "suppressed"
NOT_SELECTED = "not selected"
UNWANTED = "integrations"  # the event says so itself
DROPPED = "dropped table"
_UNREAD = frozenset({"line_too_long", "not_json", "not_utf8", "nested_too_deeply", "not_an_object"})  # whoever it is of
BLOCKED_FOR = frozenset({NOT_SELECTED, UNWANTED, DROPPED, *REASONS})


class Policies:
    """What keeps events out, and the messages that were kept out."""

    def __init__(self, context: StageContext) -> None:
        self._blocked: Counter[tuple[int, str]] = Counter()  # lines, by file and reason
        self._context = context
        path = context.suppressed
        self._suppressed = Suppressed.unpacked(context.storage.read(path)) if path else NOBODY
        self._withheld: list[tuple[bytes, int, int, int]] = []

    @property
    def watched(self) -> Mapping[tuple[str, ...], Array]:
        """The places of events that decide, with the sums of values for which a closer look is needed."""
        watched: dict[tuple[str, ...], Array] = {path: one.checks for path, one in self._suppressed.subjects.items()}
        if self._context.integration:  # whatever is there but texts and whole numbers is looked at
            watched["integrations", self._context.integration] = np.empty(0, np.uint32)
        return watched

    def against(self, event: Any, set_aside: Sequence[Rescued] = ()) -> str | None:
        """Which policy keeps an event out, if any; what was set aside of it tells of people, too."""
        if names(self._suppressed.hides, event, set_aside):
            return SUPPRESSED
        name = self._context.integration
        integrations = event.get("integrations") if name and isinstance(event, dict) else None
        return UNWANTED if isinstance(integrations, dict) and integrations.get(name) is False else None

    def shown(self, line: Quarantined) -> Quarantined:
        """A line as quarantine keeps it: without its content if that cannot be read, for it may name anybody."""
        is_kept = not self._suppressed.subjects or line.reason not in _UNREAD
        return line if is_kept else line._replace(content=b"")

    def withhold(self, count: FileCount, policy: str, message_id: str, received: int, route: Route) -> None:
        """Note an event that is kept out: a replay takes it out of the lake, and one may let it in again."""
        count.spans(received, received)
        if policy == SUPPRESSED:
            count.suppressed += 1
        else:
            self.block(count, policy)
        if self._context.notes_withheld:
            message = ids.message_hash(message_id), received, ids.route_hash(route), count.file.number
            self._withheld.append(message)

    def block(self, count: FileCount, reason: str, lines: int = 1) -> None:
        count.blocked += lines
        self._blocked[count.file.number, reason] += lines

    def blocked_by(self, without: frozenset[int]) -> Counter[str]:
        """How many lines were blocked for what reason, without those of raw files that broke off."""
        found: Counter[str] = Counter()
        for (number, reason), lines in self._blocked.items():
            if number not in without:
                found[reason] += lines
        return found

    def block_all(self, counts: Mapping[int, FileCount], file_of: Array, left_out: LeftOut) -> None:
        """Count lines of tables that the lake is not to have, of which nothing was read."""
        of_lines = file_of[left_out.lines]
        for number in np.unique(of_lines):
            received = left_out.received[of_lines == number]
            count = counts[int(number)]
            count.lines += len(received)
            count.spans(int(received.min()), int(received.max()))
            self.block(count, NOT_SELECTED, len(received))

    def written(self, writer: IdWriter, without: frozenset[int]) -> str | None:
        """A file with the ids of what was kept out, without those of raw files that broke off."""
        kept = [message for message in self._withheld if message[3] not in without]
        if not kept:
            return None
        hashes, received, routes, _ = zip(*kept, strict=True)
        of_lines = {"received": np.array(received), "route": np.array(routes, "<u8")}
        return writer.file(ids.Ids({**ids.from_digests(hashes), **of_lines}).ordered(), "withheld")
