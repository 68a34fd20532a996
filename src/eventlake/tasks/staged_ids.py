"""The ids of the messages that a stage task has staged, on their way to its staged file."""

import numpy as np

from eventlake.lake import ids
from eventlake.lake.staging import IdSegment, StagedFile


class StagedIds:
    """Numbers messages in the order in which they are staged, and writes their ids some hundred thousand at a time."""

    def __init__(self, file: StagedFile, per_segment: int) -> None:
        self.segments: list[IdSegment] = []
        self._file = file
        self._per_segment = per_segment
        self._messages = 0
        self._held: list[ids.Ids] = []
        self._pending = 0

    def number(self, messages: ids.Ids) -> int:
        """Give messages their numbers; that of the first."""
        first, self._messages = self._messages, self._messages + len(messages)
        messages.arrays["number"] = np.arange(first, self._messages)
        return first

    def add(self, messages: ids.Ids) -> None:
        self._held.append(messages)
        self._pending += len(messages)
        if self._pending >= self._per_segment:
            self.flush()

    def flush(self) -> None:
        if self._pending:
            self.segments.append(self._file.append_ids(ids.joined(self._held).ordered()))
            self._held, self._pending = [], 0
