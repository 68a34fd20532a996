"""How tables look after a run: decided on the driver, from what was seen. No data is touched."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from eventlake.errors import InvalidSettingsError
from eventlake.lake import discards
from eventlake.schema.declared import INFERRED, TypeRules
from eventlake.schema.evolve import Column, Sighting, TableSchema, evolve, join
from eventlake.schema.names import OWNED_COLUMNS
from eventlake.schema.types import Seen
from eventlake.sync.dedupe import Kept
from eventlake.sync.jobs import Job
from eventlake.sync.stage import Staged
from eventlake.sync.state import LakeState
from eventlake.tasks.publish import Published


class TablePlan(NamedTuple):
    """How one table looks after the run."""

    table_key: str
    is_new: bool
    columns: tuple[Column, ...]
    added: tuple[Column, ...]
    refused: tuple[str, ...]
    reasons: Mapping[str, str] = MappingProxyType({})  # of types of added columns


def plan(job: Job, state: LakeState, staged: Staged, kept: Kept) -> list[TablePlan]:
    """How each table looks that the run writes to."""
    _refuse_taken(job, state, staged)
    settings, dialect = job.connection.settings, job.connection.dialect
    plans = []
    for key in sorted(staged.tables.keys() | kept.carried_tables.keys() | kept.removed_tables.keys()):
        evidence = staged.tables[key].evidence if key in staged.tables else {}
        schema, columns = state.schema(job, key), dialect.columns(key)
        rules = replace(settings.type_rules, numbers=dialect.numbers, fixed=columns.fixed)
        limit = settings.column_limit
        plans.append(plan_table(key, schema, evidence, column_limit=limit, rules=rules, always=columns.always))
    return plans


def with_discards(
    plans: Sequence[TablePlan], job: Job, state: LakeState, published: Iterable[Published]
) -> list[TablePlan]:
    """The plans, and that of the table of discarded values if there are any."""
    key = job.connection.dialect.discards
    if key is None or not any(part.discards for part in published):
        return list(plans)
    is_new = key not in state.tables
    return [*plans, TablePlan(key, is_new, discards.COLUMNS, discards.COLUMNS if is_new else (), ())]


def _refuse_taken(job: Job, state: LakeState, staged: Staged) -> None:
    """Two must not write to one table."""
    dialect = job.connection.dialect
    keys = {*staged.tables, *([dialect.discards] if dialect.discards and staged.tables else ())}
    for name in sorted(map(dialect.table_name, keys)):
        if name in state.taken:
            raise InvalidSettingsError(
                f"there is a table {dialect.database}.{name} in the catalog that was not made by eventlake",
                fix=f"choose another database: `eventlake connection set {job.connection.name} "
                f"{job.connection.settings.names_database}=…`; or drop that table",
            )


def plan_table(
    table_key: str,
    schema: TableSchema | None,
    evidence: Mapping[str, Sighting],
    *,
    column_limit: int,
    rules: TypeRules = INFERRED,
    always: Mapping[str, str] = OWNED_COLUMNS,
) -> TablePlan:
    # Every row has these, also where the event does not tell them.
    there = {name: Sighting(Seen.NOTHING, 1 << 60, pointer) for name, pointer in always.items()}
    current = schema or TableSchema()
    limit = max(column_limit, len(there))
    change = evolve(current, join([there, evidence]), column_limit=limit, table=table_key, rules=rules)
    columns = current.columns + change.added
    return TablePlan(table_key, schema is None, columns, change.added, change.refused, change.reasons)
