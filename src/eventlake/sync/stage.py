"""The first job of a run: raw files become staged files, and the driver learns what is in them."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

from eventlake.events import instants
from eventlake.lake.segments import unpacked
from eventlake.lake.staging import IdSegment
from eventlake.schema.evolve import Evidence, join
from eventlake.sync.discover import Found
from eventlake.sync.jobs import Job
from eventlake.sync.policies import rules_for, suppressed_file
from eventlake.sync.shares import stage_tasks
from eventlake.sync.state import LakeState
from eventlake.sync.work import Work
from eventlake.tasks import stage as task
from eventlake.tasks.scope import Mode
from eventlake.tasks.staged import HOURS_COUNTED, FileCount, StageContext, StageResult

NAMES_TO_CHOOSE_FROM = 1000  # tables beyond the limit that a task looks at, to keep the most used ones


@dataclass
class StagedTable:
    """What all stage tasks found of one table."""

    rows: int = 0
    segments: bytearray = field(default_factory=bytearray)  # where these are: records, see `lake.segments`
    evidence: Evidence = field(default_factory=dict)
    hours: set[int] = field(default_factory=set)


@dataclass
class Staged:
    """What all stage tasks found."""

    files: list[FileCount] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)  # of the staged files, by their numbers
    tables: dict[str, StagedTable] = field(default_factory=dict)
    id_segments: list[IdSegment] = field(default_factory=list)
    quarantine: list[str] = field(default_factory=list)
    refused_tables: Counter[str] = field(default_factory=Counter)  # lines
    one_by_one: set[str] = field(default_factory=set)  # kinds of systems that can only read lines so
    violations: list[str] = field(default_factory=list)  # files with what was not as planned
    forwarded: list[tuple[str, str]] = field(default_factory=list)  # files with events for other sources
    withheld: list[str] = field(default_factory=list)  # files with messages that a policy kept out
    blocked_by: Counter[str] = field(default_factory=Counter)  # lines, by reason

    @property
    def messages(self) -> int:
        return sum(segment.messages for segment in self.id_segments)

    @property
    def violated(self) -> int:
        """Things in events that are not as planned."""
        return sum(count.violated for count in self.files if not count.error)

    @property
    def changed(self) -> int:
        """Events that are not as they were sent."""
        return sum(count.changed for count in self.files if not count.error)

    @property
    def blocked_between(self) -> list[str]:
        """When the first and the last event were received that rules blocked; empty if there are none."""
        bounds = [(count.first_blocked, count.last_blocked) for count in self.files if not count.error]
        blocked = [time for both in bounds for time in both if time is not None]
        return [instants.to_text(min(blocked)), instants.to_text(max(blocked))] if blocked else []

    @property
    def failed_files(self) -> frozenset[int]:
        return frozenset(count.file.number for count in self.files if count.error)


def stage(work: Work, state: LakeState, found: Found) -> Staged:
    if not found.files:
        return Staged()
    job = work.job
    settings = job.connection.settings
    context = StageContext(
        folder=work.folder,
        storage=work.lake.storage,
        archive=work.archive,
        dialect=job.connection.dialect,
        known_columns=state.known_columns(job),
        column_limit=settings.column_limit,
        table_limit=settings.table_limit + NAMES_TO_CHOOSE_FROM,
        scope=job.scope,
        preferred_tables=job.allowed | {table.table_key for table in state.refused},
        dropped_tables=state.dropped,
        text_columns=state.text_columns(job),
        selection=settings.selection,
        integration=work.lake.name if settings.honour_integrations else None,
        suppressed=suppressed_file(work),
        rules=rules_for(work),
        notes_withheld=job.is_replay,
        sizes=work.sizes.stage,
    )
    tasks = stage_tasks(found.files, work.runner.parallelism, work.sizes.shares)
    staged = combine(work.spread("stage", task.stage, context, tasks))
    allowed = tables_within(_room(job, len(state.tables)), state.tables, staged, context.preferred_tables)
    if allowed is not None:  # tasks do not know of each other's new tables: once more, with the tables that may be
        context = replace(context, only_tables=allowed)
        staged = combine(work.spread("stage", task.stage, context, tasks))
    return staged


def combine(results: Iterable[StageResult]) -> Staged:
    """Join the results of stage tasks; the order does not matter, but for the numbers of staged files."""
    whole = Staged()
    for number, result in enumerate(results):
        whole.paths.append(result.staged)
        whole.files += result.files
        whole.id_segments += result.id_segments
        whole.refused_tables.update(result.refused_tables)
        whole.blocked_by.update(result.blocked_by)
        whole.one_by_one |= {result.one_by_one} if result.one_by_one else set()
        if result.quarantine:
            whole.quarantine.append(result.quarantine)
        if result.withheld:
            whole.withheld.append(result.withheld)
        if result.violations:
            whole.violations.append(result.violations)
        whole.forwarded += result.forwarded.items()
        found = unpacked(result.tables)
        records = found.in_file(number)
        for name, rows, (start, end) in zip(found.tables, found.rows, pairwise(found.ends), strict=True):
            table = whole.tables.get(name)
            if table is None:
                table = whole.tables[name] = StagedTable()
            table.rows += rows
            table.segments += records[start:end]
        for name, news in result.news.items():
            table = whole.tables[name]
            table.evidence = join([table.evidence, news.evidence])
            table.hours |= news.hours
    whole.files.sort(key=lambda count: count.file.number)
    return whole


class Room(NamedTuple):
    """How many tables may be added: at all, and of names that were not seen for long."""

    tables: int
    of_young_names: int


def _room(job: Job, tables: int) -> Room:
    """How many tables may be added: by a first sync all that the source has, by a replay what is asked for."""
    settings = job.connection.settings
    is_bound = tables and job.mode is Mode.SYNC
    left = max(0, settings.table_limit - tables)
    return Room(left, min(left, settings.new_tables_per_run) if is_bound else left)


def tables_within(
    room: Room, known: Collection[str], staged: Staged, refused_before: Collection[str] = ()
) -> frozenset[str] | None:
    """The tables that may be, if there is so much room for new ones; None if all may be.

    Names that come again come first, then those seen in the most hours, then those with the most rows: whoever makes
    up names has to go on doing so for long to win over an app.
    """

    def hours(name: str) -> int:
        return min(len(staged.tables[name].hours), HOURS_COUNTED)

    new = sorted(
        staged.tables.keys() - set(known),
        key=lambda name: (name not in refused_before, -hours(name), -staged.tables[name].rows, name),
    )
    young = [name for name in new if hours(name) < HOURS_COUNTED]
    refused = set(young[room.of_young_names :])
    allowed = [name for name in new if name not in refused][: room.tables]
    return frozenset(known) | frozenset(allowed) if len(allowed) < len(new) else None
