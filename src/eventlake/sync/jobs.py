"""What a run is asked to do."""

from dataclasses import dataclass, field, replace

from eventlake.control.connections import Connection
from eventlake.control.settings import FIXED_ONCE_LOADED
from eventlake.errors import InvalidSettingsError
from eventlake.events.instants import FIRST, LAST
from eventlake.schema.types import ColumnType
from eventlake.sync.dedupe import Mode
from eventlake.sync.staged import Scope


@dataclass(frozen=True)
class Job:
    """One run of one connection."""

    connection: Connection  # with the settings that hold after the run
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


def sync(connection: Connection) -> Job:
    """Load the raw files that are not in the ledger."""
    return Job(connection)


def replay(
    connection: Connection, start: int | None, stop: int | None, segment_types: frozenset[str] | None = None
) -> Job:
    """Write again, from the archive, what was received in [start, stop): whole partitions; None is no bound."""
    width = connection.settings.date_partition.width
    first = FIRST if start is None else start // width * width
    end = LAST + 1 if stop is None else -(-stop // width) * width
    return Job(connection, Mode.REPLAY, Scope(first, end, segment_types), asked_from=start, asked_to=stop)


def rebuild(connection: Connection) -> Job:
    """Write all tables of a connection anew, with the settings that the given one has."""
    return Job(connection, Mode.REBUILD)


def reindex(connection: Connection) -> Job:
    """Write nothing anew but the index, as far as it is lost."""
    return Job(connection, Mode.REPLAY, Scope(FIRST, FIRST, frozenset()))


def retype(connection: Connection, segment_type: str, column: str, new_type: ColumnType) -> Job:
    """Give a column another type, and bring its whole history into it."""
    whole_table = replay(connection, None, None, frozenset({segment_type}))
    return replace(whole_table, new_types={segment_type: {column: new_type}})


def drop(connection: Connection, segment_type: str) -> Job:
    """Remove a table from the lake, and leave its events out from then on. The raw archive stays as it is."""
    return Job(connection, dropped=segment_type)


def allow(connection: Connection, segment_types: frozenset[str], *, were_loaded: bool) -> Job:
    """Let events of some tables in that were left out so far, also those of before.

    If they `were_loaded` once, any raw file may hold some. Else only those do of which lines were left out.
    """
    everything = replay(connection, None, None, segment_types)
    return replace(everything, allowed=segment_types, only_left_out=not were_loaded)


def as_saved(job: Job, saved: Connection) -> Job:
    """The job with the settings that its connection has now: another run may have changed them meanwhile."""
    if job.mode is Mode.REBUILD:
        return job  # it brings its own
    changed = [
        name for name in FIXED_ONCE_LOADED if getattr(saved.settings, name) != getattr(job.connection.settings, name)
    ]
    if changed and job.scope is not None:  # which was made for the partitions of before
        raise InvalidSettingsError(
            f"{', '.join(changed)} of {saved.name!r} changed after this was asked for",
            fix="run it again: nothing was written",
        )
    return replace(job, connection=saved)
