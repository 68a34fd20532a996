"""What a run is asked to do."""

from dataclasses import dataclass, field, replace

from eventlake.catalog.base import TableChange
from eventlake.control.connections import Connection
from eventlake.errors import InvalidSettingsError
from eventlake.events.instants import FIRST, LAST
from eventlake.schema.types import ColumnType
from eventlake.tasks.scope import Mode, Scope

NOTHING = Scope(FIRST, FIRST, frozenset())


@dataclass(frozen=True)
class Job:
    """One run of one connection."""

    connection: Connection  # with the settings that hold after the run
    mode: Mode = Mode.SYNC
    scope: Scope | None = None
    asked_from: int | None = None  # as the user gave it, for the report
    asked_to: int | None = None
    new_types: dict[str, dict[str, ColumnType]] = field(default_factory=dict)  # by table key and column
    dropped: str | None = None  # the key of a table that is to go
    adopted: tuple[TableChange, ...] = ()  # tables of others that are to be taken over
    allowed: frozenset[str] = frozenset()  # keys of tables that were dropped or refused, and may be from now on
    only_left_out: bool = False  # only raw files of which lines were left out
    due_since: int | None = None  # it is only to be done if no sync was begun since

    @property
    def kind(self) -> str:
        if self.adopted:
            return "adopt"
        return self.mode.value if self.dropped is None else "drop"

    @property
    def is_replay(self) -> bool:
        return self.mode is not Mode.SYNC

    @property
    def is_beside_syncs(self) -> bool:
        """Whether syncs may be committed while it goes on: it changes neither settings nor types, nor drops tables."""
        changes = self.new_types or self.allowed or self.dropped is not None
        return self.mode is Mode.REPLAY and not changes and self.scope != NOTHING

    @property
    def is_alone(self) -> bool:
        """Whether neither syncs nor replays of the connection may go on meanwhile."""
        return not self.is_beside_syncs and (self.is_replay or self.dropped is not None or bool(self.adopted))


def sync(connection: Connection, *, due_since: int | None = None) -> Job:
    """Load the raw files that are not in the ledger; if it was due, only unless another sync was begun since."""
    return Job(connection, due_since=due_since)


def replay(
    connection: Connection, start: int | None, stop: int | None, table_keys: frozenset[str] | None = None
) -> Job:
    """Write again, from the archive, what was received in [start, stop): whole partitions; None is no bound."""
    width = connection.dialect.date_partition.width
    first = FIRST if start is None else start // width * width
    end = LAST + 1 if stop is None else -(-stop // width) * width
    return Job(connection, Mode.REPLAY, Scope(first, end, table_keys), asked_from=start, asked_to=stop)


def rebuild(connection: Connection) -> Job:
    """Write all tables of a connection anew, with the settings that the given one has."""
    return Job(connection, Mode.REBUILD)


def reindex(connection: Connection) -> Job:
    """Write nothing anew but the index, as far as it is lost."""
    return Job(connection, Mode.REPLAY, NOTHING)


def retype(connection: Connection, table_key: str, column: str, new_type: ColumnType) -> Job:
    """Give a column another type, and bring its whole history into it."""
    whole_table = replay(connection, None, None, frozenset({table_key}))
    return replace(whole_table, new_types={table_key: {column: new_type}})


def drop(connection: Connection, table_key: str) -> Job:
    """Remove a table from the lake, and leave its events out from then on. The raw archive stays as it is."""
    return Job(connection, dropped=table_key)


def adopt(connection: Connection, tables: tuple[TableChange, ...]) -> Job:
    """Take tables over that somebody else made."""
    return Job(connection, adopted=tables)


def allow(connection: Connection, table_keys: frozenset[str], *, were_loaded: bool) -> Job:
    """Let events of some tables in that were left out so far, also those of before.

    If they `were_loaded` once, any raw file may hold some. Else only those do of which lines were left out.
    """
    everything = replay(connection, None, None, table_keys)
    return replace(everything, allowed=table_keys, only_left_out=not were_loaded)


def as_saved(job: Job, saved: Connection) -> Job:
    """The job with the settings that its connection has now: another run may have changed them meanwhile."""
    if job.mode is Mode.REBUILD:
        return job  # it brings its own
    now, before = saved.settings, job.connection.settings
    changed = [name for name in now.fixed_once_loaded if getattr(now, name) != getattr(before, name)]
    if changed and job.scope is not None:  # which was made for the partitions of before
        raise InvalidSettingsError(
            f"{', '.join(changed)} of {saved.name!r} changed after this was asked for",
            fix="run it again: nothing was written",
        )
    return replace(job, connection=saved)
