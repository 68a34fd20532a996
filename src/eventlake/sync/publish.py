"""The second job of a run: staged rows become the data files of tables."""

from collections.abc import Iterable, Mapping, Sequence

from eventlake.control.ledger import LakeFile
from eventlake.lake.segments import NONE
from eventlake.schema.names import RESCUED_COLUMN
from eventlake.sync.dedupe import Kept
from eventlake.sync.plan import TablePlan
from eventlake.sync.shares import publish_tasks
from eventlake.sync.stage import Staged, StagedTable
from eventlake.sync.state import LakeState
from eventlake.sync.work import Work
from eventlake.tasks import publish as task
from eventlake.tasks.publish import PublishContext, Published, TableShare


def publish(work: Work, state: LakeState, plans: Sequence[TablePlan], staged: Staged, kept: Kept) -> list[Published]:
    if not plans:
        return []
    job = work.job
    context = PublishContext(
        run_id=work.run_id,
        storage=work.lake.storage,
        dialect=job.connection.dialect,
        staged_paths=tuple(staged.paths),
        dropped=tuple(kept.dropped),
        carried=tuple(kept.carried),
        keep_rounded=job.connection.settings.rescue_rounded,
        sizes=work.sizes.publish,
    )
    carried, replaced = kept.carried_tables, _paths_by_table(state.replaced_files(job))  # discards are made anew
    tables = [
        (
            _share(work, state, plan, kept, replaced if plan.table_key in carried else {}),
            staged.tables.get(plan.table_key, StagedTable()).segments,
        )
        for plan in plans
    ]
    tasks = publish_tasks(tables, work.runner.parallelism, work.sizes.shares)
    return [part for parts in work.spread("publish", task.publish, context, tasks) for part in parts]


def _paths_by_table(files: Iterable[LakeFile]) -> dict[str, list[str]]:
    paths: dict[str, list[str]] = {}
    for file in files:
        paths.setdefault(file.table_key, []).append(file.path)
    return paths


def _share(
    work: Work, state: LakeState, plan: TablePlan, kept: Kept, carry_from_tables: Mapping[str, Sequence[str]]
) -> TableShare:
    """A table, without its rows."""
    key = plan.table_key
    carry_from = tuple(carry_from_tables.get(key, ()))
    return TableShare(
        key,
        plan.columns,
        segments=NONE,
        carry_from=carry_from,
        carried_routes=tuple(route for route in kept.carried_routes if key in route) if carry_from else (),
        rescued_at=_rescued_at(work, state, key),
        is_in_scope=work.job.scope is None or work.job.scope.has_table(key),
    )


def _rescued_at(work: Work, state: LakeState, table_key: str) -> int | None:
    """Where a table that exists has its `_rescued_data`: every file has it there, filled or not."""
    table, dialect = state.tables.get(table_key), work.job.connection.dialect
    if table is None or (table.database, table.name) != (dialect.database, dialect.table_name(table_key)):
        return None
    names = [column.name for column in table.schema.columns]
    return names.index(RESCUED_COLUMN) if RESCUED_COLUMN in names else None
