"""What the HTTP API takes and gives about tables."""

from typing import Any

from pydantic import Field

from eventlake.status.listing import ListedTable
from eventlake.web.api.models import MOMENT, Model, moment


class TableOut(Model):
    lake: str
    name: str
    columns: int
    files: int
    rows: int
    bytes: int
    last_received_at: MOMENT | None

    @classmethod
    def of(cls, table: ListedTable) -> "TableOut":
        return cls(
            lake=table.lake,
            name=table.full_name,
            columns=table.columns,
            files=table.files,
            rows=table.rows,
            bytes=table.bytes,
            last_received_at=moment(table.last_received),
        )


class TablePage(Model):
    total: int
    tables: list[TableOut]


class ColumnOut(Model):
    name: str
    type: str
    pointer: str = Field(description="Where in the event it comes from.")
    added_at: MOMENT | None
    added_run: str | None


class SchemaChangeOut(Model):
    at: MOMENT
    run_id: str
    column: str
    change: str
    type: str
    old_type: str | None


class TableDetails(Model):
    lake: str
    name: str
    source: str
    partition_keys: list[str]
    location: str
    columns: list[ColumnOut]


class MisfitOut(Model):
    column: str
    reason: str
    values: int
    examples: list[str]


class RetypeRequest(Model):
    column: str = Field(max_length=300)
    type: str = Field(max_length=30, examples=["decimal(38,6)"])


class PreviewOut(Model):
    """What another type would do to a column, by its newest values."""

    rescued: int
    would_fit: int
    values: int
    would_not: int


class QueryRequest(Model):
    sql: str = Field(max_length=20_000, examples=["select count(*) from web.page"])
    lake: str = Field("default", max_length=50)
    limit: int = Field(1000, ge=1, le=10_000)


class QueryOut(Model):
    columns: list[str]
    types: list[str]
    rows: list[list[Any]]
    is_cut: bool = Field(description="Whether there are more rows than the limit.")


class BadLineOut(Model):
    lake: str
    source: str
    run_id: str
    raw_file: str
    line: int
    reason: str
    detail: str
    size: int
    text: str
