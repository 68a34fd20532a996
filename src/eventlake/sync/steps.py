"""The steps of a run that are spread over Spark, and the planning between them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from eventlake.control.ledger import LakeFile
from eventlake.errors import DamagedIdsError, InvalidSettingsError, StagingDeniedError, UploadDeniedError
from eventlake.lake import ids
from eventlake.schema.evolve import TableSchema
from eventlake.schema.names import RESCUED_COLUMN
from eventlake.sync import dedupe, inspect, plan, publish, stage
from eventlake.sync.dedupe import Kept, Mode
from eventlake.sync.discover import Found
from eventlake.sync.index import Index, ReindexContext, Reindexed, parted, reindex, reindex_tasks
from eventlake.sync.jobs import Job
from eventlake.sync.plan import PlanSizes, Staged, TablePlan
from eventlake.sync.publish import Published, PublishSizes
from eventlake.sync.staged import StageContext, StageSizes
from eventlake.workspace import Lake

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
class Sizes:
    """The sizes at which a run takes another way. What comes out is the same at any, only time and memory differ."""

    plan: PlanSizes = field(default_factory=PlanSizes)
    stage: StageSizes = field(default_factory=StageSizes)
    publish: PublishSizes = field(default_factory=PublishSizes)


@dataclass(frozen=True)
class Steps:
    lake: Lake
    job: Job
    runner: Runner
    progress: Progress
    run_id: str
    sizes: Sizes

    def stage(self, found: Found) -> Staged:
        if not found.files:
            return Staged()
        settings = self.job.connection.settings
        refused_before = self.lake.admission.refused(self.job.connection.source.id)
        context = StageContext(
            run_id=self.run_id,
            storage=self.lake.storage,
            archive=self.lake.archive,
            rules=self.job.connection.rules,
            known_columns={name: tuple(c.name for c in s.columns) for name, s in self._schemas().items()},
            column_limit=settings.column_limit,
            table_limit=settings.table_limit + NAMES_TO_CHOOSE_FROM,
            scope=self.job.scope,
            preferred_tables=self.job.allowed | {table.segment_type for table in refused_before},
            dropped_tables=self._dropped(),
            sizes=self.sizes.stage,
        )
        tasks = plan.stage_tasks(found.files, self.runner.parallelism, self.sizes.plan)
        staged = plan.combine(self._spread("stage", stage.stage, context, tasks))
        known = context.known_columns.keys()
        allowed = plan.tables_within(self._room(len(known)), known, staged, context.preferred_tables)
        if allowed is not None:  # tasks do not know of each other's new tables: once more, with the tables that may be
            context = replace(context, only_tables=allowed)
            staged = plan.combine(self._spread("stage", stage.stage, context, tasks))
        return staged

    def _room(self, tables: int) -> plan.Room:
        """How many tables may be added: by a first sync all that the source has, by a replay what is asked for."""
        settings = self.job.connection.settings
        is_bound = tables and self.job.mode is Mode.SYNC
        left = max(0, settings.table_limit - tables)
        return plan.Room(left, min(left, settings.new_tables_per_run) if is_bound else left)

    def _dropped(self) -> frozenset[str]:
        """The tables that are kept out."""
        connection = self.job.connection
        names = frozenset(table.segment_type for table in self.lake.admission.dropped(connection.source.id))
        saved = self.lake.workspace.connections.of_table(self.lake.name, connection.source.id).settings
        if names and saved.table_naming is not connection.settings.table_naming:
            raise InvalidSettingsError(
                f"with another table_naming, the rules that keep {len(names)} dropped tables out would not hold",
                fix="let those tables in first, and drop them again under their new names: `eventlake drop --list`",
            )
        return names - self.job.allowed

    def dedupe(self, found: Found, staged: Staged) -> Kept:
        kept = self.with_index(found.index, lambda index, made: self._decided(found, index, made, staged))
        if kept.carried_rows and self.job.mode is Mode.REBUILD:
            raise InvalidSettingsError(
                f"{sum(kept.carried_rows.values())} rows are in the lake but no longer in the raw archive: "
                "writing all tables anew would lose them",
                fix="put the missing raw files back, or keep the settings as they are",
            )
        return kept

    def with_index(self, index: Index, use: Callable[[Index, Reindexed], Result]) -> Result:
        """What `use` makes of the index and of the part of it that was lost, made anew.

        A part that turns out to be damaged counts as lost, and `use` is called again.
        """
        while True:
            try:
                return use(index, self._reindexed(index))
            except DamagedIdsError:
                checked = self._checked(index)
                if checked == index:
                    raise  # what is damaged is not the index
                index = checked

    def _decided(self, found: Found, index: Index, made: Reindexed, staged: Staged) -> Kept:
        if not staged.rows and not self.job.is_replay:
            return Kept(reindexed=made)
        sound = {file.path for file in index.sound}
        searched = [file.path for file in found.searched if file.path in sound]
        context = dedupe.DedupeContext(
            run_id=self.run_id,
            storage=self.lake.storage,
            mode=self.job.mode,
            id_segments=tuple(staged.id_segments),
            staged_paths=staged.paths,
            index=(*searched, *(part.path for part in made.parts)),
            failed_files=staged.failed_files,
            scope=self.job.scope,
        )
        shares = ids.shares(plan.dedupe_shares(staged.rows, self.runner.parallelism, self.sizes.plan))
        kept = dedupe.combine(self._spread("dedupe", dedupe.dedupe, context, shares), self._table_keys(staged))
        kept.reindexed = made
        return kept

    def _reindexed(self, index: Index) -> Reindexed:
        """The part of the index that is lost, made anew from the data files."""
        if not index.lost:
            return Reindexed()
        context = ReindexContext(self.run_id, self.lake.storage, tuple(file.path for file in index.sound))
        files = self.lake.ledger.data_files(self.job.connection.source.id)
        tasks = reindex_tasks(file for file in files if file.segment_type != self.job.dropped)
        parts = self._spread("reindex", reindex, context, tasks)
        return Reindexed(tuple(part for part in parts if part), tuple(index.lost))

    def _checked(self, index: Index) -> Index:
        """The index after every file of it was read: what is damaged in it counts as lost."""
        context = inspect.InspectContext(
            self.lake.storage, self.lake.archive, self.job.connection.settings.date_partition.width
        )
        all_seen = self._spread("check", inspect.inspect_index, context, [file.path for file in index.sound])
        sound = {
            file
            for file, seen in zip(index.sound, all_seen, strict=True)
            if seen.whole == inspect.Messages(file.messages, int(file.checksum, 16))
        }
        return parted([*index.sound, *index.lost], sound.__contains__)

    def plan(self, staged: Staged, kept: Kept, taken: Collection[str]) -> list[TablePlan]:
        self._refuse_taken(staged, taken)
        schemas = self._schemas()
        settings = self.job.connection.settings
        limit, rules = settings.column_limit, settings.type_rules
        plans = []
        for name in sorted(staged.tables.keys() | kept.carried_rows.keys()):
            evidence = staged.tables[name].evidence if name in staged.tables else {}
            plans.append(plan.plan_table(name, schemas.get(name), evidence, column_limit=limit, rules=rules))
        return plans

    def _refuse_taken(self, staged: Staged, taken: Collection[str]) -> None:
        """Two must not write to one table."""
        rules = self.job.connection.rules
        for name in sorted(map(rules.table_name, staged.tables)):
            if name in taken:
                raise InvalidSettingsError(
                    f"there is a table {rules.database}.{name} in the catalog that was not made by eventlake",
                    fix="choose another database: "
                    f"`eventlake connection set {self.job.connection.name} database=…`; or drop that table",
                )

    def publish(self, plans: Sequence[TablePlan], staged: Staged, kept: Kept) -> list[Published]:
        if not plans:
            return []
        context = publish.PublishContext(
            run_id=self.run_id,
            storage=self.lake.storage,
            rules=self.job.connection.rules,
            staged_paths=staged.paths,
            dropped=tuple(kept.dropped),
            carried=tuple(kept.carried),
            keep_rounded=self.job.connection.settings.rescue_rounded,
            sizes=self.sizes.publish,
        )
        old = {name: [file.path for file in replaced_files(self.lake, self.job, name)] for name in kept.carried_rows}
        tasks = plan.publish_tasks(plans, staged, old, self.runner.parallelism, self._rescued_at(), self.sizes.plan)
        return [part for parts in self._spread("publish", publish.publish, context, tasks) for part in parts]

    def _schemas(self) -> Mapping[str, TableSchema]:
        """The tables that exist, by segment type, with the types that the job asks for."""
        schemas: dict[str, TableSchema] = {}
        for table in self.lake.catalog.tables(self.job.connection.source.id):
            schema = TableSchema(tuple(c for c in table.schema.columns if c.name != RESCUED_COLUMN))
            for name, new_type in self.job.new_types.get(table.segment_type, {}).items():
                schema = schema.with_type(name, new_type)
            schemas[table.segment_type] = schema
        return schemas

    def _rescued_at(self) -> dict[str, int]:
        """Where the tables that exist have their `_rescued_data`: every file has it there, filled or not."""
        positions = {}
        rules = self.job.connection.rules
        for table in self.lake.catalog.tables(self.job.connection.source.id):
            names = [column.name for column in table.schema.columns]
            keeps_its_name = (table.database, table.name) == (rules.database, rules.table_name(table.segment_type))
            if RESCUED_COLUMN in names and keeps_its_name:
                positions[table.segment_type] = names.index(RESCUED_COLUMN)
        return positions

    def _table_keys(self, staged: Staged) -> dict[int, str]:
        known = {table.segment_type for table in self.lake.catalog.tables(self.job.connection.source.id)}
        return {ids.table_key(name): name for name in known | staged.tables.keys()}

    def _spread(
        self, step: str, function: Callable[[Context, Task], Result], context: Context, tasks: Sequence[Task]
    ) -> list[Result]:
        self.lake.runs.at_step(self.run_id, step)
        self.progress(step, 0, len(tasks))
        try:
            results = self.runner.run(function, context, tasks, lambda done: self.progress(step, done, len(tasks)))
        except UploadDeniedError as error:
            raise StagingDeniedError(error.problem, fix=error.fix) from error  # steps write nowhere else
        self.progress(step, len(tasks), len(tasks))
        return results


def replaced_files(lake: Lake, job: Job, segment_type: str | None = None) -> list[LakeFile]:
    """The data files that a replay writes anew; none for a sync."""
    if not job.is_replay:
        return []
    scope = job.scope
    files = lake.ledger.data_files(job.connection.source.id, segment_type)
    if scope is None:
        return files
    return [
        file
        for file in files
        if scope.start <= file.first_received < scope.stop
        and (scope.segment_types is None or file.segment_type in scope.segment_types)
    ]
