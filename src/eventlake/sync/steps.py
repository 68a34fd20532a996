"""The steps of a run that are spread over Spark, and the planning between them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from eventlake.control.ledger import LakeFile
from eventlake.errors import InvalidSettingsError, StagingDeniedError, UploadDeniedError
from eventlake.lake import ids
from eventlake.schema.evolve import TableSchema
from eventlake.schema.names import RESCUED_COLUMN
from eventlake.sync import dedupe, plan, publish, stage
from eventlake.sync.dedupe import Kept, Mode
from eventlake.sync.discover import Found
from eventlake.sync.jobs import Job
from eventlake.sync.plan import Staged, TablePlan
from eventlake.sync.publish import Published
from eventlake.sync.staged import StageContext
from eventlake.workspace import Workspace

Task = TypeVar("Task")
Result = TypeVar("Result")
Context = TypeVar("Context")

NAMES_TO_CHOOSE_FROM = 1000  # tables beyond the limit that a task looks at, to keep the most used ones

Progress = Callable[[str, int, int], None]
"""Called with the step, the number of its tasks that are done, and how many there are."""


def no_progress(step: str, done: int, tasks: int) -> None:
    """Nobody watches."""


class Runner(Protocol):
    """Where tasks are carried out."""

    @property
    def parallelism(self) -> int: ...

    def run(
        self,
        function: Callable[[Context, Task], Result],
        context: Context,
        tasks: Sequence[Task],
        progress: Callable[[int], None] | None = None,
    ) -> list[Result]:
        """Call the function for every task, anywhere, perhaps more than once; results in the order of the tasks."""


@dataclass(frozen=True)
class Steps:
    workspace: Workspace
    job: Job
    runner: Runner
    progress: Progress
    run_id: str

    def stage(self, found: Found) -> Staged:
        if not found.files:
            return Staged()
        settings = self.job.source.settings
        context = StageContext(
            run_id=self.run_id,
            storage=self.workspace.storage,
            rules=self.job.source.rules,
            known_columns={name: tuple(c.name for c in s.columns) for name, s in self._schemas().items()},
            column_limit=settings.column_limit,
            table_limit=settings.table_limit + NAMES_TO_CHOOSE_FROM,
            scope=self.job.scope,
        )
        tasks = plan.stage_tasks(found.files, self.runner.parallelism)
        staged = plan.combine(self._spread("stage", stage.stage, context, tasks))
        allowed = plan.tables_within(settings.table_limit, context.known_columns.keys(), staged)
        if allowed is not None:  # tasks do not know of each other's new tables: once more, with the tables that may be
            context = replace(context, only_tables=allowed)
            staged = plan.combine(self._spread("stage", stage.stage, context, tasks))
        return staged

    def dedupe(self, found: Found, staged: Staged) -> Kept:
        if not staged.rows and not self.job.is_replay:
            return Kept()
        context = dedupe.DedupeContext(
            run_id=self.run_id,
            storage=self.workspace.storage,
            mode=self.job.mode,
            id_segments=tuple(staged.id_segments),
            staged_paths=staged.paths,
            index=tuple(found.index_files),
            failed_files=staged.failed_files,
            scope=self.job.scope,
        )
        shares = ids.shares(plan.dedupe_shares(staged.rows, self.runner.parallelism))
        kept = dedupe.combine(self._spread("dedupe", dedupe.dedupe, context, shares), self._table_keys(staged))
        if kept.carried_rows and self.job.mode is Mode.REBUILD:
            raise InvalidSettingsError(
                f"{sum(kept.carried_rows.values())} rows are in the lake but no longer in the raw archive: "
                "writing all tables anew would lose them",
                fix="put the missing raw files back, or keep the settings as they are",
            )
        return kept

    def plan(self, staged: Staged, kept: Kept, taken: Collection[str]) -> list[TablePlan]:
        self._refuse_taken(staged, taken)
        schemas = self._schemas()
        limit = self.job.source.settings.column_limit
        plans = []
        for name in sorted(staged.tables.keys() | kept.carried_rows.keys()):
            evidence = staged.tables[name].evidence if name in staged.tables else {}
            plans.append(plan.plan_table(name, schemas.get(name), evidence, column_limit=limit))
        return plans

    def _refuse_taken(self, staged: Staged, taken: Collection[str]) -> None:
        """Two must not write to one table."""
        rules = self.job.source.rules
        for name in sorted(map(rules.table_name, staged.tables)):
            if name in taken:
                raise InvalidSettingsError(
                    f"there is a table {rules.database}.{name} in the catalog that was not made by eventlake",
                    fix=f"choose another database: `eventlake source set {self.job.source.slug} database=…`; or drop "
                    "that table",
                )

    def publish(self, plans: Sequence[TablePlan], staged: Staged, kept: Kept) -> list[Published]:
        if not plans:
            return []
        context = publish.PublishContext(
            run_id=self.run_id,
            storage=self.workspace.storage,
            rules=self.job.source.rules,
            staged_paths=staged.paths,
            dropped=tuple(kept.dropped),
            carried=tuple(kept.carried),
            keep_rounded=self.job.source.settings.rescue_rounded,
        )
        old = {
            name: [file.path for file in replaced_files(self.workspace, self.job, name)] for name in kept.carried_rows
        }
        tasks = plan.publish_tasks(plans, staged, old, self.runner.parallelism, self._rescued_at())
        return [part for parts in self._spread("publish", publish.publish, context, tasks) for part in parts]

    def _schemas(self) -> Mapping[str, TableSchema]:
        """The tables that exist, by segment type, with the types that the job asks for."""
        schemas: dict[str, TableSchema] = {}
        for table in self.workspace.catalog.tables(self.job.source.id):
            schema = TableSchema(tuple(c for c in table.schema.columns if c.name != RESCUED_COLUMN))
            for name, new_type in self.job.new_types.get(table.segment_type, {}).items():
                schema = schema.with_type(name, new_type)
            schemas[table.segment_type] = schema
        return schemas

    def _rescued_at(self) -> dict[str, int]:
        """Where the tables that exist have their `_rescued_data`: every file has it there, filled or not."""
        positions = {}
        rules = self.job.source.rules
        for table in self.workspace.catalog.tables(self.job.source.id):
            names = [column.name for column in table.schema.columns]
            keeps_its_name = (table.database, table.name) == (rules.database, rules.table_name(table.segment_type))
            if RESCUED_COLUMN in names and keeps_its_name:
                positions[table.segment_type] = names.index(RESCUED_COLUMN)
        return positions

    def _table_keys(self, staged: Staged) -> dict[int, str]:
        known = {table.segment_type for table in self.workspace.catalog.tables(self.job.source.id)}
        return {ids.table_key(name): name for name in known | staged.tables.keys()}

    def _spread(
        self, step: str, function: Callable[[Context, Task], Result], context: Context, tasks: Sequence[Task]
    ) -> list[Result]:
        self.workspace.runs.at_step(self.run_id, step)
        self.progress(step, 0, len(tasks))
        try:
            results = self.runner.run(function, context, tasks, lambda done: self.progress(step, done, len(tasks)))
        except UploadDeniedError as error:
            raise StagingDeniedError(error.problem, fix=error.fix) from error  # steps write nowhere else
        self.progress(step, len(tasks), len(tasks))
        return results


def replaced_files(workspace: Workspace, job: Job, segment_type: str | None = None) -> list[LakeFile]:
    """The data files that a replay writes anew; none for a sync."""
    if not job.is_replay:
        return []
    scope = job.scope
    files = workspace.ledger.data_files(job.source.id, segment_type)
    if scope is None:
        return files
    return [
        file
        for file in files
        if scope.start <= file.first_received < scope.stop
        and (scope.segment_types is None or file.segment_type in scope.segment_types)
    ]
