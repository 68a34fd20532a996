"""What tables look like, as files for other programs: one for each table, as Segment's lake on Azure has them.

They are written when a run has planned its tables, before any of its data is published, so whoever reads data finds its
columns described. Nothing is read from them: a file that is lost or changed is made anew by the next run.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eventlake.catalog.base import SchemaEvent
from eventlake.events import instants
from eventlake.schema.evolve import Column
from eventlake.schema.names import RESCUED_COLUMN
from eventlake.sync.plan import TablePlan
from eventlake.sync.state import LakeState
from eventlake.sync.work import Work

VERSION = 1
SCHEMA = Path(__file__).with_name("schema_file.schema.json")  # of these files


def describe(work: Work, state: LakeState, plans: Sequence[TablePlan]) -> None:
    """Bring the schema files of a source up to date, if its lake has such files."""
    lake, job = work.lake, work.job
    if lake.schema_files is None:
        return
    folder = f"{lake.schema_files}/{job.connection.source.id}"
    there = {file.path for file in lake.storage.files(folder)}
    paths = {f"{folder}/{plan.table_key}.json": plan for plan in plans}
    new = {path: plan for path, plan in paths.items() if plan.added or job.is_replay or path not in there}
    contents = [(path, _written(work, state, plan)) for path, plan in new.items()]
    for _ in lake.storage.beside(lambda one: lake.storage.write(*one), contents):
        pass
    dropped = there - paths.keys() - {f"{folder}/{key}.json" for key in state.tables}
    for path in sorted(dropped):
        lake.storage.delete(path)


def _written(work: Work, state: LakeState, plan: TablePlan) -> bytes:
    lake, dialect = work.lake, work.job.connection.dialect
    known = state.tables.get(plan.table_key)
    events = lake.catalog.history(known.database, known.name) if known else []
    now = lake.clock.now()
    described = schema_file(
        plan.columns,
        events,
        run_id=work.run_id,
        at=now,
        source_id=work.job.connection.source.id,
        database=dialect.database,
        table=dialect.table_name(plan.table_key),
        event_type=plan.table_key,
        location=lake.storage.full(dialect.location(plan.table_key)),
        partition_keys=dialect.date_partition.keys,
    )
    return json.dumps(described, indent=1).encode()


def schema_file(
    columns: Sequence[Column],
    history: Sequence[SchemaEvent],
    *,
    run_id: str,
    at: int,
    partition_keys: Sequence[str],
    **table: str,
) -> dict[str, Any]:
    """What a table looks like. A column that the history does not have comes with this run."""
    since = {event.column: event for event in history if event.change == "added"}
    return {
        "version": VERSION,
        **table,
        "format": "parquet",
        "rescued_column": RESCUED_COLUMN,  # which a table gets when something is rescued for the first time
        "partition_keys": [{"name": key, "type": "string"} for key in partition_keys],
        "run_id": run_id,
        "updated_at": instants.to_text(at),
        "columns": [
            {
                "name": column.name,
                "type": column.type.value,
                "path": column.pointer,
                "since": instants.to_text(since[column.name].at if column.name in since else at),
                "run_id": since[column.name].run_id if column.name in since else run_id,
            }
            for column in columns
        ],
    }
