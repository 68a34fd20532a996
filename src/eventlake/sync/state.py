"""What is in a lake of a connection, as a run finds it: read once, before anything is planned."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from eventlake.catalog.base import CatalogTable
from eventlake.control.admission import RefusedTable
from eventlake.control.ledger import LakeFile
from eventlake.errors import InvalidSettingsError
from eventlake.reading.flatten import CONTAINERS
from eventlake.schema.evolve import TableSchema
from eventlake.schema.names import RESCUED_COLUMN
from eventlake.schema.types import ColumnType
from eventlake.sync.index import Index, found_sound
from eventlake.sync.jobs import Job
from eventlake.workspace import Lake


@dataclass(frozen=True)
class LakeState:
    """Everything that planning a run and making its manifest depend on, besides what the run itself sees."""

    tables: Mapping[str, CatalogTable]  # by key
    taken: frozenset[str]  # names in the database that belong to tables which are not ours
    data_files: list[LakeFile]  # empty if a run looks at none
    index: Index
    refused: list[RefusedTable]  # before
    dropped: frozenset[str]  # keys of tables that are kept out
    last_run: str | None  # that was recorded
    violations: Mapping[str, str]  # files, and the runs that wrote them

    def schema(self, job: Job, table_key: str) -> TableSchema | None:
        """The columns of a table, with the types that the job asks for; None if there is no such table."""
        table = self.tables.get(table_key)
        if table is None:
            return None
        schema = TableSchema(tuple(column for column in table.schema.columns if column.name != RESCUED_COLUMN))
        for name, new_type in job.new_types.get(table_key, {}).items():
            schema = schema.with_type(name, new_type)
        return schema

    def known_columns(self, job: Job) -> dict[str, frozenset[str]]:
        """The names of the columns of each table."""
        schemas = {key: self.schema(job, key) for key in self.tables}
        return {key: schema.names for key, schema in schemas.items() if schema}

    def text_columns(self, job: Job) -> dict[str, frozenset[str]]:
        """The columns of each table that take an object as JSON text: of texts, if no member of one has a column."""
        if not job.connection.dialect.objects_as_text:
            return {}
        schemas = {key: self.schema(job, key) or TableSchema() for key in self.tables}
        return {key: frozenset(_without_members(schema)) for key, schema in schemas.items()}

    def replaced_files(self, job: Job) -> list[LakeFile]:
        """The data files that a run writes anew; none for a sync."""
        scope = job.scope
        if not job.is_replay or scope is None:
            return self.data_files if job.is_replay else []
        return [
            file
            for file in self.data_files
            if scope.start <= file.first_received < scope.stop and scope.has_table(file.owner or file.table_key)
        ]


def _without_members(schema: TableSchema) -> Iterator[str]:
    """The columns of text whose names no other column has before an underscore.

    One event whose `properties` are a text does not turn all later ones into JSON.
    """
    names = sorted(schema.names)
    for column in schema.columns:
        below = f"{column.name}_"
        first = bisect_left(names, below)
        has_members = first < len(names) and names[first].startswith(below)
        if column.type is ColumnType.STRING and not has_members and column.name not in CONTAINERS:
            yield column.name


def read_state(lake: Lake, job: Job) -> LakeState:
    source_id = job.connection.source.id
    taken = lake.catalog.prepare(job.connection.database)
    stored = {file.path: file.size for file in lake.storage.files(f"{lake.folders.index}/source={source_id}")}
    index = found_sound(lake.ledger.index_files(source_id), stored)
    looks_at_data = job.is_replay or job.dropped is not None or index.lost
    return LakeState(
        tables={table.table_key: table for table in lake.catalog.tables(source_id)},
        taken=taken,
        data_files=lake.ledger.data_files(source_id) if looks_at_data else [],
        index=index,
        refused=lake.admission.refused(source_id),
        dropped=_dropped(lake, job),
        last_run=lake.ledger.last_run(source_id),
        violations=lake.ledger.violation_files(source_id),
    )


def _dropped(lake: Lake, job: Job) -> frozenset[str]:
    names = frozenset(table.table_key for table in lake.admission.dropped(job.connection.source.id))
    saved = lake.workspace.connections.of_table(lake.name, job.connection.source.id).settings
    wanted = job.connection.settings
    other = [name for name in saved.of_table_keys if getattr(saved, name) != getattr(wanted, name)]
    if names and other:
        raise InvalidSettingsError(
            f"with another {' and '.join(other)}, the rules that keep {len(names)} dropped tables out would not hold",
            fix="let those tables in first, and drop them again under their new names: `eventlake drop --list`",
        )
    return names - job.allowed
