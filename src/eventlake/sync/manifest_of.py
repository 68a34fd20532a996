"""From what a run did to what will be written down: the manifest, and the ledger entry."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from eventlake.catalog.base import TableChange, unchanged
from eventlake.commit.manifest import Manifest, Noted
from eventlake.control.admission import Decisions, remembered
from eventlake.control.ledger import Entry, IndexFile, LakeFile, LoadedFile, TableFiles
from eventlake.errors import InternalError
from eventlake.lake.violations import DAYS_KEPT
from eventlake.reports import report
from eventlake.schema.evolve import Column
from eventlake.schema.names import RESCUED_COLUMN
from eventlake.schema.types import ColumnType
from eventlake.sync.index import named
from eventlake.sync.jobs import Job
from eventlake.sync.outcome import Outcome
from eventlake.sync.report_of import Partitions, extra_of, table_lines
from eventlake.sync.state import LakeState
from eventlake.tasks.scope import Mode


def manifest_of(
    job: Job, state: LakeState, partitions: Partitions, head: report.RunHead, outcome: Outcome, finish_ns: int
) -> Manifest:
    """All that the run will do to the lake."""
    run_id, source_id, at = head.run_id, job.connection.source.id, finish_ns // 1000
    folders = job.connection.dialect.folders
    index = _index(job, outcome, run_id, at)
    # The lines that a replay cannot read were put aside when they came first.
    bad_lines = [] if job.is_replay else outcome.staged.quarantine
    of_run = f"source={source_id}/run_id={run_id}"
    quarantine = {path: f"{folders.quarantine}/{of_run}/{n}.parquet" for n, path in enumerate(bad_lines)}
    found = outcome.staged.violations
    violations = {path: f"{folders.violations}/{of_run}/{n}.parquet" for n, path in enumerate(found)}
    tables = _table_changes(state, job, outcome)
    after = state.tables.keys() | {change.table_key for change in tables}
    lines = report.finished(head, finish_ns, table_lines(job, partitions, outcome), extra_of(job, outcome, len(after)))
    entry = Entry(
        run_id=run_id,
        source_id=source_id,
        at=at,
        report=lines,
        raw_files=[] if job.is_replay else _loaded_files(source_id, run_id, outcome),
        files=_table_files(source_id, run_id, outcome),
        index_files=[*index.values(), *outcome.kept.thinned.taken],
        removed_index_files=_replaced_index(job, state, outcome),
        quarantine_files=list(quarantine.values()),
        violation_files=list(violations.values()),
        removed_violation_files=[] if job.is_replay else _outdated(state.violations, at),
        decisions=_decisions(state, job, outcome, at),
        source_settings=job.connection.settings.model_dump(mode="json") if job.mode is Mode.REBUILD else None,
        base=state.last_run,
    )
    moves = [
        *((file.written, file.path) for file in outcome.data_files),
        *((written, file.path) for written, file in index.items()),
        *quarantine.items(),
        *violations.items(),
    ]
    if len({path for _, path in moves}) < len(moves):
        raise InternalError("two files of this run have one name, so nothing was published", fix="run it again")
    return Manifest(
        entry=entry,
        moves=moves,
        tables=tables,
        dropped_tables=_dropped(state, job, tables),
        connection=Noted.of(job.connection),
    )


def _outdated(violations: Mapping[str, str], at: int) -> list[str]:
    """The files with violations that have been kept for long enough; a run's id tells when it began."""
    oldest = at * 1000 - DAYS_KEPT * 86_400 * 10**9
    return [path for path, run_id in violations.items() if int(run_id) < oldest]


def _table_files(source_id: str, run_id: str, outcome: Outcome) -> list[TableFiles]:
    """The data files that each table gains and loses."""
    files: dict[str, TableFiles] = {}
    for file in outcome.data_files:
        of_table = files.setdefault(file.table_key, TableFiles(file.table_key))
        of_table.added.append(
            LakeFile(
                path=file.path,
                source_id=source_id,
                table_key=file.table_key,
                partition=list(file.partition),
                rows=file.rows,
                size=file.size,
                digest=file.digest,
                first_received=file.first_received,
                last_received=file.last_received,
                run_id=run_id,
                owner=file.owner,
            )
        )
    for old in outcome.replaced:
        files.setdefault(old.table_key, TableFiles(old.table_key)).removed.append(old.path)
    return [files[key] for key in sorted(files) if files[key].added or files[key].removed]


def _decisions(state: LakeState, job: Job, outcome: Outcome, at: int) -> Decisions:
    """Which tables may be from now on, and which were refused. A replay meets lines that were counted before."""
    refused = outcome.staged.refused_tables
    allowed = job.allowed - refused.keys()
    if job.mode is Mode.REBUILD:  # reads everything, so it knows all
        return Decisions(refused=remembered([], refused, at))
    counted = {} if job.is_replay else refused
    rest = remembered(state.refused, counted, at, allowed=allowed) if counted or allowed else None
    return Decisions(allowed=sorted(allowed), refused=rest)


def _index(job: Job, outcome: Outcome, run_id: str, now: int) -> dict[str, IndexFile]:
    parts = [(part, now) for part in outcome.kept.new_ids]
    if outcome.kept.thinned.replaced:
        parts += outcome.kept.thinned.parts
    elif job.mode is not Mode.REBUILD:  # which makes the whole index anew
        again = outcome.kept.reindexed
        parts += [(part, again.synced_at) for part in again.parts]
    return named(parts, f"{job.connection.dialect.folders.index}/source={job.connection.source.id}", run_id)


def _replaced_index(job: Job, state: LakeState, outcome: Outcome) -> list[str]:
    index, kept = state.index, outcome.kept
    if job.mode is Mode.REBUILD:
        return [file.path for file in (*index.sound, *index.lost)]
    return [file.path for file in kept.thinned.replaced or kept.reindexed.replaced]


def _loaded_files(source_id: str, run_id: str, outcome: Outcome) -> list[LoadedFile]:
    counts = {count.file: count for count in outcome.staged.files}
    return [
        LoadedFile(
            source_id=source_id,
            path=file.path,
            size=file.size,
            etag=file.etag,
            run_id=run_id,
            lines=books.lines,
            loaded=books.loaded,
            duplicates=books.duplicates,
            suppressed=books.suppressed,
            blocked=books.blocked,
            quarantined=books.quarantined,
            checksum=f"{books.checksum:032x}",
            digest=counts[file].digest,
            first_received=counts[file].first_received,
            last_received=counts[file].last_received,
        )
        for file, books in outcome.accounts.files.items()
    ]


def _table_changes(state: LakeState, job: Job, outcome: Outcome) -> list[TableChange]:
    dialect = job.connection.dialect
    names = {(table.database, table.name) for table in state.tables.values()}
    partitions = outcome.partitions
    rescued = {part.table_key for part in outcome.published if part.rescued.total()}
    changes = []
    for plan in outcome.plans:
        name = plan.table_key
        if not partitions.get(name) and name not in job.new_types:
            continue  # all its rows were duplicates: there is nothing new to show
        # A table that a rebuild gives another name brings its columns along.
        added = plan.added if (dialect.database, dialect.table_name(name)) in names else plan.columns
        if name in rescued:
            added += (Column(RESCUED_COLUMN, ColumnType.STRING, ""),)
        changes.append(
            TableChange(
                database=dialect.database,
                table=dialect.table_name(name),
                source_id=job.connection.source.id,
                table_key=name,
                location=dialect.location(name),
                partition_keys=dialect.date_partition.keys,
                added=added,
                retyped=tuple(job.new_types.get(name, {}).items()),
                partitions=tuple(values for values in sorted(partitions.get(name, ())) if values),
            )
        )
    return _with_forgotten(state, job, outcome, changes)


def _with_forgotten(state: LakeState, job: Job, outcome: Outcome, changes: list[TableChange]) -> list[TableChange]:
    """The changes, with the partitions forgotten of which a replay took the last rows out."""
    of_tables = {change.table_key: change for change in changes}
    emptied = of_tables if job.mode is Mode.REBUILD else outcome.kept.removed_tables
    replaced = {file.path for file in outcome.replaced} if emptied else set()
    for key in emptied.keys() & state.tables.keys():
        table = state.tables[key]
        change = of_tables.get(key) or unchanged(table)
        is_same = (change.database, change.table) == (table.database, table.name)
        if not is_same or change.partition_keys != table.partition_keys:
            continue  # the old table goes, or all its partitions do
        files = [file for file in state.data_files if file.table_key == key and file.partition]
        before = {tuple(file.partition) for file in files if file.path in replaced}
        stay = {tuple(file.partition) for file in files if file.path not in replaced}
        gone = before - stay - outcome.partitions.get(key, set())
        if gone:
            of_tables[key] = replace(change, forgotten=tuple(sorted(gone)))
    return list(of_tables.values())


def _dropped(state: LakeState, job: Job, changes: Collection[TableChange]) -> list[tuple[str, str]]:
    """Tables that a rebuild leaves behind under their old names."""
    if job.mode is not Mode.REBUILD:
        return []
    kept = {(change.database, change.table) for change in changes}
    return sorted({(table.database, table.name) for table in state.tables.values()} - kept)
