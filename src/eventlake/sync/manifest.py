"""From what a run did to what will be written down: the manifest, the ledger entry and the report."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from eventlake.catalog.base import TableChange
from eventlake.control.ledger import Entry, IndexFile, LakeFile, LoadedFile
from eventlake.lake.layout import INDEX, QUARANTINE
from eventlake.reports import report
from eventlake.schema.evolve import Column
from eventlake.schema.names import RESCUED_COLUMN
from eventlake.schema.types import ColumnType
from eventlake.sync.books import Accounts
from eventlake.sync.commit import Manifest
from eventlake.sync.dedupe import Count, Kept, Mode
from eventlake.sync.discover import Found
from eventlake.sync.jobs import Job
from eventlake.sync.plan import Staged, TablePlan
from eventlake.sync.publish import Published
from eventlake.sync.steps import replaced_files
from eventlake.workspace import Workspace


class Outcome(NamedTuple):
    """What the steps of a run gave."""

    found: Found
    staged: Staged
    kept: Kept
    plans: list[TablePlan]
    published: list[Published]
    accounts: Accounts


def manifest_of(workspace: Workspace, job: Job, head: report.RunHead, outcome: Outcome) -> Manifest:
    """All that the run will do to the lake."""
    finish_ns = workspace.clock.now_ns()
    run_id, source_id = head.run_id, job.source.id
    index = {
        part.path: IndexFile(
            path=f"{INDEX}/source={source_id}/{run_id}-{number}.ids",
            run_id=run_id,
            messages=part.messages,
            checksum=f"{part.checksum:032x}",
            synced_at=finish_ns // 1000,
        )
        for number, part in enumerate(outcome.kept.new_ids)
    }
    # The lines that a replay cannot read were put aside when they came first.
    bad_lines = [] if job.is_replay else outcome.staged.quarantine
    quarantine = {
        path: f"{QUARANTINE}/source={source_id}/run_id={run_id}/{number}.parquet"
        for number, path in enumerate(bad_lines)
    }
    data = [file for part in outcome.published for file in part.files]
    tables = _table_changes(workspace, job, outcome)
    lines = report.finished(head, finish_ns, _table_lines(workspace, job, outcome), _extra(job, outcome))
    entry = Entry(
        run_id=run_id,
        source_id=source_id,
        at=finish_ns // 1000,
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
        removed_data_files=[file.path for file in replaced_files(workspace, job)],
        index_files=list(index.values()),
        removed_index_files=_replaced_index(job, outcome.found),
        quarantine_files=list(quarantine.values()),
        source_settings=job.source.settings.model_dump(mode="json") if job.mode is Mode.REBUILD else None,
    )
    return Manifest(
        entry=entry,
        moves=[
            *((file.written, file.path) for file in data),
            *((written, file.path) for written, file in index.items()),
            *quarantine.items(),
        ],
        tables=tables,
        dropped_tables=_dropped(workspace, job, tables),
    )


def _replaced_index(job: Job, found: Found) -> list[str]:
    return [*found.lost_index_files, *(found.index_files if job.mode is Mode.REBUILD else ())]


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


def _table_changes(workspace: Workspace, job: Job, outcome: Outcome) -> list[TableChange]:
    rules = job.source.rules
    known = {(table.database, table.name) for table in workspace.catalog.tables(job.source.id)}
    partitions: dict[str, set[tuple[str, ...]]] = {}
    rescued: Counter[str] = Counter()
    for part in outcome.published:
        partitions.setdefault(part.segment_type, set()).update(file.partition for file in part.files)
        rescued[part.segment_type] += sum(part.rescued.values())
    changes = []
    for plan in outcome.plans:
        name = plan.segment_type
        if not partitions.get(name) and plan.is_new:
            continue  # all its rows were duplicates: there is nothing to show
        # A table that a rebuild gives another name brings its columns along.
        added = plan.added if (rules.database, rules.table_name(name)) in known else plan.columns
        if rescued[name]:
            added += (Column(RESCUED_COLUMN, ColumnType.STRING, ""),)
        changes.append(
            TableChange(
                database=rules.database,
                table=rules.table_name(name),
                source_id=job.source.id,
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


def _dropped(workspace: Workspace, job: Job, changes: Sequence[TableChange]) -> list[tuple[str, str]]:
    """Tables that a rebuild leaves behind under their old names."""
    if job.mode is not Mode.REBUILD:
        return []
    kept = {(change.database, change.table) for change in changes}
    old = {(table.database, table.name) for table in workspace.catalog.tables(job.source.id)}
    return sorted(old - kept)


def _table_lines(workspace: Workspace, job: Job, outcome: Outcome) -> list[report.TableLine]:
    rules = job.source.rules
    lines = []
    for plan in outcome.plans:
        parts = [part for part in outcome.published if part.segment_type == plan.segment_type]
        written = {file.partition for part in parts for file in part.files}
        count = outcome.accounts.tables.get(plan.segment_type, Count())
        if not written and not count.duplicates:
            continue
        known = set(workspace.catalog.partitions(rules.database, rules.table_name(plan.segment_type)))
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
        if plan.refused:
            extra["refused_columns"] = len(plan.refused)
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


def _extra(job: Job, outcome: Outcome) -> dict[str, Any]:
    """What the report tells of the whole run, beyond Segment's fields."""
    found, staged, kept, plans, published, accounts = outcome
    rescued = sum(sum(part.rescued.values()) for part in published)
    failed = [{"file": count.file.path, "error": count.error} for count in staged.files if count.error]
    extra: dict[str, Any] = {
        "kind": job.mode.value,
        "books": accounts.whole.as_report(),
        "files_read": len(accounts.files),
        "rescued": rescued,
        "data_files": sum(len(part.files) for part in published),
        "bytes": sum(file.size for part in published for file in part.files),
    }
    rewritten = sum(count.rewritten for count in accounts.tables.values())
    carried = sum(kept.carried_rows.values())
    if job.is_replay:
        extra |= {"rewritten": rewritten, "carried_over": carried}
    if failed:
        extra["failed_files"] = failed
    notices = []
    if not found.files and not carried:
        notices.append("No data found")
    if failed:
        notices.append(f"{len(failed)} raw files could not be read; the next sync tries them again")
    if accounts.whole.quarantined:
        notices.append(f"{accounts.whole.quarantined} lines are not events; see __segment_datalake.quarantine")
    if rescued:
        notices.append(f"{rescued} values did not fit their columns; see {RESCUED_COLUMN}")
    if staged.refused_tables:
        names = ", ".join(sorted(staged.refused_tables)[:5])
        notices.append(f"{len(staged.refused_tables)} new tables were refused (table_limit): {names}")
    refused = sum(len(plan.refused) for plan in plans)
    if refused:
        notices.append(f"{refused} new columns were refused (column_limit); their values are in {RESCUED_COLUMN}")
    if found.gone:
        notices.append(
            f"{found.gone} raw files are gone from the archive; {carried} rows were carried over from the lake"
        )
    if notices:
        extra["notices"] = notices
    return extra
