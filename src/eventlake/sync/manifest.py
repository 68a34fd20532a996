"""From what a run did to what will be written down: the manifest, the ledger entry and the report."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from eventlake.catalog.base import CatalogTable, TableChange
from eventlake.control.admission import Decisions, remembered
from eventlake.control.ledger import Entry, IndexFile, LakeFile, LoadedFile
from eventlake.lake.layout import QUARANTINE
from eventlake.reports import report
from eventlake.schema.evolve import Column
from eventlake.schema.names import RESCUED_COLUMN
from eventlake.schema.types import ColumnType
from eventlake.sync.commit import VERSION, Manifest, Noted
from eventlake.sync.dedupe import Count, Mode
from eventlake.sync.index import named
from eventlake.sync.jobs import Job
from eventlake.sync.notices import notices_of
from eventlake.sync.outcome import Outcome
from eventlake.sync.steps import replaced_files
from eventlake.workspace import Lake


def manifest_of(lake: Lake, job: Job, head: report.RunHead, outcome: Outcome) -> Manifest:
    """All that the run will do to the lake."""
    finish_ns = lake.clock.now_ns()
    run_id, source_id, at = head.run_id, job.connection.source.id, finish_ns // 1000
    known = lake.catalog.tables(source_id)
    index = _index(job, outcome, run_id, at)
    # The lines that a replay cannot read were put aside when they came first.
    bad_lines = [] if job.is_replay else outcome.staged.quarantine
    quarantine = {
        path: f"{QUARANTINE}/source={source_id}/run_id={run_id}/{number}.parquet"
        for number, path in enumerate(bad_lines)
    }
    data = [file for part in outcome.published for file in part.files]
    tables = _table_changes(known, job, outcome)
    after = {table.segment_type for table in known} | {change.segment_type for change in tables}
    lines = report.finished(head, finish_ns, _table_lines(lake, job, outcome), _extra(job, outcome, len(after)))
    entry = Entry(
        run_id=run_id,
        source_id=source_id,
        at=at,
        report=lines,
        raw_files=[] if job.is_replay else _loaded_files(source_id, run_id, outcome),
        data_files=[
            LakeFile(
                path=file.path,
                source_id=source_id,
                segment_type=file.segment_type,
                partition=list(file.partition),
                rows=file.rows,
                size=file.size,
                digest=file.digest,
                first_received=file.first_received,
                last_received=file.last_received,
                run_id=run_id,
            )
            for file in data
        ],
        removed_data_files=[file.path for file in replaced_files(lake, job)],
        index_files=list(index.values()),
        removed_index_files=_replaced_index(job, outcome),
        quarantine_files=list(quarantine.values()),
        decisions=_decisions(lake, job, outcome, at),
        source_settings=job.connection.settings.model_dump(mode="json") if job.mode is Mode.REBUILD else None,
    )
    return Manifest(
        entry=entry,
        moves=[
            *((file.written, file.path) for file in data),
            *((written, file.path) for written, file in index.items()),
            *quarantine.items(),
        ],
        tables=tables,
        dropped_tables=_dropped(known, job, tables),
        connection=Noted.of(job.connection),
        version=VERSION,
    )


def _decisions(lake: Lake, job: Job, outcome: Outcome, at: int) -> Decisions:
    """Which tables may be from now on, and which were refused. A replay meets lines that were counted before."""
    refused = outcome.staged.refused_tables
    allowed = job.allowed - refused.keys()
    if job.mode is Mode.REBUILD:  # reads everything, so it knows all
        return Decisions(refused=remembered([], refused, at))
    counted = {} if job.is_replay else refused
    before = lake.admission.refused(job.connection.source.id)
    rest = remembered(before, counted, at, allowed=allowed) if counted or allowed else None
    return Decisions(allowed=sorted(allowed), refused=rest)


def _index(job: Job, outcome: Outcome, run_id: str, now: int) -> dict[str, IndexFile]:
    parts = [(part, now) for part in outcome.kept.new_ids]
    if job.mode is not Mode.REBUILD:  # which makes the whole index anew
        again = outcome.kept.reindexed
        parts += [(part, again.synced_at) for part in again.parts]
    return named(parts, job.connection.source.id, run_id)


def _replaced_index(job: Job, outcome: Outcome) -> list[str]:
    index = outcome.found.index
    replaced = [*index.sound, *index.lost] if job.mode is Mode.REBUILD else outcome.kept.reindexed.replaced
    return [file.path for file in replaced]


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


def _table_changes(known: Sequence[CatalogTable], job: Job, outcome: Outcome) -> list[TableChange]:
    rules = job.connection.rules
    names = {(table.database, table.name) for table in known}
    partitions: dict[str, set[tuple[str, ...]]] = {}
    for part in outcome.published:
        partitions.setdefault(part.segment_type, set()).update(file.partition for file in part.files)
    rescued = {part.segment_type for part in outcome.published if part.rescued.total()}
    changes = []
    for plan in outcome.plans:
        name = plan.segment_type
        if not partitions.get(name) and name not in job.new_types:
            continue  # all its rows were duplicates: there is nothing new to show
        # A table that a rebuild gives another name brings its columns along.
        added = plan.added if (rules.database, rules.table_name(name)) in names else plan.columns
        if name in rescued:
            added += (Column(RESCUED_COLUMN, ColumnType.STRING, ""),)
        changes.append(
            TableChange(
                database=rules.database,
                table=rules.table_name(name),
                source_id=job.connection.source.id,
                segment_type=name,
                location=rules.location(name),
                partition_keys=rules.date_partition.keys,
                added=added,
                retyped=tuple(job.new_types.get(name, {}).items()),
                partitions=tuple(sorted(partitions.get(name, ()))),
                anew=job.mode is Mode.REBUILD,
            )
        )
    return changes


def _dropped(known: Sequence[CatalogTable], job: Job, changes: Sequence[TableChange]) -> list[tuple[str, str]]:
    """Tables that a rebuild leaves behind under their old names."""
    if job.mode is not Mode.REBUILD:
        return []
    kept = {(change.database, change.table) for change in changes}
    return sorted({(table.database, table.name) for table in known} - kept)


def _table_lines(lake: Lake, job: Job, outcome: Outcome) -> list[report.TableLine]:
    rules = job.connection.rules
    lines = []
    for plan in outcome.plans:
        parts = [part for part in outcome.published if part.segment_type == plan.segment_type]
        written = {file.partition for part in parts for file in part.files}
        count = outcome.accounts.tables.get(plan.segment_type, Count())
        if not written and not count.duplicates:
            continue
        known = set(lake.catalog.partitions(rules.database, rules.table_name(plan.segment_type)))
        new = sorted(written) if job.mode is Mode.REBUILD else sorted(written - known)
        extra: dict[str, Any] = {
            "books": {
                "staged": count.loaded + count.duplicates,
                "loaded": count.loaded,
                "duplicates": count.duplicates,
                "checksum": f"{count.checksum:032x}",
            },
            "files": sum(len(part.files) for part in parts),
            "bytes": sum(file.size for part in parts for file in part.files),
        }
        rescued = sum((part.rescued for part in parts), Counter[str]())
        if rescued:
            extra["rescued"] = dict(rescued.most_common(50))
        if count.rewritten:
            extra["rewritten"] = count.rewritten
        if plan.segment_type in job.new_types:
            extra["retyped"] = {name: kind.value for name, kind in job.new_types[plan.segment_type].items()}
        if plan.refused:
            extra["refused_columns"] = len(plan.refused)
        if plan.reasons and written:
            extra["type_reasons"] = dict(plan.reasons)
        lines.append(
            report.TableLine(
                table_name=rules.table_name(plan.segment_type),
                row_count=count.loaded,
                is_new=plan.is_new and bool(written),
                partitions=[dict(zip(rules.date_partition.keys, values, strict=True)) for values in new],
                new_columns=[{"name": c.name, "type": c.type.value} for c in plan.added] if written else [],
                extra=extra,
            )
        )
    return lines


def _extra(job: Job, outcome: Outcome, tables: int) -> dict[str, Any]:
    """What the report tells of the whole run, beyond Segment's fields."""
    accounts, published = outcome.accounts, outcome.published
    failed = [{"file": count.file.path, "error": count.error} for count in outcome.staged.files if count.error]
    extra: dict[str, Any] = {
        "kind": job.kind,
        "books": accounts.whole.as_report(),
        "files_read": len(accounts.files),
        "rescued": outcome.rescued,
        "data_files": sum(len(part.files) for part in published),
        "bytes": sum(file.size for part in published for file in part.files),
    }
    rewritten = sum(count.rewritten for count in accounts.tables.values())
    again = outcome.reindexed(job)
    if job.is_replay:
        extra |= {"rewritten": rewritten, "carried_over": outcome.carried}
    if failed:
        extra["failed_files"] = failed
    if again.replaced:
        extra["reindexed"] = again.as_report
    notices = notices_of(job, outcome, tables)
    if notices:
        extra["notices"] = notices
    return extra
