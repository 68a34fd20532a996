"""How tables look after a run: decided on the driver, from what was seen. No data is touched."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from eventlake.errors import InvalidSettingsError
from eventlake.schema.declared import INFERRED, TypeRules
from eventlake.schema.evolve import Column, Sighting, TableSchema, evolve, join
from eventlake.schema.types import Seen
from eventlake.sync.dedupe import Kept
from eventlake.sync.jobs import Job
from eventlake.sync.stage import Staged
from eventlake.sync.state import LakeState


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
    settings = job.connection.settings
    plans = []
    for key in sorted(staged.tables.keys() | kept.carried_tables.keys()):
        evidence = staged.tables[key].evidence if key in staged.tables else {}
        schema = state.schema(job, key)
        plans.append(plan_table(key, schema, evidence, column_limit=settings.column_limit, rules=settings.type_rules))
    return plans


def _refuse_taken(job: Job, state: LakeState, staged: Staged) -> None:
    """Two must not write to one table."""
    dialect = job.connection.dialect
    for name in sorted(map(dialect.table_name, staged.tables)):
        if name in state.taken:
            raise InvalidSettingsError(
                f"there is a table {dialect.database}.{name} in the catalog that was not made by eventlake",
                fix=f"choose another database: `eventlake connection set {job.connection.name} database=…`; or drop "
                "that table",
            )


def plan_table(
    table_key: str,
    schema: TableSchema | None,
    evidence: Mapping[str, Sighting],
    *,
    column_limit: int,
    rules: TypeRules = INFERRED,
) -> TablePlan:
    # Every row has these two, also where the event does not tell them.
    always = {
        name: Sighting(Seen.NOTHING, 1 << 60, pointer)
        for name, pointer in (("message_id", "/messageId"), ("received_at", "/receivedAt"))
    }
    current = schema or TableSchema()
    limit = max(column_limit, len(always))
    change = evolve(current, join([always, evidence]), column_limit=limit, table=table_key, rules=rules)
    columns = current.columns + change.added
    return TablePlan(table_key, schema is None, columns, change.added, change.refused, change.reasons)
