"""What goes into the tasks of the stage, and what comes out of them."""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from eventlake.archive.reader import ReadSizes
from eventlake.archive.whole import WholeArchive
from eventlake.lake.dialects import Dialect
from eventlake.lake.lines_file import LineSizes
from eventlake.lake.staging import IdSegment
from eventlake.reading.scanner import ScanSizes
from eventlake.schema.evolve import Evidence
from eventlake.schema.selection import EVERYTHING, Selection
from eventlake.storage.base import Storage
from eventlake.tasks.scope import Scope

HOURS_COUNTED = 24  # a table that was seen in so many is no accident


class RawFile(NamedTuple):
    """A raw file of this run; `number` is its place in the run's list of files."""

    number: int
    path: str
    size: int
    etag: str


@dataclass(frozen=True)
class StageSizes:
    """How much a stage task holds at once."""

    read: ReadSizes = field(default_factory=ReadSizes)
    scan: ScanSizes = field(default_factory=ScanSizes)
    quarantine: LineSizes = field(default_factory=LineSizes)
    at_once: bool = True  # else all lines are read one by one
    bytes_at_once: int = 64 << 20  # of raw lines
    bytes_per_line: int = 100  # that a line takes in memory besides
    rows_per_chunk: int = 4096  # more rows fall out of the processor's cache while they are lists
    bytes_in_buffers: int = 64 << 20  # of raw lines, over all tables
    ids_per_segment: int = 1_000_000
    names_remembered: int = 100_000
    things_shown: int = 10_000  # that are not as planned, with some lines of each: any more somebody has made up
    new_columns: int = 300_000  # over all tables; values of any more are rescued


@dataclass(frozen=True)
class StageContext:
    """What all stage tasks of a run share."""

    folder: str  # where the run stages
    storage: Storage
    archive: WholeArchive
    dialect: Dialect
    known_columns: dict[str, frozenset[str]]
    column_limit: int
    table_limit: int  # new tables that one task may find
    scope: Scope | None = None
    only_tables: frozenset[str] | None = None  # the tables that may be, if the limit decides
    preferred_tables: frozenset[str] = frozenset()  # found also beyond the limit: they were refused before
    dropped_tables: frozenset[str] = frozenset()  # their events are left out
    text_columns: dict[str, frozenset[str]] = field(default_factory=dict)  # that take an object as JSON text
    selection: Selection = EVERYTHING
    integration: str | None = None  # events in which `integrations` has false under this name are left out
    suppressed: str | None = None  # the file with those whose events are left out
    rules: bytes = b""  # the source's RulesDocument, if it has a plan or transformations
    notes_withheld: bool = False  # whether a replay has to know which messages a policy kept out
    sizes: StageSizes = field(default_factory=StageSizes)


@dataclass
class FileCount:
    """What became of the lines of one raw file, as far as staging can tell."""

    file: RawFile
    lines: int = 0
    staged: int = 0
    quarantined: int = 0
    blocked: int = 0  # of tables that were dropped
    first_received: int | None = None
    last_received: int | None = None
    digest: str = ""  # of the file's content
    error: str | None = None
    suppressed: int = 0
    violated: int = 0  # things in events that are not as planned
    changed: int = 0  # events that are not as they were sent
    first_blocked: int | None = None  # by a plan or a transformation: when it was received
    last_blocked: int | None = None

    def spans(self, first: int, last: int) -> None:
        """The file has messages that were received then."""
        self.first_received = first if self.first_received is None else min(first, self.first_received)
        self.last_received = last if self.last_received is None else max(last, self.last_received)

    def blocks(self, received: int) -> None:
        """A plan or a transformation blocks a message that was received then."""
        self.first_blocked = received if self.first_blocked is None else min(received, self.first_blocked)
        self.last_blocked = received if self.last_blocked is None else max(received, self.last_blocked)


@dataclass
class News:
    """What was seen of a table that the catalog does not know."""

    evidence: Evidence = field(default_factory=dict)  # of new columns
    hours: set[int] = field(default_factory=set)  # in which events of a new table were received: some


@dataclass
class StageResult:
    files: list[FileCount]
    staged: str  # the staged file
    tables: bytes  # which have rows in it, and where: see `lake.segments`
    news: dict[str, News]  # of tables
    id_segments: list[IdSegment]
    quarantine: str | None
    refused_tables: Counter[str]  # lines of tables for which there was no room
    blocked_by: Counter[str] = field(default_factory=Counter)  # lines that were left out, by reason
    violations: str | None = None  # a file with what was not as planned
    forwarded: dict[str, str] = field(default_factory=dict)  # files with events for other sources, by their ids
    withheld: str | None = None  # a file with the messages that a policy kept out, if a replay has to know them
    one_by_one: str | None = None  # the kind of system, if it can only read lines one by one
