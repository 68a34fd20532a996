"""What tables look like, as files for other programs: one for each table, as Segment's lake on Azure has them.

They are written when a manifest is carried out, before its data files get their names: so whoever reads data finds its
columns described, and no column is described that does not come. Nothing is read from them but whether they are right:
one that is lost or changed is made anew by the next run that loads into its table.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from eventlake.catalog.base import CatalogTable, SchemaEvent, TableChange
from eventlake.commit.manifest import Manifest
from eventlake.events import instants
from eventlake.schema.evolve import Column
from eventlake.schema.names import RESCUED_COLUMN
from eventlake.workspace import Lake

VERSION = 1
SCHEMA = Path(__file__).with_name("schema_file.schema.json")  # of these files


def describe(lake: Lake, manifest: Manifest) -> None:
    """Bring the schema files of the tables that a run changes up to date, if its lake has such files."""
    if lake.settings.schema_files is None or not manifest.tables:
        return
    tables = {(table.database, table.name): table for table in lake.catalog.tables(manifest.entry.source_id)}

    def write(change: TableChange) -> None:
        described = _described(lake, manifest, change, tables.get((change.database, change.table)))
        path = _path(lake, change.source_id, change.table_key)
        if not _is_there(lake, path, described):
            lake.storage.write(path, json.dumps(described, indent=1).encode())

    for _ in lake.storage.beside(write, manifest.tables):
        pass


def forget(lake: Lake, source_id: str, dropped: Iterable[tuple[str, str]]) -> None:
    """Remove the schema files of tables that are about to be dropped; whatever else lies beside them is somebody's."""
    if lake.settings.schema_files is None:
        return
    keys = {(table.database, table.name): table.table_key for table in lake.catalog.tables(source_id)}
    gone = {keys.pop(name) for name in dropped if name in keys}
    for key in sorted(gone - set(keys.values())):  # others have other names now, and the same file
        lake.storage.delete(_path(lake, source_id, key))


def _path(lake: Lake, source_id: str, table_key: str) -> str:
    return f"{lake.settings.schema_files}/{source_id}/{table_key}.json"


def _is_there(lake: Lake, path: str, described: dict[str, Any]) -> bool:
    """Whether a file describes a table so, whichever run wrote it."""
    try:
        there = json.loads(lake.storage.read(path))
    except (FileNotFoundError, ValueError):
        return False
    by_run = {key: described[key] for key in ("run_id", "updated_at")}
    return isinstance(there, dict) and there | by_run == described


def _described(lake: Lake, manifest: Manifest, change: TableChange, known: CatalogTable | None) -> dict[str, Any]:
    return schema_file(
        _columns(change, known),
        lake.catalog.history(change.database, change.table) if known else [],
        run_id=manifest.entry.run_id,
        at=manifest.entry.at,
        source_id=change.source_id,
        database=change.database,
        table=change.table,
        event_type=change.table_key,
        location=lake.storage.full(change.location),
        partition_keys=change.partition_keys,
    )


def _columns(change: TableChange, known: CatalogTable | None) -> list[Column]:
    """The columns of a table after a run; the same if the catalog has its change already."""
    retyped = dict(change.retyped)
    there = known.schema.columns if known else ()
    names = {column.name for column in there}
    return [
        *(column._replace(type=retyped.get(column.name, column.type)) for column in there),
        *(column for column in change.added if column.name not in names),
    ]


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
