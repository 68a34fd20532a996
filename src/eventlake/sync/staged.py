"""What goes into the tasks of the stage, and what comes out of them."""

from dataclasses import dataclass, field
from typing import NamedTuple

from eventlake.lake.layout import LakeRules
from eventlake.lake.staging import IdSegment, Segment
from eventlake.schema.evolve import Evidence
from eventlake.storage.base import Storage


class RawFile(NamedTuple):
    """A raw file of this run; `number` is its place in the run's list of files."""

    number: int
    path: str
    size: int
    etag: str


@dataclass(frozen=True)
class Scope:
    """What a replay takes: events received in [start, stop), of some tables or of all."""

    start: int
    stop: int
    segment_types: frozenset[str] | None = None


@dataclass(frozen=True)
class StageContext:
    """What all stage tasks of a run share."""

    run_id: str
    storage: Storage
    rules: LakeRules
    known_columns: dict[str, tuple[str, ...]]
    column_limit: int
    table_limit: int  # new tables that one task may find
    scope: Scope | None = None
    only_tables: frozenset[str] | None = None  # the tables that may be, if the limit decides


@dataclass
class FileCount:
    """What became of the lines of one raw file, as far as staging can tell."""

    file: RawFile
    lines: int = 0
    staged: int = 0
    quarantined: int = 0
    first_received: int | None = None
    last_received: int | None = None
    digest: str = ""  # of the file's content
    error: str | None = None


@dataclass
class StagedTable:
    rows: int = 0
    segments: list[Segment] = field(default_factory=list)
    evidence: Evidence = field(default_factory=dict)


@dataclass
class StageResult:
    files: list[FileCount]
    tables: dict[str, StagedTable]
    id_segments: list[IdSegment]
    quarantine: str | None
    refused_tables: list[str]
