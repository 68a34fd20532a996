"""Replays beside syncs: whether what a replay made still holds after syncs were committed."""

from eventlake.schema.names import RESCUED_COLUMN
from eventlake.sync.jobs import Job
from eventlake.sync.outcome import Outcome
from eventlake.sync.plan import TablePlan, plan, with_discards
from eventlake.sync.state import LakeState


def still_holding(job: Job, outcome: Outcome, before: LakeState, now: LakeState) -> Outcome | None:
    """What a replay made, with tables planned as they are now; None if it has to be made again.

    Syncs only add: messages that were not there, files beside others, columns behind others. That touches a replay in
    three cases. If it loads messages that were not in the lake, or makes a part of the index anew, a sync may have done
    the same. A column that both found to be new may have become one of another type. And a column may have come
    where the replay's files have the first values that were rescued. Whatever took files away was no sync: a run that
    had died before was carried out only now.
    """
    if now.last_run == before.last_run:
        return outcome
    if outcome.kept.new_ids or outcome.kept.reindexed.replaced or outcome.kept.removed:
        return None
    if not {file.path for file in before.data_files} <= {file.path for file in now.data_files}:
        return None
    plans = with_discards(plan(job, now, outcome.staged, outcome.kept), job, now, outcome.published)
    for old, new in zip(outcome.plans, plans, strict=True):
        if not _types(old).items() <= _types(new).items():
            return None
    if any(_names(before, key) != _names(now, key) for key in _newly_rescued(before, outcome)):
        return None
    return outcome._replace(plans=plans)


def _newly_rescued(before: LakeState, outcome: Outcome) -> set[str]:
    """Tables that get `_rescued_data` by the replay. Its files have that column last: no other may have come before."""
    rescued = {part.table_key for part in outcome.published if part.rescued.total()}
    return {key for key in rescued if RESCUED_COLUMN not in _names(before, key)}


def _names(state: LakeState, table_key: str) -> list[str]:
    table = state.tables.get(table_key)
    return [column.name for column in table.schema.columns] if table else []


def _types(table: TablePlan) -> dict[str, object]:
    return {column.name: column.type for column in table.columns}
