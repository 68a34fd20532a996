"""Notices of a report that tell what people would not expect."""

from collections.abc import Iterable, Mapping, Sequence

from eventlake.control.connections import Connection
from eventlake.lake.dialects import Dialect
from eventlake.policies.rules import REASONS
from eventlake.reports.words import count, either
from eventlake.schema.names import RESCUED_COLUMN
from eventlake.sync.index import Reindexed
from eventlake.sync.jobs import Job
from eventlake.sync.outcome import Outcome
from eventlake.sync.plan import TablePlan
from eventlake.tasks.policies import DROPPED
from eventlake.tasks.publish import Published

ALMOST_FULL = 0.9
MOST = 10  # notices of one kind; the rest is counted


def notices_of(job: Job, outcome: Outcome, tables: int) -> list[str]:
    """What the report tells people of the whole run; the source has so many tables then."""
    found, staged, plans = outcome.found, outcome.staged, outcome.plans
    accounts, published = outcome.accounts, outcome.published
    again = outcome.reindexed(job)
    told = []
    if not found.files and not found.out_of_reach and not outcome.carried and not again.replaced:
        told.append("No data found")
    if staged.failed_files:
        told.append(f"{count(len(staged.failed_files), 'raw file')} could not be read; the next sync tries again")
    if found.out_of_reach:
        away = count(len(found.out_of_reach), "place")
        told.append(f"{away} with raw files could not be looked into (failed_files); the next sync tries again")
    not_events = accounts.whole.quarantined - sum(staged.refused_tables.values())
    if not_events > 0:
        bad = either(not_events, "line is not an event", "lines are not events")
        told.append(f"{bad}; see __segment_datalake.quarantine")
    if outcome.rescued:
        odd = either(outcome.rescued, "value did not fit its column", "values did not fit their columns")
        told.append(f"{odd}; see {RESCUED_COLUMN}")
    if outcome.removed:
        rows = count(outcome.removed, "row")
        told.append(f"{rows} taken out of their tables: policies keep them out now, or give them other tables")
    unplanned = sum(staged.blocked_by[reason] for reason in REASONS)
    violating = either(staged.violated, "thing in events is not as planned", "things in events are not as planned")
    if not job.is_replay and (unplanned or staged.violated):
        told.append(f"{count(unplanned, 'event')} blocked, {violating}; see __segment_datalake.violations")
    wanted = job.scope.table_keys if job.scope else None
    no_room = {name: n for name, n in staged.refused_tables.items() if wanted is None or name in wanted}
    told += left_out(job.connection, staged.blocked_by, no_room, tables)
    told += unforeseen_types(job.connection.dialect, plans, published)
    refused = sum(len(plan.refused) for plan in plans)
    if refused:
        one = "new column was refused (column_limit); what it would hold"
        many = "new columns were refused (column_limit); what they would hold"
        told.append(f"{either(refused, one, many)} is in {RESCUED_COLUMN}")
    told += lost_index(again)
    if found.gone:
        gone = either(found.gone, "raw file is gone", "raw files are gone")
        told.append(f"{gone} from the archive; {count(outcome.carried, 'row')} carried over from the lake")
    if staged.one_by_one:
        systems = " and ".join(sorted(staged.one_by_one))
        told.append(
            f"there is no fast reader for {systems}, so lines were read one by one, which takes ten times as long"
        )
    return told


def lost_index(again: Reindexed) -> list[str]:
    """A part of the index that was not there any more."""
    made = f"made anew from the data files: {count(again.messages, 'message')}"
    return [f"a part of the index was lost or damaged, and {made}"] if again.replaced else []


def unforeseen_types(dialect: Dialect, plans: Sequence[TablePlan], published: Iterable[Published]) -> list[str]:
    """Columns that became text because of a few values."""
    written = {part.table_key for part in published if part.files}
    told = [
        f"{dialect.table_name(plan.table_key)}.{column} is {reason}"
        for plan in plans
        if plan.table_key in written
        for column, reason in plan.reasons.items()
        if reason.startswith("text")
    ]
    more = [f"{count(len(told) - MOST, 'more column')} became text because of a few values; see `eventlake describe`"]
    return told[:MOST] + (more if len(told) > MOST else [])


def left_out(connection: Connection, blocked: Mapping[str, int], refused: Mapping[str, int], tables: int) -> list[str]:
    """Events whose tables were dropped or refused, and how much room is left of the `tables` that may be."""
    told = []
    limit = connection.settings.table_limit
    if dropped := blocked.get(DROPPED):
        told.append(f"{count(dropped, 'line')} of dropped tables left out; see `eventlake drop --list`")
    if refused:
        setting = "table_limit" if tables >= limit else "new_tables_per_run"
        most = sorted(refused, key=lambda name: (-refused[name], name))
        names = ", ".join(most[:5]) + (", …" if most[5:] else "")
        lines = count(sum(refused.values()), "line")
        told.append(
            f"{count(len(refused), 'new table')} refused ({setting}): {names}; "
            f"`eventlake allow {connection.name} --refused` loads {lines} from quarantine"
        )
    if tables >= ALMOST_FULL * limit:
        told.append(f"the source has {tables:,} of at most {limit:,} tables (table_limit)")
    return told
