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
    dropped: str | None = None  # the segment type of a table that is to go
    allowed: frozenset[str] = frozenset()  # segment types that were dropped or refused, and may be from now on
    only_left_out: bool = False  # only raw files of which lines were left out

    @property
    def kind(self) -> str:
        return self.mode.value if self.dropped is None else "drop"

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


def reindex(source: Source) -> Job:
    """Write nothing anew but the index, as far as it is lost."""
    return Job(source, Mode.REPLAY, Scope(FIRST, FIRST, frozenset()))


def retype(source: Source, segment_type: str, column: str, new_type: ColumnType) -> Job:
    """Give a column another type, and bring its whole history into it."""
    whole_table = replay(source, None, None, frozenset({segment_type}))
    return replace(whole_table, new_types={segment_type: {column: new_type}})


def drop(source: Source, segment_type: str) -> Job:
    """Remove a table from the lake, and leave its events out from then on. The raw archive stays as it is."""
    return Job(source, dropped=segment_type)


def allow(source: Source, segment_types: frozenset[str], *, were_loaded: bool) -> Job:
    """Let events of some tables in that were left out so far, also those of before.

    If they `were_loaded` once, any raw file may hold some. Else only those do of which lines were left out.
    """
    everything = replay(source, None, None, segment_types)
    return replace(everything, allowed=segment_types, only_left_out=not were_loaded)
