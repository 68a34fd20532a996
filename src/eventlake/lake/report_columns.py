"""The columns of `__segment_datalake.sync_reports`: Segment's 22, then what eventlake adds."""

from typing import NamedTuple


class ReportColumn(NamedTuple):
    """A column with the types that DuckDB and Hive's catalogs have for it; None where Hive cannot tell it."""

    name: str
    duckdb: str
    hive: str | None


_TEXT, _TIME, _NUMBER, _FLAG = (
    ("VARCHAR", "string"),
    ("TIMESTAMP", "timestamp"),
    ("BIGINT", "bigint"),
    ("BOOLEAN", "boolean"),
)

REPORT_COLUMNS = (
    ReportColumn("type", *_TEXT),
    ReportColumn("workspace_id", *_TEXT),
    ReportColumn("run_id", *_TEXT),
    ReportColumn("start_time", *_TIME),
    ReportColumn("finish_time", *_TIME),
    ReportColumn("duration_mins", *_NUMBER),
    ReportColumn("status", *_TEXT),
    ReportColumn("error", *_TEXT),
    ReportColumn("error_code", *_TEXT),
    ReportColumn("table_name", *_TEXT),
    ReportColumn("database", *_TEXT),
    # The keys follow the date layout. Hive gets a struct: its fields are those of all four layouts.
    ReportColumn(
        "partitions", "MAP(VARCHAR, VARCHAR)[]", "array<struct<year:string,month:string,day:string,hr:string>>"
    ),
    ReportColumn("new_columns", "STRUCT(name VARCHAR, type VARCHAR)[]", "array<struct<name:string,type:string>>"),
    ReportColumn("row_count", *_NUMBER),
    ReportColumn("is_new", *_FLAG),
    ReportColumn("replay", *_FLAG),
    ReportColumn("replay_from", *_TIME),
    ReportColumn("replay_to", *_TIME),
    ReportColumn("emr_cluster_id", *_TEXT),
    ReportColumn("s3_bucket", *_TEXT),
    ReportColumn("source_id", *_TEXT),  # to Hive, this one and the next are partitions
    ReportColumn("day", *_TEXT),
    ReportColumn("kind", *_TEXT),
    ReportColumn("azure_storage_account", *_TEXT),
    ReportColumn("azure_storage_container", *_TEXT),
    ReportColumn("books", "JSON", None),
    ReportColumn("rescued", "JSON", None),
    ReportColumn("rewritten", *_NUMBER),
    ReportColumn("notices", "VARCHAR[]", "array<string>"),
)
