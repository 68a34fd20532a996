"""What a run tells of itself in its report, before it is committed."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from eventlake.reports import report
from eventlake.sync.jobs import Job
from eventlake.sync.notices import notices_of
from eventlake.sync.outcome import Outcome
from eventlake.tasks.counts import Count
from eventlake.tasks.scope import Mode

Partitions = Mapping[str, Collection[tuple[str, ...]]]
"""Which of the partitions that a run writes are there before, by table key."""


def table_lines(job: Job, partitions: Partitions, outcome: Outcome) -> list[report.TableLine]:
    """What the report tells of each table that the run wrote to, or found copies for."""
    dialect = job.connection.dialect
    lines = []
    published = outcome.by_table
    for plan in outcome.plans:
        parts = published.get(plan.table_key, [])
        written = {file.partition for part in parts for file in part.files}
        count = outcome.accounts.tables.get(plan.table_key, Count())
        removed = outcome.kept.removed_tables.get(plan.table_key, 0)
        if not written and not count.duplicates and not removed:
            continue
        known = () if job.mode is Mode.REBUILD else partitions.get(plan.table_key, ())
        new = sorted(values for values in written.difference(known) if values)
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
        if removed:
            extra["removed"] = removed
        if plan.table_key in job.new_types:
            extra["retyped"] = {name: kind.value for name, kind in job.new_types[plan.table_key].items()}
        if plan.refused:
            extra["refused_columns"] = len(plan.refused)
        if plan.reasons and written:
            extra["type_reasons"] = dict(plan.reasons)
        lines.append(
            report.TableLine(
                table_name=dialect.table_name(plan.table_key),
                row_count=sum(part.rows for part in parts) if plan.table_key == dialect.discards else count.loaded,
                is_new=plan.is_new and bool(written),
                partitions=[dict(zip(dialect.date_partition.keys, values, strict=True)) for values in new],
                new_columns=[{"name": c.name, "type": c.type.value} for c in plan.added] if written else [],
                extra=extra,
            )
        )
    return lines


def extra_of(job: Job, outcome: Outcome, tables: int) -> dict[str, Any]:
    """What it tells of the whole run, beyond Segment's fields; the source has so many tables then."""
    accounts = outcome.accounts
    failed = [{"file": count.file.path, "error": count.error} for count in outcome.staged.files if count.error]
    failed += [{"file": annex, "error": problem} for annex, problem in outcome.found.out_of_reach.items()]
    extra: dict[str, Any] = {
        "kind": job.kind,
        "books": accounts.whole.as_report(),
        "files_read": len(accounts.files),
        "rescued": outcome.rescued,
        "data_files": len(outcome.data_files),
        "bytes": sum(file.size for file in outcome.data_files),
    }
    rewritten = sum(count.rewritten for count in accounts.tables.values())
    again = outcome.reindexed(job)
    if job.is_replay:
        extra |= {"rewritten": rewritten, "carried_over": outcome.carried}
    if failed:
        extra["failed_files"] = failed
    if outcome.removed:
        extra["removed"] = outcome.removed
    if outcome.staged.blocked_by:
        extra["blocked_by"] = dict(outcome.staged.blocked_by)
    if between := outcome.staged.blocked_between:
        extra["blocked_between"] = between
    told = {"violated": outcome.staged.violated, "changed": outcome.staged.changed}
    extra |= {name: number for name, number in told.items() if number}
    if outcome.kept.thinned.replaced:
        extra["reindexed"] = outcome.kept.thinned.as_report
    elif again.replaced:
        extra["reindexed"] = again.as_report
    notices = notices_of(job, outcome, tables)
    if notices:
        extra["notices"] = notices
    return extra
