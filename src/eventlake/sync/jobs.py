"""What a run is asked to do."""

from dataclasses import dataclass, field, replace

from eventlake.control.sources import Source
from eventlake.events.instants import FIRST, LAST
from eventlake.schema.types import ColumnType
from eventlake.sync.dedupe import Mode
from eventlake.sync.staged import Scope


@dataclass(frozen=True)
class Job:
    """One run of one source."""

    source: Source  # with the settings that hold after the run
    mode: Mode = Mode.SYNC
    scope: Scope | None = None
    asked_from: int | None = None  # as the user gave it, for the report
    asked_to: int | None = None
    new_types: dict[str, dict[str, ColumnType]] = field(default_factory=dict)  # by segment type and column

    @property
    def is_replay(self) -> bool:
        return self.mode is not Mode.SYNC


def sync(source: Source) -> Job:
    """Load the raw files that are not in the ledger."""
    return Job(source)


def replay(source: Source, start: int | None, stop: int | None, segment_types: frozenset[str] | None = None) -> Job:
    """Write again, from the archive, what was received in [start, stop): whole partitions; None is no bound."""
    width = source.settings.date_partition.width
    first = FIRST if start is None else start // width * width
    end = LAST + 1 if stop is None else -(-stop // width) * width
    return Job(source, Mode.REPLAY, Scope(first, end, segment_types), asked_from=start, asked_to=stop)


def rebuild(source: Source) -> Job:
    """Write all tables of a source anew, with the settings that the given source has."""
    return Job(source, Mode.REBUILD)


def retype(source: Source, segment_type: str, column: str, new_type: ColumnType) -> Job:
    """Give a column another type, and bring its whole history into it."""
    whole_table = replay(source, None, None, frozenset({segment_type}))
    return replace(whole_table, new_types={segment_type: {column: new_type}})
